"""Which tmux session a name means: a tmux session's own name from anywhere, or a worktree's in its repository."""

from __future__ import annotations

from git_wt import tmux
from git_wt.errors import WtError
from git_wt.flows.context import all_workspaces, open_here
from git_wt.model import Caller, TmuxSession
from git_wt.naming import pasteable, quoted
from git_wt.worktrees import survey


def find_session(name: str | None, caller: Caller) -> TmuxSession:
    """The tmux session of a worktree that git-wt made. Raises `not-found`, `tmux`. One tmux process, one git process
    unless `name` is a tmux session's."""
    known = tmux.survey()
    ours = [session for session in known.sessions if session.root is not None]
    for session in ours:
        if name == session.name:
            return session
    try:
        spaces = all_workspaces(open_here(caller), caller, known)
    except WtError as error:
        if name is None or error.code != "not-a-repository":
            raise
        what = f"cannot attach to {quoted(name)}: no worktree's tmux session has that name, and this is no repository"
        raise WtError("not-found", what, hint="tmux list-sessions") from error
    if name is None:
        return _only_one([space.tmux for space in spaces if space.tmux])
    space = survey.require(spaces, name, "attach to")
    if space.tmux is None:
        hint = f"git wt enter {pasteable(space.name)} --tmux"
        raise WtError("not-found", f"cannot attach to {quoted(name)}: it has no tmux session", hint=hint)
    return space.tmux


def _only_one(found: list[TmuxSession]) -> TmuxSession:
    if len(found) == 1:
        return found[0]
    if not found:
        raise WtError(
            "not-found", "cannot attach: no worktree of this repository has a tmux session", hint="git wt list"
        )
    names = ", ".join(session.name for session in found)
    raise WtError("usage", f"cannot tell which tmux session to attach to: {names}", hint="git wt attach NAME")
