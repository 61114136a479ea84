"""Step 5, `.worktreeinclude`: copy what the list of the main checkout matches and git ignores in both checkouts.

git does the matching. The list is the main checkout's, never the branch's, and is read without following a link.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from fnmatch import translate

from git_wt.errors import WtError
from git_wt.git.ignored import ignored_of, ignored_roots, listed
from git_wt.git.repository import is_repository
from git_wt.setup.copying import Copier
from git_wt.setup.progress import Progress
from git_wt.setup.staging import staging
from git_wt.setup.step import DONE, FAILED, SKIPPED, WARNING, Report, Site

STEP = "worktreeinclude"
LIST = ".worktreeinclude"
_EXAMPLES = 10


def run(site: Site) -> Report:
    """Copy the listed files. Never copied: what is tracked or not ignored in the worktree, other worktrees and
    repositories, anything through a link or over something. Six git processes, none without a list."""
    try:
        patterns = _read_list(site.source)
    except OSError as error:
        return Report(STEP, WARNING, 0, f"{LIST} is not read: it is a link or no file ({error.strerror})")
    if patterns is None or site.source == site.path:
        return Report(STEP, SKIPPED, detail="nothing configured")
    try:
        with staging(site.admin, site.path) as stage:
            return _copy(site, patterns, stage)
    except WtError as error:
        if error.code == "interrupted":
            raise
        return Report(STEP, FAILED, 0, error.message)
    except OSError as error:
        return Report(STEP, FAILED, 0, f"cannot prepare to copy: {error.strerror}")


def _read_list(source: str) -> bytes | None:
    """The list as it is now; None when there is none. Raises OSError for a link or anything but a file."""
    try:
        fd = os.open(f"{source}/{LIST}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(0, "not a regular file")
        return file.read()


def _copy(site: Site, patterns: bytes, stage: str) -> Report:
    list_file = stage + "/list"
    with open(list_file, "wb") as file:
        file.write(patterns)
    roots = ignored_roots(site.source)
    if not roots:
        return Report(STEP, SKIPPED, 0, "git ignores no file here")
    whole, single = listed(site.source, list_file, roots, stage + "/empty")
    trees = {os.path.relpath(tree.path, site.source) for tree in site.repository.worktrees} | {
        os.path.relpath(site.path, site.source)
    }
    candidates, refused = _wanted(site, whole, [path for path in single if path.rstrip("/") not in trees])
    again = re.compile("|".join(translate(pattern) for pattern in site.config.words("regenerable")) or r"\Z.")
    os.mkdir(stage + "/files", 0o700)
    failed = None
    with Progress(quiet=site.quiet) as progress:
        copier = Copier(site.source, site.path, stage + "/files", again, progress, trees)
        try:
            of_root = _RootOf(roots)
            for path in candidates:
                copier.add(path, of_root(path))
        except OSError as error:
            failed = f"cannot write '{path}': {error.strerror}"
        finally:
            copier.close()
    return _report(copier, refused, failed)


def _report(copier: Copier, refused: Sequence[str], failed: str | None) -> Report:
    skipped = [*refused, *copier.skipped]
    parts = [failed] if failed else []
    parts += [f"{copier.made} copied"] if copier.made else []
    parts += [f"{copier.present} there already"] if copier.present else []
    if skipped:
        more = f" and {len(skipped) - _EXAMPLES} more" if len(skipped) > _EXAMPLES else ""
        parts.append(f"not copied: {', '.join(skipped[:_EXAMPLES])}{more}")
    status = FAILED if failed else WARNING if skipped else DONE if copier.made or copier.present else SKIPPED
    detail = "; ".join(parts) or "the list matches no ignored file"
    return Report(STEP, status, copier.made, detail, copier.files, tuple(copier.links))


class _RootOf:
    """Which of the ignored roots a path is or lies in."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = {root.rstrip("/") for root in roots}

    def __call__(self, path: str) -> str:
        above = path.rstrip("/")
        while above and above not in self._roots:
            above = above.rpartition("/")[0]
        return above or path


def _wanted(site: Site, whole: Sequence[str], single: Sequence[str]) -> tuple[list[str], list[str]]:
    """What may be copied, in order, and sentences about what may not: it leads through a link in the worktree, or the
    branch tracks it or does not ignore it. A folder of which that holds in part is taken file by file."""
    refused: list[str] = []
    single = _in_no_repository(site.source, single, refused)
    paths = _beyond_no_link(site, dict.fromkeys([*whole, *single]), refused)
    fine = ignored_of(site.path, paths)
    split = [path for path in paths if path not in fine and path.endswith("/")]
    inner = _beyond_no_link(site, [below for path in split for below in _files_below(site.source, path)], refused)
    fine |= ignored_of(site.path, inner)
    paths = [path for path in (*paths, *inner) if path in fine or not path.endswith("/")]
    refused += [f"{path} (tracked or not ignored in the worktree)" for path in paths if path not in fine]
    return sorted(path for path in paths if path in fine), refused


def _in_no_repository(source: str, paths: Sequence[str], refused: list[str]) -> list[str]:
    """The paths that lie in no repository below the main checkout; git itself walks into bare ones."""
    inside: dict[str, bool] = {"": False}

    def is_inside(folder: str) -> bool:
        if folder not in inside:
            inside[folder] = is_inside(folder.rpartition("/")[0])
            if not inside[folder] and is_repository(f"{source}/{folder}"):
                inside[folder] = True
                refused.append(f"{folder} (a repository or worktree of its own)")
        return inside[folder]

    return [path for path in paths if not is_inside(path.rstrip("/").rpartition("/")[0])]


def _beyond_no_link(site: Site, paths: Sequence[str] | dict[str, None], refused: list[str]) -> list[str]:
    """The paths whose folders are no links in the worktree. What lies in one of our own links to the main checkout is
    there already and is left out without a word."""
    link_at: dict[str, str | None] = {"": None}
    kept = []
    for path in paths:
        link = _link_above(site.path, path.rstrip("/").rpartition("/")[0], link_at)
        if link is None:
            kept.append(path)
        elif os.path.realpath(f"{site.path}/{link}") != os.path.realpath(f"{site.source}/{link}"):
            refused.append(f"{path} ('{link}' is a link in the worktree)")
    return kept


def _link_above(root: str, folder: str, known: dict[str, str | None]) -> str | None:
    """The first part of `folder` that is a link below `root`, or None; `known` remembers."""
    if folder not in known:
        above = _link_above(root, folder.rpartition("/")[0], known)
        known[folder] = above or (folder if os.path.islink(f"{root}/{folder}") else None)
    return known[folder]


def _files_below(source: str, root: str) -> list[str]:
    """Every file and link below a folder, repositories left out, as paths from `source` on."""
    found, waiting = list[str](), [root.rstrip("/")]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(f"{source}/{folder}") as inside:
                entries = list(inside)
        except OSError:
            continue
        if is_repository(f"{source}/{folder}"):
            continue
        for entry in entries:
            (waiting if entry.is_dir(follow_symlinks=False) else found).append(f"{folder}/{entry.name}")
    return found
