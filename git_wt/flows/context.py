"""What every flow starts from: the repository, its settings, crashes mended, the session that is active."""

from __future__ import annotations

import os
import time

from git_wt import config, journal, sessions
from git_wt.files import read_text
from git_wt.git.repository import default_branch_folder, open_repository, worktree_of
from git_wt.marker import load_marker
from git_wt.model import Caller, Repository, Session, Workspace
from git_wt.naming import quoted, shown
from git_wt.value import NamedTuple
from git_wt.worktrees import survey

TYPE_CHECKING = False

if TYPE_CHECKING:
    from git_wt import tmux


REPAIR = "git worktree repair <its new folder>   (git worktree prune, if it is gone for good)"


class Context(NamedTuple):
    """A repository as the caller sees it. `notes` are sentences about what was mended; everything is as it was at
    `opened_at` (seconds since the epoch)."""

    repository: Repository
    config: config.Config
    notes: tuple[str, ...]
    opened_at: float


def open_here(caller: Caller, *, folder: str | None = None) -> Context:
    """The repository of the caller's folder, after mending what killed commands left. One git process; a second one
    after mending."""
    opened_at = time.time()
    repository = open_repository(folder or caller.cwd)
    mended: tuple[str, ...] = ()
    if journal.abandoned(repository.state_dir):
        from git_wt.worktrees.recover import recover

        mended = recover(repository)
        repository = open_repository(folder or caller.cwd)
    mended += _ignored_git_dir(repository, caller)
    settings = config.load(default_branch_folder(repository), caller.env)
    return Context(repository, settings, mended, opened_at)


def warned(context: Context) -> tuple[str, ...]:
    """The notes of a command that goes on in spite of problems in the settings."""
    return (*context.notes, *(f"warning: {problem}" for problem in context.config.problems))


def active_session(caller: Caller) -> tuple[Session | None, tuple[str, ...]]:
    """The session that the caller is in, if its worktree is still there; a sentence when it has just ended because
    the worktree is gone. No process."""
    session = sessions.load_session(caller.identity, caller.env)
    if session is None or _is_there(session):
        return session and session._replace(path=worktree_of(session.admin) or session.path), ()
    sessions.end_session(session.id, caller.env)
    return None, (f"the worktree {quoted(session.name)} of this session is gone; the session is over",)


def all_workspaces(context: Context, caller: Caller, tmux_survey: tmux.Survey | None = None) -> tuple[Workspace, ...]:
    """Every worktree with marker, tmux session and live sessions. No process."""
    known = frozenset(session.name for session in tmux_survey.sessions) if tmux_survey else frozenset()
    live = sessions.live_sessions(caller.env, known)
    return survey.workspaces(context.repository, live, tmux_survey)


def _ignored_git_dir(repository: Repository, caller: Caller) -> tuple[str, ...]:
    """A sentence when GIT_DIR names another repository than the folder does."""
    if caller.git_dir is None:
        return ()
    admin = os.path.realpath(caller.git_dir)
    common = os.path.realpath(os.path.join(admin, read_text(admin + "/commondir") or "."))
    if common == repository.common_dir:
        return ()
    return (f"warning: GIT_DIR={shown(caller.git_dir)} is ignored; the repository is that of the working folder",)


def _is_there(session: Session) -> bool:
    if not os.path.isdir(worktree_of(session.admin) or session.admin):
        return False
    marker = load_marker(session.admin)
    return (marker.token if marker else "") == session.token
