"""Stay in a worktree for as long as a shell, a command or a tmux client runs there, then ask what becomes of it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from git_wt import external, sessions, tmux
from git_wt.errors import Interrupted, WtError
from git_wt.flows.context import active_session
from git_wt.flows.leave import CANCELLED, KEEP, Ask, leave
from git_wt.model import Caller, Identity, Result, Session, TmuxSession
from git_wt.proc import table
from git_wt.worktrees.verdict import Leave


def in_subshell(session: Session, caller: Caller, ask: Ask) -> Result | int:
    """Start the person's shell in the worktree. `exit` typed in it ends it and its exit code is returned; when it ends
    by itself while the session goes on, the question is put; on cancel it starts again. One process."""
    own = caller._replace(env={**caller.env, "GIT_WT_SESSION": session.id})

    def started(pid: int) -> None:
        sessions.save_session(session._replace(subshell=f"{pid}:{table.start_time(pid)}"), caller.env)

    while True:
        external.run_here(external.shell(caller.env), cwd=session.path, env=own.env, started=started)
        outcome = sessions.subshell_outcome(session.id, caller.env)
        if outcome is not None:
            return outcome
        result = _afterwards(session, caller, ask)
        if result.code != CANCELLED:
            return result


def with_command(
    session: Session, command: Sequence[str], caller: Caller, ask: Ask | None
) -> tuple[int, Result | None]:
    """Run a command in the worktree as this session, then ask as the dialog does (keep without a terminal). Returns its
    exit code (127: not found) and what became of the worktree. One process."""
    env = {**caller.env, "GIT_WT_SESSION": session.id}
    code = external.run_here(command, cwd=session.path, env=env, output=2 if caller.json else 1)
    return code, _afterwards(session, caller, ask)


def on_tmux(session: Session, tmux_session: TmuxSession, caller: Caller, ask: Ask) -> Result:
    """Show the tmux session on this terminal. When it has ended while our session goes on, the question is
    put; when the client was only detached or switched, nothing is said. One process."""
    if tmux.show(tmux_session):
        return Result("quiet", {})
    after = _afterwards(session, caller, ask)
    return after._replace(goto=None) if after.data["message"] else Result("quiet", {})


def attach(tmux_session: TmuxSession, caller: Caller, ask: Ask) -> Result:
    """Show a tmux session of ours; when its shell ends while a session is in its worktree, ask what becomes of it."""
    for session, _ in sessions.all_sessions(caller.env):
        if session.tmux_session == tmux_session.name and session.token == (tmux_session.token or ""):
            same = caller._replace(identity=Identity(session.id, session.leader))
            return on_tmux(session, tmux_session, same, ask)
    tmux.show(tmux_session)
    return Result("quiet", {})


def _afterwards(session: Session, caller: Caller, ask: Ask | None) -> Result:
    os.chdir("/")
    same = caller._replace(identity=caller.identity or _identity(session))
    still, _ = active_session(same)
    if still is None:
        return Result("exit", {"action": "none", "message": ""})
    own = still._replace(subshell=None)
    sessions.save_session(own, caller.env)
    flags = Leave()
    try:
        return leave(None if ask else KEEP, flags, same, to_trash=True, ask=ask)
    except (WtError, Interrupted) as caught:  # refused, or interrupted at the question
        error = caught.error if isinstance(caught, Interrupted) else caught
        kept = leave(KEEP, flags, same, to_trash=True, ask=None)
        return kept._replace(notes=(error.message, *kept.notes), code=error.exit_code)


def _identity(session: Session) -> Identity:
    return Identity(session.id, session.leader)
