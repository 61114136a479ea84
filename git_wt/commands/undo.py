"""`git wt undo`: bring back the last removal, or the one with an id."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt.flows.bin import bring_back
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "id", metavar="ID", nargs="?", help="as 'git wt trash' shows it; the last removal when left out"
    )


def run(args: Namespace, caller: Caller) -> Result:
    """Bring it back."""
    return bring_back(args.id, caller)
