"""Entries of the configuration that name a file or folder below the main checkout: which are fit to be used, and how
git is told to ignore one. Starts no process."""

from __future__ import annotations

import os

from git_wt import journal
from git_wt.files import add_line, read_text
from git_wt.model import Repository


def why_unfit(entry: str) -> str | None:
    """Why an entry is refused before anything is looked at, or None."""
    parts = entry.split("/")
    if not plain(entry):
        return "it is empty"
    if entry.startswith("/"):
        return "it is absolute"
    if ".." in parts:
        return "it has '..'"
    if any(part.lower() == ".git" for part in parts):
        return "it is git's own"
    if any(character in entry for character in "\n\r\0"):
        return "it has a line break"
    return None


def plain(entry: str) -> str:
    """An entry without `./`, doubled and trailing slashes."""
    return "/".join(part for part in entry.split("/") if part not in ("", "."))


def link_on_the_way(root: str, path: str) -> str | None:
    """The first folder on the way from `root` to `path` (not `path` itself) that is a link, or None."""
    parts = path.split("/")
    for number in range(1, len(parts)):
        above = "/".join(parts[:number])
        if os.path.islink(f"{root}/{above}"):
            return above
    return None


def exclude(repository: Repository, entry: str) -> None:
    """Make git ignore `entry` in every worktree of this clone, once. Takes the repository's lock if it has to write."""
    line = "/" + "".join("\\" + c if c in "*?[\\ " else c for c in entry)
    path = repository.common_dir + "/info/exclude"
    if line not in (read_text(path) or "").splitlines():
        with journal.lock(repository.state_dir):
            add_line(path, line)
