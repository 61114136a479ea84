"""The verdict: may this worktree go? One pure decision for exit, remove, sweep, cleanup and agent alike.

Facts in, blockers out. Starts no process, reads no file.
"""

from __future__ import annotations

from collections.abc import Sequence

from git_wt.model import Blocker, Verdict
from git_wt.naming import plural, shown
from git_wt.value import NamedTuple
from git_wt.worktrees.facts import Facts

_EXAMPLES = 10
_DISCARDED = frozenset(("uncommitted", "commits", "ignored", "hidden", "operation", "unknown"))


class Leave(NamedTuple):
    """What the caller may lose or pass: the flags, and whether the removal can be undone."""

    discard: bool = False
    keep_branch: bool = False
    force_locked: bool = False
    force_nested: bool = False
    force_occupied: bool = False
    undoable: bool = True


def judge(facts: Facts, leave: Leave) -> Verdict:
    """Everything that stands in the way, whatever flags say, and the warnings. `leave` matters for what counts:
    `--keep-branch` and whether the removal can be undone."""
    found = [
        _uncommitted(facts),
        _commits(facts, leave),
        _blocker("hidden", facts.hidden, "hidden edit", "under assume-unchanged or skip-worktree"),
        _blocker(
            "nested", (*facts.mounts, *facts.nested), "mounted folder" if facts.mounts else "repository", "inside"
        ),
        _operation(facts),
        _locked(facts),
        _blocker("occupied", facts.occupied, "occupant", "inside"),
        _blocker("unknown", facts.unknown, "question", "could not be answered"),
    ]
    undoable = [
        _blocker("ignored", facts.precious, "ignored file", "that no build makes again"),
        _blocker("commits", facts.commits.reflog_only, "commit", "only in this worktree's reflog"),
    ]
    blockers = [blocker for blocker in found if blocker]
    doubtful = [blocker for blocker in undoable if blocker]
    if leave.undoable:
        return Verdict(tuple(blockers), tuple(doubtful))
    return Verdict(_joined((*blockers, *doubtful)))


def standing(verdict: Verdict, leave: Leave, *, mounts: Sequence[str]) -> tuple[Blocker, ...]:
    """The blockers that the flags of `leave` do not pass. A mount is passed by none."""
    passed = set(_DISCARDED) if leave.discard else set()
    if leave.force_locked:
        passed.add("locked")
    if leave.force_nested and not mounts:
        passed.add("nested")
    if leave.force_occupied:
        passed.add("occupied")
    return tuple(blocker for blocker in verdict.blockers if blocker.code not in passed)


def flags_for(blockers: Sequence[Blocker]) -> list[str]:
    """The flags that would go past `blockers`, in the order to type them."""
    codes = {blocker.code for blocker in blockers}
    flags = ["--discard-changes"] if codes & _DISCARDED else []
    return flags + [f"--force-{code}" for code in ("locked", "nested", "occupied") if code in codes]


def why(blockers: Sequence[Blocker]) -> str:
    """The blockers as one sentence part: '2 files are not committed, 1 commit is nowhere else'."""
    return ", ".join(blocker.what for blocker in blockers)


def _blocker(code: str, items: Sequence[str], noun: str, rest: str) -> Blocker | None:
    if not items:
        return None
    examples = tuple(shown(item) for item in items[:_EXAMPLES])
    return Blocker(code, len(items), examples, f"{plural(len(items), noun)} {rest}")


def _uncommitted(facts: Facts) -> Blocker | None:
    changes = [change.path for change in facts.status.changes if change.kind != "!"] if facts.status else []
    verb = "is" if len(changes) == 1 else "are"
    return _blocker("uncommitted", changes, "file", f"{verb} not committed")


def _commits(facts: Facts, leave: Leave) -> Blocker | None:
    commits = facts.commits
    counted = [oid for oid in commits.counted if not (leave.keep_branch and oid in commits.on_branch)]
    total = len(counted) + sum(commits.elsewhere.values())
    if not total:
        return None
    pushed = sum(oid in commits.pushed for oid in counted)
    nowhere = sum(oid in commits.nowhere for oid in counted) + sum(commits.elsewhere.values())
    examples = [oid[:12] for oid in counted] + [f"{count} in {path}" for path, count in commits.elsewhere.items()]
    others = total - nowhere - pushed
    sorts = ((nowhere, "nowhere else"), (pushed, "pushed"), (others, "on another branch"))
    parts = [f"{count} {where}" for count, where in sorts if count]
    what = f"{plural(total, 'commit')} not merged ({', '.join(parts)})"
    return Blocker("commits", total, tuple(shown(example) for example in examples[:_EXAMPLES]), what)


def _operation(facts: Facts) -> Blocker | None:
    if facts.operation is None:
        return None
    if facts.operation == "index.lock":
        return Blocker("operation", 1, ("index.lock",), "a git command is at work or has crashed (index.lock)")
    return Blocker("operation", 1, (facts.operation,), f"a {facts.operation} is in progress")


def _locked(facts: Facts) -> Blocker | None:
    if facts.locked is None:
        return None
    reason = shown(facts.locked)
    return Blocker("locked", 1, (reason,), f"locked: '{reason}'" if reason else "locked")


def _joined(blockers: Sequence[Blocker]) -> tuple[Blocker, ...]:
    """One blocker a code."""
    by_code: dict[str, Blocker] = {}
    for blocker in blockers:
        have = by_code.get(blocker.code)
        by_code[blocker.code] = (
            blocker
            if have is None
            else Blocker(
                blocker.code,
                have.count + blocker.count,
                (*have.examples, *blocker.examples)[:_EXAMPLES],
                f"{have.what}, {blocker.what}",
            )
        )
    return tuple(by_code.values())
