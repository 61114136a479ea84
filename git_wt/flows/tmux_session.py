"""The tmux session of a worktree: the one that is there, else a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from git_wt import tmux
from git_wt.errors import WtError
from git_wt.model import Identity, Repository, TmuxSession, Workspace
from git_wt.naming import tmux_name


def tmux_session_for(
    repository: Repository, space: Workspace, identity: Identity, command: Sequence[str], known: tmux.Survey | None
) -> tuple[TmuxSession | None, tuple[str, ...]]:
    """The worktree's tmux session, made if it is not there, or a sentence why there is none: the worktree is good
    without. One or two processes."""
    env = {"GIT_WT_SESSION": identity.id}
    try:
        if space.tmux is None:
            return _make_tmux_session(repository, space, env, command, known or tmux.Survey()), ()
        if command:
            tmux.run_in(space.tmux, space.worktree.path, command, env)
        tmux.hand_over(space.tmux, env)
    except WtError as error:
        return space.tmux, (f"warning: {error.message}",)
    return space.tmux, ()


def _make_tmux_session(
    repository: Repository, space: Workspace, env: Mapping[str, str], command: Sequence[str], known: tmux.Survey
) -> TmuxSession:
    """A new tmux session. Where the name is taken: by our own, made by another caller just now, that one is used; by
    somebody else's, the name gets a hash."""
    tree = space.worktree
    token = space.marker.token if space.marker else ""
    marks = {"root": tree.path, "name": space.name, "token": token}
    branch = tree.branch or space.name
    taken = frozenset(session.name for session in known.sessions)
    while True:
        name = tmux_name(repository.name, branch, f"{repository.common_dir}\n{branch}", taken)
        try:
            return tmux.make_session(name, tree.path, marks=marks, env=env, command=command)
        except WtError as error:
            if error.code != "exists" or name in taken:
                raise
        known = tmux.survey()
        ours = known.of(tree.path, token)
        if ours:
            return ours
        taken = frozenset(session.name for session in known.sessions)
