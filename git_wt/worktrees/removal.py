"""Take a worktree away by one rename into the trash, looked at again behind it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Sequence

from git_wt import journal
from git_wt.errors import WtError
from git_wt.files import read_text
from git_wt.git import refs as git_refs
from git_wt.git import state as git_state
from git_wt.git.call import act, ask, environment, lines, require
from git_wt.git.worktree_config import turn_off_if_unused
from git_wt.model import Blocker, Repository, Workspace, Worktree
from git_wt.naming import quoted
from git_wt.proc import table
from git_wt.proc.run import run, undisturbed
from git_wt.trees import mounts_at, remove_if_empty, remove_tree
from git_wt.value import NamedTuple
from git_wt.worktrees.facts import Facts
from git_wt.worktrees.registry import checked_out, clear_stale_locks, end_recorded_group, was_killed
from git_wt.worktrees.trash import (
    BESIDE,
    REFS,
    Entry,
    delete,
    delete_ref_if_there,
    free_path,
    home_of,
    load,
    place,
    save,
)
from git_wt.worktrees.walk import walk


class Removed(NamedTuple):
    """What a removal did. `undo` is the id for `git wt undo`, None when it was deleted for good; `branch_kept` says why
    the branch is still there."""

    undo: str | None
    branch_deleted: bool
    branch_kept: str | None
    left: tuple[str, ...] = ()


def remove(
    repository: Repository, space: Workspace, facts: Facts, *, discard: bool, delete_branch: bool, keep: bool
) -> Removed:
    """Take a worktree away that was judged fit by `facts`. Looks again with the lock held and after the rename; what
    has changed meanwhile brings everything back (`has-changes`). `keep` leaves it in the trash. Raises
    `not-a-worktree`, `has-changes`, `git`, `busy`. Four to seven git processes."""
    tree = space.worktree
    where = place(repository, tree.path)
    if where is None:
        raise WtError(
            "not-a-worktree",
            f"cannot remove {quoted(space.name)}: {quoted(tree.path)} is a file system of its own",
            hint="unmount it first",
        )
    with journal.lock(repository.state_dir):
        _require_same(tree.path, facts.identity, space)
        entry = _new_entry(repository, space, facts, where, delete_branch)
        log = journal.begin(repository.state_dir, "remove", trash=entry.id, path=tree.path, folder=entry.folder)
        try:
            os.makedirs(home_of(repository, entry.id))
            save(repository.common_dir, entry)
            _hold(repository, entry, facts, tree, log)
            entry = _move(repository, tree.path, entry)
            _look_again(tree.admin, entry.folder, facts, space, discard, undoable=keep)
            # The point of no return: from here a crash is finished, not taken back.
            os.rename(tree.admin, f"{home_of(repository, entry.id)}/admin")
        except BaseException as error:
            with undisturbed():
                aside = put_back(repository.common_dir, repository.git_folder, log, killed=was_killed(error))
            if aside and isinstance(error, WtError):
                error.message += f"; what was made at its place meanwhile is at {quoted(aside)}"
            raise
        with undisturbed():
            kept = finish_removal(repository.common_dir, repository.git_folder, log)
    left = () if keep else tuple(delete(repository, entry, aside=table.relatives(())))
    if os.path.lexists(tree.path):
        left += (f"{quoted(tree.path)} is there again: something still writes to it",)
    return Removed(entry.id if keep else None, entry.deleted is not None and kept is None, kept, left)


def put_back(common: str, folder: str, log: journal.Entry, *, killed: bool = False) -> str | None:
    """Undo a removal that did not reach its point of no return: the folder goes back. Something that was made at its
    place meanwhile is moved aside; returns where to. With the lock held."""
    end_recorded_group(log)
    ref = REFS + str(log.data["trash"])
    clear_stale_locks(common, log, ref, killed=killed)
    home = f"{common}/git-wt/trash/{log.data['trash']}"
    if os.path.exists(home + "/admin"):
        finish_removal(common, folder, log)
        return None
    path, aside = str(log.data["path"]), None
    places = (str(log.data["folder"]), f"{os.path.dirname(path)}/{BESIDE}/{log.data['trash']}")
    kept = next((place for place in places if os.path.lexists(place)), None)
    if kept:
        if os.path.lexists(path):
            aside = free_path(path + ".made-meanwhile")
            os.rename(path, aside)
        os.rename(kept, path)
    delete_ref_if_there(folder, ref)
    remove_tree(home)
    remove_if_empty(os.path.dirname(places[1]))
    log.done()
    return aside


def finish_removal(common: str, folder: str, log: journal.Entry) -> str | None:
    """The part of a removal behind the point of no return: the branch, and the extension that only this worktree's own
    configuration needed. Returns why the branch stays, if it should have gone. With the lock held."""
    end_recorded_group(log)
    entry = load(common, str(log.data["trash"]))
    remove_if_empty(common + "/worktrees")
    kept = None
    if entry and entry.deleted:
        kept = _delete_branch(common, folder, entry, log)
        if kept:
            save(common, entry._replace(deleted=None))
    with contextlib.suppress(WtError):  # it hurts nobody; the next removal tries again
        turn_off_if_unused(common)
    log.done()
    return kept


def _new_entry(repository: Repository, space: Workspace, facts: Facts, where: str, delete_branch: bool) -> Entry:
    tree = space.worktree
    now = time.time()
    entry_id = time.strftime("%Y%m%d-%H%M%S", time.localtime(now)) + "-" + os.urandom(2).hex()
    home = home_of(repository, entry_id)
    made = space.marker.branch if space.marker and delete_branch else None
    ref = facts.refs.get(f"refs/heads/{made}") if made else None
    return Entry(
        id=entry_id,
        name=space.name,
        path=tree.path,
        folder=home + "/worktree" if where == repository.state_dir + "/trash" else f"{where}/{entry_id}",
        admin_id=os.path.basename(tree.admin),
        branch=facts.branch,
        branch_oid=facts.branch_oid,
        deleted=made if ref else None,
        deleted_oid=ref.oid if ref else None,
        settings=tuple(git_refs.branch_settings(repository.git_folder, made)) if made and ref else (),
        locked=facts.locked,
        removed_at=now,
    )


def _require_same(path: str, identity: tuple[int, int], space: Workspace) -> None:
    there = os.lstat(path) if os.path.lexists(path) else None
    if there is None or (there.st_dev, there.st_ino) != identity or not os.path.isdir(space.worktree.admin):
        raise WtError(
            "not-a-worktree",
            f"cannot remove {quoted(space.name)}: {quoted(path)} is not the folder any more that was checked",
            hint="git wt list",
        )


def _hold(repository: Repository, entry: Entry, facts: Facts, tree: Worktree, log: journal.Entry) -> None:
    """Write the trash entry's ref: a commit whose tree holds every blob of the index and whose parents are every tip.
    Two git processes, more where something is staged."""
    folder = repository.git_folder
    admin, head = tree.admin, facts.status.oid if facts.status else tree.head
    tips = [
        head,
        entry.branch_oid,
        entry.deleted_oid,
        *facts.commits.reflog_only,
        *git_state.held_commits(admin, reflog=bool(facts.unknown)),
    ]
    parents = [tip for tip in dict.fromkeys(tips) if tip]
    if set(parents) - {head, entry.branch_oid, entry.deleted_oid}:
        parents = _existing_commits(folder, parents)  # ORIG_HEAD and the like may name what is long gone
    blobs = _index_tree(folder, facts, admin, head)
    commit = git_refs.commit_tree(folder, blobs, parents, f"git-wt: removed {entry.name}")
    git_refs.change_ref(folder, REFS + entry.id, commit, "", "git-wt: removed", log.note_group)


def _move(repository: Repository, path: str, entry: Entry) -> Entry:
    """Rename the worktree's folder into the trash, or beside itself where the trash is behind a bind mount (which only
    the rename tells). Raises `git` where neither works."""
    beside = f"{os.path.dirname(path)}/{BESIDE}/{entry.id}"
    for folder in dict.fromkeys((entry.folder, beside)):
        try:
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            os.rename(path, folder)
        except OSError as error:
            reason = error.strerror
            continue
        if folder != entry.folder:
            entry = entry._replace(folder=folder)
            save(repository.common_dir, entry)
        return entry
    raise WtError("git", f"cannot remove {quoted(entry.name)}: its folder cannot be renamed: {reason}")


def _existing_commits(folder: str, oids: Sequence[str]) -> list[str]:
    """Those of `oids` that are commits and are there. One process."""
    answer = ask(
        folder, "cat-file", "--batch-check=%(objectname) %(objecttype)", stdin="\n".join(oids).encode() + b"\n"
    )
    rows = (line.split() for line in lines(require(answer, "read commits")))
    return [row[0] for row in rows if row[1:] == ["commit"]]


def _index_tree(folder: str, facts: Facts, admin: str, head: str | None) -> str:
    """A tree that holds every blob of the index. When nothing is staged that is HEAD's. No to three processes."""
    changes = facts.status.changes if facts.status else ()
    plain = facts.status is not None and not any(
        change.kind == "u" or change.xy[:1] not in ("", ".") for change in changes
    )
    if plain and head and not facts.unknown:
        return head + "^{tree}"
    env = {**environment(), "GIT_INDEX_FILE": admin + "/index"}
    answer = run(["git", "-C", folder, "ls-files", "--stage", "-z"], env=env)
    blobs = sorted({field.split(b" ")[1] for field in answer.out.split(b"\0") if field and field[:6] != b"160000"})
    rows = b"".join(b"100644 blob %s\t%s\0" % (blob, blob) for blob in blobs)
    return act(folder, "mktree", "-z", "--missing", doing="keep what is staged", stdin=rows).decode().strip()


def _look_again(admin: str, folder: str, facts: Facts, space: Workspace, discard: bool, *, undoable: bool) -> None:
    """After the rename nobody can reach the folder by its name any more: is it still what was judged? One process."""
    there = os.lstat(folder)
    if (there.st_dev, there.st_ino) != facts.identity:
        raise WtError("not-a-worktree", f"cannot remove {quoted(space.name)}: its folder was exchanged meanwhile")
    _require_unchanged(admin, folder, facts, space)
    if discard or facts.status is None:
        return
    argv = git_state.status_question(folder, ignored=True, git_dir=admin)
    if facts.gitlinks:  # a submodule's link to its repository is relative, and broken while the folder is away
        argv = [word.replace("--ignore-submodules=none", "--ignore-submodules=all") for word in argv]
    now = git_state.parse_status(run(argv, env=environment()))
    before = facts.status
    was, are = _but(before.changes, facts.gitlinks), _but(now.changes, facts.gitlinks)
    changed = sorted({change.path for change in are ^ was})
    if (before.oid, before.branch) != (now.oid, now.branch) or facts.operation != git_state.operation(admin):
        changed.append("HEAD")
    if not undoable:  # what is in ignored folders goes for good
        precious = walk(folder, admin, now, facts.regenerable, space.marker).precious
        changed += sorted({*precious} ^ {*facts.precious})
    if changed:
        blocker = Blocker(
            "uncommitted", len(changed), tuple(changed[:10]), f"{quoted(changed[0])} was changed just now"
        )
        raise WtError(
            "has-changes",
            f"cannot remove {quoted(space.name)}: {blocker.what}",
            hint="git status, then try again",
            extra={"blockers": [blocker.as_json()]},
        )


def _require_unchanged(admin: str, folder: str, facts: Facts, space: Workspace) -> None:
    """What no flag discards: a lock or a mount that came meanwhile, a commit on a detached HEAD, which nothing would
    hold. No process."""
    head = read_text(admin + "/HEAD") or ""
    moved = (
        facts.status is not None and facts.branch is None and not head.startswith("ref:") and head != facts.status.oid
    )
    for code, what in (
        ("locked", "it was locked just now" if read_text(admin + "/locked") != facts.locked else ""),
        ("nested", "something was mounted in it just now" if mounts_at(folder) else ""),
        ("commits", "its HEAD has moved just now" if moved else ""),
    ):
        if what:
            blocker = Blocker(code, 1, (), what)
            error = f"cannot remove {quoted(space.name)}: {what}"
            raise WtError("has-changes", error, hint="try again", extra={"blockers": [blocker.as_json()]})


def _but(changes: Iterable[git_state.Change], gitlinks: frozenset[str]) -> frozenset[git_state.Change]:
    return frozenset(change for change in changes if change.path not in gitlinks)


def _delete_branch(common: str, folder: str, entry: Entry, log: journal.Entry) -> str | None:
    """Delete the branch by compare-and-swap. Returns why it stays. One process, two where it has settings."""
    branch = str(entry.deleted)
    elsewhere = checked_out(common, branch)
    if elsewhere:
        return f"it is checked out at {quoted(elsewhere)}"
    if branch == (read_text(common + "/refs/remotes/origin/HEAD") or "").removeprefix("ref: refs/remotes/origin/"):
        return "it is the default branch"
    clear_stale_locks(common, log, f"refs/heads/{branch}")
    try:
        git_refs.delete_ref(folder, f"refs/heads/{branch}", str(entry.deleted_oid), log.note_group)
    except WtError as error:
        clear_stale_locks(common, log, f"refs/heads/{branch}", killed=was_killed(error))
        if git_refs.find_refs(folder, f"refs/heads/{branch}"):
            return "its git was killed" if was_killed(error) else "it has moved meanwhile"
    if entry.settings:
        with contextlib.suppress(WtError):  # behind the point of no return: a stale setting is no failure
            git_refs.drop_branch_settings(folder, branch)
    return None
