"""`git wt attach`: attach to the tmux session of a worktree, by either name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt import terminal
from git_wt.commands import asking
from git_wt.errors import WtError
from git_wt.flows.reattach import find_session
from git_wt.flows.visit import attach
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a tmux session's or a worktree's name")


def run(args: Namespace, caller: Caller) -> Result:
    """Show the tmux session on this terminal."""
    session = find_session(args.name, caller)
    data = {
        "tmuxSessionName": session.name,
        "worktreePath": session.root,
        "message": f"the tmux session is '{session.name}'",
    }
    if caller.json:
        return Result("attach", data)
    if not terminal.interactive():
        raise WtError("tmux", "cannot attach: there is no terminal", hint=f"tmux attach -t '={session.name}'")
    return attach(session, caller, asking.keep_or_remove)
