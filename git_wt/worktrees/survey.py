"""All worktrees of a repository with what git-wt knows of each, and the one that a NAME means."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from git_wt.errors import WtError
from git_wt.marker import load_marker
from git_wt.model import Repository, Session, TmuxSession, Workspace, Worktree
from git_wt.naming import pasteable, quoted, slug

TYPE_CHECKING = False

if TYPE_CHECKING:
    from git_wt.tmux import Survey

MAIN = "^"


def workspaces(
    repository: Repository, sessions: Iterable[Session] = (), tmux: Survey | None = None
) -> tuple[Workspace, ...]:
    """Every worktree joined with its marker, tmux session and live sessions, main first. No process."""
    inside: dict[str, list[Session]] = {}
    for session in sessions:
        inside.setdefault(session.admin, []).append(session)
    return tuple(workspace(tree, inside.get(tree.admin, ()), tmux) for tree in repository.worktrees)


def workspace(tree: Worktree, sessions: Sequence[Session] = (), tmux: Survey | None = None) -> Workspace:
    """One worktree joined with what is known about it. No process."""
    marker = None if tree.is_main else load_marker(tree.admin)
    name = marker.name if marker else MAIN if tree.is_main else os.path.basename(tree.path)
    token = marker.token if marker else ""
    inside = tuple(session for session in sessions if session.token == token)
    return Workspace(tree, name, marker, _tmux_session(tmux, tree.path, token), inside)


def _tmux_session(tmux: Survey | None, path: str, token: str) -> TmuxSession | None:
    return tmux.of(path, token) if tmux else None


def find(found: Sequence[Workspace], name: str) -> Workspace | None:
    """The worktree that NAME means: as typed, the slug, a folder's name for hand-made ones, an absolute path, or `^`.
    Raises `usage` when a folder's name fits several. No process."""
    if name == MAIN:
        return found[0]
    for candidate in found:
        if candidate.marker and name in (candidate.name, slug(candidate.name)):
            return candidate
    path = os.path.realpath(name) if os.path.isabs(name) else None
    fits = [
        candidate
        for candidate in found
        if (path and os.path.realpath(candidate.worktree.path) == path)
        or (candidate.marker is None and not candidate.worktree.is_main and candidate.name == name)
    ]
    if len(fits) > 1:
        paths = ", ".join(quoted(candidate.worktree.path) for candidate in fits)
        raise WtError("usage", f"cannot tell which worktree {quoted(name)} is: {paths}", hint="give its whole path")
    return fits[0] if fits else None


def require(found: Sequence[Workspace], name: str, doing: str) -> Workspace:
    """As `find`. Raises `not-found` with the nearest name; `doing` completes 'cannot …'."""
    candidate = find(found, name)
    if candidate:
        return candidate
    import difflib

    near = difflib.get_close_matches(name, [known.name for known in found], 1)
    hint = f"did you mean {pasteable(near[0])}?" if near else "git wt list"
    raise WtError("not-found", f"cannot {doing} {quoted(name)}: there is no worktree of that name", hint=hint)
