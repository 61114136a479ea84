"""The marker: what git-wt notes about a worktree that it made, in git's own admin folder of that worktree.

It dies with the worktree and moves with it into the trash; there is no other database of worktrees.
"""

from __future__ import annotations

from os import urandom

from git_wt.files import read_json, write_json
from git_wt.model import Json, Marker

FILE = "git-wt.json"


def load_marker(admin: str) -> Marker | None:
    """The marker in an admin folder, or None: not made by git-wt, or not readable. No process."""
    data = read_json(f"{admin}/{FILE}")
    if data is None:
        return None
    try:
        return Marker(
            token=str(data["token"]),
            kind=str(data["kind"]),
            name=str(data["name"]),
            branch=data.get("branch"),
            made_branch=bool(data["madeBranch"]),
            base=str(data["base"]),
            base_commit=str(data["baseCommit"]),
            created_at=float(data["createdAt"]),
            tmux_session=data.get("tmuxSession"),
            copied=dict(data.get("copied") or {}),
            links=tuple(data.get("links") or ()),
            setup_unfinished=bool(data.get("setupUnfinished")),
        )
    except (KeyError, TypeError, ValueError):
        return None


def save_marker(admin: str, marker: Marker) -> None:
    """Write the marker, whole or not at all. No process."""
    data: Json = {
        "token": marker.token,
        "kind": marker.kind,
        "name": marker.name,
        "branch": marker.branch,
        "madeBranch": marker.made_branch,
        "base": marker.base,
        "baseCommit": marker.base_commit,
        "createdAt": marker.created_at,
        "tmuxSession": marker.tmux_session,
        "copied": dict(marker.copied or {}),
        "links": list(marker.links),
        "setupUnfinished": marker.setup_unfinished,
    }
    write_json(f"{admin}/{FILE}", data, durable=False)


def new_token() -> str:
    """A random word that no other worktree has."""
    return urandom(8).hex()
