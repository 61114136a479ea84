"""The bytes of one file: copied on write where the file system can, by the kernel otherwise. Starts no process."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable
from hashlib import sha256

_FICLONE = 0x40049409  # ioctl_ficlone(2); Linux only
_SMALL = 1 << 20
_CHUNK = 64 << 20
NOTED_UP_TO = 256 << 20  # bytes; larger files count as the user's own
_CANNOT_CLONE: set[int] = set()  # devices; a run copies into one file system
_UMASK = os.umask(0o077)
os.umask(_UMASK)


class Unreadable(Exception):  # noqa: N818 - no failure: the file is skipped
    """A file that cannot be copied for a reason of its own, in words."""


def copy_file(name: str, source: int, copy: str, target: int, *, noted: bool, tick: Callable[[], None]) -> str:
    """Copy the regular file `name` of the folder `source` as `copy`, which must not exist, into the folder `target`:
    content, mode and times. Returns the sha256 of its content if it is `noted` and at most 256 MB, else "". Calls
    `tick` every 64 MB. Raises Unreadable, with nothing left, for a file that is gone, not readable, not regular or
    changes all the time; OSError where the target cannot be written."""
    for _ in range(3):
        digest = _try(name, source, copy, target, noted, tick)
        if digest is not None:
            return digest
        os.unlink(copy, dir_fd=target)
    raise Unreadable("it is being written to")


def _try(name: str, source: int, copy: str, target: int, noted: bool, tick: Callable[[], None]) -> str | None:
    """As `copy_file`; None when the file changed meanwhile."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=source)
    except OSError as error:
        raise Unreadable((error.strerror or "not readable").lower()) from error
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise Unreadable("it is no file any more")
        mode = stat.S_IMODE(before.st_mode)
        out = os.open(
            copy, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode & 0o777, dir_fd=target
        )
        try:
            digest = _content(fd, out, before, noted, tick)
            if mode & ~_UMASK & 0o777 != mode:
                os.fchmod(out, mode)
            os.utime(out, ns=(before.st_atime_ns, before.st_mtime_ns))
        except BaseException:
            os.unlink(copy, dir_fd=target)
            raise
        finally:
            os.close(out)
        after = os.fstat(fd)
        return digest if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns) else None
    finally:
        os.close(fd)


def _content(fd: int, out: int, status: os.stat_result, noted: bool, tick: Callable[[], None]) -> str:
    size = status.st_size
    if size == 0:
        return sha256().hexdigest() if noted else ""
    noted = noted and size <= NOTED_UP_TO
    if not _cloned(fd, out, status.st_dev):
        if size <= _SMALL:
            data = _read(fd, size + 1)
            _write(out, data)
            return sha256(data).hexdigest() if noted else ""
        _copy_large(fd, out, tick)
    return _digest(out) if noted else ""


def _cloned(fd: int, out: int, device: int) -> bool:
    if device in _CANNOT_CLONE or not sys.platform.startswith("linux"):
        return False
    try:
        fcntl.ioctl(out, _FICLONE, fd)
    except OSError:
        _CANNOT_CLONE.add(device)
        return False
    return True


def _copy_large(fd: int, out: int, tick: Callable[[], None]) -> None:
    """By the kernel where it can; from where that stopped by reading and writing."""
    try:
        while os.copy_file_range(fd, out, _CHUNK):
            tick()
        return
    except AttributeError:
        pass
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM):
            raise
    while data := _read(fd, _SMALL):
        _write(out, data)
        tick()


def _read(fd: int, size: int) -> bytes:
    try:
        return os.read(fd, size)
    except OSError as error:
        raise Unreadable((error.strerror or "not readable").lower()) from error


def _write(fd: int, data: bytes) -> None:
    while (written := os.write(fd, data)) < len(data):
        data = data[written:]


def _digest(fd: int) -> str:
    state, at = sha256(), 0
    while data := os.pread(fd, _SMALL, at):
        state.update(data)
        at += len(data)
    return state.hexdigest()
