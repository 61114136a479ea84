"""The states of all worktrees for `list`: changes, distance from the base, and the blockers that come with them.

All `git status` start before any is read. One process a worktree and one for all branches, side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

from git_wt import tmux
from git_wt.errors import WtError
from git_wt.flows.context import Context
from git_wt.git import refs as git_refs
from git_wt.git import state as git_state
from git_wt.git.call import environment
from git_wt.git.state import Status
from git_wt.model import Blocker, Json, Workspace
from git_wt.naming import plural
from git_wt.proc import table
from git_wt.proc.run import Completed, run_all
from git_wt.value import NamedTuple


class Distance(NamedTuple):
    """How many commits a worktree has that its base lacks, and the other way round."""

    ahead: int
    behind: int


def add_states(context: Context, spaces: Sequence[Workspace], rows: Sequence[Json], tmux_survey: tmux.Survey) -> None:
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
