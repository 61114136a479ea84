"""Take a worktree away by one rename, and bring it back.

`<common dir>/git-wt/trash/<id>/` holds `worktree` (the folder), `admin` (git's admin folder of it, marker included) and
`entry.json`; `refs/git-wt/trash/<id>` holds every commit and blob of it. Where the folder is on another file system it
goes to `<parent>/.git-wt-trash/<id>` and the entry names that place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from git_wt import journal
from git_wt.errors import WtError
from git_wt.files import read_json, read_text, write_json
from git_wt.git import refs as git_refs
from git_wt.git.call import act, ask
from git_wt.git.refs import Ref
from git_wt.git.repository import git_dirs
from git_wt.git.worktree_config import has_settings, turn_on
from git_wt.marker import load_marker, save_marker
from git_wt.model import Json, Repository
from git_wt.naming import quoted
from git_wt.proc import table
from git_wt.proc.run import undisturbed
from git_wt.trees import disk_usage, mounts_at, remove_if_empty, remove_tree
from git_wt.value import NamedTuple
from git_wt.worktrees.registry import checked_out, clear_stale_locks, end_recorded_group

REFS = "refs/git-wt/trash/"
BESIDE = ".git-wt-trash"  # the trash beside a worktree on another file system
_DOOMED = ".deleting-"


class Entry(NamedTuple):
    """One removed worktree. `folder` is where its files are, `path` where they were, `removed_at` seconds since the
    epoch. `branch` is what HEAD was on, at `branch_oid`; `deleted` is the branch that went along, at `deleted_oid` and
    with its settings; `undo` makes it again."""

    id: str
    name: str
    path: str
    folder: str
    admin_id: str
    branch: str | None
    branch_oid: str | None
    deleted: str | None
    deleted_oid: str | None
    settings: tuple[tuple[str, str], ...]
    locked: str | None
    removed_at: float


def place(repository: Repository, path: str) -> str | None:
    """The folder below which the trash of a worktree at `path` lies, or None where a rename cannot reach any: its
    removal cannot be undone. Raises `not-found` when another command has just removed it. No process."""
    parent = os.path.dirname(path)
    os.makedirs(repository.state_dir, exist_ok=True)
    try:
        device = os.lstat(path).st_dev
    except FileNotFoundError as error:
        raise WtError("not-found", f"cannot remove {quoted(path)}: it was removed just now") from error
    if device == os.stat(repository.state_dir).st_dev:
        return repository.state_dir + "/trash"
    if device == os.stat(parent).st_dev and os.access(parent, os.W_OK):
        return f"{parent}/{BESIDE}"
    return None


def entries(common: str) -> list[Entry]:
    """Everything in the trash, newest first. No process."""
    try:
        ids = os.listdir(common + "/git-wt/trash")
    except OSError:
        return []
    found = [entry for entry in (load(common, name) for name in ids) if entry]
    whole = [entry for entry in found if os.path.isdir(f"{common}/git-wt/trash/{entry.id}/admin")]
    return sorted(whole, key=lambda entry: entry.removed_at, reverse=True)


def undo(repository: Repository, entry: Entry) -> tuple[str, str | None]:
    """Bring a removed worktree back: folder, registration, branch, index, lock, marker. Returns its path and branch,
    which differ from the former ones if those are taken meanwhile. Raises `busy`, `git`. One to four git processes."""
    with journal.lock(repository.state_dir):
        if not os.path.lexists(entry.folder) or load(repository.common_dir, entry.id) is None:
            raise WtError(
                "not-found", f"cannot bring back {quoted(entry.id)}: its files are gone from {quoted(entry.folder)}"
            )
        path = free_path(entry.path)
        branch = _branch_to_use(repository, entry.branch, entry.branch_oid)
        other = entry.deleted if entry.deleted != entry.branch else None
        other = _branch_to_use(repository, other, entry.deleted_oid)
        admin = free_path(f"{repository.common_dir}/worktrees/{entry.admin_id}", joint="")
        log = journal.begin(
            repository.state_dir, "undo", trash=entry.id, path=path, branch=branch, other=other, admin=admin
        )
        try:
            with undisturbed():
                finish_undo(repository.common_dir, repository.git_folder, log)
        except BaseException:
            if os.path.lexists(entry.folder):  # nothing has been moved yet
                log.done()
            raise
    return path, branch


def finish_undo(common: str, folder: str, log: journal.Entry) -> None:
    """Do, or go on with, an undo that a journal entry describes; each step only if it is still to be done. With the
    lock held."""
    end_recorded_group(log)
    data = log.data
    entry = load(common, str(data["trash"]))
    home, path, admin, branch = f"{common}/git-wt/trash/{data['trash']}", data["path"], data["admin"], data["branch"]
    branches = [f"refs/heads/{name}" for name in (branch, data["other"]) if name]
    clear_stale_locks(common, log, *branches, REFS + data["trash"])
    if entry is None:  # killed over the last step: only an empty folder can be left
        remove_if_empty(home)
        log.done()
        return
    if has_settings(home + "/admin"):
        turn_on(common)
    _restore_branches(folder, entry, {branch: entry.branch_oid, data["other"]: entry.deleted_oid}, home, log)
    if os.path.lexists(entry.folder) and not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.rename(entry.folder, path)
    if os.path.isdir(home + "/admin"):
        _rewrite(home + "/admin/gitdir", path + "/.git")
        _rewrite(path + "/.git", f"gitdir: {admin}")
        if branch != entry.branch and read_text(home + "/admin/HEAD") == f"ref: refs/heads/{entry.branch}":
            _rewrite(home + "/admin/HEAD", f"ref: refs/heads/{branch}")
        renamed = {entry.deleted: data["other"] or branch, entry.branch: branch}
        _rename_marker(home + "/admin", path[len(entry.path) :], renamed)
        os.makedirs(os.path.dirname(admin), exist_ok=True)
        os.rename(home + "/admin", admin)
    if (path, os.path.basename(admin)) != (entry.path, entry.admin_id):
        _repoint_submodules(entry, f"{common}/worktrees/{entry.admin_id}", admin, path)
    delete_ref_if_there(folder, REFS + entry.id)
    remove_tree(home)
    remove_if_empty(os.path.dirname(entry.folder))
    log.done()


def _restore_branches(
    folder: str, entry: Entry, wanted: Mapping[str | None, str | None], home: str, log: journal.Entry
) -> None:
    """Make the branch that HEAD will be on, and another that was deleted, where they are not there."""
    oids = {name: oid for name, oid in wanted.items() if name and oid}
    found = git_refs.find_refs(folder, *(f"refs/heads/{name}" for name in oids)) if oids else {}
    for name, oid in oids.items():
        if f"refs/heads/{name}" in found:
            continue
        message = "git-wt: brought back" if _was_ours(home) and name == entry.deleted else "brought back by git-wt"
        git_refs.change_ref(folder, f"refs/heads/{name}", oid, "", message, log.note_group)
        if name == entry.deleted:
            git_refs.restore_branch_settings(folder, entry.settings)


def delete(repository: Repository, entry: Entry, *, aside: frozenset[int] = frozenset()) -> list[str]:
    """Delete a trash entry for good. It is first renamed to where `undo` does not look: what is half deleted must not
    come back as whole. Returns what could not be deleted; `finish_deletions` tries that again. Nothing happens while a
    process other than `aside` stands inside. Two git processes."""
    occupants = table.standing_in(os.path.realpath(entry.folder), aside)
    if occupants:
        return [f"{entry.folder}: {occupants[0].command} ({occupants[0].pid}) stands inside"]
    mounts = mounts_at(os.path.realpath(entry.folder))
    if mounts:
        return [f"{mount}: a file system is mounted there" for mount in mounts]
    home = home_of(repository, entry.id)
    with journal.lock(repository.state_dir):
        if not os.path.isdir(home):
            return []  # brought back, or deleted, by another command just now
        doomed = f"{os.path.dirname(home)}/{_DOOMED}{entry.id}"
        os.rename(home, doomed)
        delete_ref_if_there(repository.git_folder, REFS + entry.id)
    return _delete_doomed(doomed)


def finish_deletions(repository: Repository) -> list[str]:
    """Go on with deletions that did not come to their end. Returns what still could not be deleted. No process."""
    parent = repository.state_dir + "/trash"
    names = os.listdir(parent) if os.path.isdir(parent) else []
    return [reason for name in names if name.startswith(_DOOMED) for reason in _delete_doomed(f"{parent}/{name}")]


def _delete_doomed(doomed: str) -> list[str]:
    entry = _read(doomed)
    beside = entry.folder if entry and os.path.basename(os.path.dirname(entry.folder)) == BESIDE else None
    failed = remove_tree(beside) if beside else []
    if beside:
        remove_if_empty(os.path.dirname(beside))
    failed += remove_tree(doomed + "/worktree")
    return failed or remove_tree(doomed)


def expired(found: Sequence[Entry], *, days: float, size: int) -> list[Entry]:
    """The entries that are past their time, and the oldest that go past `size` bytes in all. No process; walks the
    trash to measure it."""
    limit = time.time() - days * 86400
    old = [entry for entry in found if entry.removed_at < limit]
    total = 0
    for entry in found:
        if entry not in old:
            total += disk_usage(entry.folder)
            if total > size:
                old.append(entry)
    return old


def load(common: str, entry_id: str) -> Entry | None:
    """The trash entry of this id, or None. No process."""
    return None if entry_id.startswith(_DOOMED) else _read(f"{common}/git-wt/trash/{entry_id}")


def _read(home: str) -> Entry | None:
    data = read_json(home + "/entry.json")
    if data is None:
        return None
    settings = tuple((str(key), str(value)) for key, value in data.pop("settings", ()))
    try:
        return Entry(**data, settings=settings)
    except TypeError:
        return None


def home_of(repository: Repository, entry_id: str) -> str:
    """The folder of a trash entry. No process."""
    return f"{repository.state_dir}/trash/{entry_id}"


def save(common: str, entry: Entry) -> None:
    """Write down a trash entry. No process."""
    data: Json = entry._asdict()
    write_json(f"{common}/git-wt/trash/{entry.id}/entry.json", data)


def delete_ref_if_there(folder: str, ref: str) -> None:
    """Delete a ref of ours wherever it is. One or two processes."""
    found = git_refs.find_refs(folder, ref).get(ref)
    if found:
        git_refs.delete_ref(folder, ref, found.oid)


def _rename_marker(admin: str, suffix: str, renamed: Mapping[str | None, str | None]) -> None:
    """Two worktrees may not share a name, and a branch of the user's is not ours because ours was called so: the marker
    says what folder and branch are called now."""
    marker = load_marker(admin)
    if marker:
        now = marker._replace(name=marker.name + suffix, branch=renamed.get(marker.branch, marker.branch))
        if now != marker:
            save_marker(admin, now)


def _repoint_submodules(entry: Entry, old_admin: str, admin: str, path: str) -> None:
    """Submodules and their repositories (`<admin>/modules`) name each other; after a move both sides are written anew.
    Two processes a submodule."""
    for name in git_dirs(admin + "/modules"):
        inner = f"{admin}/modules/{name}"
        answer = ask("/", "config", "--file", inner + "/config", "--get", "core.worktree")
        old = os.path.normpath(os.path.join(f"{old_admin}/modules/{name}", os.fsdecode(answer.out).removesuffix("\n")))
        if answer.code == 0 and old.startswith(entry.path + "/"):
            there = path + old[len(entry.path) :]
            act("/", "config", "--file", inner + "/config", "core.worktree", there, doing="move a submodule")
            if os.path.isfile(there + "/.git"):
                _rewrite(there + "/.git", f"gitdir: {inner}")


def _branch_to_use(repository: Repository, branch: str | None, oid: str | None) -> str | None:
    """The branch that is brought back: itself if that is free or where it was, else with a number."""
    if branch is None:
        return None
    number, found = 1, git_refs.find_refs(repository.git_folder, "refs/heads")
    while True:
        name = branch if number == 1 else f"{branch}-{number}"
        have = found.get(f"refs/heads/{name}")
        free = (have is None and not _clashes(name, found)) or (have is not None and number == 1 and have.oid == oid)
        if free and not checked_out(repository.common_dir, name):
            return name
        number += 1


def _clashes(name: str, found: Mapping[str, Ref]) -> bool:
    """Whether git could not store a branch of this name beside those that are there (`a` and `a/b`)."""
    ref = f"refs/heads/{name}"
    return any(other.startswith(ref + "/") or ref.startswith(other + "/") for other in found)


def free_path(path: str, joint: str = "-") -> str:
    """`path`, or with a number behind it where something is there. No process."""
    number, candidate = 1, path
    while os.path.lexists(candidate):
        number += 1
        candidate = f"{path}{joint}{number}"
    return candidate


def _was_ours(home: str) -> bool:
    marker = load_marker(home + "/admin")
    return bool(marker and marker.made_branch)


def _rewrite(path: str, line: str) -> None:
    with open(path, "wb") as file:
        file.write(os.fsencode(line) + b"\n")
