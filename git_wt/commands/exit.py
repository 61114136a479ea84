"""`git wt exit`: leave the worktree of this session."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt import terminal
from git_wt.commands import asking
from git_wt.errors import WtError
from git_wt.flows.leave import leave
from git_wt.model import Caller, Result
from git_wt.worktrees.verdict import Leave


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("action", nargs="?", choices=("keep", "remove"), help="asked for on a terminal when left out")
    removal_flags(parser)


def removal_flags(parser: ArgumentParser) -> None:
    """The flags that go past what stands in the way of removal."""
    parser.add_argument("--discard-changes", action="store_true", help="remove in spite of changes and commits")
    parser.add_argument("--keep-branch", action="store_true", help="remove the folder, keep the branch")
    parser.add_argument("--force-locked", action="store_true", help="remove although somebody locked it")
    parser.add_argument(
        "--force-nested", action="store_true", help="remove worktrees and repositories inside along with it"
    )
    parser.add_argument("--force-occupied", action="store_true", help="remove although a process or session is in it")
    parser.add_argument("--no-trash", action="store_true", help="delete for good: no undo")


def leave_from(args: Namespace) -> Leave:
    """The flags as the verdict takes them."""
    return Leave(
        args.discard_changes,
        args.keep_branch,
        args.force_locked,
        args.force_nested,
        args.force_occupied,
        undoable=not args.no_trash,
    )


def run(args: Namespace, caller: Caller) -> Result:
    """Leave the session's worktree."""
    flags = leave_from(args)
    if args.action == "keep" and flags != Leave():
        raise WtError("usage", "cannot keep: the flags of removal go with 'remove'", hint="git wt exit keep")
    ask = asking.keep_or_remove if terminal.interactive() and not caller.json else None
    return leave(args.action, flags, caller, to_trash=not args.no_trash, ask=ask)
