"""git's own entries of worktrees, looked at and mended as files where no git command can.

What a killed `git worktree add` leaves was measured with git 2.39, between each two of its system calls.

Everything here is exact while the repository's lock is held. Starts no process.
"""

from __future__ import annotations

import os
import time

from git_wt import journal
from git_wt.errors import WtError
from git_wt.files import read_text
from git_wt.git.repository import admin_folders
from git_wt.git.state import rebased_branch
from git_wt.proc import table
from git_wt.proc.run import end_group
from git_wt.trees import remove_tree

_UNTOUCHED = 2.0  # seconds


def unlock(admin: str, reason: str) -> None:
    """Take git's lock of a worktree away if its reason is `reason`; somebody else's stays. Not by `git worktree
    unlock`: that reads every other entry and fails while one is half-made. No process."""
    if read_text(admin + "/locked") == reason:
        os.unlink(admin + "/locked")


def end_recorded_group(entry: journal.Entry) -> None:
    """End the git process group that an entry names, if it is still the one: it goes on writing after its parent's
    death. No process on Linux."""
    group = entry.data.get("group")
    if not isinstance(group, int) or not journal.same_boot(entry.data):
        return
    started = table.start_time(group)
    if started is not None and started != entry.data.get("groupStart"):
        return
    mark = f"{journal.MARK}={entry.id}"
    if started is not None or any(table.environment_has(pid, mark) for pid in table.group_members(group)):
        end_group(group)


def checked_out(common: str, branch: str, *, but: str | None = None) -> str | None:
    """The path of a worktree (main included) that has `branch` checked out or will come back to it, other than that
    of the admin folder `but`; None if there is none. Read from git's files: exact while the lock is held. No process.
    """
    wanted = f"ref: refs/heads/{branch}"
    folders = {common: common.removesuffix("/.git"), **{admin: path for path, admin in admin_folders(common).items()}}
    for admin, path in folders.items():
        if admin != but and (read_text(admin + "/HEAD") == wanted or rebased_branch(admin) == branch):
            return path
    return None


def clear_failed_try(common: str, path: str, reason: str) -> None:
    """Take away what a failed `git worktree add` of ours left, before it is tried again. No process."""
    admin = admin_being_made(common, path, reason)
    if admin:
        remove_tree(admin)
        if is_hardly_begun(path, ".git") or os.listdir(path) == [".git"]:
            remove_tree(path)


def admin_being_made(common: str, path: str, reason: str) -> str | None:
    """The admin folder whose lock has our reason and that names our path, or no path yet."""
    try:
        names = os.listdir(common + "/worktrees")
    except OSError:
        return None
    for name in names:
        admin = f"{common}/worktrees/{name}"
        if read_text(admin + "/locked") != reason:
            continue
        link = read_text(admin + "/gitdir")
        if not link or os.path.realpath(os.path.join(admin, link)) == os.path.realpath(path) + "/.git":
            return admin
    return None


def remove_empty_admin(common: str, path: str, since: float) -> None:
    """git killed right after making its admin folder leaves it empty. It is ours if it bears our folder's name and was
    made since we began; a moment's wait keeps clear of somebody else's git that is just making its own."""
    stem = os.path.basename(path)
    try:
        names = [name for name in os.listdir(common + "/worktrees") if name.startswith(stem)]
    except OSError:
        return
    for name in names:
        admin = f"{common}/worktrees/{name}"
        if name[len(stem) :].strip("0123456789") or not is_hardly_begun(admin, "locked"):
            continue
        made = os.stat(admin).st_mtime
        if made >= since - 1:
            time.sleep(max(0.0, 1.0 - (time.time() - made)))
            if is_hardly_begun(admin, "locked"):
                remove_tree(admin)


def is_hardly_begun(folder: str, file: str) -> bool:
    """Whether a folder (no link) is empty, or holds nothing but the `file` that git has not written yet."""
    try:
        return not os.path.islink(folder) and all(
            name == file and not os.stat(f"{folder}/{name}").st_size for name in os.listdir(folder)
        )
    except OSError:
        return False


def was_killed(error: BaseException | None) -> bool:
    """Whether an error says that a git process of ours was ended by a signal."""
    while error is not None:
        if isinstance(error, WtError) and error.extra.get("killed"):
            return True
        error = error.__cause__
    return False


def clear_stale_locks(common: str, entry: journal.Entry, *refs: str, killed: bool = False) -> None:
    """Take away the lock files that a killed git of this entry, or its killed owner, left on `refs`, the packed refs
    and the configuration: only files made since it began and untouched for a while; another git's are gone by then.
    While the entry's owner lives nothing is stale, unless its git alone was `killed`."""
    if entry.data["pid"] == os.getpid() and not killed:
        return
    shared = ("packed-refs.lock", "packed-refs.new", "config.lock", "config.worktree.lock")
    for path in [*(f"{common}/{ref}.lock" for ref in refs), *(f"{common}/{name}" for name in shared)]:
        try:
            found = os.stat(path)
            if found.st_mtime < float(entry.data["time"]) - 1:
                continue
            time.sleep(max(0.0, _UNTOUCHED - (time.time() - found.st_mtime)))
            if os.stat(path).st_ino == found.st_ino:
                os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            continue


def is_empty(path: str) -> bool:
    """Whether `path` is a folder (no link) with nothing in it. No process."""
    try:
        return os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path)
    except OSError:
        return False
