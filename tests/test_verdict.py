"""The verdict, code by code: what is refused, which flag passes it, and that undo brings all of it back."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import states
from tests.repos import admin_dir, commit, differences, git, head, make_repo, require_sound, snapshot, status, write
from tests.states import FLAG_OF, FLAGS, Build, World, blockers_of, counts_of, everything, kept, no_trace
from tests.wt import Session


class Case(NamedTuple):
    """A state and its verdict: code -> the examples (of paths the end is enough), or how many where they are ids."""

    build: Build
    blockers: dict[str, tuple[str, ...] | int]

    @property
    def counts(self) -> dict[str, int]:
        return {code: found if isinstance(found, int) else len(found) for code, found in self.blockers.items()}

    @property
    def flags(self) -> list[str]:
        return [flag for flag in FLAGS if any(FLAG_OF[code] == flag for code in self.blockers)]


REFUSED = (
    Case(states.staged, {"uncommitted": ("staged.txt",)}),
    Case(states.added, {"uncommitted": ("added.txt",)}),
    Case(states.modified, {"uncommitted": ("file0.txt",)}),
    Case(states.deleted, {"uncommitted": ("file0.txt",)}),
    Case(states.deletion_staged, {"uncommitted": ("file1.txt",)}),
    Case(states.moved, {"uncommitted": ("file1.txt", "renamed.txt")}),
    Case(states.conflicted, {"uncommitted": ("file0.txt",)}),
    Case(states.mode_changed, {"uncommitted": ("file0.txt",)}),
    Case(states.untracked_unshown, {"uncommitted": ("deep/er/new.txt",)}),
    Case(states.odd_names, {"uncommitted": 6}),
    Case(states.hidden_edits, {"hidden": ("file0.txt", "file1.txt")}),
    Case(states.hidden_symlink, {"hidden": ("file0.txt",)}),
    Case(states.submodule_dirt, {"uncommitted": ("sub",)}),
    Case(states.submodule_untracked_unshown, {"uncommitted": ("sub",)}),
    Case(states.submodule_branch, {"commits": ("1 in sub",)}),
    Case(states.submodule_detached, {"uncommitted": ("sub",), "commits": ("1 in sub",)}),
    Case(states.commits, {"commits": 2}),
    Case(states.detached_commit, {"commits": 1}),
    Case(states.detached_behind, {"commits": 2}),
    Case(states.reverted, {"commits": 2}),
    Case(states.switched, {"commits": 1}),
    Case(states.switched_and_back, {"commits": 1}),
    Case(states.renamed, {"commits": 1}),
    Case(states.rebasing, {"operation": ("rebase",), "commits": 2}),
    Case(states.merging, {"operation": ("merge",), "uncommitted": ("main.txt",)}),
    Case(states.cherry_picking, {"operation": ("cherry-pick",), "uncommitted": ("file0.txt",), "commits": 1}),
    Case(states.reverting, {"operation": ("revert",), "uncommitted": 3}),
    Case(states.bisecting, {"operation": ("bisect",)}),
    Case(states.applying, {"operation": ("am",), "commits": 1}),
    Case(states.index_locked, {"operation": ("index.lock",)}),
    Case(states.nested_worktree, {"nested": ("nest",), "uncommitted": ("nest/",)}),
    Case(states.nested_worktree_ignored, {"nested": ("data/nest",)}),
    Case(states.nested_worktree_locked, {"nested": ("data/nest",)}),
    Case(states.nested_repository, {"nested": ("inner",), "uncommitted": ("inner/",)}),
    Case(states.nested_repository_ignored, {"nested": ("node_modules/package",)}),
    Case(states.nested_bare, {"nested": ("node_modules/cache.git",)}),
    Case(states.locked, {"locked": ("agent 42",)}),
    Case(states.occupied, {"occupied": 1}),
    Case(states.second_session, {"occupied": 1}),
    Case(
        states.combined,
        {
            "uncommitted": ("added.txt", "file0.txt"),
            "commits": 1,
            "hidden": ("file1.txt",),
            "nested": ("node_modules/package",),
            "operation": ("index.lock",),
            "locked": ("agent 42",),
            "occupied": 1,
        },
    ),
)


def _id(case: Case) -> str:
    return case.build.__name__


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A fresh worktree `task` in a repository without a remote."""
    with states.make_world(str(tmp_path)) as made:
        yield made


@pytest.mark.parametrize("case", REFUSED, ids=_id)
def test_what_would_be_lost_is_refused_by_all_flags_but_its_own_and_nothing_changes(case: Case, world: World) -> None:
    case.build(world)
    before = everything(world)
    refusals = [world.exit_remove(), world.remove()]
    for needed in case.flags:
        ran = world.remove(*(flag for flag in FLAGS if flag != needed))
        assert counts_of(ran) == {code: count for code, count in case.counts.items() if FLAG_OF[code] == needed}
    assert differences(before, everything(world)) == []
    for ran in refusals:
        found = blockers_of(ran)
        assert {code: count for code, (count, _) in found.items()} == case.counts, ran
        for code, expected in case.blockers.items():
            if isinstance(expected, tuple):
                pairs = zip(sorted(found[code][1]), sorted(expected), strict=True)
                assert all(f"/{example}".endswith(f"/{end}") for example, end in pairs), ran
    assert states.trash_refs(world.root) == []


@pytest.mark.parametrize("case", REFUSED, ids=_id)
def test_what_was_discarded_comes_back_byte_for_byte(case: Case, world: World) -> None:
    case.build(world)
    before, seen = kept(world), status(world.path)
    world.exit_remove(*case.flags).ok()
    no_trace(world)
    assert len(states.trash_refs(world.root)) == 1
    assert world.undo().ok().data["worktreePath"] == world.path
    after = kept(world)
    assert differences(before.files, after.files) == []
    assert differences(before.admin, after.admin) == []
    assert (after.refs, after.config) == (before.refs, before.config)
    assert status(world.path) == seen
    require_sound(world.root)


def test_the_reason_of_a_lock_is_quoted(world: World) -> None:
    states.locked(world)
    assert "'agent 42'" in world.remove().error["message"]


def test_a_lock_without_a_reason_is_a_lock(world: World) -> None:
    git(world.root, "worktree", "lock", world.path)
    assert counts_of(world.remove("--discard-changes")) == {"locked": 1}


def test_a_worktree_that_is_being_made_is_not_removed(world: World) -> None:
    write(world.admin, "locked", f"git-wt: being made, pid {os.getpid()}\n")
    before = everything(world)
    ran = world.remove("--discard-changes")
    assert ran.code in (3, 5), ran
    assert differences(before, everything(world)) == []


def test_an_occupant_is_named(world: World) -> None:
    with states.stands_in(world.path) as process:
        _, examples = blockers_of(world.remove())["occupied"]
    assert examples == [f"sleep ({process.pid})"]


def test_the_callers_own_shell_does_not_occupy(world: World) -> None:
    world.session.wt("exit", "remove", "--json", cwd=world.path).ok()
    no_trace(world)


def test_the_session_of_the_caller_does_not_occupy_but_goes_on_when_refused(world: World) -> None:
    states.modified(world)
    world.exit_remove()
    assert world.session.wt("enter", "another", "--json").error["code"] == "session-active"
    git(world.path, "restore", ".")
    world.exit_remove().ok()
    no_trace(world)


def test_a_session_that_is_still_inside_is_refused_by_name_to_somebody_else(world: World) -> None:
    assert counts_of(Session(world.root).wt("remove", "task", "--json")) == {"occupied": 1}


def test_names_are_valid_json_and_shown_without_control_characters(world: World) -> None:
    states.odd_names(world)
    ran = world.remove()
    json.loads(ran.out_bytes)  # strict: bytes that are not UTF-8 would fail
    (_, examples) = blockers_of(ran)["uncommitted"]
    assert len(set(examples)) == 6
    assert not any(character < " " or character == "\x7f" for example in examples for character in example)


def test_at_most_ten_examples_are_given(world: World) -> None:
    for number in range(25):
        write(world.path, f"new{number}.txt", "new\n")
    count, examples = blockers_of(world.remove())["uncommitted"]
    assert (count, len(examples)) == (25, 10)


def test_a_stash_in_a_submodule_counts(world: World) -> None:
    states.submodule_stash(world)
    before = kept(world)
    assert counts_of(world.remove()).keys() == {"commits"}
    world.remove("--discard-changes").ok()
    world.undo().ok()
    assert differences(before.admin, kept(world).admin) == []
    assert "stash@{0}" in git(os.path.join(world.path, "sub"), "stash", "list")


@pytest.mark.parametrize("build", [states.index_broken, states.head_broken], ids=lambda build: build.__name__)
def test_what_cannot_be_read_is_unknown_and_comes_back_as_broken_as_it_was(build: Build, world: World) -> None:
    states.modified(world)
    build(world)
    before, as_it_was = everything(world), kept(world)
    assert counts_of(world.exit_remove()).keys() == {"unknown"}
    assert counts_of(world.remove(*(flag for flag in FLAGS if flag != "--discard-changes"))).keys() == {"unknown"}
    assert differences(before, everything(world)) == []
    world.remove("--discard-changes").ok()
    no_trace(world)
    world.undo().ok()
    assert differences(as_it_was.files, kept(world).files) == []
    assert differences(as_it_was.admin, kept(world).admin) == []


def test_an_original_head_that_is_no_object_any_more_is_unknown(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"))
    git(root, "switch", "-q", "-c", "side")
    commit(root, "side.txt", "side\n")
    git(root, "switch", "-q", "main")
    session = Session(root)
    path = session.enter("task", "--base", "side")
    session.cwd = root
    git(path, "reset", "-q", "--hard", "main")
    commit(path, "one.txt", "1\n")
    git(root, "branch", "-q", "-D", "side")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")
    assert "unknown" in counts_of(session.wt("exit", "remove", "--json"))
    session.wt("exit", "remove", "--discard-changes", "--json").ok()
    git(root, "gc", "-q", "--prune=now")
    session.wt("undo", "--json").ok()
    assert git(path, "show", "HEAD:one.txt") == "1"
    require_sound(root)


# Warnings: what goes because it can be brought back, and is refused where it cannot.


def test_precious_ignored_files_are_told_and_go(world: World) -> None:
    states.precious(world)
    before = kept(world)
    ran = world.exit_remove().ok()
    assert "3 ignored files" in ran.err
    world.undo().ok()
    assert differences(before.files, kept(world).files) == []


def test_precious_ignored_files_are_refused_without_the_trash(world: World) -> None:
    states.precious(world)
    before = everything(world)
    count, examples = blockers_of(world.exit_remove("--no-trash"))["ignored"]
    assert (count, examples) == (3, ["data/a", "data/deep/b", "key.secret"])
    assert counts_of(world.remove("--no-trash", "--force-nested", "--force-locked", "--force-occupied")) == {
        "ignored": 3
    }
    assert differences(before, everything(world)) == []
    world.exit_remove("--no-trash", "--discard-changes").ok()
    no_trace(world)


def test_files_that_builds_make_again_are_not_counted(world: World) -> None:
    states.ignored_rules(world)
    for name in ("node_modules/a/index.js", "node_modules/a/.env", "data/__pycache__/a.pyc"):
        write(world.path, name, "made\n")
    ran = world.exit_remove("--no-trash").ok()
    assert "ignored" not in ran.err
    no_trace(world)


def test_what_builds_make_again_is_for_the_configuration_to_say(world: World) -> None:
    states.ignored_rules(world)
    write(world.root, ".git-wt.toml", 'regenerable = ["data"]\n')
    write(world.path, "data/a", "made\n")
    write(world.path, "node_modules/a", "precious here\n")
    _, examples = blockers_of(world.exit_remove("--no-trash"))["ignored"]
    assert examples == ["node_modules/a"]


def test_files_hidden_by_the_exclude_file_are_told(world: World) -> None:
    with open(os.path.join(world.root, ".git", "info", "exclude"), "a", encoding="utf-8") as file:
        file.write("/notes.txt\n")
    write(world.path, "notes.txt", "only here\n")
    assert blockers_of(world.remove("--no-trash")) == {"ignored": (1, ["notes.txt"])}
    assert "1 ignored file" in world.remove().ok().err
    world.undo().ok()
    assert (Path(world.path) / "notes.txt").read_text() == "only here\n"


def test_commits_only_in_the_reflog_are_told_and_go(world: World) -> None:
    states.reflog_only(world)
    lost = head(world.path, "HEAD@{1}")
    before = kept(world)
    assert "1 commit" in world.exit_remove().ok().err
    git(world.root, "gc", "-q", "--prune=now")
    world.undo().ok()
    assert differences(before.admin, kept(world).admin) == []
    assert head(world.path, "HEAD@{1}") == lost


def test_commits_only_in_the_reflog_are_refused_without_the_trash(world: World) -> None:
    states.reflog_only(world)
    before = everything(world)
    assert counts_of(world.exit_remove("--no-trash")) == {"commits": 1}
    assert differences(before, everything(world)) == []


def test_a_sparse_checkout_hides_nothing(world: World) -> None:
    commit(world.root, "in/a.txt", "a\n")
    commit(world.root, "out/b.txt", "b\n")
    git(world.path, "merge", "-q", "--ff-only", "main")
    git(world.path, "sparse-checkout", "set", "in")
    assert not os.path.exists(os.path.join(world.path, "out"))
    before = kept(world)
    world.exit_remove().ok()
    no_trace(world)
    world.undo().ok()
    assert differences(before.admin, kept(world).admin) == []
    assert status(world.path) == []


def test_a_file_written_outside_the_cone_is_an_edit(world: World) -> None:
    commit(world.root, "in/a.txt", "a\n")
    commit(world.root, "out/b.txt", "b\n")
    git(world.path, "merge", "-q", "--ff-only", "main")
    git(world.path, "sparse-checkout", "set", "in")
    write(world.path, "out/b.txt", "only here\n")
    assert counts_of(world.exit_remove()).keys() <= {"uncommitted", "hidden"}


# Mounts: passed by no flag.


@pytest.mark.parametrize("kind", ["bind", "tmpfs"])
def test_a_mount_below_passes_no_flag_and_is_not_emptied(kind: str, world: World, tmp_path: Path) -> None:
    states.ignored_rules(world)
    target = os.path.join(world.path, "data")
    os.mkdir(target)
    outside = str(tmp_path / "outside")
    write(outside, "treasure.txt", "not yours\n")
    argv = ("--bind", outside) if kind == "bind" else ("-t", "tmpfs", "none")
    with states.mounted(target, *argv):
        write(target, "inside.txt", "in the mount\n")
        before = everything(world)
        for flags in ((), FLAGS, (*FLAGS, "--no-trash")):
            ran = world.remove(*flags)
            assert counts_of(ran)["nested"] == 1, ran
            assert counts_of(world.exit_remove(*flags))["nested"] == 1
        assert differences(before, everything(world)) == []
    world.remove(*FLAGS).ok()
    assert (Path(outside) / "treasure.txt").read_text() == "not yours\n"


@pytest.mark.parametrize("kind", ["bind", "tmpfs"])
def test_a_worktree_that_is_a_mount_itself_is_never_removed(kind: str, world: World) -> None:
    pointer = Path(world.path, ".git").read_text()
    argv = ("--bind", world.path) if kind == "bind" else ("-t", "tmpfs", "none")
    with states.mounted(world.path, *argv):
        write(world.path, ".git", pointer)
        before = everything(world)
        for flags in ((), FLAGS, (*FLAGS, "--no-trash")):
            ran = world.remove(*flags)
            assert ran.code in (1, 3), ran
            assert differences(before, everything(world)) == []
            assert states.trash_refs(world.root) == []


def test_a_mount_with_a_space_in_its_name_is_seen(world: World) -> None:
    states.ignored_rules(world)
    target = os.path.join(world.path, "data", "a b\\c")
    os.makedirs(target)
    with states.mounted(target, "-t", "tmpfs", "none"):
        assert counts_of(world.remove(*FLAGS)) == {"nested": 1}


# What is no worktree to remove, whatever the flags.


def _never_removed(world: World, name: str, *untouched: str) -> None:
    before = everything(world), [snapshot(path) for path in untouched]
    for flags in ((), FLAGS, (*FLAGS, "--no-trash")):
        ran = world.session.wt("remove", name, *flags, "--json", cwd=world.root)
        assert ran.code in (1, 2), ran
        assert ran.json["success"] is False
    assert differences(before[0], everything(world)) == []
    assert [snapshot(path) for path in untouched] == before[1]


def test_the_main_checkout_is_never_removed(world: World) -> None:
    _never_removed(world, "^", world.root)
    _never_removed(world, world.root, world.root)


def test_an_unregistered_folder_is_never_removed(world: World, tmp_path: Path) -> None:
    plain = str(tmp_path / "plain")
    write(plain, "a.txt", "a\n")
    _never_removed(world, plain, plain)
    beside = os.path.join(os.path.dirname(world.path), "lookalike")
    write(beside, "a.txt", "a\n")
    _never_removed(world, "lookalike", beside)


def test_a_folder_that_is_a_symlink_to_another_worktree_is_never_removed(world: World) -> None:
    victim = Session(world.root).enter("victim")
    write(victim, "only-here.txt", "a\n")
    os.rename(world.path, world.path + ".away")
    os.symlink(victim, world.path)
    _never_removed(world, world.name, victim, world.path + ".away")
    _never_removed(world, world.path, victim, world.path + ".away")


def test_a_folder_that_is_another_repository_is_never_removed(world: World) -> None:
    os.rename(world.path, world.path + ".away")
    make_repo(world.path)
    _never_removed(world, world.name, world.path)


def test_a_folder_whose_git_file_points_elsewhere_is_never_removed(world: World) -> None:
    victim = Session(world.root).enter("victim")
    write(world.path, ".git", f"gitdir: {admin_dir(victim)}\n")
    _never_removed(world, world.name, victim)


def test_a_copy_of_a_worktree_is_never_removed(world: World) -> None:
    copy = world.path + "-copy"
    git(world.root, "worktree", "move", world.path, copy)
    os.mkdir(world.path)
    write(world.path, ".git", Path(copy, ".git").read_text())
    _never_removed(world, world.path, copy)


def test_an_exit_from_a_worktree_that_was_made_by_hand_only_keeps(world: World, tmp_path: Path) -> None:
    path = str(tmp_path / "hand")
    git(world.root, "worktree", "add", "-q", "-b", "by-hand", path)
    session = Session(world.root)
    session.enter("--path", path)
    ran = session.wt("exit", "remove", "--discard-changes", "--json")
    assert ran.code == 1, ran
    assert "git wt remove hand" in ran.error["hint"]
    assert os.path.isdir(path)
    assert session.wt("enter", "another", "--json").error["code"] == "session-active"


def test_one_of_ours_that_was_entered_by_path_is_not_removed_by_exit(world: World) -> None:
    session = Session(world.root)
    session.enter("--path", world.path)
    assert session.wt("exit", "remove", "--json").code == 1
    assert os.path.isdir(world.path)


def test_a_worktree_made_by_hand_goes_by_name_and_its_branch_stays(world: World, tmp_path: Path) -> None:
    path = str(tmp_path / "hand")
    git(world.root, "worktree", "add", "-q", "-b", "by-hand", path)
    ran = world.session.wt("remove", "hand", "--json", cwd=world.root).ok()
    assert ran.data["removed"][0]["branchDeleted"] is False
    assert not os.path.exists(path)
    assert head(world.root, "by-hand") == head(world.root)


def test_commits_of_a_worktree_made_by_hand_count_unless_another_ref_has_them(world: World, tmp_path: Path) -> None:
    path = str(tmp_path / "hand")
    git(world.root, "worktree", "add", "-q", "-b", "by-hand", path)
    commit(path, "one.txt", "1\n")
    assert counts_of(world.session.wt("remove", "hand", "--json", cwd=world.root)) == {"commits": 1}
    git(path, "tag", "saved")
    world.session.wt("remove", "hand", "--json", cwd=world.root).ok()


def test_of_several_names_those_that_can_go_go(world: World) -> None:
    other = Session(world.root)
    other.enter("other")
    other.wt("exit", "keep", cwd=world.root).ok()
    states.modified(world)
    ran = world.session.wt("remove", "task", "other", "--json", cwd=world.root)
    assert ran.code == 3
    assert [item["name"] for item in ran.json["data"]["removed"]] == ["other"]
    assert [item["name"] for item in ran.json["data"]["kept"]] == ["task"]
    assert len(ran.json["data"]["undo"]) == 1


def test_what_went_is_reported_also_when_another_name_is_no_worktree_to_remove(world: World) -> None:
    ran = world.session.wt("remove", "task", "^", "--json", cwd=world.root)
    assert ran.code != 0
    went = [item["name"] for item in (ran.json["data"] or {"removed": []})["removed"]]
    assert ("task" in went) == (not os.path.exists(world.path)), ran
