"""Which commits stand in the way of a removal, which do not, and what becomes of branches."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import states
from tests.repos import branches, commit, commit_to_origin, git, head, make_repo, origin_of, read, status, write
from tests.states import World, blockers_of, counts_of, everything, kept, no_trace
from tests.wt import Ran, Session


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A fresh worktree `task` in a repository without a remote."""
    with states.make_world(str(tmp_path)) as made:
        yield made


@pytest.fixture
def remote_world(tmp_path: Path) -> Iterator[World]:
    """A fresh worktree `task` in a clone."""
    with states.make_world(str(tmp_path), remote=True) as made:
        yield made


def _pushed_and_not(ran: Ran) -> tuple[int, int]:
    """How many commits a refusal says are pushed, and how many it says are nowhere else."""
    said = next(str(item["message"]) for item in ran.error["blockers"] if item["code"] == "commits")
    pushed = re.search(r"(?<!not )\b(\d+) pushed", said)
    only_here = re.search(r"(\d+) (nowhere else|not pushed)", said)
    return int(pushed[1]) if pushed else 0, int(only_here[1]) if only_here else 0


# Merged ones do not count.


def _merged_by_merge_commit(world: World) -> None:
    states.commits(world)
    commit(world.root, "main.txt", "main\n")
    git(world.root, "merge", "-q", "--no-ff", "-m", "merge", world.branch)


def _fast_forwarded(world: World) -> None:
    states.commits(world)
    git(world.root, "merge", "-q", "--ff-only", world.branch)


def _squashed(world: World) -> None:
    states.commits(world)
    commit(world.root, "main.txt", "main\n")
    git(world.root, "merge", "-q", "--squash", world.branch)
    git(world.root, "commit", "-q", "-m", "squashed")
    commit(world.root, "later.txt", "later\n")


def _rebased_and_merged(world: World) -> None:
    states.commits(world)
    commit(world.root, "main.txt", "main\n")
    git(world.root, "cherry-pick", f"{world.branch}~", world.branch)
    assert head(world.root) != head(world.path)


MERGED = (_merged_by_merge_commit, _fast_forwarded, _squashed, _rebased_and_merged)


@pytest.mark.parametrize("merge", MERGED, ids=lambda merge: str(merge.__name__).strip("_"))
def test_merged_commits_do_not_count(merge: Callable[[World], None], world: World) -> None:
    merge(world)
    before = kept(world)
    world.exit_remove().ok()
    no_trace(world)
    world.undo().ok()
    assert kept(world) == before


def test_commits_that_origin_has_merged_do_not_count_after_a_fetch(remote_world: World) -> None:
    world = remote_world
    commit(world.path, "one.txt", "1\n")
    git(world.path, "push", "-q", "origin", f"HEAD:{world.branch}")
    assert counts_of(world.exit_remove()) == {"commits": 1}
    commit_to_origin(world.root, "other.txt", "other\n")
    other = f"{world.root}.other"
    git(other, "fetch", "-q")
    git(other, "merge", "-q", "--squash", f"origin/{world.branch}")
    git(other, "commit", "-q", "-m", "squashed")
    git(other, "push", "-q", "origin", "HEAD:main", f":{world.branch}")
    git(world.root, "fetch", "-q", "--prune")
    world.exit_remove().ok()
    no_trace(world)


def test_a_squash_that_left_a_change_out_is_no_merge(world: World) -> None:
    states.commits(world)
    git(world.root, "merge", "-q", "--squash", world.branch)
    git(world.root, "rm", "-q", "-f", "two.txt")
    git(world.root, "commit", "-q", "-m", "half of it")
    assert counts_of(world.exit_remove()) == {"commits": 2}


def test_a_commit_made_after_the_squash_counts(world: World) -> None:
    _squashed(world)
    commit(world.path, "three.txt", "3\n")
    assert "commits" in counts_of(world.exit_remove())


def test_a_squash_of_head_does_not_merge_another_branch_made_here(world: World) -> None:
    git(world.path, "switch", "-q", "-c", "other")
    commit(world.path, "other.txt", "other\n")
    git(world.path, "switch", "-q", world.branch)
    _squashed(world)
    assert counts_of(world.exit_remove()) == {"commits": 1}


def test_commits_that_came_from_the_base_do_not_count(world: World) -> None:
    commit(world.root, "main.txt", "main\n")
    git(world.path, "merge", "-q", "main")
    world.exit_remove().ok()
    no_trace(world)


# Pushed, or nowhere else.


def test_commits_are_said_to_be_nowhere_else(world: World) -> None:
    states.commits(world)
    assert _pushed_and_not(world.exit_remove()) == (0, 2)


def test_commits_are_said_to_be_pushed(remote_world: World) -> None:
    world = remote_world
    commit(world.path, "one.txt", "1\n")
    git(world.path, "push", "-q", "-u", "origin", world.branch)
    assert _pushed_and_not(world.exit_remove()) == (1, 0)
    commit(world.path, "two.txt", "2\n")
    assert _pushed_and_not(world.exit_remove()) == (1, 1)


def test_commits_whose_remote_branch_is_gone_are_nowhere_else(remote_world: World) -> None:
    world = remote_world
    commit(world.path, "one.txt", "1\n")
    git(world.path, "push", "-q", "origin", world.branch)
    git(world.path, "push", "-q", "origin", f":{world.branch}")
    assert _pushed_and_not(world.exit_remove()) == (0, 1)


def test_commits_on_another_branch_made_here_are_not_said_to_be_pushed(world: World) -> None:
    states.switched_and_back(world)
    pushed, _ = _pushed_and_not(world.exit_remove())
    assert pushed == 0


def test_commits_of_a_submodule_are_said_to_be_nowhere_else(world: World) -> None:
    states.submodule_branch(world)
    assert _pushed_and_not(world.exit_remove()) == (0, 1)


# Branches.


def test_the_branch_that_was_switched_to_stays_and_is_said_to(world: World) -> None:
    git(world.path, "switch", "-q", "-c", "other")
    ran = world.exit_remove().ok()
    no_trace(world)
    assert branches(world.root) == ["main", "other"]
    assert "'other' stays" in ran.err


def test_the_creation_branch_that_was_left_with_commits_stands_in_the_way(world: World) -> None:
    commit(world.path, "one.txt", "1\n")
    git(world.path, "switch", "-q", "-c", "other", "main")
    before = everything(world)
    assert counts_of(world.exit_remove()) == {"commits": 1}
    assert everything(world) == before


def test_undo_brings_the_switched_to_branch_and_the_creation_branch_back(world: World) -> None:
    states.switched(world)
    before = kept(world)
    world.exit_remove("--discard-changes").ok()
    assert branches(world.root) == ["main", "other"]
    back = world.undo().ok()
    assert kept(world) == before
    assert back.data["worktreeBranch"] == git(world.path, "symbolic-ref", "--short", "HEAD") == "other"


def test_a_switched_to_branch_that_is_deleted_meanwhile_is_there_again_after_undo(world: World) -> None:
    states.switched(world)
    tip = head(world.path)
    world.exit_remove("--discard-changes").ok()
    git(world.root, "branch", "-q", "-D", "other")
    git(world.root, "gc", "-q", "--prune=now")
    world.undo().ok()
    assert head(world.path) == tip
    assert status(world.path) == []


def test_a_switched_to_branch_that_is_checked_out_meanwhile_is_not_shared_after_undo(
    world: World, tmp_path: Path
) -> None:
    states.switched(world)
    tip = head(world.path)
    world.exit_remove("--discard-changes").ok()
    git(world.root, "worktree", "add", "-q", str(tmp_path / "elsewhere"), "other")
    commit(str(tmp_path / "elsewhere"), "more.txt", "more\n")
    world.undo().ok()
    assert head(world.path) == tip
    assert status(world.path) == []


def test_a_creation_branch_that_comes_back_under_another_name_is_the_one_to_delete(world: World) -> None:
    states.switched(world)
    world.exit_remove("--discard-changes").ok()
    theirs = git(world.root, "commit-tree", "main^{tree}", "-p", "main", "-m", "somebody else's")
    git(world.root, "branch", world.branch, theirs)
    world.undo().ok()
    world.remove("--discard-changes").ok()
    assert head(world.root, world.branch) == theirs


def test_a_creation_branch_renamed_inside_stays_and_only_that_is_said(world: World) -> None:
    git(world.path, "branch", "-m", "better-name")
    ran = world.exit_remove().ok()
    assert branches(world.root) == ["better-name", "main"]
    assert "'better-name' stays" in ran.err
    assert world.branch not in ran.err
    assert world.branch not in ran.data["message"]


def test_undo_of_a_renamed_creation_branch_tells_the_branch_that_it_is_on(world: World) -> None:
    states.renamed(world)
    before = kept(world)
    world.exit_remove("--discard-changes").ok()
    assert world.undo().ok().data["worktreeBranch"] == "better-name"
    assert kept(world) == before


def test_a_branch_that_a_second_worktree_has_checked_out_stays_and_is_said_to(world: World, tmp_path: Path) -> None:
    second = str(tmp_path / "second")
    git(world.root, "worktree", "add", "-q", "--force", second, world.branch)
    ran = world.exit_remove().ok()
    assert not os.path.exists(world.path)
    assert head(second) == head(world.root)
    assert f"'{world.branch}' stays: it is checked out at" in ran.err


def test_a_branch_that_moved_since_it_was_checked_stays(world: World, tmp_path: Path) -> None:
    """It is checked out nowhere else, but somebody's rebase will come back to it."""
    second = str(tmp_path / "second")
    git(world.root, "worktree", "add", "-q", "--force", second, world.branch)
    commit(second, "one.txt", "1\n")
    commit(world.root, "main.txt", "main\n")
    git(second, "rebase", "-q", "-x", "false", "main", check=False)
    git(world.path, "reset", "-q", "--hard")
    world.exit_remove("--discard-changes").ok()
    assert world.branch in branches(world.root)


def test_an_existing_branch_that_was_entered_stays(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"))
    git(root, "branch", "feature")
    session = Session(root)
    session.enter("task", "--branch", "feature")
    ran = session.wt("exit", "remove", "--json").ok()
    assert branches(root) == ["feature", "main"]
    assert "'feature' stays" in ran.err


def test_the_default_branch_stays(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"), remote=True)
    git(root, "switch", "-q", "--detach")
    git(root, "branch", "-q", "-D", "main")
    session = Session(root)
    session.enter("task", "--branch", "main")
    session.wt("exit", "remove", "--json").ok()
    assert branches(root) == ["main"]


def test_a_branch_called_none_is_a_branch(world: World) -> None:
    git(world.path, "switch", "-q", "-c", "None")
    commit(world.path, "one.txt", "1\n")
    git(world.path, "switch", "-q", "--detach", "main")
    assert counts_of(world.exit_remove()) == {"commits": 1}


# --keep-branch


def test_with_keep_branch_commits_that_the_branch_reaches_do_not_count(world: World) -> None:
    states.commits(world)
    tip = head(world.path)
    world.exit_remove("--keep-branch").ok()
    assert not os.path.exists(world.path)
    assert head(world.root, world.branch) == tip


def test_with_keep_branch_only_commits_on_a_detached_head_count(world: World) -> None:
    states.detached_behind(world)
    before = everything(world)
    found = blockers_of(world.exit_remove("--keep-branch"))
    assert found == {"commits": (1, [head(world.path)[:12]])}
    assert everything(world) == before


def test_with_keep_branch_files_still_count(world: World) -> None:
    states.commits(world)
    states.modified(world)
    assert counts_of(world.exit_remove("--keep-branch")) == {"uncommitted": 1}


def test_undo_of_a_removal_that_kept_the_branch_comes_back_on_it(world: World) -> None:
    states.commits(world)
    before = kept(world)
    world.exit_remove("--keep-branch").ok()
    world.undo().ok()
    assert kept(world) == before


def test_undo_after_the_kept_branch_went_on_takes_another_branch_and_says_so(world: World) -> None:
    states.commits(world)
    tip = head(world.path)
    world.exit_remove("--keep-branch").ok()
    git(world.root, "switch", "-q", world.branch)
    commit(world.root, "three.txt", "3\n")
    moved = head(world.root)
    ran = world.undo().ok()
    assert head(world.root, world.branch) == moved
    assert head(world.path) == tip
    assert ran.data["worktreeBranch"] != world.branch
    assert ran.data["worktreeBranch"] in ran.err
    assert read(world.path, "two.txt") == "2\n"


# Where nothing tells what was the base.


def test_commits_count_when_the_base_branch_is_gone(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"))
    git(root, "branch", "base")
    session = Session(root)
    path = session.enter("task", "--base", "base")
    git(root, "branch", "-q", "-D", "base")
    commit(path, "one.txt", "1\n")
    assert counts_of(session.wt("exit", "remove", "--json")) == {"commits": 1}


def test_work_on_a_base_branch_that_was_reset_counts(tmp_path: Path) -> None:
    """Merged into the base once, but the base has been moved back since: contained in it *now* is what counts."""
    root = make_repo(str(tmp_path / "repo"))
    session = Session(root)
    path = session.enter("task")
    commit(path, "one.txt", "1\n")
    git(root, "merge", "-q", "--ff-only", "worktree-task")
    git(root, "reset", "-q", "--hard", "HEAD~")
    assert counts_of(session.wt("exit", "remove", "--json")) == {"commits": 1}


def test_commits_merged_into_the_upstream_of_the_base_do_not_count(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"), remote=True)
    git(root, "remote", "set-head", "origin", "--delete")
    session = Session(root)
    path = session.enter("task", "--base", "main")
    commit(path, "one.txt", "1\n")
    assert counts_of(session.wt("exit", "remove", "--json")) == {"commits": 1}
    git(path, "push", "-q", "origin", "HEAD:main")
    session.wt("exit", "remove", "--json").ok()
    assert git(origin_of(root), "show", "main:one.txt") == "1"


def test_an_orphan_branch_counts(world: World) -> None:
    git(world.path, "switch", "-q", "--orphan", "pages")
    write(world.path, "index.html", "hello\n")
    git(world.path, "add", "index.html")
    git(world.path, "commit", "-q", "-m", "pages")
    assert counts_of(world.exit_remove()) == {"commits": 1}


def test_an_unborn_branch_can_be_judged_and_comes_back(world: World) -> None:
    git(world.path, "switch", "-q", "--orphan", "pages")
    before = kept(world)
    world.remove("--discard-changes").ok()
    world.undo().ok()
    assert kept(world) == before
