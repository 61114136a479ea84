"""Copy files and folders from one checkout into another: never through a link, never over something, never half.

What is copied is made whole in a staging folder first and then put into its place by one link or rename. Starts no
process.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Set as AbstractSet
from hashlib import sha256

from git_wt.setup.content import NOTED_UP_TO, Unreadable, copy_file
from git_wt.setup.progress import Progress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a device", stat.S_IFCHR: "a device"}


class Copier:
    """Copies from the checkout `source` into the checkout `target`, but for the folders `left_out`. After each `add`:
    `files` maps what is there as copied to the sha256 of its content (empty for what builds make again, or is too
    large), `links` are the symbolic links that were made, `made` and `present` are numbers of files, `skipped`
    sentences."""

    def __init__(
        self,
        source: str,
        target: str,
        stage: str,
        again: re.Pattern[str],
        progress: Progress,
        left_out: AbstractSet[str],
    ) -> None:
        self.files: dict[str, str] = {}
        self.links: list[str] = []
        self.skipped: list[str] = []
        self.made = self.present = 0
        self._roots = source, target
        self._again, self._progress, self._left_out = again, progress, left_out
        self._stage = os.open(stage, _FOLDER)
        self._number = 0
        self._parents: tuple[str, int, int] | None = None

    def close(self) -> None:
        """Give the folders back."""
        self._leave()
        os.close(self._stage)

    def add(self, path: str, root: str) -> None:
        """Copy a file or a folder with all in it. `root` is the ignored path that it is or lies in. Raises OSError
        where the target cannot be written; all that is there then is whole."""
        path, root = path.rstrip("/"), root.rstrip("/")
        parent, _, name = path.rpartition("/")
        try:
            source, target = self._enter(parent)
        except Unreadable as error:
            self.skipped.append(f"{path} ({error})")
            return
        above = root.rpartition("/")[0]
        parts = path[len(above) :].strip("/").split("/")
        noted = not any(self._again.match(part) for part in parts)
        self._entry(name, path, source, target, noted)

    def _entry(self, name: str, path: str, source: int, target: int, noted: bool) -> None:
        """One file, link or folder, put at a place where something may be already."""
        try:
            kind = stat.S_IFMT(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode)
        except OSError as error:
            self.skipped.append(f"{path} ({_reason(error)})")
            return
        there = _lstat(name, target)
        if kind == stat.S_IFDIR and there is not None and stat.S_ISDIR(there.st_mode):
            self._merge(name, path, source, target, noted)
        elif there is not None:
            self._found(name, path, source, target, there, noted)
        elif kind == stat.S_IFDIR:
            self._folder(name, path, source, target, noted)
        elif kind in (stat.S_IFREG, stat.S_IFLNK):
            self._single(name, path, source, target, noted, link=kind == stat.S_IFLNK)
        else:
            self.skipped.append(f"{path} ({_KINDS.get(kind, 'no file')})")

    def _single(self, name: str, path: str, source: int, target: int, noted: bool, *, link: bool) -> None:
        self._number += 1
        staged = str(self._number)
        try:
            if link:
                _copy_link(name, staged, source, self._stage)
                digest = ""
            else:
                digest = copy_file(name, source, staged, self._stage, noted=noted, tick=self._progress.tick)
        except Unreadable as error:
            self.skipped.append(f"{path} ({error})")
            return
        _put(staged, self._stage, name, target)
        self._done({path: digest} if not link else {}, [path] if link and noted else [], 1)

    def _folder(self, name: str, path: str, source: int, target: int, noted: bool) -> None:
        """A folder that is not there yet: filled aside, then renamed as a whole."""
        self._number += 1
        staged = str(self._number)
        files, links = dict[str, str](), list[str]()
        before = self._progress.count
        os.mkdir(staged, 0o700, dir_fd=self._stage)
        status = self._fill(name, path, source, staged, self._stage, (noted, files, links))
        if status is None:
            os.rmdir(staged, dir_fd=self._stage)
            return
        os.rename(staged, name, src_dir_fd=self._stage, dst_dir_fd=target)
        fd = os.open(name, _FOLDER, dir_fd=target)
        _dress(fd, status)
        os.close(fd)
        self._done(files, links, 0)
        self.made += self._progress.count - before

    def _fill(
        self, name: str, path: str, source: int, staged: str, stage: int, notes: tuple[bool, dict[str, str], list[str]]
    ) -> os.stat_result | None:
        """Copy what is in a folder into the empty one `staged`, which nobody else sees. Returns mode and times for it,
        None when it is not to be copied."""
        noted, files, links = notes
        noted = noted and not self._again.match(name)
        opened = self._open_source(name, path, source)
        if opened is None:
            return None
        inner, entries = opened
        out = os.open(staged, _FOLDER, dir_fd=stage)
        try:
            for entry in entries:
                below = f"{path}/{entry.name}"
                keep = noted and not self._again.match(entry.name)
                try:
                    if entry.is_file(follow_symlinks=False):
                        files[below] = copy_file(entry.name, inner, entry.name, out, noted=keep,
                                                 tick=self._progress.tick)  # fmt: skip
                    elif entry.is_symlink():
                        _copy_link(entry.name, entry.name, inner, out)
                        links += [below] if keep else []
                    elif entry.is_dir(follow_symlinks=False):
                        os.mkdir(entry.name, 0o700, dir_fd=out)
                        status = self._fill(entry.name, below, inner, entry.name, out, (noted, files, links))
                        if status is None:
                            os.rmdir(entry.name, dir_fd=out)
                        else:
                            _dress_below(entry.name, out, status)
                        continue
                    else:
                        kind = stat.S_IFMT(entry.stat(follow_symlinks=False).st_mode)
                        raise Unreadable(_KINDS.get(kind, "no file"))
                    self._progress.file()
                except Unreadable as error:
                    self.skipped.append(f"{below} ({error})")
            return os.fstat(inner)
        finally:
            os.close(inner)
            os.close(out)

    def _merge(self, name: str, path: str, source: int, target: int, noted: bool) -> None:
        """A folder that is there: what it lacks is copied one by one."""
        opened = self._open_source(name, path, source)
        if opened is None:
            return
        inner, entries = opened
        out = os.open(name, _FOLDER, dir_fd=target)
        try:
            for entry in entries:
                keep = noted and not self._again.match(entry.name)
                self._entry(entry.name, f"{path}/{entry.name}", inner, out, keep)
        finally:
            os.close(inner)
            os.close(out)

    def _open_source(self, name: str, path: str, source: int) -> tuple[int, list[os.DirEntry[str]]] | None:
        """A folder to copy from and what is in it; None, and why is noted, for one that is not to be copied."""
        if path in self._left_out:
            return None
        try:
            inner = os.open(name, _FOLDER, dir_fd=source)
        except OSError as error:
            self.skipped.append(f"{path} ({_reason(error)})")
            return None
        try:
            with os.scandir(inner) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            names = {entry.name for entry in entries}
            if ".git" not in names and not {"HEAD", "objects", "refs"} <= names:
                return inner, entries
            self.skipped.append(f"{path} (a repository or worktree of its own)")
        except OSError as error:
            self.skipped.append(f"{path} ({_reason(error)})")
        os.close(inner)
        return None

    def _found(self, name: str, path: str, source: int, target: int, there: os.stat_result, noted: bool) -> None:
        """Something is there: it stays. What an interrupted run put there is known again by size, time and content."""
        self.present += 1
        here = _lstat(name, source)
        if here is None:
            return
        alike = (here.st_mode, here.st_size, here.st_mtime_ns) == (there.st_mode, there.st_size, there.st_mtime_ns)
        if noted and alike and stat.S_ISREG(here.st_mode) and here.st_size <= NOTED_UP_TO:
            digest = _digest(name, target)
            if digest and digest == _digest(name, source):
                self.files[path] = digest

    def _done(self, files: dict[str, str], links: list[str], number: int) -> None:
        self.files.update(files)
        self.links += links
        self.made += number
        for _ in range(number):
            self._progress.file()

    def _enter(self, parent: str) -> tuple[int, int]:
        """The folder `parent` of both checkouts, made in the target where it is missing; no part may be a link."""
        if self._parents and self._parents[0] == parent:
            return self._parents[1:]
        self._leave()
        source, target = (os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for root in self._roots)
        try:
            for part in parent.split("/") if parent else ():
                source = _step(part, source, "is gone or a link in the main checkout")
                if _lstat(part, target) is None:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, os.fstat(source).st_mode & 0o777 | 0o700, dir_fd=target)
                target = _step(part, target, "is no folder in the worktree, or a link")
        except BaseException:
            os.close(source)
            os.close(target)
            raise
        self._parents = parent, source, target
        return source, target

    def _leave(self) -> None:
        if self._parents:
            os.close(self._parents[1])
            os.close(self._parents[2])
            self._parents = None


def _step(name: str, fd: int, otherwise: str) -> int:
    """The folder `name` in the folder `fd`, which is closed. Raises Unreadable (`fd` is open then) for a link."""
    try:
        inner = os.open(name, _FOLDER, dir_fd=fd)
    except OSError as error:
        raise Unreadable(f"'{name}' {otherwise}") from error
    os.close(fd)
    return inner


def _put(staged: str, stage: int, name: str, target: int) -> None:
    """Move what is whole to its place, where nothing may be; link(2) refuses what rename(2) would replace."""
    try:
        os.link(staged, name, src_dir_fd=stage, dst_dir_fd=target, follow_symlinks=False)
    except FileExistsError:
        pass
    except OSError:
        if _lstat(name, target) is not None:
            raise
        os.rename(staged, name, src_dir_fd=stage, dst_dir_fd=target)  # a file system without hard links
        return
    os.unlink(staged, dir_fd=stage)


def _copy_link(name: str, copy: str, source: int, target: int) -> None:
    try:
        text, status = os.readlink(name, dir_fd=source), os.stat(name, dir_fd=source, follow_symlinks=False)
    except OSError as error:
        raise Unreadable(_reason(error)) from error
    os.symlink(text, copy, dir_fd=target)
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def _dress(fd: int, status: os.stat_result) -> None:
    os.fchmod(fd, stat.S_IMODE(status.st_mode))
    os.utime(fd, ns=(status.st_atime_ns, status.st_mtime_ns))


def _dress_below(name: str, parent: int, status: os.stat_result) -> None:
    fd = os.open(name, _FOLDER, dir_fd=parent)
    _dress(fd, status)
    os.close(fd)


def _lstat(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _digest(name: str, folder: int) -> str:
    try:
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
            return sha256(file.read()).hexdigest()
    except OSError:
        return ""


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
