"""Real repositories to test on, and questions about them; nothing here knows git-wt."""

import hashlib
import os
import shutil
import stat
import subprocess
from typing import NamedTuple


def git(cwd: str, *args: str, check: bool = True) -> str:
    """Run git in `cwd`; returns its standard output, stripped. AssertionError with its stderr if it fails."""
    ran = subprocess.run(["git", *args], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if check and ran.returncode:
        raise AssertionError(f"git {' '.join(args)} in {cwd}: exit code {ran.returncode}\n{os.fsdecode(ran.stderr)}")
    return os.fsdecode(ran.stdout).strip()


def make_repo(path: str, *, files: int = 3, remote: bool = False) -> str:
    """Make a repository with two commits and `files` files; returns its real path.

    With `remote` it is a clone of a bare repository beside it (`origin_of`), `origin/HEAD` set.
    """
    first = f"{path}.seed" if remote else path
    os.makedirs(first)
    git(first, "init", "-q")
    commit(first, "README", "first\n")
    for number in range(files):
        write(first, f"file{number}.txt", f"{number}\n")
    git(first, "add", "-A")
    git(first, "commit", "-q", "--allow-empty", "-m", "files")
    if remote:
        git(first, "clone", "-q", "--bare", first, origin_of(path))
        git(first, "clone", "-q", origin_of(path), path)
        shutil.rmtree(first)
    return os.path.realpath(path)


def origin_of(path: str) -> str:
    """The bare repository beside a repository that was made with `remote=True`."""
    return f"{path}.origin.git"


def commit_to_origin(path: str, name: str, content: str) -> str:
    """Let somebody else push a commit to `main` of the origin of `path`; returns its id."""
    other = f"{path}.other"
    if not os.path.isdir(other):
        git(os.path.dirname(path), "clone", "-q", origin_of(path), other)
    git(other, "pull", "-q", "--ff-only")
    oid = commit(other, name, content)
    git(other, "push", "-q", "origin", "HEAD:main")
    return oid


def write(cwd: str, name: str, content: str) -> str:
    """Write a file below `cwd`, folders included; returns its path."""
    path = os.path.join(cwd, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(content)
    return path


def read(cwd: str, name: str) -> str:
    """The content of a file below `cwd`."""
    with open(os.path.join(cwd, name), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def commit(cwd: str, name: str, content: str) -> str:
    """Write one file below `cwd` and commit it alone; returns the commit's id."""
    write(cwd, name, content)
    git(cwd, "add", "-f", "--", name)
    git(cwd, "commit", "-q", "-m", f"write {name}", "--", name)
    return head(cwd)


def head(cwd: str, ref: str = "HEAD") -> str:
    """The id of the commit that `ref` names in `cwd`."""
    return git(cwd, "rev-parse", "--verify", f"{ref}^{{commit}}")


def branches(cwd: str) -> list[str]:
    """All local branches, sorted."""
    return git(cwd, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def worktrees(cwd: str) -> list[str]:
    """The paths of all worktrees that git knows, the main one first."""
    fields = git(cwd, "worktree", "list", "--porcelain", "-z").split("\0")
    return [field[len("worktree ") :] for field in fields if field.startswith("worktree ")]


def status(cwd: str) -> list[str]:
    """The lines of `git status --porcelain`, untracked files one by one, submodules included."""
    args = ("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none")
    ran = subprocess.run(["git", "--no-optional-locks", *args], cwd=cwd, capture_output=True, check=True)
    return os.fsdecode(ran.stdout).splitlines()


def common_dir(cwd: str) -> str:
    """The real path of the folder that all worktrees share (`.git` of the main checkout)."""
    return os.path.realpath(git(cwd, "rev-parse", "--path-format=absolute", "--git-common-dir"))


def admin_dir(cwd: str) -> str:
    """The real path of git's own folder of the worktree `cwd`."""
    return os.path.realpath(git(cwd, "rev-parse", "--absolute-git-dir"))


def leftovers(cwd: str) -> list[str]:
    """What nobody may leave behind: git's lock files and journal entries, as paths below the common dir."""
    common = common_dir(cwd)
    found = []
    for folder, _, names in os.walk(common):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), common)
            if name.endswith(".lock") or path.startswith(os.path.join("git-wt", "journal") + os.sep):
                found.append(path)
    return sorted(found)


def require_sound(cwd: str) -> None:
    """Raise AssertionError unless git can check, list and walk everything in the repository of `cwd`."""
    git(cwd, "fsck", "--full", "--strict", "--no-dangling")
    git(cwd, "worktree", "list")
    git(cwd, "rev-list", "--all", "--count")
    git(cwd, "branch", "-vv")


class Entry(NamedTuple):
    """One file or folder of a snapshot."""

    mode: int
    size: int
    mtime_ns: int
    content: str  # sha256 of a file, target of a symlink, nothing for the rest


def snapshot(path: str, *, times: bool = True) -> dict[str, Entry]:
    """Everything below a folder by relative path, the folder itself as `.`, to compare before with after.

    Folders have mode and time only; without `times` the times of all are 0. Symlinks are never followed.
    """
    entries = {".": _entry(path, times)}
    for folder, subfolders, files in os.walk(path):
        for name in [*subfolders, *files]:
            full = os.path.join(folder, name)
            entries[os.path.relpath(full, path)] = _entry(full, times)
    return entries


def differences(before: dict[str, Entry], after: dict[str, Entry]) -> list[str]:
    """What changed between two snapshots, a line each: `+ new`, `- gone`, `~ changed`."""
    return sorted(
        f"{'-' if name not in after else '+' if name not in before else '~'} {name}"
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    )


def _entry(path: str, times: bool) -> Entry:
    found = os.lstat(path)
    content = ""
    if stat.S_ISLNK(found.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(found.st_mode):
        with open(path, "rb") as file:
            content = hashlib.sha256(file.read()).hexdigest()
    size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
    return Entry(found.st_mode, size, found.st_mtime_ns if times else 0, content)
