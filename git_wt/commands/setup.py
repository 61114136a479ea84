"""`git wt setup`: run set-up again on a worktree."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt.flows import setup
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a worktree; this session's when left out")


def run(args: Namespace, caller: Caller) -> Result:
    """Run all steps; what is there already stays as it is."""
    return setup.again(args.name, caller)
