"""`git wt remove`: remove any worktree but main, with the same safety as `exit remove`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt import sessions
from git_wt.commands.exit import leave_from, removal_flags
from git_wt.flows.context import active_session
from git_wt.flows.remove import remove
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("names", metavar="NAME", nargs="+", help="worktrees, as 'git wt list' names them")
    removal_flags(parser)


def run(args: Namespace, caller: Caller) -> Result:
    """Remove those that can go; exit code 3 if one was refused."""
    active, _ = active_session(caller)
    result = remove(args.names, leave_from(args), caller, to_trash=not args.no_trash, active=active)
    if active and active_session(caller)[0] is None:
        sessions.end_session(active.id, caller.env)
    return result
