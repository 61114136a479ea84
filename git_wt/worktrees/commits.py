"""Which commits were made in a worktree and are not contained in what it was made from.

Asks git side by side, and only where the tips have moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from git_wt.errors import WtError
from git_wt.git import refs as git_refs
from git_wt.git.call import environment, reading
from git_wt.git.refs import Ref
from git_wt.git.repository import git_dirs
from git_wt.git.state import Status
from git_wt.model import Marker
from git_wt.proc.run import run, run_all
from git_wt.value import NamedTuple

ORIGIN_HEAD = "refs/remotes/origin/HEAD"
_LONGEST_REFLOG = 5000  # commits that fit on a command line


class Commits(NamedTuple):
    """Commits made here that the base does not contain: `counted` would go with HEAD and branch; of these no other ref
    has `nowhere`, a remote has `pushed`, and the branch reaches `on_branch`. `reflog_only` are reached by nothing but
    this worktree's reflog; `elsewhere` are in submodules (path -> number)."""

    counted: tuple[str, ...] = ()
    nowhere: frozenset[str] = frozenset()
    pushed: frozenset[str] = frozenset()
    on_branch: frozenset[str] = frozenset()
    reflog_only: tuple[str, ...] = ()
    elsewhere: Mapping[str, int] = {}
    merged: str | None = None


_EVERYTHING = ("--branches", "--remotes", "--tags")


def made_here(
    path: str,
    admin: str,
    status: Status,
    refs: Mapping[str, Ref],
    marker: Marker | None,
    reflog: Sequence[tuple[str, str]],
) -> Commits:
    """What was committed in the worktree at `path` and is not contained in its base. Up to 9 processes, most of them at
    once; none when nothing was committed. Raises `git` when it cannot be told."""
    branch_tips = [refs[name].oid for name in _branches(status, marker) if name in refs]
    known = list(dict.fromkeys(tip for tip in (status.oid, *branch_tips) if tip))
    original = marker.base_commit if marker else status.oid
    in_submodules = _submodule_commits(admin)
    if marker and {*known, *(oid for oid, _ in reflog)} <= {original}:
        return Commits(elsewhere=in_submodules, merged="same")
    found, nowhere = _not_contained(path, status, refs, marker, known, reflog)
    reached = frozenset().union(*(git_refs.reached(tip, found) for tip in known)) | {original}
    reflog_only = _reflog_only(path, known, [oid for oid, _ in reflog if oid not in reached])
    counted = {oid: parents for oid, parents in found.items() if oid not in reflog_only}
    merged = _merged(path, status.oid, marker, refs, counted)
    if merged == "squash":
        through_head = git_refs.reached(status.oid, counted)
        counted = {oid: parents for oid, parents in counted.items() if oid not in through_head}
    return Commits(
        counted=tuple(counted),
        nowhere=frozenset(counted) & frozenset(nowhere),
        pushed=_pushed(path, counted) if frozenset(counted) - frozenset(nowhere) else frozenset(),
        on_branch=frozenset().union(*(git_refs.reached(tip, counted) for tip in branch_tips)),
        reflog_only=tuple(reflog_only),
        elsewhere=in_submodules,
        merged=merged,
    )


def _branches(status: Status, marker: Marker | None) -> list[str]:
    """The branch that is checked out and the one that was made for the worktree, as full ref names."""
    return [f"refs/heads/{name}" for name in (status.branch, marker.branch if marker else None) if name]


def _not_contained(
    path: str,
    status: Status,
    refs: Mapping[str, Ref],
    marker: Marker | None,
    known: Sequence[str],
    reflog: Sequence[tuple[str, str]],
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """The commits of the tips, and of what was committed here by the reflog, that the base lacks (without a marker:
    that no other ref has), and those of them that no other ref has. Two processes at once."""
    others = [*(f"--exclude={name.removeprefix('refs/heads/')}" for name in _branches(status, marker)), *_EVERYTHING]
    without, committed = others, []
    if marker:
        without = list(dict.fromkeys((marker.base_commit, *_integration_points(marker, refs))))
        committed = [oid for oid, message in reflog if not message.startswith(_NO_COMMITS)]
    tips = [*known, *committed]
    questions = [
        reading(path, "rev-list", "--parents", *tips, "--not", *without, "--"),
        git_refs.commits_question(path, tips, others),
    ]
    answers = run_all(questions, env=environment())
    found, nowhere = (git_refs.parse_commits(answer, "tell which commits are only here") for answer in answers)
    return found, nowhere


def _pushed(path: str, counted: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Those of `counted` that a remote branch has, as far as was fetched. One process."""
    answer = run(git_refs.commits_question(path, list(counted)[:_LONGEST_REFLOG], ["--remotes"]), env=environment())
    return frozenset(counted) - frozenset(git_refs.parse_commits(answer, "tell which commits are pushed"))


_NO_COMMITS = ("checkout:", "reset:", "git-wt", "branch:")  # reflog entries that made no commit


def _reflog_only(path: str, known: Sequence[str], oids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The commits of `oids` that neither the tips nor any ref reaches. One process or none."""
    seen = list(dict.fromkeys(oids))[:_LONGEST_REFLOG]
    if not seen:
        return {}
    answer = run(git_refs.commits_question(path, seen, [*known, *_EVERYTHING]), env=environment())
    return git_refs.parse_commits(answer, "read the reflog")


def _integration_points(marker: Marker, refs: Mapping[str, Ref]) -> list[str]:
    names = [marker.base, refs[marker.base].upstream if marker.base in refs else "", ORIGIN_HEAD]
    own = f"refs/heads/{marker.branch}"
    return list(dict.fromkeys(refs[name].oid for name in names if name in refs and name != own))


def _merged(
    path: str,
    head: str | None,
    marker: Marker | None,
    refs: Mapping[str, Ref],
    counted: Mapping[str, Sequence[str]],
) -> str | None:
    """`ancestor` when nothing is left to count, `squash` when merging HEAD into the base would change nothing (and
    HEAD does change something), else `no`. Up to 4 processes."""
    if marker is None or head is None:
        return None
    if head not in counted:
        return "same" if head == marker.base_commit else "ancestor"
    points = _integration_points(marker, refs)
    if not points:
        return "no"
    head_tree, start_tree, *point_trees = git_refs.trees(path, [head, marker.base_commit, *points])
    if head_tree == start_tree:
        return "no"  # a commit and its revert: merging them proves nothing
    answers = list(run_all([git_refs.merge_question(path, point, head) for point in points], env=environment()))
    for point, tree, answer in zip(points, point_trees, answers, strict=True):
        if answer.code == 129:  # git < 2.38
            base = git_refs.merge_base(path, point, head)
            if base and git_refs.squash_is_in(path, head, base, point):
                return "squash"
        elif git_refs.parse_merge(answer) == tree:
            return "squash"
    return "no"


def _submodule_commits(admin: str) -> dict[str, int]:
    """Submodule -> number of commits and stashes that no remote of it has. One process a submodule, all at once."""
    folders = list(git_dirs(admin + "/modules"))
    count = ("rev-list", "--count", "HEAD", "--branches", "--glob=refs/stas[h]", "--not", "--remotes", "--")
    answers = run_all(
        [reading("/", f"--git-dir={admin}/modules/{folder}", *count) for folder in folders], env=environment()
    )
    found = {}
    for folder, answer in zip(folders, answers, strict=True):
        if answer.code:
            raise WtError("git", f"cannot tell which commits are only in the submodule '{folder}'")
        if int(answer.out):
            found[folder] = int(answer.out)
    return found
