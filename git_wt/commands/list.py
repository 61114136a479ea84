"""`git wt list`: every worktree with its state, age, tmux session and what blocks removal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt.errors import WtError
from git_wt.flows.listing import listing
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--no-status", action="store_true", help="names and places only: fast, asks no worktree")
    parser.add_argument("--verdict", action="store_true", help="ask everything that removal would ask: slower")


def run(args: Namespace, caller: Caller) -> Result:
    """The table."""
    if args.no_status and args.verdict:
        raise WtError("usage", "cannot list: --no-status and --verdict exclude each other")
    return listing(caller, status=not args.no_status, whole=args.verdict)
