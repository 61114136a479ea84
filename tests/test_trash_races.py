"""Removal while somebody writes, makes worktrees or removes others at the same moment."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import states
from tests.repos import (
    branches,
    commit,
    differences,
    git,
    head,
    leftovers,
    make_repo,
    require_sound,
    worktrees,
    write,
)
from tests.states import World, counts_of, kept, no_trace, trash_refs
from tests.wt import Ran, Session, finish, start_wt


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A fresh worktree `task` in a repository without a remote."""
    with states.make_world(str(tmp_path)) as made:
        yield made


def _acts_late(world: World, script: str) -> None:
    """Let `script` (sh, `$W` is the worktree) run between the look and the rename: as the clean filter of a file under
    assume-unchanged. Status leaves such a file alone; what reads its content comes after the status has been read."""
    program = write(
        os.path.dirname(world.root), "filter.sh", f"#!/bin/sh\nexec 3>&1 >&2\nW={world.path}\n{script}\nexec cat >&3\n"
    )
    os.chmod(program, 0o755)
    with open(os.path.join(world.root, ".git", "info", "attributes"), "a", encoding="utf-8") as file:
        file.write("file0.txt filter=late\n")
    git(world.path, "update-index", "--assume-unchanged", "file0.txt")
    git(world.root, "config", "filter.late.clean", program)


def _brought_back(world: World, ran: Ran) -> None:
    assert (ran.code, ran.error["code"]) == (3, "has-changes"), ran
    assert os.path.isdir(world.path)
    assert worktrees(world.root) == [world.root, world.path]
    assert (trash_refs(world.root), leftovers(world.root)) == ([], [])
    assert os.listdir(os.path.join(world.root, ".git", "git-wt", "trash")) == []
    assert head(world.root, world.branch) == head(world.root)
    require_sound(world.root)


def test_the_filter_of_these_tests_alone_is_no_change(world: World) -> None:
    _acts_late(world, "true")
    world.exit_remove().ok()
    no_trace(world)


def test_a_file_written_after_the_look_brings_everything_back(world: World) -> None:
    _acts_late(world, 'echo late >"$W/late.txt"')
    ran = world.exit_remove()
    _brought_back(world, ran)
    assert Path(world.path, "late.txt").read_text() == "late\n"
    assert "late.txt" in ran.error["message"]
    git(world.root, "config", "filter.late.clean", "cat")
    assert counts_of(world.exit_remove()) == {"uncommitted": 1}


def test_a_commit_made_after_the_look_brings_everything_back(world: World) -> None:
    script = (
        'cd "$W"; unset GIT_DIR GIT_INDEX_FILE; test -e done.txt || '
        "{ echo 1 >done.txt; git add done.txt; git commit -qm late done.txt; }"
    )
    _acts_late(world, script)
    ran = world.exit_remove()
    assert ran.code == 3, ran
    assert git(world.path, "log", "-1", "--format=%s") == "late"
    assert head(world.root, world.branch) == head(world.path)
    assert trash_refs(world.root) == []


def test_an_ignored_file_written_after_the_look_is_not_deleted_for_good(world: World) -> None:
    states.ignored_rules(world)
    write(world.path, "data/__pycache__/x.pyc", "made\n")
    _acts_late(world, 'echo late >"$W/data/only-here.txt"')
    ran = world.exit_remove("--no-trash")
    assert ran.code == 3, ran
    assert Path(world.path, "data", "only-here.txt").read_text() == "late\n"


def test_a_folder_made_again_while_it_is_looked_at_again_does_not_keep_everything_away(world: World) -> None:
    """A build that goes on with `mkdir -p`: the filter of a touched file runs in both looks, in the second one it finds
    the folder gone, makes it again, and writes into the one that was moved as well."""
    script = 'test -e "$W" || { mkdir -p "$W/logs"; echo intruder >"$W/logs/build.log"; echo late >late.txt; }'
    _acts_late(world, script)
    git(world.path, "update-index", "--no-assume-unchanged", "file0.txt")
    os.utime(os.path.join(world.path, "file0.txt"), (1, 1))
    ran = world.exit_remove()
    assert ran.code == 3, ran
    assert Path(world.path, "README").read_text() == "first\n"
    assert Path(world.path, "late.txt").read_text() == "late\n"
    parent = os.path.dirname(world.path)
    logs = [folder for folder, _, names in os.walk(parent) if "build.log" in names]
    assert len(logs) == 1, "what the build wrote is lost"
    assert (trash_refs(world.root), leftovers(world.root)) == ([], [])


def test_an_ignored_file_written_when_all_was_counted_is_not_deleted_for_good(world: World) -> None:
    """The last program of the user's that the look runs is a merge driver, when it asks whether HEAD is merged."""
    states.ignored_rules(world)
    write(world.path, "data/__pycache__/x.pyc", "made\n")
    script = f"#!/bin/sh\necho late >{world.path}/data/only-here.txt\n"
    driver = write(os.path.dirname(world.root), "driver.sh", script)
    os.chmod(driver, 0o755)
    with open(os.path.join(world.root, ".git", "info", "attributes"), "a", encoding="utf-8") as file:
        file.write("file0.txt merge=late\n")
    git(world.root, "config", "merge.late.driver", f"{driver} %A")
    commit(world.root, "file0.txt", "main\n")
    commit(world.path, "file0.txt", "task\n")
    ran = world.exit_remove("--no-trash")
    assert ran.code == 3, ran
    assert Path(world.path, "data", "only-here.txt").read_text() == "late\n"


def test_a_lock_taken_during_the_look_is_respected(world: World) -> None:
    _acts_late(
        world, f"unset GIT_DIR GIT_INDEX_FILE; git -C {world.root} worktree lock --reason late $W 2>/dev/null; true"
    )
    assert counts_of(world.exit_remove("--discard-changes")) == {"locked": 1}


def test_a_writer_that_begins_with_the_removal_loses_nothing(world: World) -> None:
    """Whatever the moment: what was written is in the worktree, or in what undo brings back."""
    script = (
        "import itertools, os, sys\n"
        "worktree, journal = sys.argv[1:]\n"
        "print('ready', flush=True)\n"
        "while not os.listdir(journal): pass\n"
        "for number in itertools.count():\n"
        "    try:\n"
        "        with open(f'{worktree}/{number}.txt', 'x') as file: file.write(str(number))\n"
        "    except OSError: break\n"
        "    print(number, flush=True)\n"
    )
    journal = os.path.join(world.root, ".git", "git-wt", "journal")
    argv = [sys.executable, "-c", script, world.path, journal]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd="/", start_new_session=True) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == b"ready\n"
        ran = world.exit_remove()
        writer.kill()
        written = [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith(b"\n")]
    assert ran.code in (0, 3), ran
    if ran.code == 0:
        world.undo().ok()
    assert trash_refs(world.root) == []
    for number in written:
        assert Path(world.path, f"{number}.txt").read_text() == str(number)


def test_a_worktree_exchanged_after_the_look_is_not_removed(world: World) -> None:
    """Another folder stands where the checked one was: it comes back untouched, and so does the right one."""
    script = (
        'test -e "$W.away" || '
        '{ mv "$W" "$W.away"; mkdir "$W"; echo treasure >"$W/treasure.txt"; cp "$W.away/.git" "$W/.git"; }'
    )
    _acts_late(world, script)
    ran = world.exit_remove("--discard-changes")
    assert ran.code in (1, 3), ran
    assert Path(world.path, "treasure.txt").read_text() == "treasure\n"
    assert os.path.isfile(world.path + ".away/README")
    assert trash_refs(world.root) == []


def test_a_branch_that_moved_after_the_look_stays(world: World) -> None:
    """HEAD is detached, so nothing but the compare-and-swap sees it."""
    git(world.path, "switch", "-q", "--detach")
    script = (
        f"cd {world.root}; unset GIT_DIR GIT_INDEX_FILE; git update-ref refs/heads/{world.branch} "
        f'$(git commit-tree "main^{{tree}}" -p main -m moved)'
    )
    _acts_late(world, script)
    ran = world.exit_remove().ok()
    assert git(world.root, "log", "-1", "--format=%s", world.branch) == "moved"
    assert f"'{world.branch}' stays" in ran.err


@pytest.mark.slow
def test_twenty_removals_at_once(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"))
    sessions = [Session(root) for _ in range(20)]
    paths = [session.enter(f"task{number}") for number, session in enumerate(sessions)]
    started = [start_wt("exit", "remove", "--json", cwd=root, session=session.id) for session in sessions]
    ids = {finish(process).ok().data["undo"] for process in started}
    assert len(ids) == 20
    assert not any(os.path.exists(path) for path in paths)
    assert (worktrees(root), branches(root), leftovers(root)) == ([root], ["main"], [])
    assert len(trash_refs(root)) == 20
    back = [start_wt("undo", entry, "--json", cwd=root) for entry in sorted(ids)]
    assert sorted(finish(process).ok().data["worktreePath"] for process in back) == sorted(paths)
    assert len(branches(root)) == 21
    assert trash_refs(root) == []
    require_sound(root)


def test_the_same_removal_twice_at_once_happens_once(world: World) -> None:
    world.session.wt("exit", "keep", cwd=world.root).ok()
    ended = [finish(process) for process in [start_wt("remove", "task", "--json", cwd=world.root) for _ in range(6)]]
    codes = sorted(ran.code for ran in ended)
    assert codes[0] == 0, ended
    assert set(codes[1:]) <= {1, 3}, ended  # gone, or going away while it was looked at
    no_trace(world)
    assert len(trash_refs(world.root)) == 1
    assert leftovers(world.root) == []
    world.undo().ok()
    require_sound(world.root)


def test_the_same_undo_twice_at_once_happens_once(world: World) -> None:
    states.commits(world)
    entry = world.exit_remove("--discard-changes").ok().data["undo"]
    ended = [finish(process) for process in [start_wt("undo", entry, "--json", cwd=world.root) for _ in range(6)]]
    assert sorted(ran.code for ran in ended) == [0, 1, 1, 1, 1, 1], ended
    assert worktrees(world.root) == [world.root, world.path]
    assert branches(world.root) == ["main", world.branch]
    require_sound(world.root)


def test_removal_works_while_others_add_worktrees(tmp_path: Path) -> None:
    root = make_repo(str(tmp_path / "repo"))
    sessions = [Session(root) for _ in range(8)]
    paths = [session.enter(f"task{number}") for number, session in enumerate(sessions)]
    stop = tmp_path / "stop"
    script = (
        'n=0; while ! test -e "$1"; do n=$((n + 1)); git worktree add -q -b "b$2-$n" "$3/w$2-$n"; '
        'git worktree remove --force "$3/w$2-$n"; git branch -q -D "b$2-$n"; done 2>/dev/null'
    )
    with contextlib.ExitStack() as stack:
        stack.callback(stop.touch)
        loops = [
            stack.enter_context(
                subprocess.Popen(["sh", "-c", script, "sh", str(stop), str(number), str(tmp_path)], cwd=root)
            )
            for number in range(2)
        ]
        for session, path in zip(sessions, paths, strict=True):
            session.wt("exit", "remove", "--json", cwd=root).ok()
            assert not os.path.exists(path)
        stop.touch()
        for loop in loops:
            loop.wait(30)
    assert not [branch for branch in branches(root) if branch.startswith("worktree-")]
    assert len(trash_refs(root)) == 8


def test_a_removal_killed_after_the_rename_is_taken_back_by_the_next_command(world: World) -> None:
    """The filter of a touched file runs in the second look, finds the folder gone, and kills git-wt by its journal."""
    journal = os.path.join(world.root, ".git", "git-wt", "journal")
    _acts_late(world, f'test -e "$W" || kill -9 $(ls {journal} | cut -d- -f1)')
    git(world.path, "update-index", "--no-assume-unchanged", "file0.txt")
    os.utime(os.path.join(world.path, "file0.txt"), (1, 1))
    before = kept(world)
    assert world.remove("--force-occupied").code == -signal.SIGKILL
    assert not os.path.exists(world.path)
    world.session.wt("list", "--no-status", "--json", cwd=world.root).ok()
    after = kept(world)
    assert differences(before.files, after.files) == []
    assert after == before
    assert leftovers(world.root) == []
    require_sound(world.root)


def test_a_terminated_removal_is_whole_or_not_at_all(world: World) -> None:
    before = kept(world)
    process = start_wt("remove", "task", *states.FLAGS, "--json", cwd=world.root)
    time.sleep(0.07)
    process.terminate()
    ran = finish(process)
    assert ran.code in (0, 143, -signal.SIGTERM), ran  # the last: before it could say how to end
    if os.path.exists(world.path):
        assert kept(world) == before
        assert trash_refs(world.root) == []
    else:
        no_trace(world)
        world.undo().ok()
        assert kept(world) == before
