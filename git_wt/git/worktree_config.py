"""Settings of one worktree only (`config.worktree`) and `extensions.worktreeConfig`, without which git reads none.

git-wt puts the extension into the shared configuration only where a setting needs it, notes that it did, and takes it
out again with the last such setting. With the extension on, `core.bare` and `core.worktree` in the shared configuration
would hold for every worktree (one of a bare repository is then no work tree any more; one of a submodule gets the wrong
folder: git 2.39), so they move to the main worktree's own file in the same step. Everything here is to be called with
the repository's lock held. Source: git-worktree(1), CONFIGURATION FILE.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise

from git_wt.errors import WtError
from git_wt.files import read_json, write_json
from git_wt.git.call import act, ask, require, split_z
from git_wt.model import Json

NOTE = "/git-wt/worktree-config"  # below the common dir: that git-wt turned the extension on, and what it moved
_FILE = "/config.worktree"
_EXTENSION = "extensions.worktreeconfig"
_BUDGET = 10.0


def set_for_worktree(common: str, admin: str, key: str, value: str) -> None:
    """Set `key` for the worktree of `admin` alone; the extension is turned on where it is off. Raises `git`, `busy`.
    Two git processes, three to seven where the extension is off."""
    act("/", "config", "--file", admin + _FILE, key, value, doing=f"set '{key}' for one worktree")
    turn_on(common)


def unset_for_worktree(common: str, admin: str, *keys: str) -> None:
    """Take settings of one worktree away (those that are not there are no error), its file when nothing else is in it,
    and the extension when nobody needs it any more. Raises `git`, `busy`. One process a key, and those of
    `turn_off_if_unused`."""
    for key in keys:
        ask("/", "config", "--file", admin + _FILE, "--unset-all", key)
    if os.path.exists(admin + _FILE) and not has_settings(admin):
        os.unlink(admin + _FILE)
    turn_off_if_unused(common)


def has_settings(admin: str) -> bool:
    """Whether anything is set for the worktree of `admin` (or of the common dir: main) alone. No process."""
    return _count(admin + _FILE) > 0


def turn_on(common: str) -> None:
    """Make git read `config.worktree`. Raises `git`, `busy` when another git holds the configuration for 10 s. One git
    process, two to six where it is off."""
    _insist(lambda: _try_on(common))


def turn_off_if_unused(common: str) -> None:
    """Take the extension out again if git-wt put it in and no worktree has a setting of its own: the shared
    configuration is then byte for byte as before, unless somebody changed it meanwhile. Raises `git`, `busy`. No
    process where there is nothing to take out; else none to five."""
    note = read_json(common + NOTE)
    if note is not None and not _is_used(common, note):
        _insist(lambda: _try_off(common, note))


def _try_on(common: str) -> bool:
    """Whether it is on now; False when the configuration changed meanwhile: look again."""
    before = _read(common + "/config")
    settings = _settings(common + "/config")
    note = read_json(common + NOTE)
    on = _is_true(settings.get(_EXTENSION))
    if on and note is None:
        return True
    moving = {key: value for key in ("core.bare", "core.worktree") if (value := settings.get(key)) is not None}
    if not _is_true(moving.get("core.bare")):
        moving.pop("core.bare", None)
    if on and not moving:
        return True
    made = bool(note["madeFile"]) if note else not os.path.exists(common + _FILE)
    changes = [] if on else [("extensions.worktreeConfig", "true")]
    steps = _edited(common, before, [*changes, *(("--unset-all", key) for key in moving)])
    for key, value in moving.items():
        act("/", "config", "--file", common + _FILE, key, value, doing=f"move '{key}' to the main worktree")
    moved = {**(note["moved"] if note else {}), **moving}
    # What came in while the extension was on (`git submodule update` sets core.worktree anew) is not undone by bytes.
    undo = [] if on else [_difference(old, new) for old, new in pairwise(steps)]
    after = "" if on else _digest(steps[-1])
    write_json(common + NOTE, {"moved": moved, "madeFile": made, "steps": undo, "after": after})
    return _exchange(common, before, steps[-1])


def _try_off(common: str, note: Json) -> bool:
    """Whether it is off now; False when the configuration changed meanwhile: look again."""
    before = _read(common + "/config")
    after = before
    if _digest(before) == note["after"]:
        for place, gone, come in reversed(note["steps"]):
            end = place + len(come.encode("latin-1"))
            after = after[:place] + gone.encode("latin-1") + after[end:]
    else:
        settings = _settings(common + "/config")
        changes = [("--unset-all", _EXTENSION)] if _EXTENSION in settings else []
        changes += [(key, value) for key, value in note["moved"].items() if key not in settings]
        after = _edited(common, before, changes)[-1]
    if not _exchange(common, before, after):
        return False
    for key in note["moved"]:
        ask("/", "config", "--file", common + _FILE, "--unset-all", key)
    if note["madeFile"] and not has_settings(common):
        with suppress(FileNotFoundError):
            os.unlink(common + _FILE)
    os.unlink(common + NOTE)
    return True


def _is_used(common: str, note: Json) -> bool:
    """Whether a worktree has a setting of its own; main's that were moved there are none."""
    try:
        admins = [f"{common}/worktrees/{name}" for name in os.listdir(common + "/worktrees")]
    except OSError:
        admins = []
    return _count(common + _FILE) > len(note["moved"]) or any(has_settings(admin) for admin in admins)


def _insist(attempt: Callable[[], bool]) -> None:
    until = time.monotonic() + _BUDGET
    while not attempt():
        if time.monotonic() > until:
            raise WtError(
                "busy",
                "cannot change git's configuration: another git is changing it, or was killed over it",
                hint="try again; if no git is running, delete the 'config.lock' of this repository",
            )
        time.sleep(0.01 + os.urandom(1)[0] / 1000)


def _exchange(common: str, before: bytes, after: bytes) -> bool:
    """Replace the shared configuration by `after` if it still is `before`, under git's own lock file: git reads all of
    the change or nothing of it. No process. Source: git's lockfile.h."""
    path = os.path.realpath(common + "/config")
    try:
        fd = os.open(path + ".lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    mine = True
    try:
        with open(fd, "wb") as file:
            file.write(after)
            os.fchmod(fd, os.stat(path).st_mode & 0o7777)
            file.flush()
            os.fsync(fd)
        if _read(path) == before:
            os.rename(path + ".lock", path)
            mine = False
        return not mine
    finally:
        if mine:
            os.unlink(path + ".lock")


def _edited(common: str, content: bytes, changes: list[tuple[str, str]]) -> list[bytes]:
    """`content` and what it becomes by each `git config` of `changes`, worked out beside it. One process each."""
    steps, work = [content], common + NOTE + ".new"
    try:
        with open(work, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(content)
        for words in changes:
            act("/", "config", "--file", work, *words, doing="work out git's configuration")
            steps.append(_read(work))
    finally:
        with suppress(FileNotFoundError):
            os.unlink(work)
    return steps


def _difference(old: bytes, new: bytes) -> tuple[int, str, str]:
    """Where one step changed the bytes, what went, what came."""
    start = _same(old, new)
    end = _same(old[start:][::-1], new[start:][::-1])
    return start, old[start : len(old) - end].decode("latin-1"), new[start : len(new) - end].decode("latin-1")


def _same(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def _digest(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def _settings(path: str) -> Mapping[str, str]:
    """The settings of one file, without what it includes. One process."""
    items = split_z(require(ask("/", "config", "-z", "--file", path, "--list"), "read git's configuration"))
    pairs = (item.partition("\n") for item in items)
    return {key: value if equals else "true" for key, equals, value in pairs}


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() in ("true", "yes", "on", "1")


def _count(path: str) -> int:
    """How many settings a file has: lines that are more than a header or a comment. No process."""
    try:
        lines = [line.strip() for line in _read(path).splitlines()]
    except FileNotFoundError:
        return 0
    rest = [line.partition(b"]")[2].strip() if line.startswith(b"[") else line for line in lines]
    return sum(bool(line) and not line.startswith((b"#", b";")) for line in rest)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
