"""The trash as people use it: look, bring back, empty."""

from __future__ import annotations

import time
from collections.abc import Sequence

from git_wt.errors import WtError
from git_wt.flows.context import open_here, warned
from git_wt.model import Caller, Json, Result
from git_wt.naming import quoted
from git_wt.worktrees import trash


def contents(caller: Caller) -> Result:
    """Everything that can be brought back, newest first. One git process."""
    context = open_here(caller)
    found = trash.entries(context.repository.common_dir)
    keep = context.config.number("trash.days") * 86400
    return Result("trash", {"trash": [_shown(entry, keep) for entry in found]}, warned(context))


def bring_back(entry_id: str | None, caller: Caller) -> Result:
    """Undo one removal, the last without an id. Raises `not-found`."""
    context = open_here(caller)
    found = trash.entries(context.repository.common_dir)
    entry = next((entry for entry in found if entry_id in (None, entry.id)), None)
    if entry is None:
        what = f"nothing called {quoted(entry_id)}" if entry_id else "nothing"
        raise WtError("not-found", f"cannot undo: there is {what} in the trash", hint="git wt trash list")
    path, branch = trash.undo(context.repository, entry)
    data: Json = {"name": entry.name, "worktreePath": path, "id": entry.id}
    if branch:
        data["worktreeBranch"] = branch
    data["message"] = f"brought back {quoted(entry.name)} at {quoted(path)}"
    notes = list(warned(context))
    if path != entry.path:
        notes.append(f"{quoted(entry.path)} is taken, so it is at {quoted(path)} now")
    if branch != entry.branch:
        notes.append(
            f"branch {quoted(entry.branch or '')} is taken or has moved, so it is on {quoted(branch or '')} now"
        )
    return Result("undo", data, tuple(notes))


def empty(ids: Sequence[str], caller: Caller, *, only_expired: bool) -> Result:
    """Delete trash for good: everything, `ids`, or what is past its time. Raises `not-found`."""
    context = open_here(caller)
    found = trash.entries(context.repository.common_dir)
    unknown = set(ids) - {entry.id for entry in found}
    if unknown:
        raise WtError(
            "not-found", f"cannot empty: {quoted(min(unknown))} is not in the trash", hint="git wt trash list"
        )
    chosen = [entry for entry in found if not ids or entry.id in ids]
    if only_expired:
        settings = context.config
        chosen = trash.expired(chosen, days=settings.number("trash.days"), size=settings.size("trash.size"))
    deleted, left = [], trash.finish_deletions(context.repository)
    for entry in chosen:
        failed = trash.delete(context.repository, entry)
        left += failed
        if not failed:
            deleted.append(entry.id)
    data = {"deleted": deleted, "left": left, "message": f"deleted {len(deleted)} of {len(chosen)} for good"}
    return Result("empty", data, (*warned(context), *left), None, 1 if left else 0)


def _shown(entry: trash.Entry, keep: float) -> Json:
    data: Json = {"id": entry.id, "name": entry.name, "worktreePath": entry.path, "removedAt": round(entry.removed_at)}
    if entry.branch:
        data["worktreeBranch"] = entry.branch
    data["expiresAt"] = round(entry.removed_at + keep)
    data["age"] = round(time.time() - entry.removed_at)
    return data
