"""What git ignores and what a list in gitignore syntax matches. git does the matching; nothing here guesses at patterns
but `could_match_below`, which only says where git need not look.

Source: gitignore(5), git-check-ignore(1); measured with git 2.39.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from git_wt.git.call import ask, environment, lines, reading, require, split_z
from git_wt.proc.run import Completed, run

_AT_ONCE = 500  # paths on one command line


def ignored_roots(folder: str) -> list[str]:
    """The ignored, untracked paths of a checkout: files, and folders (with a `/` behind) of which a rule ignores the
    whole. Raises `git`. One process; it does not look into ignored folders."""
    answer = ask(
        folder, "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching",
        "--ignore-submodules=all",
    )  # fmt: skip
    return [field[3:] for field in split_z(require(answer, "find the ignored files")) if field.startswith("!! ")]


def listed(folder: str, list_file: str, roots: Sequence[str], empty: str) -> tuple[list[str], list[str]]:
    """Which of the ignored `roots` of the checkout `folder` the list matches as a whole, and the single files that it
    matches in the others. `empty` is a folder that does not exist yet and is filled with an empty repository. Raises
    `git`. Two processes, and one more for 500 folders each that the list may match in."""
    whole = set(_matched_by(list_file, roots, folder, empty))
    with open(list_file, "rb") as file:
        patterns = os.fsdecode(file.read()).removeprefix(_BOM).split("\n")
    others = [root for root in roots if root not in whole and could_match_below(patterns, root)]
    single: list[str] = []
    for start in range(0, len(others), _AT_ONCE):
        specs = [f":(top,literal){root}" for root in others[start : start + _AT_ONCE]]
        answer = ask(folder, "ls-files", "-z", "--others", "--ignored", f"--exclude-from={list_file}", "--", *specs)
        single += split_z(require(answer, "find the files that are listed"))
    return [root for root in roots if root in whole], single


_BOM = os.fsdecode(b"\xef\xbb\xbf")


def could_match_below(patterns: Sequence[str], root: str) -> bool:
    """Whether a pattern may match something inside the folder `root` (with `/` behind; a file has no inside). Only a
    pattern that begins with plain folder names other than the root's says no."""
    if not root.endswith("/"):
        return False
    inside = root.rstrip("/").casefold().split("/")
    for line in patterns:
        pattern = line.rstrip("\r").rstrip(" ").rstrip("/")
        if not pattern or pattern[0] in "#!":
            continue
        plain = []
        for part in pattern.removeprefix("/").split("/"):
            if any(character in part for character in "*?[\\"):
                break
            plain.append(part.casefold())
        if "/" not in pattern or all(one == other for one, other in zip(plain, inside, strict=False)):
            return True
    return False


def ignored_of(folder: str, paths: Sequence[str]) -> set[str]:
    """Those of `paths` that git ignores in the checkout `folder` and that are not tracked there; a folder (`/` behind)
    only where nothing below is tracked. A path that leads through a link or a submodule is not. One process; more only
    where git refuses a path."""
    if not paths:
        return set()
    answer = _check_ignore(reading(folder), paths)
    if answer.code in (0, 1):
        return set(_ignored(answer))
    if len(paths) == 1:
        return set()
    half = len(paths) // 2
    return ignored_of(folder, paths[:half]) | ignored_of(folder, paths[half:])


def tracked_of(folder: str, entries: Sequence[str]) -> set[str]:
    """Those of `entries` (files or folders) that the index of the checkout `folder` has, or has something below of.
    Raises `git`. One process."""
    answer = ask(folder, "--literal-pathspecs", "ls-files", "-z", "--", *entries)
    found = split_z(require(answer, "read the index"))
    return {entry for entry in entries if any(path == entry or path.startswith(f"{entry}/") for path in found)}


def _matched_by(list_file: str, roots: Sequence[str], folder: str, empty: str) -> Iterator[str]:
    """The paths that the list alone matches: asked in a repository that has no other rule."""
    for inner in ("/objects", "/refs", "/tree"):
        os.makedirs(empty + inner)
    with open(empty + "/HEAD", "wb") as file:
        file.write(b"ref: refs/heads/none\n")
    folds = lines(ask(folder, "config", "--type=bool", "--default=false", "--get", "core.ignorecase").out)
    settings = ("-c", f"core.excludesFile={list_file}", "-c", f"core.ignorecase={''.join(folds) or 'false'}")
    git = [*reading(f"{empty}/tree"), *settings, f"--git-dir={empty}", f"--work-tree={empty}/tree"]
    answer = _check_ignore(git, roots, "--no-index")
    if answer.code > 1 or answer.code < 0:
        require(answer, "match the list")
    return _ignored(answer)


def _check_ignore(git: list[str], paths: Sequence[str], *options: str) -> Completed:
    """`./` in front keeps a path that begins with `:` from being read as pathspec magic."""
    stdin = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
    return run([*git, "check-ignore", "--verbose", "-z", "--stdin", *options], env=environment(), stdin=stdin)


def _ignored(answer: Completed) -> Iterator[str]:
    """The paths that are ignored, folders as a whole. git 2.39 says of a folder `a/` that need not exist that `a/*` and
    `*` match it, though these leave room for `!a/b` and `!*/`: such a folder is left out."""
    fields = split_z(answer.out)
    for pattern, path in zip(fields[2::4], fields[3::4], strict=True):
        if pattern.startswith("!"):
            continue
        if not path.endswith("/") or pattern.rstrip("/").rpartition("/")[2].strip("*"):
            yield path[2:]
