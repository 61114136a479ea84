"""The process table: who lives, since when, and who stands in a folder. Linux reads /proc; elsewhere ps and lsof.

Starts no process on Linux; one `ps` or `lsof` a question elsewhere.
"""

from __future__ import annotations

import os
import sys
import time

from git_wt.proc.run import run
from git_wt.value import NamedTuple

_MOMENT = 0.15  # seconds
_LINUX = sys.platform.startswith("linux")


class Standing(NamedTuple):
    """A process that has its working folder at or below the folder asked about."""

    pid: int
    command: str
    cwd: str


def start_time(pid: int) -> str | None:
    """When a process started, as an opaque word that tells it from a later one with its number. None: no such
    process, or not readable."""
    if _LINUX:
        fields = _stat(pid)
        return fields[19] if fields else None
    answer = run(["ps", "-o", "lstart=", "-p", str(pid)])
    return answer.out.decode("ascii", "replace").strip().replace(" ", "_") or None


def alive(pid: int, started: str | None) -> bool:
    """Whether the process that had this number and start time still lives (a zombie does not)."""
    if started is None:
        return False
    if _LINUX:
        fields = _stat(pid)
        return bool(fields) and fields[19] == started and fields[0] not in ("Z", "X")
    return start_time(pid) == started


def boot_id() -> str:
    """A word that changes with every start of the machine; '' where it cannot be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def relatives(roots: tuple[int, ...]) -> frozenset[int]:
    """This process, its ancestors, the rest of its pipeline, and `roots` with their descendants."""
    table = _table()
    mine = _ancestors(table) | _pipeline(table)
    below = set(roots)
    grown = True
    while grown:
        more = {other for other, (parent, _) in table.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return frozenset(mine | below)


def _ancestors(table: dict[int, tuple[int, int]]) -> set[int]:
    pid, found = os.getpid(), {os.getpid()}
    while pid in table and pid > 1:
        found.add(pid)
        pid = table[pid][0]
    return found


def _pipeline(table: dict[int, tuple[int, int]]) -> set[int]:
    """Our process group (`git wt … | less`), if a shell with job control made it: it is then in another one itself. In
    a script all children share one group, and a server among them is no pipeline."""
    group, pid = os.getpgid(0), os.getpid()
    while pid in table and table[pid][1] == group and command(pid) in ("git", "git-wt", command(os.getpid())):
        pid = table[pid][0]
    if pid in table and table[pid][1] == group:
        return set()
    return {other for other, (_, its_group) in table.items() if its_group == group}


def standing_in(folder: str, aside: frozenset[int]) -> list[Standing]:
    """Processes of any readable user whose working folder is `folder` (a real path) or below it, but for `aside`."""
    found = _cwds_linux() if _LINUX else _cwds_lsof()
    prefix = folder.rstrip("/") + "/"
    return [
        Standing(pid, command(pid), cwd)
        for pid, cwd in found
        if pid not in aside and (cwd == folder or cwd.startswith(prefix))
    ]


def staying_in(folder: str, aside: frozenset[int]) -> list[Standing]:
    """As `standing_in`, but only those who are still there a moment later: a prompt's `git status` is no occupant."""
    found = standing_in(folder, aside)
    if not found:
        return []
    time.sleep(_MOMENT)
    return [still for still in standing_in(folder, aside) if still in found]


def group_members(group: int) -> list[int]:
    """The processes of a process group."""
    return [pid for pid, (_, its_group) in _table().items() if its_group == group]


def environment_has(pid: int, setting: str) -> bool:
    """Whether a process was started with `setting` (`NAME=value`) in its environment. False where unreadable;
    outside Linux always True (there is no cheap way to ask, and the group's leader has been checked)."""
    if not _LINUX:
        return True
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return os.fsencode(setting) in file.read().split(b"\0")
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat behind the command: [0] state, [1] parent, [2] group, [19] start time."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode("ascii").split()
    except OSError:
        return []


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _table() -> dict[int, tuple[int, int]]:
    """Every process: its parent and its process group."""
    if _LINUX:
        stats = ((pid, _stat(pid)) for pid in _pids())
        return {pid: (int(fields[1]), int(fields[2])) for pid, fields in stats if fields}
    lines = run(["ps", "-axo", "pid=,ppid=,pgid="]).out.decode("ascii", "replace").splitlines()
    rows = [[int(word) for word in line.split()] for line in lines]
    return {row[0]: (row[1], row[2]) for row in rows if len(row) == 3}


def _cwds_linux() -> list[tuple[int, str]]:
    found = []
    for pid in _pids():
        try:
            cwd = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue  # gone, a kernel thread, or another user's
        found.append((pid, cwd))
    return found


def _cwds_lsof() -> list[tuple[int, str]]:
    found, pid = [], 0
    for line in os.fsdecode(run(["lsof", "-w", "-n", "-d", "cwd", "-F", "pn"]).out).splitlines():
        if line.startswith("p"):
            pid = int(line[1:])
        elif line.startswith("n"):
            found.append((pid, line[1:]))
    return found


def command(pid: int) -> str:
    """The name of the program that a process runs; 'process' where it cannot be read."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return os.fsdecode(file.read()).rstrip("\n")
    except OSError:
        return "process"
