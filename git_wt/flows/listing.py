"""`list`: every worktree with its state. All `git status` start before any is read."""

from __future__ import annotations

import os
from collections.abc import Sequence

from git_wt import tmux
from git_wt.errors import WtError
from git_wt.flows.context import Context, active_session, all_workspaces, open_here, warned
from git_wt.git import refs as git_refs
from git_wt.git import state as git_state
from git_wt.git.call import environment
from git_wt.git.state import Status
from git_wt.model import Blocker, Caller, Json, Result, Session, Workspace
from git_wt.naming import plural, short_ref
from git_wt.proc import table
from git_wt.proc.run import Completed, run_all
from git_wt.value import NamedTuple


class Distance(NamedTuple):
    """How many commits a worktree has that its base lacks, and the other way round."""

    ahead: int
    behind: int


def listing(caller: Caller, *, status: bool, whole: bool) -> Result:
    """Every worktree, main first, then the newest. Without `status`: one git process and one tmux; with it one more for
    all branches and one a worktree, side by side; `whole` asks everything that removal asks, one after the other."""
    context = open_here(caller)
    tmux_survey, unread = tmux.survey_or_note()
    spaces = _sorted(all_workspaces(context, caller, tmux_survey))
    session, over = active_session(caller)
    rows = [_row(space, context, session) for space in spaces]
    if status:
        _add_states(context, spaces, rows, tmux_survey)
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


def _add_states(context: Context, spaces: Sequence[Workspace], rows: Sequence[Json], tmux_survey: tmux.Survey) -> None:
    """Statuses, distances and the blockers that come with them."""
    repository = context.repository
    there = [n for n, row in enumerate(rows) if not row["missing"] and not (n == 0 and repository.bare)]
    graph = _graph_question(context, spaces)
    questions = [git_state.status_question(spaces[n].worktree.path, ignored=False, upstream=True) for n in there]
    answers = list(run_all([*graph, *questions], env=environment()))
    distances = _distances(spaces, answers.pop(0)) if graph else {}
    panes = tuple(pid for space in spaces for pid in tmux_survey.processes(space.tmux))
    standing = table.standing_in("/", table.relatives(panes)) if len(spaces) > 1 else []
    for n, answer in zip(there, answers, strict=True):
        space, row = spaces[n], rows[n]
        try:
            state = git_state.parse_status(answer)
        except WtError as error:
            row.update(changes=None, verdict="partial", blockers=[Blocker("unknown", 1, (), error.message).as_json()])
            continue
        row["changes"] = state.numbers()._asdict()
        if state.upstream:
            row["upstream"] = _upstream(state)
        distance = distances.get(space.worktree.admin)
        if space.marker:
            row["ahead"], row["behind"] = distance if distance else (None, None)
            row["merged"] = _merged(space, distance)
        if not space.worktree.is_main:
            occupants = [found for found in standing if (found.cwd + "/").startswith(space.worktree.path + "/")]
            row["verdict"] = "partial"
            row["blockers"] = [b.as_json() for b in _partial(context, space, state, distance, occupants)]


def _graph_question(context: Context, spaces: Sequence[Workspace]) -> list[list[str]]:
    """One question for the distance of every worktree from its base. What the oldest worktree of each base started
    from is common to all, so the walk ends there."""
    marked = [space for space in spaces if space.marker and space.worktree.head]
    if not marked:
        return []
    oldest: dict[str, str] = {}
    for space in marked:  # newest first: the last one stays
        if space.marker:
            oldest[space.marker.base] = space.marker.base_commit
    heads = dict.fromkeys(str(space.worktree.head) for space in marked)
    names = [base for base in oldest if base.startswith("refs/")]
    return [git_refs.graph_question(context.repository.git_folder, heads, set(oldest.values()), names)]


def _distances(spaces: Sequence[Workspace], answer: Completed) -> dict[str, Distance]:
    if answer.code:
        return {}
    graph, points = git_refs.parse_graph(answer)
    found = {}
    for space in spaces:
        if space.marker:
            mine = git_refs.reached(space.worktree.head, graph)
            base = git_refs.reached(points.get(space.marker.base), graph)
            found[space.worktree.admin] = Distance(len(mine - base), len(base - mine))
    return found


def _merged(space: Workspace, distance: Distance | None) -> str | None:
    """`same` when nothing was committed, `ancestor` when the base has it all; whether it was squashed into the base
    takes a process a worktree, so it is not known here (None)."""
    if space.marker and space.worktree.head == space.marker.base_commit:
        return "same"
    return "ancestor" if distance and distance.ahead == 0 else None


def _upstream(state: Status) -> Json:
    ahead, behind = state.ahead_behind or (None, None)
    return {"name": state.upstream, "ahead": ahead, "behind": behind, "gone": state.ahead_behind is None}


def _partial(
    context: Context, space: Workspace, state: Status, distance: Distance | None, occupants: Sequence[table.Standing]
) -> list[Blocker]:
    """The blockers that come without another process a worktree."""
    tree = space.worktree
    found = []
    changed = [change.path for change in state.changes if change.kind != "!"]
    if changed:
        found.append(Blocker("uncommitted", len(changed), tuple(changed[:10]), plural(len(changed), "changed file")))
    if distance and distance.ahead:
        found.append(Blocker("commits", distance.ahead, (), plural(distance.ahead, "unmerged commit")))
    operation = git_state.operation(tree.admin)
    if operation:
        found.append(Blocker("operation", 1, (operation,), operation))
    if tree.locked is not None:
        found.append(Blocker("locked", 1, (tree.locked,), "locked"))
    nested = [other.path for other in context.repository.linked if other.path.startswith(tree.path + "/")]
    if nested:
        found.append(Blocker("nested", len(nested), tuple(nested[:10]), "worktree inside"))
    if occupants:
        names = tuple(f"{found.command} ({found.pid})" for found in occupants[:10])
        found.append(Blocker("occupied", len(occupants), names, "in use"))
    return found


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
