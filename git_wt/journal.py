"""The lock and the journal of a repository: who is changing its worktrees, and what to mend if that one dies.

`<common dir>/git-wt/lock` is a permanent file, locked with flock and never deleted. `<common dir>/git-wt/journal/<id>`
is written (fsync, then rename) before the first change and deleted after the last. Losing either loses convenience,
not work: git is the truth. Knows no git command and no worktree.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from git_wt.errors import WtError
from git_wt.files import read_json, write_json
from git_wt.model import Json
from git_wt.proc import table

WAIT = 60.0
MARK = "GIT_WT_JOURNAL"  # in the environment of every process that works on an entry, so that recovery knows them
_OLD = 600.0  # seconds after which an entry of an unknown machine or boot may be mended


@contextmanager
def lock(state_dir: str, *, seconds: float = WAIT) -> Iterator[None]:
    """Hold the repository's lock. Raises `busy` (exit code 5) after `seconds`, saying whose it is and how old. Never
    to be held during hooks, the network, set-up or questions. No process."""
    os.makedirs(state_dir, exist_ok=True)
    fd = os.open(state_dir + "/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        _wait_for(fd, state_dir, seconds)
        note = f"{os.getpid()} {time.time():.0f}\n".encode()
        os.ftruncate(fd, 0)
        os.pwrite(fd, note, 0)
        yield
        os.utime(fd)  # for `taken_since`
    finally:
        os.close(fd)


@contextmanager
def lock_or_none(path: str) -> Iterator[bool]:
    """Try a lock of its own at `path` without waiting; yields whether it was had. No process."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield _try(fd)
    finally:
        os.close(fd)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_for(fd: int, state_dir: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while not _try(fd):
        if time.monotonic() > until:
            raise _busy(fd, state_dir)
        time.sleep(0.002 + os.urandom(1)[0] / 16000)


def _busy(fd: int, state_dir: str) -> WtError:
    words = os.pread(fd, 100, 0).decode("ascii", "replace").split()
    whose = ""
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
        whose = f" by process {words[0]} since {max(0, int(time.time()) - int(words[1]))} s"
    path = state_dir + "/lock"
    return WtError("busy", f"cannot change worktrees now: '{path}' is held{whose}", hint="try again in a moment")


def taken_since(state_dir: str, moment: float) -> bool:
    """Whether anybody has had the lock since `moment` (seconds since the epoch), or has it. No process."""
    try:
        with lock_or_none(state_dir + "/lock") as free:
            return not free or os.stat(state_dir + "/lock").st_mtime >= moment
    except OSError:
        return False


class Entry:
    """A journal entry: what is being done, by whom, how far it is. It outlives the call that began it."""

    def __init__(self, path: str, data: Json) -> None:
        self.path = path
        self.data = data

    @property
    def id(self) -> str:
        """The entry's name."""
        return os.path.basename(self.path).removesuffix(".json")

    def note(self, *, durable: bool = False, **fields: object) -> None:
        """Add `fields` and write the entry so that it survives the death of this process (with `durable`, of the
        machine, too). No process."""
        self.data.update(fields, noted=time.time())
        write_json(self.path, self.data, durable=durable)

    def note_group(self, group: int) -> None:
        """Write down the process group of a git child before it runs."""
        self.note(group=group, groupStart=table.start_time(group))

    def done(self) -> None:
        """Take the entry away: nothing is left to mend."""
        if os.environ.get(MARK) == self.id:
            del os.environ[MARK]
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def begin(state_dir: str, action: str, **fields: object) -> Entry:
    """Write a new entry for `action` before anything is changed. No process on Linux."""
    pid = os.getpid()
    entry = Entry(f"{state_dir}/journal/{pid}-{os.urandom(4).hex()}.json", {})
    os.makedirs(state_dir + "/journal", exist_ok=True)
    owner = {"pid": pid, "start": table.start_time(pid), "host": _host(), "boot": table.boot_id()}
    entry.note(durable=True, action=action, time=time.time(), **owner, **fields)
    os.environ[MARK] = entry.id
    return entry


def abandoned(state_dir: str) -> list[Entry]:
    """The entries whose owner is dead, oldest first. Cheap when there are none: one folder is listed. No process."""
    folder = state_dir + "/journal"
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = []
    for name in (name for name in names if name.endswith(".tmp")):
        _drop_half_written(f"{folder}/{name}")
    for name in (name for name in names if name.endswith(".json")):
        data = read_json(f"{folder}/{name}")
        if data is not None and _owner_is_dead(data):
            found.append(Entry(f"{folder}/{name}", data))
    return sorted(found, key=lambda entry: float(entry.data.get("time", 0)))


def _drop_half_written(path: str) -> None:
    """Delete a file that its writer was killed over (`<name>.<pid>.tmp`)."""
    pid = path.split(".")[-2]
    if pid.isdigit() and table.start_time(int(pid)) is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _owner_is_dead(data: Json) -> bool:
    if data.get("host") != _host():  # its process numbers mean nothing here: only time tells
        return time.time() - float(data.get("noted", 0)) > _OLD
    return data.get("boot") != table.boot_id() or not table.alive(int(data.get("pid", 0)), data.get("start"))


def _host() -> str:
    """This machine, or this container of it: where a process number means the same process."""
    try:
        return f"{os.uname().nodename} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return os.uname().nodename


def same_boot(data: Json) -> bool:
    """Whether process numbers in an entry still mean the same processes."""
    return bool(data.get("boot") == table.boot_id() and data.get("host") == _host())
