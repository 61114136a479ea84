"""The trash: everything comes back, nothing outlives its time, deletion never leaves the folder."""

import contextlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import states
from tests.repos import (
    branches,
    commit,
    commit_to_origin,
    differences,
    git,
    head,
    make_repo,
    read,
    require_sound,
    snapshot,
    status,
    write,
)
from tests.states import FLAGS, World, counts_of, kept, no_trace, trash_refs
from tests.wt import Ran, Session, environment, executable


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A fresh worktree `task` in a repository without a remote."""
    with states.make_world(str(tmp_path)) as made:
        yield made


def _removed(ran: Ran) -> str:
    """The id under which a removal can be undone."""
    undo = ran.ok().data["undo"]
    return str(undo[0] if isinstance(undo, list) else undo)


def _trash(world: World, *args: str) -> Ran:
    return world.session.wt("trash", *args, "--json", cwd=world.root)


def _ids(world: World) -> list[str]:
    return [str(entry["id"]) for entry in _trash(world).ok().data["trash"]]


def _home(world: World, entry: str = "") -> str:
    return os.path.join(world.root, ".git", "git-wt", "trash", entry)


def _lost(world: World, oids: dict[str, str]) -> list[str]:
    """The names of those that are no objects any more."""
    return [name for name, oid in oids.items() if not git(world.root, "cat-file", "-t", oid, check=False)]


def _gc(world: World) -> None:
    git(world.root, "gc", "-q", "--prune=now")


# Everything comes back.


def test_one_of_everything_comes_back(tmp_path: Path) -> None:
    with states.make_world(str(tmp_path), remote=True) as world:
        commit(world.path, "one.txt", "1\n")
        git(world.path, "push", "-q", "-u", "origin", world.branch)
        git(world.root, "config", f"branch.{world.branch}.description", "two\nlines")
        git(world.root, "config", f"branch.{world.branch}.rebase", "true")
        states.submodule_stash(world)
        write(world.path, "sub/file1.txt", "changed in sub\n")
        states.precious(world)
        states.added(world)
        states.hidden_edits(world)
        states.conflicted(world)
        states.odd_names(world)
        write(world.path, "tool", "#!/bin/sh\n")
        os.chmod(os.path.join(world.path, "tool"), 0o711)
        os.utime(os.path.join(world.path, "tool"), (1, 2))
        os.mkdir(os.path.join(world.path, "empty"), 0o700)
        os.symlink("/nowhere/at all", os.path.join(world.path, "dangling"))
        os.symlink("..", os.path.join(world.path, "up"))
        os.link(os.path.join(world.path, "tool"), os.path.join(world.path, "linked"))
        os.mkfifo(os.path.join(world.path, "fifo"))
        git(world.path, "update-ref", "refs/worktree/mine", "HEAD")
        git(world.path, "config", "extensions.worktreeConfig", "true")
        git(world.path, "config", "--worktree", "user.nickname", "x")
        states.locked(world)
        before, seen = kept(world), status(world.path)
        world.exit_remove("--discard-changes", "--force-locked").ok()
        no_trace(world)
        assert not any(line.startswith(f"branch.{world.branch}.") for line in kept_config(world))
        _gc(world)
        world.undo().ok()
        after = kept(world)
        assert differences(before.files, after.files) == []
        assert differences(before.admin, after.admin) == []
        assert after == before
        assert status(world.path) == seen
        git(world.path, "worktree", "unlock", world.path)
        assert counts_of(world.remove()).keys() == {"uncommitted", "commits", "hidden"}
        require_sound(world.root)


def kept_config(world: World) -> list[str]:
    return git(world.root, "config", "--local", "--list").splitlines()


def test_the_worktree_works_after_undo_and_can_go_again(world: World) -> None:
    states.commits(world)
    world.exit_remove("--discard-changes").ok()
    world.undo().ok()
    commit(world.path, "three.txt", "3\n")
    assert head(world.root, world.branch) == head(world.path)
    again = Session(world.root)
    assert again.enter("task") == world.path
    assert counts_of(again.wt("exit", "remove", "--json")) == {"commits": 3}
    again.wt("exit", "remove", "--discard-changes", "--json").ok()
    world.undo().ok()
    assert read(world.path, "three.txt") == "3\n"


def test_a_paused_rebase_goes_on_after_undo(world: World) -> None:
    states.rebasing(world)
    world.exit_remove("--discard-changes").ok()
    _gc(world)
    world.undo().ok()
    git(world.path, "rebase", "--continue")
    assert git(world.path, "branch", "--show-current") == world.branch
    assert head(world.path, "HEAD~") == head(world.root)


def test_a_paused_rebase_can_be_aborted_after_undo_and_gc(world: World) -> None:
    states.rebasing(world)
    tip = head(world.root, world.branch)
    world.exit_remove("--discard-changes").ok()
    _gc(world)
    world.undo().ok()
    git(world.path, "rebase", "--abort")
    assert head(world.path) == tip


def test_a_bisect_goes_on_after_undo(world: World) -> None:
    states.bisecting(world)
    world.exit_remove("--discard-changes").ok()
    world.undo().ok()
    assert git(world.path, "bisect", "log").count("git bisect") >= 1
    git(world.path, "bisect", "reset")
    assert git(world.path, "branch", "--show-current") == world.branch


# gc takes nothing.


def test_gc_takes_nothing_that_is_in_the_trash(world: World) -> None:
    states.reflog_only(world)
    away = head(world.path, "HEAD@{1}")
    write(world.path, "file0.txt", "stashed\n")
    git(world.path, "stash", "-q")
    states.commits(world)
    on_branch = head(world.path)
    states.detached_commit(world)
    detached = head(world.path)
    git(world.path, "update-ref", "refs/worktree/mine", git(world.path, "commit-tree", "HEAD^{tree}", "-m", "mine"))
    mine = head(world.path, "refs/worktree/mine")
    states.staged(world)
    blob = git(world.path, "rev-parse", ":staged.txt")
    states.conflicted(world)
    stages = [git(world.path, "rev-parse", f":{number}:file0.txt") for number in (1, 2, 3)]
    stash = head(world.root, "stash")
    world.exit_remove("--discard-changes").ok()
    _gc(world)
    git(world.root, "worktree", "prune", "--expire=now")
    _gc(world)
    held = {"away": away, "branch": on_branch, "detached": detached, "mine": mine, "staged": blob, "stash": stash}
    held.update({f"stage {number}": oid for number, oid in enumerate(stages, 1)})
    assert _lost(world, held) == []
    world.undo().ok()
    del held["mine"]  # git's own gc looks at no other worktree's refs/worktree (2.39)
    _gc(world)
    assert _lost(world, held) == []
    assert git(world.path, "show", ":staged.txt") == "only in the index"


def test_gc_takes_no_detached_commit_whose_index_could_not_be_read(world: World) -> None:
    states.detached_commit(world)
    tip = head(world.path)
    states.index_broken(world)
    world.exit_remove("--discard-changes").ok()
    _gc(world)
    assert _lost(world, {"tip": tip}) == []


def test_gc_takes_no_commit_of_the_reflog_when_something_is_unknown(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"))
    git(root, "switch", "-q", "-c", "side")
    commit(root, "side.txt", "side\n")
    git(root, "switch", "-q", "main")
    session = Session(root)
    path = session.enter("task", "--base", "side")
    session.cwd = root
    git(path, "reset", "-q", "--hard", "main")
    away = commit(path, "away.txt", "away\n")
    git(path, "reset", "-q", "--hard", "main")
    git(root, "branch", "-q", "-D", "side")
    git(root, "reflog", "expire", "--expire=all", "--expire-unreachable=now", "HEAD")
    log = Path(root, ".git", "worktrees", "task", "logs", "HEAD")
    lines = [line for line in log.read_text().splitlines(keepends=True) if "away" in line]
    log.write_text("".join(lines))
    git(root, "gc", "-q", "--prune=now")
    session.wt("exit", "remove", "--discard-changes", "--json").ok()
    git(root, "gc", "-q", "--prune=now")
    assert git(root, "cat-file", "-t", away) == "commit"


def test_gc_takes_no_blob_that_only_a_corrupt_heads_index_has(world: World) -> None:
    states.staged(world)
    blob = git(world.path, "rev-parse", ":staged.txt")
    states.head_broken(world)
    world.exit_remove("--discard-changes").ok()
    _gc(world)
    assert _lost(world, {"blob": blob}) == []


def test_gc_takes_no_submodule_commit(world: World) -> None:
    states.submodule_branch(world)
    tip = head(os.path.join(world.path, "sub"), "idea")
    world.exit_remove("--discard-changes").ok()
    _gc(world)
    world.undo().ok()
    assert git(os.path.join(world.path, "sub"), "show", f"{tip}:idea.txt") == "idea"


# What is taken meanwhile.


def test_undo_when_the_name_is_taken_says_so_and_takes_another(world: World) -> None:
    states.commits(world)
    states.modified(world)
    tip, files = head(world.path), snapshot(world.path)
    world.exit_remove("--discard-changes").ok()
    usurper = Session(world.root)
    assert usurper.enter("task") == world.path
    ran = world.undo().ok()
    path, branch = ran.data["worktreePath"], ran.data["worktreeBranch"]
    assert (path, branch) != (world.path, world.branch)
    assert path in ran.err
    assert branch in ran.err
    assert (head(path), git(path, "branch", "--show-current")) == (tip, branch)
    assert differences({**files, ".git": files["README"]}, {**snapshot(path), ".git": files["README"]}) == []
    assert status(path) == [" M file0.txt"]
    assert status(world.path) == []
    require_sound(world.root)


def test_what_came_back_under_another_name_is_removed_by_its_own_name_only(world: World) -> None:
    states.commits(world)
    world.exit_remove("--discard-changes").ok()
    usurper = Session(world.root)
    usurper.enter("task")
    usurper.wt("exit", "keep", cwd=world.root).ok()
    back = world.undo().ok().data["worktreePath"]
    listed = world.session.wt("list", "--no-status", "--json", cwd=world.root).ok().data["worktrees"]
    names = {item["path"]: item["name"] for item in listed}
    assert len(set(names.values())) == len(names)
    world.session.wt("remove", names[back], "--discard-changes", "--json", cwd=world.root).ok()
    assert not os.path.exists(back)
    assert os.path.isdir(world.path)


def test_a_submodule_works_when_its_worktree_comes_back_elsewhere(world: World) -> None:
    states.submodule_branch(world)
    world.exit_remove("--discard-changes").ok()
    Session(world.root).enter("task")
    git(world.path, "submodule", "--quiet", "update", "--init")
    back = world.undo().ok().data["worktreePath"]
    sub = os.path.join(back, "sub")
    assert git(sub, "rev-parse", "--show-toplevel") == sub
    assert git(sub, "log", "-1", "--format=%s", "idea") == "write idea.txt"
    assert status(sub) == []
    assert status(os.path.join(world.path, "sub")) == []


def test_undo_when_only_the_folder_is_taken_keeps_the_branch(world: World) -> None:
    states.commits(world)
    world.exit_remove("--discard-changes").ok()
    write(world.path, "mine.txt", "somebody's\n")
    ran = world.undo().ok()
    assert ran.data["worktreePath"] != world.path
    assert ran.data["worktreeBranch"] == world.branch
    assert read(world.path, "mine.txt") == "somebody's\n"


def test_undo_when_only_the_branch_is_taken_keeps_the_folder(world: World) -> None:
    states.commits(world)
    tip = head(world.path)
    world.exit_remove("--discard-changes").ok()
    git(world.root, "branch", world.branch)
    taken = head(world.root, world.branch)
    ran = world.undo().ok()
    assert ran.data["worktreePath"] == world.path
    assert ran.data["worktreeBranch"] != world.branch
    assert (head(world.path), head(world.root, world.branch)) == (tip, taken)


def test_undo_when_a_branch_blocks_the_name_as_a_folder_does(world: World) -> None:
    """`worktree-task/x` leaves no room for `worktree-task`."""
    tip = commit(world.path, "one.txt", "1\n")
    world.exit_remove("--discard-changes").ok()
    git(world.root, "branch", f"{world.branch}/x")
    world.undo().ok()
    assert head(world.path) == tip
    assert status(world.path) == []


def test_undo_without_anything_in_the_trash_says_so(world: World) -> None:
    ran = world.undo()
    assert (ran.code, ran.error["code"]) == (1, "not-found")


def test_undo_takes_the_last_removal_and_ids_take_any(world: World) -> None:
    ids = []
    for text in ("first", "second", "third"):
        session = Session(world.root)
        path = session.enter("again")
        write(path, "which.txt", text)
        ids.append(_removed(session.wt("exit", "remove", "--discard-changes", "--json", cwd=world.root)))
    assert _ids(world) == ids[::-1]
    again = os.path.join(os.path.dirname(world.path), "again")
    assert world.undo(ids[1]).ok().data["worktreePath"] == again
    assert read(again, "which.txt") == "second"
    world.session.wt("remove", "again", "--discard-changes", "--json", cwd=world.root).ok()
    assert world.undo().ok().data["worktreePath"] == again
    assert read(again, "which.txt") == "second"
    third = world.undo().ok().data["worktreePath"]
    assert read(third, "which.txt") == "third"
    assert world.undo("20000101-000000-dead").error["code"] == "not-found"
    assert _ids(world) == [ids[0]]


def test_undo_puts_nothing_into_the_session(world: World) -> None:
    world.exit_remove().ok()
    world.undo().ok()
    assert world.session.wt("exit", "--json", "keep").ok().data["action"] == "none"


def test_an_upstream_comes_back(tmp_path: Path) -> None:
    with states.make_world(str(tmp_path), remote=True) as world:
        git(world.path, "push", "-q", "-u", "origin", f"HEAD:{world.branch}")
        commit_to_origin(world.root, "other.txt", "other\n")
        world.exit_remove().ok()
        assert git(world.root, "config", "--get", f"branch.{world.branch}.remote", check=False) == ""
        world.undo().ok()
        assert git(world.path, "rev-parse", "--abbrev-ref", "@{upstream}") == f"origin/{world.branch}"


def test_branch_settings_of_others_stay(world: World) -> None:
    git(world.root, "config", f"branch.{world.branch}.x.rebase", "true")
    git(world.root, "config", "branch.main.rebase", "true")
    before = sorted(kept_config(world))
    world.exit_remove().ok()
    assert sorted(kept_config(world)) == before
    world.undo().ok()
    assert sorted(kept_config(world)) == before


# Listing and emptying.


def test_the_trash_lists_what_it_holds(world: World) -> None:
    entry = _removed(world.exit_remove())
    (shown,) = _trash(world, "list").ok().data["trash"]
    assert (shown["id"], shown["name"], shown["worktreePath"]) == (entry, "task", world.path)
    assert shown["worktreeBranch"] == world.branch
    assert shown["expiresAt"] - shown["removedAt"] == 7 * 86400


def test_emptying_one_leaves_the_others(world: World) -> None:
    other = Session(world.root)
    other.enter("other")
    first = _removed(world.exit_remove())
    second = _removed(other.wt("exit", "remove", "--json", cwd=world.root))
    assert _trash(world, "empty", first).ok().data["deleted"] == [first]
    assert _ids(world) == [second]
    assert trash_refs(world.root) == [f"refs/git-wt/trash/{second}"]
    assert os.listdir(_home(world)) == [second]
    assert _trash(world, "empty", first).error["code"] == "not-found"
    _trash(world, "empty").ok()
    assert (_ids(world), trash_refs(world.root), os.listdir(_home(world))) == ([], [], [])


def test_expired_means_older_than_trash_days(world: World) -> None:
    entry = _removed(world.exit_remove())
    assert _trash(world, "empty", "--expired").ok().data["deleted"] == []
    write(world.root, ".git-wt.toml", "[trash]\ndays = 0\n")
    assert _trash(world).ok().data["trash"][0]["expiresAt"] <= time.time() + 1
    assert _trash(world, "empty", "--expired").ok().data["deleted"] == [entry]
    assert trash_refs(world.root) == []


def test_trash_days_can_come_from_the_environment(world: World) -> None:
    entry = _removed(world.exit_remove())
    env = {"GIT_WT_CONFIG_TRASH_DAYS": "0"}
    ran = world.session.wt("trash", "empty", "--expired", "--json", cwd=world.root, env=env)
    assert ran.ok().data["deleted"] == [entry]


def test_past_trash_size_the_oldest_go(world: World) -> None:
    ids = []
    for name in ("a", "b", "c"):
        session = Session(world.root)
        write(session.enter(name), "big.bin", "x" * 1_000_000)
        ids.append(_removed(session.wt("exit", "remove", "--discard-changes", "--json", cwd=world.root)))
    write(world.root, ".git-wt.toml", '[trash]\nsize = "2.5MB"\n')
    assert _trash(world, "empty", "--expired").ok().data["deleted"] == [ids[0]]
    assert _ids(world) == [ids[2], ids[1]]


def test_the_expired_are_deleted_in_the_background_of_the_next_removal(world: World) -> None:
    write(world.root, ".git-wt.toml", "[trash]\ndays = 0\n")
    git(world.root, "add", ".git-wt.toml")
    started = time.monotonic()
    world.exit_remove().ok()
    while os.listdir(_home(world)) and time.monotonic() < started + 20:
        time.sleep(0.02)
    assert os.listdir(_home(world)) == []
    while trash_refs(world.root) and time.monotonic() < started + 20:
        time.sleep(0.02)
    assert trash_refs(world.root) == []


def test_what_a_process_stands_in_is_not_deleted_yet(world: World) -> None:
    with states.stands_in(world.path):
        entry = _removed(world.remove("--force-occupied"))
        ran = _trash(world, "empty")
        assert ran.code == 1
        assert ran.json["data"]["deleted"] == []
        assert os.path.isfile(os.path.join(_home(world, entry), "worktree", "README"))
        assert len(trash_refs(world.root)) == 1
    assert _trash(world, "empty").ok().data["deleted"] == [entry]


# Deletion never leaves the folder.


def test_deletion_never_follows_a_symlink(world: World, tmp_path: Path) -> None:
    outside = str(tmp_path / "outside")
    write(outside, "treasure.txt", "not yours\n")
    os.chmod(os.path.join(outside, "treasure.txt"), 0o600)
    before = snapshot(outside)
    os.symlink(outside, os.path.join(world.path, "to-folder"))
    os.symlink(os.path.join(outside, "treasure.txt"), os.path.join(world.path, "to-file"))
    os.symlink("/", os.path.join(world.path, "to-root"))
    os.makedirs(os.path.join(world.path, "a/b"))
    os.symlink("../../..", os.path.join(world.path, "a/b/up"))
    os.link(os.path.join(outside, "treasure.txt"), os.path.join(world.path, "hard"))
    main = snapshot(os.path.join(world.root, "file0.txt"))
    world.exit_remove("--discard-changes").ok()
    _trash(world, "empty").ok()
    assert os.listdir(_home(world)) == []
    assert differences(before, snapshot(outside)) == []
    assert snapshot(os.path.join(world.root, "file0.txt")) == main


def test_a_trash_folder_that_was_exchanged_for_a_symlink_is_not_followed(world: World, tmp_path: Path) -> None:
    outside = str(tmp_path / "outside")
    write(outside, "treasure.txt", "not yours\n")
    folder = os.path.join(_home(world, _removed(world.exit_remove())), "worktree")
    shutil.rmtree(folder)
    os.symlink(outside, folder)
    _trash(world, "empty")
    assert read(outside, "treasure.txt") == "not yours\n"


def test_a_mount_that_came_into_the_trash_is_not_emptied(world: World, tmp_path: Path) -> None:
    outside = str(tmp_path / "outside")
    write(outside, "treasure.txt", "not yours\n")
    states.ignored_rules(world)
    os.mkdir(os.path.join(world.path, "data"))
    entry = _removed(world.exit_remove())
    with states.mounted(os.path.join(_home(world, entry), "worktree", "data"), "--bind", outside):
        ran = _trash(world, "empty")
        assert (ran.code, ran.json["data"]["deleted"]) == (1, [])
        assert read(outside, "treasure.txt") == "not yours\n"
        assert len(trash_refs(world.root)) == 1
    _trash(world, "empty").ok()
    assert read(outside, "treasure.txt") == "not yours\n"


def test_read_only_folders_come_back_and_can_be_deleted(world: World) -> None:
    """Go's module cache is like that. Root may write anywhere, so as root this runs without that capability."""
    without = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    if without and not shutil.which("setpriv"):
        pytest.skip("as root this needs setpriv")

    def run(*args: str) -> Ran:
        argv = [*without, executable(), *args, "--json"]
        ran = subprocess.run(argv, cwd=world.root, env=environment(), capture_output=True, check=False)
        return Ran(args, ran.returncode, ran.stdout, ran.stderr)

    states.ignored_rules(world)
    write(world.path, "data/a/b/deep.txt", "deep\n")
    for name in ("data/a/b/deep.txt", "data/a/b", "data/a", "data"):
        os.chmod(os.path.join(world.path, name), 0o444 if name.endswith(".txt") else 0o555)
    before = kept(world)
    run("remove", "task", *FLAGS).ok()
    run("undo").ok()
    assert stat.S_IMODE(os.stat(os.path.join(world.path, "data")).st_mode) == 0o555
    assert kept(world) == before
    run("remove", "task", *FLAGS).ok()
    assert len(run("trash", "empty").ok().data["deleted"]) == 1
    assert os.listdir(_home(world)) == []


def test_a_worktree_whose_own_folder_is_read_only_is_refused_whole_or_goes(world: World) -> None:
    """rename(2) of a folder to another parent must write its `..`, so the owner needs to be able to write it."""
    without = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
    if without and not shutil.which("setpriv"):
        pytest.skip("as root this needs setpriv")
    os.chmod(world.path, 0o555)
    before = kept(world)
    argv = [*without, executable(), "remove", "task", *FLAGS, "--json"]
    ran = subprocess.run(argv, cwd=world.root, env=environment(), capture_output=True, check=False)
    assert ran.returncode in (0, 1), ran
    if ran.returncode:
        assert kept(world) == before
        assert trash_refs(world.root) == []
    else:
        no_trace(world)
        world.undo().ok()
        assert kept(world) == before


# For good.


def test_no_trash_leaves_neither_ref_nor_folder(world: World) -> None:
    states.commits(world)
    states.modified(world)
    ran = world.exit_remove("--no-trash", "--discard-changes").ok()
    no_trace(world)
    assert "undo" not in ran.data
    assert (trash_refs(world.root), _ids(world), os.listdir(_home(world))) == ([], [], [])
    assert world.undo().error["code"] == "not-found"
    require_sound(world.root)


def test_remove_without_trash_tells_no_id(world: World) -> None:
    world.session.wt("exit", "keep", cwd=world.root).ok()
    ran = world.remove("--no-trash").ok()
    assert ran.data["undo"] == []
    assert trash_refs(world.root) == []


def test_without_trash_and_occupied_it_says_what_is_left(world: World) -> None:
    with states.stands_in(world.path):
        ran = world.remove("--no-trash", "--force-occupied").ok()
        assert not os.path.exists(world.path)
        assert "stands inside" in ran.err


# From inside, and elsewhere.


def test_a_removal_from_inside_the_folder_works(world: World) -> None:
    folder = os.path.join(world.path, "deep")
    os.mkdir(folder)
    ran = world.session.wt("exit", "remove", "--json", cwd=folder).ok()
    assert ran.data["originalCwd"] == world.root
    no_trace(world)


def test_a_removal_by_name_from_inside_the_folder_works(world: World) -> None:
    world.session.wt("remove", "task", "--json", cwd=world.path).ok()
    no_trace(world)
    assert world.session.wt("exit", "keep", "--json").ok().data["action"] == "none"


def test_a_worktree_that_was_moved_is_still_ours_and_comes_back_where_it_was(world: World, tmp_path: Path) -> None:
    there = str(tmp_path / "moved")
    git(world.root, "worktree", "move", world.path, there)
    before = kept(world, there)
    world.exit_remove().ok()
    assert not os.path.exists(there)
    assert branches(world.root) == ["main"]
    assert world.undo().ok().data["worktreePath"] == there
    assert kept(world, there) == before


def _elsewhere(tmp_path: Path, *mount: str) -> Iterator[World]:
    volume = str(tmp_path / "volume")
    os.mkdir(volume)
    with states.mounted(volume, *mount):
        root = make_repo(str(tmp_path / "repo"))
        write(root, ".git-wt.local.toml", f'directory = "{volume}/{{slug}}"\n')
        session = Session(root)
        path = session.enter("task")
        session.cwd = root
        assert os.path.dirname(path) == volume
        with contextlib.ExitStack() as later:
            yield World(session, root, path, "task", later)


@pytest.fixture(params=["tmpfs", "bind"])
def volume_world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A worktree below another mount: another file system, or the same one mounted once more (as containers do)."""
    source = tmp_path / "source"
    source.mkdir()
    yield from _elsewhere(tmp_path, *(("-t", "tmpfs", "none") if request.param == "tmpfs" else ("--bind", str(source))))


def test_on_another_file_system_the_trash_lies_beside_the_worktree(volume_world: World) -> None:
    world = volume_world
    states.commits(world)
    states.staged(world)
    write(world.path, "new.txt", "new\n")
    before = kept(world)
    entry = _removed(world.exit_remove("--discard-changes"))
    no_trace(world)
    beside = os.path.join(os.path.dirname(world.path), ".git-wt-trash")
    assert os.listdir(beside) == [entry]
    _gc(world)
    world.undo().ok()
    assert differences(before.files, kept(world).files) == []
    assert kept(world) == before
    assert not os.path.exists(beside)


def test_on_another_file_system_the_trash_can_be_emptied(volume_world: World) -> None:
    world = volume_world
    entry = _removed(world.exit_remove())
    assert _trash(world, "empty").ok().data["deleted"] == [entry]
    assert os.listdir(os.path.dirname(world.path)) == []
    assert trash_refs(world.root) == []


def test_on_another_file_system_no_trash_leaves_nothing(volume_world: World) -> None:
    world = volume_world
    world.exit_remove("--no-trash").ok()
    no_trace(world)
    assert os.listdir(os.path.dirname(world.path)) == []


def test_undo_of_files_that_are_gone_says_so_and_loses_no_commit(world: World) -> None:
    states.commits(world)
    tip = head(world.path)
    entry = _removed(world.exit_remove("--discard-changes"))
    shutil.rmtree(os.path.join(_home(world, entry), "worktree"))
    assert world.undo().error["code"] == "not-found"
    _gc(world)
    assert _lost(world, {"tip": tip}) == []
