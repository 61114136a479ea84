"""Stay in a worktree for as long as a shell, a command or a tmux client runs there, then ask what becomes of it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from git_wt import external, sessions, tmux
from git_wt.errors import WtError
from git_wt.flows.context import active_session
from git_wt.flows.leave import KEEP, Ask, leave
from git_wt.model import Caller, Identity, Result, Session, TmuxSession
from git_wt.proc import table
from git_wt.worktrees.verdict import Leave


def in_subshell(session: Session, caller: Caller, ask: Ask) -> Result | int:
    """Start the person's shell in the worktree. `exit` typed in it ends it and its exit code is returned; when it ends
    by itself while the session goes on, the question of SPEC 5 is put. One process."""
    own = caller._replace(env={**caller.env, "GIT_WT_SESSION": session.id})

    def started(pid: int) -> None:
        sessions.save_session(session._replace(subshell=f"{pid}:{table.start_time(pid)}"), caller.env)

    external.run_here(external.shell(caller.env), cwd=session.path, env=own.env, started=started)
    outcome = sessions.subshell_outcome(session.id, caller.env)
    return outcome if outcome is not None else _afterwards(session, caller, ask)


def with_command(
    session: Session, command: Sequence[str], caller: Caller, ask: Ask | None
) -> tuple[int, Result | None]:
    """Run a command in the worktree as this session, then ask as the dialog does (keep without a terminal). Returns its
    exit code (127: not found) and what became of the worktree. One process."""
    env = {**caller.env, "GIT_WT_SESSION": session.id}
    code = external.run_here(command, cwd=session.path, env=env)
    return code, _afterwards(session, caller, ask)


def on_tmux(session: TmuxSession) -> None:
    """Show a tmux session on this terminal. Outside tmux this does not return."""
    tmux.show(session)


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
    except WtError as error:
        kept = leave(KEEP, flags, same, to_trash=True, ask=None)
        return kept._replace(notes=(error.message, *kept.notes), code=error.exit_code)


def _identity(session: Session) -> Identity:
    return Identity(session.id, session.leader)
