"""Where copies are made before they are put into their place: in git's admin folder where the file system is the same,
so that nobody sees them, else in the worktree. What a killed run left there goes at the next run. Starts no process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from git_wt.files import read_text
from git_wt.trees import remove_tree


@contextmanager
def staging(admin: str, path: str) -> Iterator[str]:
    """A new empty folder on the file system of the worktree `path`, deleted afterwards, and before that what a killed
    run left. To be used by one process for a worktree at a time."""
    note = admin + "/git-wt-stage-at"
    for left in (admin + "/git-wt-stage", path + "/" + (_parse_note(read_text(note)) or ".git")):
        if os.path.isdir(left) and not left.endswith("/.git"):
            remove_tree(left)
    stage = admin + "/git-wt-stage"
    elsewhere = os.stat(admin).st_dev != os.stat(path).st_dev
    if elsewhere:
        name = ".git-wt-stage-" + os.urandom(8).hex()
        stage = f"{path}/{name}"
        with open(note, "w", encoding="ascii") as file:
            file.write(name)
    os.mkdir(stage, 0o700)
    try:
        yield stage
    finally:
        remove_tree(stage)
        if elsewhere:
            os.unlink(note)


def _parse_note(text: str | None) -> str | None:
    return text if text and re.fullmatch(r"\.git-wt-stage-[0-9a-f]{16}", text) else None
