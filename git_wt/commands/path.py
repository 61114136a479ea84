"""`git wt path`: print a worktree's folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt.flows.locate import locate
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="a worktree; '^' main, '-' previous; this session's when left out"
    )


def run(args: Namespace, caller: Caller) -> Result:
    """The folder of NAME."""
    found = locate(args.name, caller)
    return Result("path", {"path": found.path}, found.notes)
