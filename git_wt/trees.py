"""Whole folders: deleted without ever leaving them, measured, and the file systems mounted below them.

Starts no process (but `mount` where there is no /proc).
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from git_wt.proc.run import run


def mounts_at(folder: str) -> list[str]:
    """Mount points at or below `folder` (a real path). `st_dev` does not show bind mounts; the kernel's table does
    ."""
    prefix = folder.rstrip("/") + "/"
    return [mount for mount in _mounts() if (mount + "/").startswith(prefix)]


def _mounts() -> list[str]:
    if sys.platform.startswith("linux"):
        with open("/proc/self/mountinfo", "rb") as file:
            return [_unescaped(os.fsdecode(line.split(b" ")[4])) for line in file.read().splitlines()]
    lines = os.fsdecode(run(["mount"]).out).splitlines()
    return [line.partition(" on ")[2].rpartition(" (")[0] for line in lines]


def _unescaped(path: str) -> str:
    """Undo the octal escapes of the kernel's table (space, tab, newline, backslash)."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(escape, character)
    return path


@contextmanager
def _folder(path: str, dir_fd: int | None) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def remove_tree(path: str) -> list[str]:
    """Delete a folder and all in it, by folder descriptors: never through a symlink, never into a mount. Returns what
    could not be deleted (its reason behind it); empty when everything is gone."""
    mounts = mounts_at(os.path.realpath(path))
    if mounts:
        return [f"{mount}: a file system is mounted there" for mount in mounts]
    failed: list[str] = []
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return []
    if stat.S_ISDIR(status.st_mode):
        _empty(path, None, status.st_dev, path, failed)
    _attempt(path, None, stat.S_ISDIR(status.st_mode), path, failed)
    return failed


def _empty(name: str, dir_fd: int | None, device: int, shown: str, failed: list[str]) -> None:
    try:
        if dir_fd is None or os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode & 0o700 != 0o700:
            os.chmod(name, 0o700, dir_fd=dir_fd)
        with _folder(name, dir_fd) as fd:
            if os.fstat(fd).st_dev != device:
                failed.append(f"{shown}: another file system")
                return
            with os.scandir(fd) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
            for entry, is_folder in entries:
                if is_folder:
                    _empty(entry, fd, device, f"{shown}/{entry}", failed)
                _attempt(entry, fd, is_folder, f"{shown}/{entry}", failed)
    except FileNotFoundError:
        pass
    except OSError as error:
        failed.append(f"{shown}: {error.strerror}")


def _attempt(name: str, dir_fd: int | None, is_folder: bool, shown: str, failed: list[str]) -> None:
    try:
        if is_folder:
            os.rmdir(name, dir_fd=dir_fd)
        else:
            os.unlink(name, dir_fd=dir_fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        if not (is_folder and failed):
            failed.append(f"{shown}: {error.strerror}")


def disk_usage(folder: str) -> int:
    """Bytes on disk below a folder, links not followed. No process."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for item in found:
                    if item.is_dir(follow_symlinks=False):
                        waiting.append(item.path)
                    total += item.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue
    return total


def remove_if_empty(folder: str) -> None:
    """Delete a folder if nothing is in it. No process."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)
