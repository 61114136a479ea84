"""States that a worktree can be in when somebody wants to remove it, made for real, and all of it as values to compare.

Nothing here runs git-wt but `make_world`.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from tests.repos import Entry, commit, git, head, make_repo, snapshot, write
from tests.wt import Ran, Session

FLAG_OF = {
    "uncommitted": "--discard-changes",
    "commits": "--discard-changes",
    "ignored": "--discard-changes",
    "hidden": "--discard-changes",
    "operation": "--discard-changes",
    "unknown": "--discard-changes",
    "locked": "--force-locked",
    "nested": "--force-nested",
    "occupied": "--force-occupied",
}
FLAGS = tuple(dict.fromkeys(FLAG_OF.values()))


class World(NamedTuple):
    """A session in a worktree that git-wt made. `later` undoes what outlives a test (mounts, processes)."""

    session: Session
    root: str
    path: str
    name: str
    later: contextlib.ExitStack

    @property
    def branch(self) -> str:
        """The branch that git-wt made."""
        return f"worktree-{self.name}"

    @property
    def admin(self) -> str:
        """git's admin folder of the worktree, also when its HEAD cannot be read."""
        return os.path.join(self.root, ".git", "worktrees", self.name)

    def remove(self, *flags: str) -> Ran:
        """`git wt remove NAME --json` by somebody who stands in the main checkout."""
        return self.session.wt("remove", self.name, *flags, "--json", cwd=self.root)

    def exit_remove(self, *flags: str) -> Ran:
        """`git wt exit remove --json` by the session."""
        return self.session.wt("exit", "remove", *flags, "--json", cwd=self.root)

    def undo(self, *args: str) -> Ran:
        """`git wt undo --json`."""
        return self.session.wt("undo", *args, "--json", cwd=self.root)


Build = Callable[[World], None]


@contextlib.contextmanager
def make_world(parent: str, *, name: str = "task", remote: bool = False) -> Iterator[World]:
    """A repository below `parent` with the worktree `name`, entered by a session that is back in the main checkout."""
    with contextlib.ExitStack() as later:
        root = make_repo(os.path.join(parent, "repo"), remote=remote)
        session = Session(root)
        path = session.enter(name)
        session.cwd = root
        yield World(session, root, path, name, later)


def blockers_of(ran: Ran) -> dict[str, tuple[int, list[str]]]:
    """What a refusal says stands in the way: code -> count and examples."""
    assert ran.code == 3, ran
    assert ran.error["code"] == "has-changes", ran
    found = {item["code"]: (item["count"], item["examples"]) for item in ran.error["blockers"]}
    assert len(found) == len(ran.error["blockers"]), f"a code comes twice: {ran}"
    return found


def counts_of(ran: Ran) -> dict[str, int]:
    """What a refusal says stands in the way: code -> count."""
    return {code: count for code, (count, _) in blockers_of(ran).items()}


def everything(world: World) -> dict[str, Entry]:
    """The worktree and the common dir with all that git keeps there, times included; objects aside (a look may write
    some that nothing refers to), and git-wt's own lock and journal."""
    found = {f"worktree/{name}": entry for name, entry in snapshot(world.path).items()}
    for name, entry in snapshot(os.path.join(world.root, ".git")).items():
        if name.split(os.sep)[0] not in ("objects", "git-wt"):
            found[f"common/{name}"] = entry
    return found


class Kept(NamedTuple):
    """What a removal and its undo must bring back as it was."""

    files: dict[str, Entry]
    admin: dict[str, Entry]
    refs: list[str]
    config: list[str]


def kept(world: World, path: str | None = None, admin: str | None = None) -> Kept:
    """Worktree and admin folder byte for byte with modes and times, all refs, the configuration. The two files by
    which they name each other and the marker may be written again: their times do not count."""
    refs = git(world.root, "for-each-ref", "--format=%(refname) %(objectname) %(symref) %(upstream)").splitlines()
    config = git(world.root, "config", "--local", "--list").splitlines()
    files, entries = snapshot(path or world.path), snapshot(admin or world.admin)
    for found, name in ((files, ".git"), (entries, "gitdir"), (entries, "git-wt.json"), (entries, ".")):
        if name in found:
            found[name] = found[name]._replace(mtime_ns=0)
    return Kept(files, entries, refs, sorted(config))


def no_trace(world: World) -> None:
    """Assert that worktree, admin entry and the branch that git-wt made are gone."""
    assert not os.path.lexists(world.path)
    assert not os.path.lexists(world.admin)
    assert git(world.root, "for-each-ref", f"refs/heads/{world.branch}") == ""


def trash_refs(root: str) -> list[str]:
    """The names of the refs that hold trash."""
    return git(root, "for-each-ref", "--format=%(refname)", "refs/git-wt/trash").splitlines()


# Files


def staged(world: World) -> None:
    write(world.path, "staged.txt", "only in the index\n")
    git(world.path, "add", "staged.txt")
    os.unlink(os.path.join(world.path, "staged.txt"))


def added(world: World) -> None:
    write(world.path, "added.txt", "added\n")
    git(world.path, "add", "added.txt")


def modified(world: World) -> None:
    write(world.path, "file0.txt", "modified\n")


def deleted(world: World) -> None:
    os.unlink(os.path.join(world.path, "file0.txt"))


def deletion_staged(world: World) -> None:
    git(world.path, "rm", "-q", "file1.txt")


def moved(world: World) -> None:
    git(world.path, "mv", "file1.txt", "renamed.txt")


def conflicted(world: World) -> None:
    """Three stages of one file, without any operation in progress."""
    rows = []
    for stage, text in ((1, "base\n"), (2, "ours\n"), (3, "theirs\n")):
        oid = _blob(world.path, text)
        rows.append(f"100644 {oid} {stage}\tfile0.txt")
    zero = f"0 {'0' * 40}\tfile0.txt"
    _feed(world.path, "\n".join([zero, *rows]) + "\n", "update-index", "--index-info")


def untracked_unshown(world: World) -> None:
    git(world.root, "config", "status.showUntrackedFiles", "no")
    write(world.path, "deep/er/new.txt", "new\n")


def mode_changed(world: World) -> None:
    os.chmod(os.path.join(world.path, "file0.txt"), 0o755)


def odd_names(world: World) -> None:
    for name in ("with space", "new\nline", 'quo"te', os.fsdecode(b"caf\xe9"), "esc\x1b[31m", "été"):
        write(world.path, name, f"in {name!r}\n")


def hidden_edits(world: World) -> None:
    git(world.path, "update-index", "--assume-unchanged", "file0.txt")
    git(world.path, "update-index", "--skip-worktree", "file1.txt")
    write(world.path, "file0.txt", "x\n")
    write(world.path, "file1.txt", "edited\n")


def hidden_symlink(world: World) -> None:
    """A regular file under assume-unchanged that is a symlink now."""
    git(world.path, "update-index", "--assume-unchanged", "file0.txt")
    os.unlink(os.path.join(world.path, "file0.txt"))
    os.symlink("elsewhere", os.path.join(world.path, "file0.txt"))


def ignored_rules(world: World) -> None:
    """Ignore `node_modules`, `*.secret` and `data/` in all worktrees."""
    with open(os.path.join(world.root, ".git", "info", "exclude"), "a", encoding="utf-8") as file:
        file.write("node_modules\n*.secret\ndata/\n")


def precious(world: World) -> None:
    """Three ignored files that no build makes again, and some that one does."""
    ignored_rules(world)
    write(world.path, "key.secret", "key\n")
    write(world.path, "data/a", "a\n")
    write(world.path, "data/deep/b", "b\n")
    write(world.path, "data/__pycache__/c.pyc", "c\n")
    write(world.path, "node_modules/left-pad/index.js", "d\n")


# Submodules


def submodule(world: World) -> None:
    """A clean submodule `sub`, committed and merged into the base."""
    library = make_repo(os.path.join(os.path.dirname(world.root), "library"))
    git(world.path, "submodule", "--quiet", "add", library, "sub")
    git(world.path, "commit", "-q", "-m", "add sub")
    git(world.root, "merge", "-q", "--ff-only", head(world.path))


def submodule_dirt(world: World) -> None:
    submodule(world)
    write(world.path, "sub/file0.txt", "changed in sub\n")


def submodule_untracked_unshown(world: World) -> None:
    submodule(world)
    git(world.root, "config", "submodule.sub.ignore", "all")
    git(world.root, "config", "diff.ignoreSubmodules", "all")
    write(world.path, "sub/new.txt", "new in sub\n")


def submodule_branch(world: World) -> None:
    """A commit on a branch of the submodule that is not checked out."""
    submodule(world)
    sub = os.path.join(world.path, "sub")
    git(sub, "switch", "-q", "-c", "idea")
    commit(sub, "idea.txt", "idea\n")
    git(sub, "switch", "-q", "--detach", "HEAD~")


def submodule_detached(world: World) -> None:
    """A commit on the detached HEAD of the submodule, recorded nowhere."""
    submodule(world)
    commit(os.path.join(world.path, "sub"), "idea.txt", "idea\n")


def submodule_stash(world: World) -> None:
    submodule(world)
    write(world.path, "sub/file0.txt", "stashed in sub\n")
    git(os.path.join(world.path, "sub"), "stash", "-q")


# Commits


def commits(world: World) -> None:
    commit(world.path, "one.txt", "1\n")
    commit(world.path, "two.txt", "2\n")


def detached_commit(world: World) -> None:
    git(world.path, "switch", "-q", "--detach")
    commit(world.path, "detached.txt", "detached\n")


def detached_behind(world: World) -> None:
    """A commit on the branch and another one on a detached HEAD."""
    commit(world.path, "one.txt", "1\n")
    detached_commit(world)


def reflog_only(world: World) -> None:
    commit(world.path, "away.txt", "away\n")
    git(world.path, "reset", "-q", "--hard", "HEAD~")


def reverted(world: World) -> None:
    """A commit and its revert: together they change nothing, but the first one's content is only here."""
    commit(world.path, "one.txt", "1\n")
    git(world.path, "revert", "--no-edit", "HEAD")


def switched(world: World) -> None:
    """A commit on another branch that was made inside, and that is checked out now."""
    git(world.path, "switch", "-q", "-c", "other")
    commit(world.path, "other.txt", "other\n")


def switched_and_back(world: World) -> None:
    switched(world)
    git(world.path, "switch", "-q", world.branch)


def renamed(world: World) -> None:
    git(world.path, "branch", "-m", "better-name")
    commit(world.path, "one.txt", "1\n")


# Operations


def _diverge(world: World) -> None:
    """A commit here and one in the main checkout that change the same file."""
    commit(world.root, "file0.txt", "main\n")
    commit(world.path, "file0.txt", "task\n")


def rebasing(world: World) -> None:
    commit(world.root, "main.txt", "main\n")
    commit(world.path, "one.txt", "1\n")
    git(world.path, "rebase", "-q", "-x", "false", "main", check=False)


def merging(world: World) -> None:
    commit(world.root, "main.txt", "main\n")
    git(world.path, "merge", "-q", "--no-ff", "--no-commit", "main")


def cherry_picking(world: World) -> None:
    _diverge(world)
    git(world.path, "cherry-pick", "main", check=False)


def reverting(world: World) -> None:
    git(world.path, "revert", "--no-commit", "HEAD")


def bisecting(world: World) -> None:
    git(world.path, "bisect", "start", "HEAD", "HEAD~")


def applying(world: World) -> None:
    _diverge(world)
    patch = git(world.root, "format-patch", "-1", "--stdout", "main") + "\n"
    _feed(world.path, patch, "am", "-q", check=False)


def index_locked(world: World) -> None:
    write(world.admin, "index.lock", "")


# Below it


def nested_worktree(world: World) -> None:
    git(world.path, "worktree", "add", "-q", "--detach", os.path.join(world.path, "nest"))


def nested_worktree_ignored(world: World) -> None:
    ignored_rules(world)
    git(world.path, "worktree", "add", "-q", "--detach", os.path.join(world.path, "data", "nest"))


def nested_worktree_locked(world: World) -> None:
    nested_worktree_ignored(world)
    git(world.path, "worktree", "lock", "--reason", "mine", os.path.join(world.path, "data", "nest"))


def nested_repository(world: World) -> None:
    make_repo(os.path.join(world.path, "inner"))


def nested_repository_ignored(world: World) -> None:
    ignored_rules(world)
    make_repo(os.path.join(world.path, "node_modules", "package"))


def nested_bare(world: World) -> None:
    ignored_rules(world)
    git(world.path, "init", "-q", "--bare", "node_modules/cache.git")


# Others


def locked(world: World) -> None:
    git(world.root, "worktree", "lock", "--reason", "agent 42", world.path)


def occupied(world: World) -> None:
    """A process of its own group stands in a folder below."""
    os.mkdir(os.path.join(world.path, "empty"))
    world.later.enter_context(stands_in(os.path.join(world.path, "empty")))


def second_session(world: World) -> None:
    Session(world.root).enter(world.name)


def combined(world: World) -> None:
    """One of nearly everything."""
    commit(world.path, "one.txt", "1\n")
    modified(world)
    added(world)
    git(world.path, "update-index", "--assume-unchanged", "file1.txt")
    write(world.path, "file1.txt", "hidden\n")
    nested_repository_ignored(world)
    index_locked(world)
    occupied(world)
    locked(world)


# What cannot be read


def index_broken(world: World) -> None:
    write(world.admin, "index", "this is no index\n")


def head_broken(world: World) -> None:
    write(world.admin, "HEAD", "garbage\n")


@contextlib.contextmanager
def stands_in(folder: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that has its working folder at `folder`, and nothing to do with us."""
    process = subprocess.Popen(["sleep", "300"], cwd=folder, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def mounted(target: str, *argv: str) -> Iterator[None]:
    """`mount ARGV… target` for as long as needed; skips the test where that is not permitted. Taken away wherever it
    has been moved to meanwhile."""
    made = subprocess.run(["mount", *argv, target], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"cannot mount here: {os.fsdecode(made.stderr).strip()}")
    number = next(number for number, place in reversed(_mounts()) if place == target)
    try:
        yield
    finally:
        place = dict(_mounts())[number]
        subprocess.run(["umount", "--lazy", place], capture_output=True, check=True)


def _mounts() -> list[tuple[str, str]]:
    """Every mount in the order in which they were made: its number and its folder."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        rows = [line.split(" ") for line in file]
    return [(row[0], row[4].encode().decode("unicode_escape")) for row in rows]


def _blob(cwd: str, text: str) -> str:
    return _feed(cwd, text, "hash-object", "-w", "--stdin")


def _feed(cwd: str, text: str, *args: str, check: bool = True) -> str:
    ran = subprocess.run(["git", *args], cwd=cwd, input=os.fsencode(text), capture_output=True, check=False)
    assert not check or ran.returncode == 0, os.fsdecode(ran.stderr)
    return os.fsdecode(ran.stdout).strip()
