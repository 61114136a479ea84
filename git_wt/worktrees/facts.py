"""What is asked before a worktree may go: the facts that `verdict` judges. Asks git side by side, changes nothing.

Every question that cannot be answered ends up in `unknown`; nothing is assumed to be fine. About 8 git processes, the
first four at once; the rest only where there are commits, hidden files or submodules.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from git_wt.errors import WtError
from git_wt.files import read_text
from git_wt.git import refs as git_refs
from git_wt.git import state as git_state
from git_wt.git.call import environment
from git_wt.git.refs import Ref
from git_wt.git.state import Indexed, Status
from git_wt.model import Marker, Repository, Workspace
from git_wt.naming import quoted
from git_wt.proc import table
from git_wt.proc.run import Completed, start
from git_wt.proc.run import finish as finish_process
from git_wt.trees import mounts_at
from git_wt.value import NamedTuple
from git_wt.worktrees.commits import ORIGIN_HEAD, Commits, made_here
from git_wt.worktrees.walk import walk

T = TypeVar("T")


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
    regenerable: tuple[str, ...]
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
    identity, real = _identity(space), os.path.realpath(tree.path)
    standing = table.staying_in(real, aside)  # before our own git stands there
    status_answer, index_answer, reflog_answer = _ask_git(tree.path)
    unknown: list[str] = []
    status = _attempt(lambda: git_state.parse_status(status_answer), unknown)
    index = _attempt(lambda: git_state.parse_index(index_answer), unknown) or []
    refs = _attempt(lambda: _refs(repository, tree.branch, marker), unknown) or {}
    hidden = _attempt(lambda: _hidden(tree.path, index), unknown) or []
    walked = walk(tree.path, tree.admin, status, regenerable, marker)
    reflog = git_refs.parse_reflog(reflog_answer)
    commits = status and _attempt(lambda: made_here(tree.path, tree.admin, status, refs, marker, reflog), unknown)
    if unknown and _identity(space) != identity:
        unknown.append("its folder was exchanged meanwhile")
    branch = status.branch if status else tree.branch
    on_branch = refs.get(f"refs/heads/{branch}") if branch else None
    return Facts(
        status=status,
        hidden=tuple(hidden),
        gitlinks=frozenset(entry.path for entry in index if entry.mode == "160000"),
        commits=commits or Commits(),
        branch=branch,
        branch_oid=on_branch.oid if on_branch else None,
        refs=refs,
        precious=tuple(walked.precious),
        nested=tuple(dict.fromkeys(_nested_worktrees(repository, tree.path) + walked.nested)),
        mounts=tuple(mounts_at(real)),
        operation=git_state.operation(tree.admin),
        locked=tree.locked if tree.locked is not None else read_text(tree.admin + "/locked"),
        occupied=tuple([f"{found.command} ({found.pid})" for found in standing] + list(sessions)),
        unknown=tuple(dict.fromkeys(unknown + walked.unreadable)),
        regenerable=tuple(regenerable),
        identity=identity,
    )


def _identity(space: Workspace) -> tuple[int, int]:
    """Device and inode of the folder. Raises `not-found` when another command has just removed it."""
    try:
        there = os.lstat(space.worktree.path)
    except FileNotFoundError as error:
        raise WtError("not-found", f"cannot remove {quoted(space.name)}: it was removed just now") from error
    return there.st_dev, there.st_ino


def _ask_git(path: str) -> list[Completed]:
    """Status, index and reflog of HEAD, side by side. Three processes."""
    questions = [
        git_state.status_question(path, ignored=True),
        git_state.index_question(path),
        git_refs.reflog_question(path),
    ]
    children = [start(argv, env=environment()) for argv in questions]
    return [finish_process(child) for child in children]


def _attempt(ask: Callable[[], T], unknown: list[str]) -> T | None:
    try:
        return ask()
    except WtError as error:
        unknown.append(error.message)
        return None


def _refs(repository: Repository, branch: str | None, marker: Marker | None) -> dict[str, Ref]:
    """The refs that matter: the branches, the base and what may be its upstream. One process."""
    names = [ORIGIN_HEAD]
    names += [f"refs/heads/{name}" for name in {branch, marker.branch if marker else None} if name]
    if marker and marker.base.startswith("refs/"):
        short = marker.base.partition("/")[2].partition("/")[2]
        names += [marker.base, f"refs/remotes/*/{short}"]
    return git_refs.find_refs(repository.git_folder, *names)


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


def _nested_worktrees(repository: Repository, path: str) -> list[str]:
    return [tree.path for tree in repository.worktrees if tree.path.startswith(path + "/")]
