"""The question keep, remove or cancel, and sentences that are said before another program takes the terminal over."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from git_wt import terminal
from git_wt.model import Result
from git_wt.render import sentences


def keep_or_remove(question: str, answers: Sequence[str]) -> str | None:
    """One of `answers`, the first by default; None when the input ends."""
    return terminal.choose(question, answers, answers[0])


def say(result: Result) -> None:
    """Print a result's sentences on stderr now."""
    sys.stderr.write(sentences(result))
    sys.stderr.flush()
