"""`git wt trash`: what can be brought back, and emptying it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt.errors import WtError
from git_wt.flows.bin import contents, empty
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("action", nargs="?", choices=("list", "empty"), default="list", help="'list' when left out")
    parser.add_argument("ids", metavar="ID", nargs="*", help="with 'empty': only these")
    parser.add_argument(
        "--expired", action="store_true", help="with 'empty': only what is past trash.days or trash.size"
    )


def run(args: Namespace, caller: Caller) -> Result:
    """Show or empty the trash."""
    if args.action == "list":
        if args.ids or args.expired:
            raise WtError("usage", "cannot list: ids and --expired go with 'empty'", hint="git wt trash")
        return contents(caller)
    return empty(args.ids, caller, only_expired=args.expired)
