"""The question of SPEC 5 put to the person at the terminal, and sentences said before a program takes it over."""

from __future__ import annotations

import sys

from git_wt import terminal
from git_wt.model import Result
from git_wt.render import sentences


def keep_or_remove(question: str) -> str | None:
    """Keep (default), remove or cancel; None when the input ends."""
    return terminal.choose(question, ("keep", "remove", "cancel"), "keep")


def say(result: Result) -> None:
    """Print a result's sentences on stderr now."""
    sys.stderr.write(sentences(result))
    sys.stderr.flush()
