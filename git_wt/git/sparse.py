"""Cone-mode sparse checkout of one worktree: which folders may be asked for, and the git calls that set them.

Source: git-sparse-checkout(1), and git 2.39 on what `git worktree add` copies from a sparse main checkout.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from git_wt.git.call import act, ask, lines, require, split_z
from git_wt.git.worktree_config import has_settings, unset_for_worktree

PATTERNS = "/info/sparse-checkout"
_KEYS = ("core.sparseCheckout", "core.sparseCheckoutCone", "index.sparse")


def sort_out(paths: Iterable[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The folders that a cone can be made of, each once and in order, and why the others are refused. No process."""
    folders, refused = dict[str, None](), dict[str, str]()
    for path in paths:
        why = why_refused(path)
        if why:
            refused[path] = why
        else:
            folders[os.path.normpath(path)] = None
    return tuple(folders), refused


def why_refused(path: str) -> str | None:
    """Why `path` cannot be a folder of a cone, or None. No process."""
    if path.startswith("/"):
        return "it is absolute"
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts:
        return "it names no folder (files at the top are always there)"
    if ".." in parts:
        return "it leaves the repository"
    if parts[0].lower() == ".git":
        return "it is git's own"
    # `sparse-checkout set` reads lines and trims them
    return "git cannot take its name" if "\n" in path or path != path.strip() else None


def set_cone(path: str, folders: Sequence[str], on_group: Callable[[int], None] | None = None) -> None:
    """Make these folders the cone of the worktree at `path`; what is checked out follows. One process."""
    argv = ("sparse-checkout", "set", "--cone", "--skip-checks", "--stdin")
    act(path, *argv, doing="set up the sparse checkout", stdin=_as_lines(folders), on_group=on_group)


def widen_cone(path: str, folders: Sequence[str]) -> None:
    """Add folders to the cone of the worktree at `path`; their files come. One process."""
    argv = ("sparse-checkout", "add", "--skip-checks", "--stdin")
    act(path, *argv, doing="widen the sparse checkout", stdin=_as_lines(folders))


def find_cone(path: str) -> list[str] | None:
    """The folders of the cone of the worktree at `path`, or None where it has every file. One process."""
    answer = ask(path, "-c", "core.quotePath=false", "sparse-checkout", "list")
    return [_unquoted(line) for line in lines(answer.out)] if answer.code == 0 else None


def not_folders(path: str, folders: Sequence[str]) -> list[str]:
    """Those of `folders` that are none in HEAD of the worktree at `path`. One process."""
    out = require(
        ask(path, "--literal-pathspecs", "ls-tree", "-z", "--full-tree", "HEAD", "--", *folders),
        "look for the sparse paths",
    )
    rows = (row.partition("\t") for row in split_z(out))
    there = {name for meta, _, name in rows if meta.split(" ")[1] != "blob"}
    return [folder for folder in folders if folder not in there]


def forget_inherited(common: str, admin: str) -> None:
    """A worktree made from a sparse main checkout gets its patterns: take them out of a new one. No process where there
    are none, else three. To be called with the lock held."""
    with suppress(FileNotFoundError):
        os.unlink(admin + PATTERNS)
        if has_settings(admin):
            unset_for_worktree(common, admin, *_KEYS)


def _as_lines(folders: Iterable[str]) -> bytes:
    """For `--stdin`, which takes a line that begins with a quote as a C string."""
    quoted = (_quoted(folder) if folder.startswith('"') else folder for folder in folders)
    return os.fsencode("".join(f"{folder}\n" for folder in quoted))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquoted(line: str) -> str:
    if not line.startswith('"'):
        return line
    return line[1:-1].replace('\\"', '"').replace("\\\\", "\\")
