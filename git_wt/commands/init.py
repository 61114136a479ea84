"""`git wt init`: print the shell integration."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from git_wt.errors import WtError
from git_wt.model import Caller, Result

SHELLS = ("bash", "zsh", "fish")


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")


def run(args: Namespace, caller: Caller) -> Result:
    """The text to source: `eval "$(git wt init bash)"`, `git wt init fish | source`."""
    del caller
    return Result("text", {"text": shell_file(f"git-wt.{args.shell}")})


def shell_file(name: str) -> str:
    """A file of `shell/`: package data in an installed git-wt, beside the package in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in (package, os.path.dirname(package)):
        try:
            with open(f"{folder}/shell/{name}", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            continue
    raise WtError("bug", f"cannot find the shell integration '{name}'", hint="reinstall git-wt")
