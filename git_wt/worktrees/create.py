"""Make a worktree, whole or not at all: lock, journal, branch, registration, checkout, marker.

`undo_creation` takes back what a journal entry says was begun, from what is on disk; a failure here and a later
command after a crash use the same code. Source: git-worktree(1).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from git_wt import journal
from git_wt.errors import WtError
from git_wt.files import add_line, read_text, write_whole
from git_wt.git import refs as git_refs
from git_wt.git import sparse as git_sparse
from git_wt.git.call import READING, act, environment, failure
from git_wt.git.repository import MAIN_ROOT, admin_folders, admin_of
from git_wt.git.worktree_config import set_for_worktree, turn_off_if_unused
from git_wt.marker import new_token, save_marker
from git_wt.model import Marker, Repository, Worktree
from git_wt.naming import quoted, shown
from git_wt.proc.run import run, undisturbed
from git_wt.trees import remove_if_empty, remove_tree
from git_wt.value import NamedTuple
from git_wt.worktrees.registry import (
    admin_being_made,
    checked_out,
    clear_failed_try,
    clear_stale_locks,
    end_recorded_group,
    is_empty,
    is_hardly_begun,
    remove_empty_admin,
    unlock,
    was_killed,
)

NULL = "0" * 40
BEING_MADE = "git-wt: being made, pid "  # and the number: the reason of git's lock meanwhile


class Plan(NamedTuple):
    """What is to be made. `branch_oid` is where the branch is now, None when it is to be made; `reset` moves an
    existing one to `base_commit`. `sparse` are the folders of a cone; none: every file."""

    path: str
    name: str
    kind: str
    branch: str
    branch_oid: str | None
    ours: bool
    reset: bool
    base: str
    base_commit: str
    sparse: tuple[str, ...] = ()


class Created(NamedTuple):
    """A worktree whose checkout is complete; still locked as being made until `finish`."""

    worktree: Worktree
    marker: Marker
    entry: journal.Entry
    hook_failure: str | None


class Raced(Exception):  # noqa: N818 - no failure yet: the caller looks again
    """The plan does not fit any more: somebody else made or removed the same worktree meanwhile. `why` is the error for
    a caller that does not look again."""

    def __init__(self, why: WtError) -> None:
        super().__init__(why.message)
        self.why = why


def create(repository: Repository, plan: Plan, *, hooks: str | None) -> Created:
    """Make the worktree of `plan`, up to a complete checkout. `hooks` is the main checkout's hooks folder; its
    post-checkout runs as for plain git. On any failure or signal nothing is left: no folder, admin entry, branch or
    process. Raises `Raced`, `exists`, `branch-in-use`, `git`, `busy`. Three to four git processes; for a sparse one
    four to nine more."""
    with journal.lock(repository.state_dir):
        _require_free(repository, plan)
        _ignore(repository, plan.path)
        if os.path.isfile(repository.main_root + "/.git"):
            write_whole(repository.common_dir + MAIN_ROOT, os.fsencode(repository.main_root))
        entry = _begin(repository, plan)
        try:
            admin = _register(repository, plan, entry)
            if plan.sparse:
                set_for_worktree(repository.common_dir, admin, "core.sparseCheckout", "true")
            else:
                git_sparse.forget_inherited(repository.common_dir, admin)
        except BaseException as error:
            with undisturbed():
                undo_creation(repository.common_dir, repository.git_folder, entry, killed=was_killed(error))
            raise
    try:
        head = str(entry.data["oid"])
        _check_out(plan, entry)
        marker = Marker(
            new_token(), plan.kind, plan.name, plan.branch, plan.ours, plan.base, plan.base_commit, time.time(),
            setup_unfinished=True,
        )  # fmt: skip
        if plan.branch_oid is not None and not plan.reset:
            marker = marker._replace(base_commit=plan.branch_oid)
        save_marker(admin, marker)
        entry.note(phase="made", group=None)
    except BaseException:
        with undisturbed(), journal.lock(repository.state_dir):
            undo_creation(repository.common_dir, repository.git_folder, entry)
        raise
    tree = Worktree(plan.path, admin, head, plan.branch, str(entry.data["reason"]))
    created = Created(tree, marker, entry, None)
    try:
        return created._replace(hook_failure=_post_checkout(plan.path, hooks, head, entry))
    except BaseException:  # a signal: what is complete stays, unlocked
        finish(created)
        raise


def finish(created: Created) -> Worktree:
    """Unlock what `create` made and close its journal entry. No process."""
    unlock(created.worktree.admin, str(created.entry.data["reason"]))
    created.entry.done()
    return created.worktree._replace(locked=None)


def undo_creation(common: str, folder: str, entry: journal.Entry, *, killed: bool = False) -> None:
    """Take back a creation that did not come to its end, or finish one whose checkout was complete. To be called with
    the lock held. Touches only what the entry names and what is still as it left it."""
    data = entry.data
    end_recorded_group(entry)
    reason, path = str(data["reason"]), str(data["path"])
    admin = admin_being_made(common, path, reason)
    if data.get("phase") == "made":
        if admin:
            unlock(admin, reason)
        entry.done()
        return
    if admin:
        pointed = admin_of(path)
        if pointed == os.path.realpath(admin) or (pointed is None and is_hardly_begun(path, ".git")):
            remove_tree(path)
        remove_tree(admin)
    else:
        remove_empty_admin(common, path, float(data.get("time", 0)))
        if is_hardly_begun(path, ".git") and data.get("phase") == "adding":
            remove_tree(path)
    for made in data.get("madeFolders", ()):
        remove_if_empty(made)
    _undo_branch(common, folder, entry, killed)
    with suppress(WtError):  # it hurts nobody; the next removal tries again
        turn_off_if_unused(common)
    entry.done()


def _begin(repository: Repository, plan: Plan) -> journal.Entry:
    """The journal entry: all that taking back needs."""
    return journal.begin(
        repository.state_dir,
        "create",
        path=plan.path,
        branch=plan.branch,
        oid=plan.base_commit if plan.branch_oid is None or plan.reset else plan.branch_oid,
        oldOid=plan.branch_oid,
        madeBranch=plan.branch_oid is None,
        reset=plan.reset,
        reason=f"{BEING_MADE}{os.getpid()}",
        phase="planned",
        madeFolders=_missing_folders(os.path.dirname(plan.path)),
    )


def _missing_folders(folder: str) -> list[str]:
    """The folders that git will make on the way, innermost first."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def _require_free(repository: Repository, plan: Plan) -> None:
    """What may have changed while we waited for the lock."""
    if plan.path in admin_folders(repository.common_dir):
        raise Raced(WtError("exists", f"cannot make {quoted(plan.name)}: another command has just made it"))
    if os.path.lexists(plan.path) and not is_empty(plan.path):
        raise WtError(
            "exists",
            f"cannot make {quoted(plan.name)}: {quoted(plan.path)} exists and is not a worktree of this repository",
            hint="move it away, or use another name",
        )
    user = checked_out(repository.common_dir, plan.branch)
    if user:
        raise WtError(
            "branch-in-use",
            f"cannot make {quoted(plan.name)}: branch {quoted(plan.branch)} is checked out at {quoted(user)}",
            hint="use another name, or another --branch",
        )


def _ignore(repository: Repository, path: str) -> None:
    """Make git ignore the worktree, in this clone only: the folder of worktrees where it is ours (the default one, or
    one that is made now), else this one."""
    parent, root = os.path.dirname(path), repository.main_root
    ours = parent != root and (parent == f"{root}/.claude/worktrees" or not os.path.exists(parent))
    ignored = parent if ours else path
    if not ignored.startswith(root + "/") or (repository.bare and not os.path.isdir(root + "/.git")):
        return
    pattern = "".join("\\" + c if c in "*?[\\" else c for c in ignored[len(root) :])
    exclude = repository.common_dir + "/info/exclude"
    above = os.path.dirname(pattern) + "/"
    if "\n" not in pattern and above not in (read_text(exclude) or "").splitlines():
        add_line(exclude, pattern.rstrip(" ") + "/")


def _register(repository: Repository, plan: Plan, entry: journal.Entry) -> str:
    """Branch and registration, with the lock held; returns the admin folder. Two git processes."""
    folder, oid, branch = repository.git_folder, str(entry.data["oid"]), plan.branch
    try:
        if plan.branch_oid is None:
            git_refs.change_ref(
                folder, f"refs/heads/{branch}", oid, "", f"git-wt: made from {plan.base}", entry.note_group
            )
        elif plan.reset:
            message = f"git-wt: moved to {plan.base}"
            git_refs.change_ref(folder, f"refs/heads/{branch}", oid, plan.branch_oid, message, entry.note_group)
    except WtError as error:
        raise Raced(error) from error
    entry.note(phase="adding")
    reason = str(entry.data["reason"])
    act(
        folder,
        *("worktree", "add", "--quiet", "--lock", "--reason", reason, "--no-checkout", "--", plan.path, branch),
        doing=f"make {quoted(plan.name)}",
        on_group=entry.note_group,
        before_retry=lambda: clear_failed_try(repository.common_dir, plan.path, reason),
    )
    admin = admin_of(plan.path)
    head = read_text(f"{admin}/HEAD")
    if admin is None or head not in (f"ref: refs/heads/{branch}", "ref: refs/heads/.invalid"):
        raise WtError("git", f"cannot make {quoted(plan.name)}: git checked out {quoted(head or 'nothing')} instead")
    return admin


def _check_out(plan: Plan, entry: journal.Entry) -> None:
    """Write the files, outside the lock: it takes as long as the tree is big. No file outside the cone is ever written.
    Not by `git reset --hard`: that locks the branch, which somebody else's gc may just be packing. One git process, two
    for a sparse one."""
    if plan.sparse:
        git_sparse.set_cone(plan.path, plan.sparse, entry.note_group)
    argv = [*READING, "-C", plan.path, "read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD"]
    answer = run(argv, env=environment(english=False), on_group=entry.note_group)
    if answer.code:
        raise failure(answer, f"check out {quoted(plan.branch)}")


def _post_checkout(path: str, hooks: str | None, oid: str, entry: journal.Entry) -> str | None:
    """Run the main checkout's post-checkout hook as `git worktree add` does; returns why it failed. One process or
    none. `git hook run` gives it the null commit by which scripts know a new worktree."""
    if hooks is None or not os.access(f"{hooks}/post-checkout", os.X_OK):
        return None
    null = NULL if len(oid) == 40 else "0" * 64
    argv = ["git", "-c", f"core.hooksPath={hooks}", "-C", path, "hook", "run", "post-checkout", "--", null, oid, "1"]
    env = environment(english=False)
    for name in ("GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS"):
        env.pop(name, None)
    answer = run(argv, env=env, on_group=entry.note_group)
    if answer.code == 0:
        return None
    said = shown(os.fsdecode(answer.err).strip().rpartition("\n")[2])
    return f"the post-checkout hook ended with code {answer.code}" + (f": {said}" if said else "")


def _undo_branch(common: str, folder: str, entry: journal.Entry, killed: bool) -> None:
    """Delete the branch that was made, or move back the one that was moved, if it is still where we put it."""
    data = entry.data
    branch, oid = str(data["branch"]), str(data["oid"])
    ref = f"refs/heads/{branch}"
    clear_stale_locks(common, entry, ref, killed=killed)
    if not (data.get("madeBranch") or data.get("reset")) or checked_out(common, branch):
        return
    found = git_refs.find_refs(folder, ref).get(ref)
    if found is None or found.oid != oid:
        return
    if data.get("reset"):
        git_refs.change_ref(folder, ref, str(data["oldOid"]), oid, "git-wt: moved back")
    elif (git_refs.first_reflog_message(folder, ref) or "").startswith("git-wt:"):
        git_refs.delete_ref(folder, ref, oid)
