"""`list`: every worktree with its state. All `git status` start before any is read."""

from __future__ import annotations

import os
from collections.abc import Sequence

from git_wt import tmux
from git_wt.errors import WtError
from git_wt.flows.context import Context, active_session, all_workspaces, open_here, warned
from git_wt.git import state as git_state
from git_wt.model import Blocker, Caller, Json, Result, Session, Workspace
from git_wt.naming import short_ref


def listing(caller: Caller, *, status: bool, whole: bool) -> Result:
    """Every worktree, main first, then the newest. Without `status`: one git process and one tmux; with it one more for
    all branches and one a worktree, side by side; `whole` asks everything that removal asks, one after the other."""
    context = open_here(caller)
    tmux_survey, unread = tmux.survey_or_note()
    spaces = _sorted(all_workspaces(context, caller, tmux_survey))
    session, over = active_session(caller)
    rows = [_row(space, context, session) for space in spaces]
    if status:
        from git_wt.flows.states import add_states

        add_states(context, spaces, rows, tmux_survey)
    if whole:
        for space, row in zip(spaces, rows, strict=True):
            if not space.worktree.is_main and not row["missing"]:
                _add_verdict(context, space, row, tmux_survey, caller, session)
    return Result("list", {"worktrees": rows}, (*over, *warned(context), *unread))


def _sorted(spaces: Sequence[Workspace]) -> list[Workspace]:
    main, *rest = spaces
    return [main, *sorted(rest, key=lambda space: -(space.marker.created_at if space.marker else 0.0))]


def _row(space: Workspace, context: Context, session: Session | None) -> Json:
    tree, marker = space.worktree, space.marker
    here = context.repository.here
    row: Json = {"name": space.name, "path": tree.path, "head": tree.head, "kind": space.kind}
    if tree.branch:
        row["branch"] = tree.branch
    row["current"] = session.admin == tree.admin if session else tree == here
    if marker:
        row.update(createdAt=round(marker.created_at), base=short_ref(marker.base), baseCommit=marker.base_commit)
    inside = [session] if session and session.admin == tree.admin else space.sessions
    if inside:
        row["session"] = inside[0].id
    if space.tmux:
        row["tmuxSessionName"] = space.tmux.name
    if tree.locked is not None:
        row["locked"] = tree.locked
    row["missing"] = not os.path.isdir(tree.path)
    operation = git_state.operation(tree.admin)
    if operation and operation != "index.lock":
        row["operation"] = operation
    return row


def _add_verdict(
    context: Context, space: Workspace, row: Json, tmux_survey: tmux.Survey, caller: Caller, session: Session | None
) -> None:
    """The whole verdict for one worktree."""
    from git_wt.flows import remove as removal
    from git_wt.worktrees.verdict import Leave

    row["verdict"] = "whole"
    try:
        looked = removal.look_at(context, space, Leave(), tmux_survey, caller, session)
    except WtError as error:
        row["blockers"] = [Blocker("unknown", 1, (), error.message).as_json()]
        return
    row["blockers"] = [blocker.as_json() for blocker in looked.verdict.blockers]
    if looked.facts.commits.merged:
        row["merged"] = looked.facts.commits.merged
