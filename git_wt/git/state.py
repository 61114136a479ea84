"""What is in a worktree: changes, ignored files, hidden edits, what git is in the middle of."""

from __future__ import annotations

import os

from git_wt.git.call import ask, lines, reading, require, split_z
from git_wt.model import Changes
from git_wt.proc.run import Completed
from git_wt.value import NamedTuple


class Change(NamedTuple):
    """One line of `git status --porcelain=v2`: '1' changed, 'u' conflicted, '?' untracked, '!' ignored."""

    kind: str
    xy: str
    submodule: str
    path: str


class Status(NamedTuple):
    """A worktree's status. `answer` is git's own output, to compare two looks."""

    oid: str | None
    branch: str | None
    changes: tuple[Change, ...]
    answer: bytes
    upstream: str | None = None
    ahead_behind: tuple[int, int] | None = None

    def numbers(self) -> Changes:
        """Changed paths by how they changed; one path may be both staged and modified."""
        tracked = [change for change in self.changes if change.kind == "1"]
        return Changes(
            staged=sum(change.xy[0] != "." for change in tracked),
            modified=sum(change.xy[1] != "." for change in tracked),
            untracked=sum(change.kind == "?" for change in self.changes),
            conflicted=sum(change.kind == "u" for change in self.changes),
        )


class Indexed(NamedTuple):
    """An entry of the index that the verdict looks at: tag (`git ls-files -v`), mode, object and path."""

    tag: str
    mode: str
    oid: str
    path: str


def status_question(folder: str, *, ignored: bool, upstream: bool = False, git_dir: str | None = None) -> list[str]:
    """The argv of a whole status, whatever the user's configuration hides. `upstream` asks how far the upstream is;
    with `git_dir`, of a folder that was moved away from where git knows it."""
    moved = (f"--git-dir={git_dir}", f"--work-tree={folder}") if git_dir else ()
    show = "--ignored=matching" if ignored else "--ignored=no"
    count = "--ahead-behind" if upstream else "--no-ahead-behind"
    return reading(
        folder, *moved, "status", "--porcelain=v2", "-z", "--branch", count, "--no-renames",
        "--untracked-files=all", "--ignore-submodules=none", show,
    )  # fmt: skip


def parse_status(answer: Completed) -> Status:
    """The parsed status. Raises `git` when git could not tell."""
    out = require(answer, "read the state of the worktree")
    oid = branch = upstream = counts = None
    changes = []
    for field in split_z(out):
        kind = field[0]
        if field.startswith("# branch.oid "):
            oid = None if field.endswith("(initial)") else field[13:]
        elif field.startswith("# branch.head "):
            branch = None if field.endswith("(detached)") else field[14:]
        elif field.startswith("# branch.upstream "):
            upstream = field[18:]
        elif field.startswith("# branch.ab ") and "?" not in field:
            ahead, behind = field[12:].split(" ")
            counts = (int(ahead), -int(behind))
        elif kind == "1":
            parts = field.split(" ", 8)
            changes.append(Change(kind, parts[1], parts[2], parts[8]))
        elif kind == "u":
            parts = field.split(" ", 10)
            changes.append(Change(kind, parts[1], parts[2], parts[10]))
        elif kind in "?!":
            changes.append(Change(kind, "", "", field[2:]))
    return Status(oid, branch, tuple(changes), out, upstream, counts)


def index_question(folder: str) -> list[str]:
    """The argv that lists the index with the tags of hidden entries, for `parse_index`."""
    return reading(folder, "ls-files", "-v", "--stage", "-z")


def parse_index(answer: Completed) -> list[Indexed]:
    """The entries that are not plain: assume-unchanged (lower-case tag), skip-worktree ('S') and submodules (mode
    160000). Plain ones are skipped without being taken apart: an index has tens of thousands."""
    out = require(answer, "read the index")
    found = []
    for line in out.split(b"\0"):
        if line and (line[:1] != b"H" or line[2:8] == b"160000"):
            meta, _, path = line.partition(b"\t")
            tag, mode, oid, _ = meta.decode("ascii").split(" ")
            if tag != "M":  # unmerged: the status tells
                found.append(Indexed(tag, mode, oid, os.fsdecode(path)))
    return found


def edited(folder: str, entries: list[Indexed]) -> list[str]:
    """Those of `entries` (regular files that exist) whose content is not the index's. One process."""
    paths = [entry.path for entry in entries]
    answer = ask(folder, "hash-object", "--stdin-paths", stdin=_quoted_paths(paths))
    oids = lines(require(answer, "compare hidden files"))
    return [entry.path for entry, oid in zip(entries, oids, strict=True) if entry.oid != oid]


def _quoted_paths(paths: list[str]) -> bytes:
    """Paths for `--stdin-paths`, which reads C-quoted lines where a path starts with a quote or has a newline."""
    quoted = []
    for path in paths:
        raw = os.fsencode(path)
        if b"\n" in raw or raw.startswith(b'"'):
            raw = b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
        quoted.append(raw + b"\n")
    return b"".join(quoted)


_OPERATIONS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer/todo", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)


def operation(admin: str) -> str | None:
    """What git is in the middle of in the worktree of this admin folder: rebase, am, merge, cherry-pick, revert,
    bisect, or an unfinished command that left `index.lock`. No process. Source: git's wt-status.c."""
    for file, name in _OPERATIONS:
        if os.path.lexists(f"{admin}/{file}"):
            return name
    return "index.lock" if os.path.lexists(admin + "/index.lock") else None


_HELD_BY = (
    *("ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_HEAD", "REBASE_HEAD"),
    *(f"rebase-merge/{name}" for name in ("orig-head", "onto", "stopped-sha", "amend", "squash-onto", "autostash")),
    *("rebase-apply/orig-head", "rebase-apply/onto", "rebase-apply/autostash", "MERGE_AUTOSTASH"),
)


def held_commits(admin: str, *, reflog: bool) -> list[str]:
    """The commits that only files of this admin folder name: heads of paused operations, bisect and per-worktree
    refs, with `reflog` also every commit that HEAD ever was at. They must stay reachable when the folder goes. No
    process."""
    paths = [f"{admin}/{name}" for name in (*_HELD_BY, *(("HEAD", "logs/HEAD") if reflog else ()))]
    for folder, _, files in os.walk(admin + "/refs"):
        paths += [f"{folder}/{file}" for file in files]
    found = []
    for path in paths:
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                words = file.read().split()
        except OSError:
            continue
        found += [word for word in words if len(word) in (40, 64) and set(word) <= set("0123456789abcdef")]
    return list(dict.fromkeys(found))


def rebased_branch(admin: str) -> str | None:
    """The branch that a paused rebase or bisect in this worktree will come back to; it counts as checked out. No
    process. Source: git's branch.c (find_shared_symref)."""
    for file in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
        try:
            with open(f"{admin}/{file}", encoding="utf-8", errors="surrogateescape") as handle:
                name = handle.read().strip()
        except OSError:
            continue
        if name and name != "detached HEAD":
            return name.removeprefix("refs/heads/")
    return None
