"""Killed at any moment, `enter`, `exit remove` and `undo` leave what one git-wt command mends.

Kill moments are system calls, found by a rehearsal under strace, and points of time. `WT_CRASH_MOMENTS` says how many
of each kind are tried (`all` for every one); by default a sample that takes about a minute.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.repos import (
    admin_dir,
    branches,
    commit,
    common_dir,
    git,
    head,
    leftovers,
    make_repo,
    read,
    require_sound,
    status,
    worktrees,
    write,
)
from tests.wt import Ran, Session, environment, executable, finish, start_wt, wt

WANTED = os.environ.get("WT_CRASH_MOMENTS", "")
STRACE = shutil.which("strace")
GIT = shutil.which("git") or "git"
CALLS = (
    "rename,renameat,renameat2,mkdir,mkdirat,rmdir,unlink,unlinkat,link,symlink,"
    "openat,write,ftruncate,fork,vfork,clone,clone3"
)
CALL = re.compile(r"(\w+)\(")
SHIM = """#!/bin/sh
case " $* " in
*" {words} "*)
    if [ ! -e '{done}' ]; then
        : >'{done}'
        {traced} '{git}' "$@"
        code=$?
        echo $code >'{done}'
        if {parent} && [ $code -ge 128 ]; then kill -9 $PPID; fi
        exit $code
    fi ;;
esac
exec '{git}' "$@"
"""

needs_strace = pytest.mark.skipif(STRACE is None, reason="strace is not installed")


class Moment(NamedTuple):
    """Right before the `nth` call of `call` in the program that is traced."""

    call: str
    nth: int


def sample(moments: list[Moment], default: int) -> list[Moment]:
    """As many of `moments` as are wanted, evenly spread."""
    count = len(moments) if WANTED == "all" else int(WANTED or default)
    if count >= len(moments):
        return moments
    return [moments[round(n * (len(moments) - 1) / max(1, count - 1))] for n in range(count)]


def points(default: int) -> Iterator[float]:
    """Points of time as parts of a command's duration, evenly spread from 0 to 1."""
    count = 40 if WANTED == "all" else int(WANTED or default)
    yield from ((n + 0.5) / count for n in range(count))


# Killing


def rehearse(log: str) -> list[Moment]:
    """The moments of a trace at which something may change: every call but an open that only reads."""
    counts: dict[str, int] = {}
    found = []
    for line in Path(log).read_text(errors="replace").splitlines():
        match = CALL.match(line)
        if not match or match.group(1) not in CALLS.split(","):
            continue
        call = match.group(1)
        counts[call] = counts.get(call, 0) + 1
        if call == "openat" and "O_CREAT" not in line and "O_TRUNC" not in line:
            continue
        if call == "write" and re.match(r"write\([12],", line):
            continue
        found.append(Moment(call, counts[call]))
    return found


def traced(log: str, moment: Moment | None) -> list[str]:
    """The command line that runs a program under strace and kills it at `moment`."""
    inject = ["-e", f"inject={moment.call}:signal=SIGKILL:when={moment.nth}"] if moment else []
    return [str(STRACE), "-qq", "-o", log, "-e", f"trace={CALLS}", *inject]


def run_traced(args: tuple[str, ...], cwd: str, session: str, log: str, moment: Moment | None) -> int:
    """Run git-wt under strace (its git children are not traced); returns its exit code, minus 9 when killed."""
    argv = [*traced(log, moment), executable(), *args]
    return subprocess.run(
        argv, cwd=cwd, env=environment(session=session), stdin=subprocess.DEVNULL, capture_output=True, check=False
    ).returncode


class Shim:
    """A `git` first on PATH that runs one kind of git command under strace and kills it at a moment."""

    def __init__(self, folder: Path, words: str) -> None:
        self.log = str(folder / "child.log")
        self.done = folder / "done"
        self.words = words
        self.folder = folder / "shim"
        self.folder.mkdir()

    def run(self, args: tuple[str, ...], cwd: str, session: str, moment: Moment | None, *, parent: bool) -> Ran:
        """Run git-wt with the first such command killed at `moment`, and then git-wt itself if `parent`."""
        self.done.unlink(missing_ok=True)
        command = " ".join(traced(self.log, moment))
        known = {"words": self.words, "done": self.done, "traced": command, "git": GIT}
        script = SHIM.format(**known, parent="true" if parent else "false")
        path = write(str(self.folder), "git", script)
        os.chmod(path, 0o755)
        return wt(*args, cwd=cwd, session=session, env={"PATH": f"{self.folder}:{os.environ['PATH']}"})


def session_of(repo: str, name: str) -> str:
    """An id that no other test has at this moment."""
    return f"{repo}#{name}"


def processes_of(session: str) -> list[int]:
    """The processes that were started by git-wt as this session and still run, but for the one that expires trash."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = f"GIT_WT_SESSION={session}".encode() in file.read().split(b"\0")
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                mine = mine and b"--expired" not in file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as file:
                dead = file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
        except OSError:
            continue
        if mine and not dead:
            found.append(int(pid))
    return sorted(found)


def kill_after(seconds: float, args: tuple[str, ...], cwd: str, session: str, *, children: bool) -> Ran:
    """Start git-wt and kill its process group after a while. Its git children lead groups of their own: they live on
    unless `children` says that they are killed, too."""
    started = start_wt(*args, cwd=cwd, session=session)
    time.sleep(seconds)
    os.killpg(started.pid, signal.SIGKILL)
    while children and (living := processes_of(session)):
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
    return finish(started)


# What must be so after one git-wt command


@contextmanager
def told(where: object) -> Iterator[None]:
    """Say at which moment a check failed."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"killed at {where}: {error}") from error


def mend(repo: str, session: str) -> None:
    """Let one git-wt command run, then ask git whether the repository is sound and nothing is half-made."""
    listed = wt("list", "--json", cwd=repo, session="mender").ok().data["worktrees"]
    assert processes_of(session) == []
    assert leftovers(repo) == []
    require_sound(repo)
    git(repo, "fetch", "-q")
    git(repo, "branch", "-vv")
    git(repo, "gc", "-q", "--prune=now")
    known = worktrees(repo)
    assert sorted(row["path"] for row in listed) == sorted(known)
    admins = f"{common_dir(repo)}/worktrees"
    assert len(os.listdir(admins) if os.path.isdir(admins) else []) == len(known) - 1
    for row in listed[1:]:
        assert os.path.isdir(row["path"])
        assert "locked" not in row, row
        assert row["kind"] == "session", row
    trash = f"{common_dir(repo)}/git-wt/trash"
    kept = [entry["id"] for entry in wt("trash", "list", "--json", cwd=repo).ok().data["trash"]]
    assert sorted(os.listdir(trash) if os.path.isdir(trash) else []) == sorted(kept)
    refs = git(repo, "for-each-ref", "--format=%(refname)", "refs/git-wt/trash").splitlines()
    assert [ref.rpartition("/")[2] for ref in refs] == sorted(kept)


def require_whole_or_nothing(repo: str, name: str) -> bool:
    """A worktree is there, clean and on its branch, or neither folder nor branch is. Returns whether it is there."""
    path = f"{repo}/.claude/worktrees/{name}"
    if path in worktrees(repo):
        assert status(path) == []
        assert git(path, "symbolic-ref", "--short", "HEAD") == f"worktree-{name}"
        assert head(path) == head(repo)
        assert not os.path.exists(f"{admin_dir(path)}/locked")
        return True
    assert f"worktree-{name}" not in branches(repo)
    assert not os.path.lexists(path)
    return False


def again(repo: str, name: str) -> None:
    """The same command again gives the worktree; then it goes, so that the repository does not grow."""
    session = Session(repo, session_of(repo, name))
    session.wt("exit", "keep").ok()  # where it was killed after the session had begun
    assert status(session.enter(name)) == []
    session.wt("exit", "remove", "--no-trash", cwd=repo).ok()


class Task:
    """A worktree with a commit and an untracked file that may not get lost, whatever is killed."""

    def __init__(self, repo: str) -> None:
        self.repo = repo
        self.session = Session(repo, session_of(repo, "worker"))
        self.path = self.session.enter("task")
        self.tip = commit(self.path, "work.txt", "committed\n")
        write(self.path, "untracked.txt", "precious\n")
        write(self.path, "file0.txt", "staged\n")
        git(self.path, "add", "file0.txt")
        self.session.cwd = repo

    def be_inside(self) -> None:
        """The session is in the worktree, as it was or again."""
        ran = self.session.wt("enter", "task", "--json")
        assert ran.code == 0 or ran.error["code"] == "session-active", ran

    def is_there(self) -> bool:
        """Whether the worktree is registered; then it is as it was."""
        if self.path not in worktrees(self.repo):
            assert not os.path.lexists(self.path)
            return False
        assert head(self.path) == head(self.repo, "worktree-task") == self.tip
        assert read(self.path, "untracked.txt") == "precious\n"
        assert read(self.path, "file0.txt") == "staged\n"
        assert status(self.path) == ["M  file0.txt", "?? untracked.txt"]
        return True

    def require_not_lost(self) -> bool:
        """The work is in the worktree, or `undo` brings it back. Returns whether it had to."""
        if self.is_there():
            return False
        assert "worktree-task" not in branches(self.repo)
        wt("undo", cwd=self.repo).ok()
        assert self.is_there()
        return True


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A clone with a few files."""
    return make_repo(str(tmp_path / "repo"), files=20, remote=True)


@pytest.fixture
def big(tmp_path: Path) -> str:
    """A clone with 2,000 files."""
    return make_repo(str(tmp_path / "repo"), files=2000, remote=True)


# enter


@needs_strace
def test_enter_killed_at_a_system_call_of_its_own_is_mended(small: str, tmp_path: Path) -> None:
    log = str(tmp_path / "own.log")
    wt("enter", "warm", cwd=small, session="warm").ok()
    assert run_traced(("enter", "rehearsal"), small, "rehearsal", log, None) == 0
    moments = rehearse(log)
    assert len(moments) > 20
    for number, moment in enumerate(sample(moments, 14)):
        name = f"x{number}"
        run_traced(("enter", name), small, session_of(small, name), log, moment)
        with told(moment):
            mend(small, session_of(small, name))
            require_whole_or_nothing(small, name)
            again(small, name)


@needs_strace
@pytest.mark.parametrize("words", ["worktree add", "update-ref", "read-tree"])
@pytest.mark.parametrize("parent", [True, False], ids=["and git-wt", "alone"])
def test_git_killed_at_a_system_call_while_entering_is_mended(
    small: str, tmp_path: Path, words: str, parent: bool
) -> None:
    shim = Shim(tmp_path, words)
    wt("enter", "warm", cwd=small, session="warm").ok()
    assert shim.run(("enter", "rehearsal"), small, "rehearsal", None, parent=False).code == 0
    moments = rehearse(shim.log)
    assert len(moments) > 3
    killed = 0
    for number, moment in enumerate(sample(moments, 7 if words == "worktree add" and parent else 3)):
        name = f"x{number}"
        ran = shim.run(("enter", name), small, session_of(small, name), moment, parent=parent)
        killed += shim.done.read_text().strip() == "137"
        with told(moment):
            if not parent:
                assert leftovers(small) == []
                assert require_whole_or_nothing(small, name) is (ran.code == 0)
            mend(small, session_of(small, name))
            assert require_whole_or_nothing(small, name) is (ran.code == 0)
            again(small, name)
    assert killed


@pytest.mark.parametrize("children", [True, False], ids=["with its children", "alone"])
def test_enter_killed_at_a_point_of_time_is_mended(big: str, children: bool) -> None:
    session = Session(big)
    began = time.monotonic()
    session.enter("rehearsal")
    duration = time.monotonic() - began
    for number, part in enumerate(points(6)):
        name = f"x{number}"
        kill_after(part * duration, ("enter", name), big, session_of(big, name), children=children)
        with told(part):
            mend(big, session_of(big, name))
            require_whole_or_nothing(big, name)
            again(big, name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_during_enter_leaves_nothing_or_a_whole_worktree(big: str, number: signal.Signals) -> None:
    began = time.monotonic()
    Session(big).enter("rehearsal")
    duration = time.monotonic() - began
    codes = set()
    for nth, part in enumerate(points(5)):
        name = f"x{nth}"
        started = start_wt("enter", name, cwd=big, session=session_of(big, name))
        time.sleep(0.1 + part * duration)
        os.kill(started.pid, number)
        code = finish(started).code
        codes.add(code)
        assert code in (0, 128 + number, -number)  # -number: Python itself was still starting
        assert (processes_of(session_of(big, name)), leftovers(big)) == ([], [])
        assert require_whole_or_nothing(big, name) or code
    assert 128 + number in codes


@needs_strace
def test_locks_of_others_are_left_alone_when_a_crash_is_mended(small: str, tmp_path: Path) -> None:
    names = ("config.lock", "index.lock", "refs/heads/other.lock", "worktrees/warm/index.lock")
    path = Session(small).enter("warm")
    for name in names:
        lock = write(f"{small}/.git", name, "somebody else's\n")
        os.utime(lock, (time.time() - 100, time.time() - 100))
    shim = Shim(tmp_path, "read-tree")
    assert shim.run(("enter", "x"), small, session_of(small, "x"), Moment("openat", 20), parent=True).code == -9
    assert f"{small}/.claude/worktrees/x" in worktrees(small)
    wt("list", cwd=small).ok()
    assert worktrees(small) == [small, path]
    assert leftovers(small) == sorted(names)


@needs_strace
@pytest.mark.slow  # git's lock is waited for: 10 s
def test_crash_that_cannot_be_mended_yet_is_said_and_mended_later(small: str, tmp_path: Path) -> None:
    shim = Shim(tmp_path, "read-tree")
    assert shim.run(("enter", "x"), small, session_of(small, "x"), Moment("openat", 20), parent=True).code == -9
    lock = write(f"{small}/.git", "packed-refs.lock", "somebody else's\n")
    os.utime(lock, (time.time() - 100, time.time() - 100))
    ran = wt("list", "--json", cwd=small).ok()
    assert "packed-refs.lock" in ran.err
    assert os.path.exists(lock)
    os.unlink(lock)
    mend(small, session_of(small, "x"))
    assert require_whole_or_nothing(small, "x") is False


def test_entry_of_others_that_is_half_made_is_left_alone_and_list_still_works(small: str) -> None:
    path = Session(small).enter("x")
    half = f"{small}/.git/worktrees/theirs"
    for name, content in (("locked", "initializing"), ("gitdir", f"{small}.theirs/.git\n"), ("commondir", "")):
        write(half, name, content)
    assert git(small, "worktree", "list", check=False) == ""
    rows = wt("list", "--json", cwd=small).ok().data["worktrees"]
    assert path in [row["path"] for row in rows]
    assert sorted(os.listdir(half)) == ["commondir", "gitdir", "locked"]


# exit remove


@needs_strace
def test_exit_remove_killed_at_a_system_call_of_its_own_loses_nothing(small: str, tmp_path: Path) -> None:
    task, log = Task(small), str(tmp_path / "own.log")
    args = ("exit", "remove", "--discard-changes")
    assert run_traced(args, small, task.session.id, log, None) == 0
    assert task.require_not_lost() is True
    moments = rehearse(log)
    assert len(moments) > 10
    outcomes = set()
    for moment in sample(moments, 10):
        task.be_inside()
        run_traced(args, small, task.session.id, log, moment)
        with told(moment):
            mend(small, task.session.id)
            outcomes.add(task.require_not_lost())
    assert outcomes == {True, False}


@needs_strace
@pytest.mark.parametrize(("words", "least"), [("update-ref", 3), ("update-ref -d", 3)])
def test_git_killed_at_a_system_call_while_removing_loses_nothing(
    small: str, tmp_path: Path, words: str, least: int
) -> None:
    task, shim = Task(small), Shim(tmp_path, words)
    args = ("exit", "remove", "--discard-changes")
    assert shim.run(args, small, task.session.id, None, parent=False).code == 0
    assert task.require_not_lost() is True
    moments = rehearse(shim.log)
    assert len(moments) >= least
    killed = 0
    for moment in sample(moments, 3):
        task.be_inside()
        killed += shim.run(args, small, task.session.id, moment, parent=True).code != 0
        with told(moment):
            mend(small, task.session.id)
            task.require_not_lost()
    assert killed


@needs_strace
@pytest.mark.parametrize("words", ["update-ref", "update-ref -d"])
def test_git_killed_alone_while_removing_leaves_no_lock_and_loses_nothing(
    small: str, tmp_path: Path, words: str
) -> None:
    task, shim = Task(small), Shim(tmp_path, words)
    args = ("exit", "remove", "--discard-changes")
    assert shim.run(args, small, task.session.id, None, parent=False).code == 0
    assert task.require_not_lost() is True
    for moment in sample(rehearse(shim.log), 3):
        task.be_inside()
        ran = shim.run(args, small, task.session.id, moment, parent=False)
        with told(moment):
            mend(small, task.session.id)
            assert task.path in worktrees(small) or ran.code == 0
            if not task.is_there():
                wt("undo", cwd=small).ok()
                assert task.is_there()


@pytest.mark.parametrize("children", [True, False], ids=["with its children", "alone"])
def test_exit_remove_killed_at_a_point_of_time_loses_nothing(big: str, children: bool) -> None:
    task = Task(big)
    args = ("exit", "remove", "--discard-changes")
    began = time.monotonic()
    task.session.wt(*args).ok()
    duration = time.monotonic() - began
    assert task.require_not_lost() is True
    for part in points(5):
        task.be_inside()
        kill_after(part * duration, args, big, task.session.id, children=children)
        with told(part):
            mend(big, task.session.id)
            task.require_not_lost()


# undo


@needs_strace
def test_undo_killed_at_a_system_call_of_its_own_loses_nothing(small: str, tmp_path: Path) -> None:
    task, log = Task(small), str(tmp_path / "own.log")
    remove = ("remove", "task", "--discard-changes", "--force-occupied")
    wt(*remove, cwd=small).ok()
    assert run_traced(("undo",), small, session_of(small, "undoer"), log, None) == 0
    moments = rehearse(log)
    assert len(moments) > 10
    for moment in sample(moments, 10):
        if task.is_there():
            wt(*remove, cwd=small).ok()
        run_traced(("undo",), small, session_of(small, "undoer"), log, moment)
        with told(moment):
            mend(small, session_of(small, "undoer"))
            task.require_not_lost()


def test_undo_killed_at_a_point_of_time_loses_nothing(big: str) -> None:
    task = Task(big)
    remove = ("remove", "task", "--discard-changes", "--force-occupied")
    wt(*remove, cwd=big).ok()
    began = time.monotonic()
    wt("undo", cwd=big, session="undoer").ok()
    duration = time.monotonic() - began
    for part in points(4):
        if task.is_there():
            wt(*remove, cwd=big).ok()
        kill_after(part * duration, ("undo",), big, session_of(big, "undoer"), children=True)
        with told(part):
            mend(big, session_of(big, "undoer"))
            task.require_not_lost()
