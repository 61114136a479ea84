"""What is asked before a worktree may go: the facts that `verdict` judges. Asks git side by side, changes nothing.

Every question that cannot be answered ends up in `unknown`; nothing is assumed to be fine. About 8 git processes, the
first four at once; the rest only where there are commits, hidden files or submodules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import translate
from typing import TypeVar

from git_wt.errors import WtError
from git_wt.files import read_text
from git_wt.git import refs as git_refs
from git_wt.git import state as git_state
from git_wt.git.call import environment, reading
from git_wt.git.refs import Ref
from git_wt.git.state import Indexed, Status
from git_wt.model import Marker, Repository, Workspace
from git_wt.proc import table
from git_wt.proc.run import finish as finish_process
from git_wt.proc.run import run, run_all, start
from git_wt.trees import mounts_below
from git_wt.value import NamedTuple

ORIGIN_HEAD = "refs/remotes/origin/HEAD"
_LONGEST_REFLOG = 5000  # commits that fit on a command line
T = TypeVar("T")


class Commits(NamedTuple):
    """Commits made here that the base does not contain. `counted` would be lost with HEAD and branch; `pushed` of them
    are at a remote; `on_branch` are reached by the branch; `reflog_only` are reached by nothing but this worktree's
    reflog; `elsewhere` are in submodules (path -> number)."""

    counted: tuple[str, ...] = ()
    pushed: frozenset[str] = frozenset()
    on_branch: frozenset[str] = frozenset()
    reflog_only: tuple[str, ...] = ()
    elsewhere: Mapping[str, int] = {}
    merged: str | None = None


class Facts(NamedTuple):
    """Everything known about one worktree at one moment. `identity` is (st_dev, st_ino) of its folder."""

    status: Status | None
    hidden: tuple[str, ...]
    gitlinks: frozenset[str]
    commits: Commits
    branch: str | None
    branch_oid: str | None
    refs: Mapping[str, Ref]
    precious: tuple[str, ...]
    nested: tuple[str, ...]
    mounts: tuple[str, ...]
    operation: str | None
    locked: str | None
    occupied: tuple[str, ...]
    unknown: tuple[str, ...]
    identity: tuple[int, int]


def look(
    repository: Repository,
    space: Workspace,
    *,
    regenerable: Sequence[str],
    aside: frozenset[int],
    sessions: Sequence[str],
) -> Facts:
    """Ask everything about one worktree. `aside` are processes that do not count as occupants, `sessions` the other
    live sessions that are in it. Raises nothing for what git cannot tell: that is `unknown`."""
    tree, marker = space.worktree, space.marker
    unknown: list[str] = []
    ref_names = _ref_names(tree.branch, marker)
    questions = [
        git_state.status_question(tree.path, ignored=True),
        git_state.index_question(tree.path),
        git_refs.reflog_question(tree.path),
    ]
    children = [start(argv, env=environment()) for argv in questions]
    mounts = mounts_below(os.path.realpath(tree.path))
    standing = table.standing_in(os.path.realpath(tree.path), aside)
    status_answer, index_answer, reflog_answer = (finish_process(child) for child in children)
    status = _attempt(lambda: git_state.parse_status(status_answer), unknown)
    index = _attempt(lambda: git_state.parse_index(index_answer), unknown) or []
    refs = _attempt(lambda: git_refs.find_refs(tree.path, *ref_names), unknown) or {}
    gitlinks = frozenset(entry.path for entry in index if entry.mode == "160000")
    hidden = _attempt(lambda: _hidden(tree.path, index), unknown) or []
    walked = _walk(tree.path, tree.admin, status, regenerable, marker)
    commits = Commits()
    if status:
        asked = _attempt(
            lambda: _commits(tree.path, tree.admin, status, refs, marker, git_refs.parse_reflog(reflog_answer)),
            unknown,
        )
        commits = asked or commits
    locked = tree.locked if tree.locked is not None else read_text(tree.admin + "/locked")
    branch = status.branch if status else tree.branch
    there = os.lstat(tree.path)
    return Facts(
        status=status,
        hidden=tuple(hidden),
        gitlinks=gitlinks,
        commits=commits,
        branch=branch,
        branch_oid=refs[f"refs/heads/{branch}"].oid if f"refs/heads/{branch}" in refs else None,
        refs=refs,
        precious=tuple(walked.precious),
        nested=tuple(_nested_worktrees(repository, tree.path) + walked.nested),
        mounts=tuple(mounts),
        operation=git_state.operation(tree.admin),
        locked=locked,
        occupied=tuple([f"{found.command} ({found.pid})" for found in standing] + [f"session {s}" for s in sessions]),
        unknown=tuple(dict.fromkeys(unknown + walked.unreadable)),
        identity=(there.st_dev, there.st_ino),
    )


def _attempt(ask: Callable[[], T], unknown: list[str]) -> T | None:
    try:
        return ask()
    except WtError as error:
        unknown.append(error.message)
        return None


def _ref_names(branch: str | None, marker: Marker | None) -> list[str]:
    """The refs that matter, for one for-each-ref: the branches, the base and what may be its upstream."""
    names = [ORIGIN_HEAD]
    names += [f"refs/heads/{name}" for name in {branch, marker.branch if marker else None} if name]
    if marker and marker.base.startswith("refs/"):
        short = marker.base.partition("/")[2].partition("/")[2]
        names += [marker.base, f"refs/remotes/*/{short}"]
    return names


def _hidden(path: str, index: Sequence[Indexed]) -> list[str]:
    """Files under assume-unchanged or skip-worktree whose content on disk is not the index's. One process or none."""
    candidates, changed = [], []
    for entry in index:
        if entry.mode == "160000" or entry.tag == "H":
            continue
        full = f"{path}/{entry.path}"
        if os.path.islink(full) or (os.path.exists(full) and not os.path.isfile(full)):
            if entry.mode != "120000" or not os.path.islink(full):
                changed.append(entry.path)
            else:
                target = os.fsencode(os.readlink(full))
                blob = b"blob %d\0%s" % (len(target), target)
                if _object_name(blob, entry.oid) != entry.oid:
                    changed.append(entry.path)
        elif os.path.exists(full):
            candidates.append(entry)
    return changed + (git_state.edited(path, candidates) if candidates else [])


def _object_name(blob: bytes, like: str) -> str:
    from hashlib import sha1, sha256

    return (sha1(blob, usedforsecurity=False) if len(like) == 40 else sha256(blob)).hexdigest()


def _commits(
    path: str,
    admin: str,
    status: Status,
    refs: Mapping[str, Ref],
    marker: Marker | None,
    reflog: Sequence[tuple[str, str]],
) -> Commits:
    branch_ref = f"refs/heads/{status.branch}"
    tips = [status.oid, refs[branch_ref].oid if branch_ref in refs else None]
    if marker and f"refs/heads/{marker.branch}" in refs:
        tips.append(refs[f"refs/heads/{marker.branch}"].oid)
    made_here = [oid for oid, message in reflog if not message.startswith(("checkout:", "reset:", "git-wt", "branch:"))]
    start_oid = marker.base_commit if marker else status.oid
    known = list(dict.fromkeys(tip for tip in tips if tip))
    in_submodules = _submodule_commits(admin)
    if marker and set(known) <= {start_oid} and {oid for oid, _ in reflog} <= {start_oid}:
        return Commits(elsewhere=in_submodules, merged="same")
    bases = _bases(marker, refs) if marker else []
    everything = ("--branches", "--remotes", "--tags")
    others = [f"--exclude={status.branch}", *everything] if status.branch else list(everything)
    without = bases if marker else others
    questions = [
        reading(path, "rev-list", "--parents", *known, *(made_here if marker else ()), "--not", *without, "--"),
        git_refs.commits_question(path, known, [*without, "--remotes"]),
    ]
    doing = "tell which commits are only here"
    found, unpushed = (git_refs.parse_commits(answer, doing) for answer in run_all(questions, env=environment()))
    kept = frozenset().union(*(git_refs.reached(tip, found) for tip in known)) | {start_oid}
    seen = list(dict.fromkeys(oid for oid, _ in reflog if oid not in kept))[:_LONGEST_REFLOG]
    reflog_only = {}
    if seen:
        answer = run(git_refs.commits_question(path, seen, [*known, *everything]), env=environment())
        reflog_only = git_refs.parse_commits(answer, doing)
    counted = {oid: parents for oid, parents in found.items() if oid not in reflog_only}
    merged = _merged(path, status.oid, marker, refs, counted)
    if merged == "squash":
        through_head = git_refs.reached(status.oid, counted)
        counted = {oid: parents for oid, parents in counted.items() if oid not in through_head}
    tip = refs[branch_ref].oid if branch_ref in refs else None
    return Commits(
        counted=tuple(counted),
        pushed=frozenset(counted) - frozenset(unpushed),
        on_branch=git_refs.reached(tip, counted),
        reflog_only=tuple(reflog_only),
        elsewhere=in_submodules,
        merged=merged,
    )


def _bases(marker: Marker, refs: Mapping[str, Ref]) -> list[str]:
    """The commits that what was made here may be contained in: the original HEAD, the base ref, its upstream and
    origin's default branch as they are now."""
    found = [marker.base_commit, *_integration_points(marker, refs)]
    return list(dict.fromkeys(found))


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
    folders = list(_git_dirs(admin + "/modules", ""))
    count = ("rev-list", "--count", "HEAD", "--branches", "--glob=refs/stash", "--not", "--remotes", "--")
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


def _git_dirs(parent: str, below: str) -> Iterator[str]:
    try:
        names = sorted(os.listdir(f"{parent}/{below}"))
    except OSError:
        return
    if "HEAD" in names and "objects" in names:
        yield below
        names = ["modules"] if "modules" in names else []
    for name in names:
        if os.path.isdir(f"{parent}/{below}/{name}"):
            yield from _git_dirs(parent, f"{below}/{name}" if below else name)


def _nested_worktrees(repository: Repository, path: str) -> list[str]:
    return [tree.path for tree in repository.worktrees if tree.path.startswith(path + "/")]


class _Walked(NamedTuple):
    precious: list[str]
    nested: list[str]
    unreadable: list[str]


def _walk(root: str, admin: str, status: Status | None, regenerable: Sequence[str], marker: Marker | None) -> _Walked:
    """One walk over every folder: repositories below (git shows none that lie in ignored folders), and the ignored
    files that no build makes again. Symbolic links are not followed."""
    ignored = {change.path.rstrip("/") for change in status.changes if change.kind == "!"} if status else set()
    copied = (marker.copied if marker else None) or {}
    links = marker.links if marker else ()
    again = re.compile("|".join(translate(pattern) for pattern in regenerable) or r"\Z.")
    walked = _Walked([], [], [])
    waiting = [("", False)]
    while waiting:
        folder, inside = waiting.pop()
        try:
            with os.scandir(f"{root}/{folder}" if folder else root) as found:
                entries = list(found)
        except OSError as error:
            walked.unreadable.append(f"cannot read '{folder}': {error.strerror}")
            continue
        names = {entry.name for entry in entries}
        if folder and _is_repository(f"{root}/{folder}", names, admin):
            walked.nested.append(f"{root}/{folder}")
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            within = inside or path in ignored
            if entry.is_dir(follow_symlinks=False):
                if not (within and again.match(entry.name)):
                    waiting.append((path, within))
                elif entry.name != ".git":
                    waiting.append((path, False))  # made again by builds, but a repository may lie in it
            elif within and not again.match(entry.name) and path not in links and not _as_copied(root, path, copied):
                walked.precious.append(path)
    walked.precious.sort()
    return walked


def _is_repository(path: str, names: set[str], admin: str) -> bool:
    if ".git" in names:
        pointer = read_text(path + "/.git") or ""
        target = os.path.realpath(os.path.join(path, pointer.removeprefix("gitdir: ")))
        return not (pointer.startswith("gitdir: ") and target.startswith(os.path.realpath(admin) + "/modules/"))
    return "HEAD" in names and "objects" in names and "refs" in names


def _as_copied(root: str, path: str, copied: Mapping[str, str]) -> bool:
    """Whether a file is byte for byte what set-up put there."""
    if path not in copied:
        return False
    from hashlib import sha256

    try:
        with open(f"{root}/{path}", "rb") as file:
            return sha256(file.read()).hexdigest() == copied[path]
    except OSError:
        return False
