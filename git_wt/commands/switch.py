"""`git wt switch`: exit keep, then enter; the first original folder is kept."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt import sessions
from git_wt.commands.enter import stay
from git_wt.flows import enter
from git_wt.flows.context import active_session
from git_wt.model import Caller, Result
from git_wt.naming import pasteable, quoted


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("name", metavar="NAME", help="the worktree to enter, made when it is not there")
    parser.add_argument("--base", metavar="REF", help="start a new one from REF")


def run(args: Namespace, caller: Caller) -> Result:
    """Enter another worktree; if that fails this session stays where it is."""
    session, _ = active_session(caller)
    request = enter.Request(args.name, base=args.base, tmux=None)
    if session is None:
        return stay(enter.enter(request, caller), [], True, caller)
    enter.require_enterable(request, caller, session)
    sessions.end_session(session.id, caller.env)
    try:
        entered = enter.enter(request._replace(original_cwd=session.original_cwd), caller)
    except BaseException:
        sessions.save_session(session, caller.env)
        raise
    if session.subshell:
        sessions.save_session(entered.session._replace(subshell=session.subshell), caller.env)
        here = f"this shell still stands in {quoted(session.name)}: cd {pasteable(entered.session.path)}"
        return entered.result._replace(notes=(*entered.result.notes, here))
    return stay(entered, [], True, caller)
