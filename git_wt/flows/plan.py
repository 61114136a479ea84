"""What a new worktree will be: its base, its branch, its folder, all checked before anything is touched."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from git_wt import journal
from git_wt.errors import WtError
from git_wt.files import write_whole
from git_wt.flows.context import Context
from git_wt.git import network, sparse
from git_wt.git import refs as git_refs
from git_wt.git.hooks import folder_in_force
from git_wt.git.refs import Ref
from git_wt.model import Repository
from git_wt.naming import fill, pasteable, plural, quoted, short_ref, slug
from git_wt.value import NamedTuple
from git_wt.worktrees.commits import ORIGIN_HEAD
from git_wt.worktrees.create import Plan
from git_wt.worktrees.registry import checked_out

FETCH_SECONDS = 5.0
PULL_SECONDS = 30.0
_FETCH_EVERY = 86400.0
_RETRY_AFTER = 600.0


class Wish(NamedTuple):
    """What the caller asked for."""

    name: str
    base: str | None = None
    branch: str | None = None
    pull_request: int | None = None
    reuse_branch: bool = False
    reset_branch: bool = False
    kind: str = "session"


class Base(NamedTuple):
    """Where a new branch starts. `ref` is a full ref name where there is one, else what was typed."""

    ref: str
    commit: str
    notes: tuple[str, ...] = ()


class Made(NamedTuple):
    """A plan, the hooks folder of the main checkout, and sentences to say."""

    plan: Plan
    hooks: str | None
    notes: tuple[str, ...]


def folder_for(repository: Repository, template: str, name: str, branch: str) -> str:
    """The folder of a worktree by the `directory` template, absolute and real. Raises `exists` when a folder on the
    way below the main root is a symlink. No process."""
    filled = fill(
        template, key="directory", repo=repository.name, slug=slug(name), branch=slug(branch), main=repository.main_root
    )
    path = os.path.normpath(os.path.join(repository.main_root, os.path.expanduser(filled)))
    if path.startswith(repository.main_root + "/"):
        step = repository.main_root
        for part in path[len(step) + 1 :].split("/"):
            step += "/" + part
            if os.path.islink(step):
                raise WtError(
                    "exists",
                    f"cannot make {quoted(name)}: {quoted(step)} is a symbolic link",
                    hint="set another 'directory' in .git-wt.toml",
                )
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def make_plan(context: Context, wish: Wish, cwd: str) -> Made:
    """Decide everything about a new worktree. Raises `no-commits`, `not-found`, `invalid-name`, `exists`,
    `branch-in-use`, `branch-has-commits`, `git`. Three to five git processes, a fetch aside."""
    repository, settings = context.repository, context.config
    git_settings = git_refs.configuration(repository.git_folder)
    named = {"name": wish.name, "slug": slug(wish.name), "repo": repository.name}
    branch = fill(settings.text("branch"), key="branch", **named) if wish.branch is None else wish.branch
    if (wish.branch is not None or settings.origins["branch"] != "default") and git_refs.is_bad_branch(branch):
        raise WtError(
            "invalid-name", f"cannot use {quoted(branch)} as a branch: git refuses it", hint="man git-check-ref-format"
        )
    path = folder_for(repository, settings.text("directory"), wish.name, branch)
    refs = git_refs.find_refs(repository.git_folder, f"refs/heads/{branch}", ORIGIN_HEAD, *_GUESSES)
    if git_settings.get("core.ignorecase") == "true":
        _refuse_other_case(repository, branch, path)
    base = _base(context, wish, cwd, refs, git_settings)
    have = refs.get(f"refs/heads/{branch}")
    plan = Plan(
        path=path,
        name=wish.name,
        kind=wish.kind,
        branch=branch,
        branch_oid=have.oid if have else None,
        ours=True,
        reset=False,
        base=base.ref,
        base_commit=base.commit,
        sparse=sparse.sort_out(settings.words("sparsePaths"))[0],
    )
    notes = base.notes
    if have:
        plan, more = _on_existing_branch(context, wish, plan, have)
        notes += more
    hooks = None
    if settings.text("gitHooks") != "off":
        hooks = folder_in_force(repository, git_settings.get("core.hookspath"))
    return Made(plan, hooks, notes)


def _on_existing_branch(context: Context, wish: Wish, plan: Plan, have: Ref) -> tuple[Plan, tuple[str, ...]]:
    """The branch is there without a worktree: it is used, moved or refused; no commit is ever lost."""
    repository, branch = context.repository, plan.branch
    in_use = checked_out(repository.common_dir, branch)
    if in_use:
        raise WtError(
            "branch-in-use",
            f"cannot make {quoted(wish.name)}: branch {quoted(branch)} is checked out at {quoted(in_use)}",
            hint="use another name, or another --branch",
        )
    folder = repository.git_folder
    ours = (git_refs.first_reflog_message(folder, f"refs/heads/{branch}") or "").startswith("git-wt:")
    if wish.reset_branch:
        rescue = f"refs/git-wt/rescue/{branch}/{time.time_ns()}"
        git_refs.change_ref(folder, rescue, have.oid, "", "git-wt: before --reset-branch")
        return plan._replace(reset=True, ours=ours), (f"the old {quoted(branch)} is kept as {quoted(rescue)}",)
    if wish.base and (wish.branch or wish.reuse_branch):
        what = f"cannot start {quoted(branch)} from {quoted(wish.base)}: the branch exists"
        raise WtError("usage", what, hint="leave --base out, or add --reset-branch")
    if wish.branch or wish.reuse_branch:
        return plan._replace(ours=ours and not wish.branch), (f"using branch {quoted(branch)} as it is",)
    only_here = git_refs.count_only_here(folder, have.oid, branch)
    if ours and not only_here:
        return plan._replace(reset=True), ()
    why = f"it holds {plural(only_here, 'commit')} that nothing else has" if only_here else "git-wt did not make it"
    again = f"git wt enter {pasteable(wish.name)}"
    raise WtError(
        "branch-has-commits",
        f"cannot make {quoted(wish.name)}: branch {quoted(branch)} exists and {why}",
        hint=f"{again} --reuse-branch   (or --reset-branch, which keeps the old commits under refs/git-wt/rescue)",
    )


_GUESSES = ("refs/remotes/origin/main", "refs/remotes/origin/master")


def _base(context: Context, wish: Wish, cwd: str, refs: Mapping[str, Ref], git_settings: Mapping[str, str]) -> Base:
    repository = context.repository
    if wish.pull_request is not None:
        return _pull_request_base(repository, wish.pull_request, git_settings)
    if wish.base is not None:
        commit = git_refs.resolve(cwd, wish.base)
        if commit is None:
            raise WtError(
                "not-found",
                f"cannot start from {quoted(wish.base)}: there is no such commit here",
                hint="git branch --all   (lists what there is)",
            )
        return Base(git_refs.full_name(cwd, wish.base) or commit, commit)
    fresh = context.config.text("baseRef") == "fresh"
    here = repository.worktrees[0] if fresh or repository.here is None else repository.here
    head = here.head or git_refs.resolve(repository.git_folder, "HEAD")
    default = _default_branch(refs) if fresh else None
    if default is None:
        if head is None:
            raise WtError(
                "no-commits",
                f"cannot make {quoted(wish.name)}: the repository {quoted(repository.name)} has no commits",
                hint="git commit --allow-empty -m start",
            )
        ref = f"refs/heads/{here.branch}" if here.branch else None
        if repository.bare and here.is_main:
            ref = git_refs.full_name(repository.git_folder, "HEAD")
        return Base(ref or head, head)
    ref, commit = default
    fetched = refresh(repository, ref, context.opened_at)
    if fetched is not None:
        commit = git_refs.find_refs(repository.git_folder, ref)[ref].oid
    notes = fetched or ()
    left_out = git_refs.count_between(repository.git_folder, commit, head) if head and head != commit else 0
    if left_out:
        who = quoted(here.branch or "HEAD")
        missing = f"{plural(left_out, 'commit')} of {who} that {quoted(short_ref(ref))} lacks"
        notes += (f"left out: {missing} (--base HEAD takes them)",)
    return Base(ref, commit, notes)


def _default_branch(refs: Mapping[str, Ref]) -> tuple[str, str] | None:
    """origin's default branch as a full ref name, and its commit as it was fetched last."""
    head = refs.get(ORIGIN_HEAD)
    if head and head.symref:
        return head.symref, head.oid
    return next(((name, refs[name].oid) for name in _GUESSES if name in refs), None)


def refresh(repository: Repository, ref: str, known: float) -> tuple[str, ...] | None:
    """Fetch origin's default branch if that was not done within a day; callers side by side wait for one fetch.
    Returns None when nothing was fetched since `known` (seconds since the epoch), else sentences (why it failed). One
    process group of 5 s at the most."""
    stamp = repository.state_dir + "/fetched"
    if not _is_old(stamp):
        return None if os.stat(stamp).st_mtime < known else ()
    until = time.monotonic() + FETCH_SECONDS
    while time.monotonic() < until:
        with journal.lock_or_none(stamp + "-lock") as mine:
            if mine and not _is_old(stamp):
                return ()
            if mine:
                branch = ref.removeprefix("refs/remotes/origin/")
                failed = network.fetch(repository.git_folder, branch, seconds=until - time.monotonic())
                write_whole(stamp, b"")
                if failed:
                    past = time.time() - _FETCH_EVERY + _RETRY_AFTER
                    os.utime(stamp, (past, past))
                    return (f"could not fetch from 'origin' ({failed}); starting from what was fetched last",)
                return ()
        time.sleep(0.05)
    return ()


def _is_old(stamp: str) -> bool:
    try:
        return time.time() - os.stat(stamp).st_mtime > _FETCH_EVERY
    except OSError:
        return True


def _pull_request_base(repository: Repository, number: int, git_settings: Mapping[str, str]) -> Base:
    url = git_settings.get("remote.origin.url")
    if url is None:
        raise WtError(
            "not-found",
            f"cannot fetch pull request {number}: there is no remote 'origin'",
            hint="git remote add origin …",
        )
    target, failed, until = f"refs/git-wt/pr/{number}", "", time.monotonic() + PULL_SECONDS
    for ref in network.pull_request_refs(url, number):
        why = network.fetch(repository.git_folder, f"+{ref}:{target}", seconds=max(0.1, until - time.monotonic()))
        if why is None:
            return Base(target, git_refs.find_refs(repository.git_folder, target)[target].oid)
        failed = failed or why
    raise WtError("git", f"cannot fetch pull request {number} from 'origin': {failed}", hint="git ls-remote origin")


def pull_request_moved(repository: Repository, number: int, known: str) -> str | None:
    """A sentence when the pull request's head is another commit than `known`. Two processes, 5 s at the most."""
    url = git_refs.configuration(repository.git_folder).get("remote.origin.url", "")
    for ref in network.pull_request_refs(url, number):
        now = network.remote_oid(repository.git_folder, ref, seconds=FETCH_SECONDS)
        if now:
            moved = f"pull request {number} has moved to {now[:12]} meanwhile; this worktree started from {known[:12]}"
            return None if now == known else moved
    return None


def _refuse_other_case(repository: Repository, branch: str, path: str) -> None:
    ref = f"refs/heads/{branch}"
    for name in git_refs.find_refs(repository.git_folder, "refs/heads"):
        if name != ref and name.casefold() == ref.casefold():
            raise WtError(
                "exists",
                f"cannot make branch {quoted(branch)}: {quoted(short_ref(name))} differs only in case",
                hint="use another name",
            )
    folder, name = os.path.split(path)
    other = [
        entry for entry in (os.listdir(folder) if os.path.isdir(folder) else []) if entry.casefold() == name.casefold()
    ]
    if other and name not in other:
        raise WtError(
            "exists", f"cannot make {quoted(path)}: {quoted(other[0])} differs only in case", hint="use another name"
        )
