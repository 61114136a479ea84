"""One walk over a worktree's folders: repositories that lie below, and ignored files that no build makes again.

git shows no repository that lies in an ignored folder, and would delete it. Starts no process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from fnmatch import translate

from git_wt.files import read_text
from git_wt.git.state import Status
from git_wt.model import Marker
from git_wt.value import NamedTuple


class Walked(NamedTuple):
    """What a walk found: paths below the root (`precious`), whole paths (`nested`), reasons (`unreadable`)."""

    precious: list[str]
    nested: list[str]
    unreadable: list[str]


def walk(root: str, admin: str, status: Status | None, regenerable: Sequence[str], marker: Marker | None) -> Walked:
    """One walk over every folder: repositories below (git shows none that lie in ignored folders), and the ignored
    files that no build makes again. Symbolic links are not followed."""
    ignored = {change.path.rstrip("/") for change in status.changes if change.kind == "!"} if status else set()
    copied = (marker.copied if marker else None) or {}
    links = marker.links if marker else ()
    again = re.compile("|".join(translate(pattern) for pattern in regenerable) or r"\Z.")
    walked = Walked([], [], [])
    waiting = [("", False)]
    while waiting:
        folder, inside = waiting.pop()
        try:
            with os.scandir(f"{root}/{folder}" if folder else root) as found:
                entries = list(found)
        except OSError as error:
            walked.unreadable.append(f"cannot read '{folder}': {error.strerror}")
            continue
        names = {entry.name for entry in entries}
        if folder and _is_repository(f"{root}/{folder}", names, admin):
            walked.nested.append(f"{root}/{folder}")
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            within = inside or path in ignored
            if entry.is_dir(follow_symlinks=False):
                if not (within and again.match(entry.name)):
                    waiting.append((path, within))
                elif entry.name != ".git":
                    waiting.append((path, False))  # made again by builds, but a repository may lie in it
            elif within and not again.match(entry.name) and path not in links and not _as_copied(root, path, copied):
                walked.precious.append(path)
    walked.precious.sort()
    return walked


def _is_repository(path: str, names: set[str], admin: str) -> bool:
    if ".git" in names:
        pointer = read_text(path + "/.git") or ""
        target = os.path.realpath(os.path.join(path, pointer.removeprefix("gitdir: ")))
        return not (pointer.startswith("gitdir: ") and target.startswith(os.path.realpath(admin) + "/modules/"))
    return "HEAD" in names and "objects" in names and "refs" in names


def _as_copied(root: str, path: str, copied: Mapping[str, str]) -> bool:
    """Whether a file is byte for byte what set-up put there."""
    if path not in copied:
        return False
    from hashlib import sha256

    try:
        with open(f"{root}/{path}", "rb") as file:
            return sha256(file.read()).hexdigest() == copied[path]
    except OSError:
        return False
