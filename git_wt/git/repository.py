"""Which repository a folder belongs to and which worktrees git has registered: one `git worktree list`.

Reads git's admin folders itself where git cannot (one half-made entry makes every `git worktree` command fail).
Source: gitrepository-layout(5), git-worktree(1).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from git_wt.errors import WtError
from git_wt.files import read_text
from git_wt.git.call import ask, failure, split_z
from git_wt.model import Repository, Worktree
from git_wt.naming import quoted

OLDEST_GIT = (2, 36)
MAIN_ROOT = "/git-wt/main-root"  # below the common dir: where the main checkout is, when nothing of git's says so


def open_repository(cwd: str) -> Repository:
    """The innermost repository around `cwd` with all its worktrees. Raises `not-a-repository`, `git-too-old`, `git`.
    One process (two where git cannot list, or the main checkout is a submodule)."""
    cwd = os.path.realpath(cwd)
    answer = ask(cwd, "worktree", "list", "--porcelain", "-z")
    if answer.code == 0:
        listed = _parse_list(split_z(answer.out))
        common, root, bare = _layout(listed[0], cwd)
    else:
        common = _common_dir(cwd, answer.code)
        listed = []
        answer = ask("/", "config", "--file", common + "/config", "--bool", "--get", "core.bare")
        entry = {"worktree": common.removesuffix("/.git"), **({"bare": ""} if answer.out == b"true\n" else {})}
        common, root, bare = _layout(entry, cwd)
    main = _main_worktree(root, common, bare, listed[0] if listed else None)
    trees = _linked_from_list(listed[1:], common) if listed else linked_from_admin(common)
    worktrees = (main, *trees)
    return Repository(common, root, bare, worktrees, _standing_in(worktrees, cwd), cwd)


def linked_from_admin(common: str) -> list[Worktree]:
    """The linked worktrees as git's admin folders tell them, without git. Half-made entries (no HEAD, no folder
    named) are left out. No process."""
    found = []
    for path, admin in admin_folders(common).items():
        head = read_text(admin + "/HEAD")
        if head is None or not os.path.exists(admin + "/commondir"):
            continue
        branch = head[16:] if head.startswith("ref: refs/heads/") else None
        locked = read_text(admin + "/locked")
        found.append(Worktree(path, admin, None if branch else head, branch, locked))
    return found


def admin_folders(common: str) -> dict[str, str]:
    """Worktree path -> admin folder, for every entry below `<common>/worktrees` that names a path. No process."""
    found: dict[str, str] = {}
    parent = common + "/worktrees"
    try:
        entries = os.listdir(parent)
    except OSError:
        return found
    for entry in entries:
        path = worktree_of(f"{parent}/{entry}")
        if path:
            found[path] = f"{parent}/{entry}"
    return found


def worktree_of(admin: str) -> str | None:
    """The folder of the worktree that an admin folder belongs to, as git's entry names it, or None. No process."""
    link = read_text(admin + "/gitdir")
    if not link:
        return None
    path = link.removesuffix("/.git")
    return path if os.path.isabs(path) else os.path.normpath(os.path.join(admin, path))


def admin_of(path: str) -> str | None:
    """The admin folder that the `.git` file of a worktree's folder names (a real path), or None. No process."""
    pointer = read_text(path + "/.git")
    if not pointer or not pointer.startswith("gitdir: "):
        return None
    return os.path.realpath(os.path.join(path, pointer[8:]))


def why_not_registered(tree: Worktree) -> str | None:
    """Why folder and registration do not name each other, or None when they do. No process."""
    if os.path.islink(tree.path):
        return "its folder is a symbolic link"
    if not os.path.isdir(tree.path):
        return "its folder is missing"
    pointed = admin_of(tree.path)
    if pointed is None:
        return "its folder has no '.git' file of a worktree"
    if pointed != os.path.realpath(tree.admin):
        return f"its folder belongs to {quoted(pointed)}, not to {quoted(tree.admin)}"
    back = read_text(tree.admin + "/gitdir")
    if back is None or os.path.realpath(os.path.join(tree.admin, back)) != os.path.realpath(tree.path) + "/.git":
        return "git's entry names another folder"
    return None


def git_dirs(parent: str, below: str = "") -> Iterator[str]:
    """The git dirs below a folder of submodules' repositories, nested ones too, relative to it. No process."""
    try:
        names = sorted(os.listdir(f"{parent}/{below}"))
    except OSError:
        return
    if "HEAD" in names and "objects" in names:
        yield below
        names = ["modules"] if "modules" in names else []
    for name in names:
        if os.path.isdir(f"{parent}/{below}/{name}"):
            yield from git_dirs(parent, f"{below}/{name}" if below else name)


def is_repository(folder: str) -> bool:
    """Whether a folder is a repository, a worktree or a bare repository by the look of it. No process."""
    return os.path.lexists(folder + "/.git") or all(
        os.path.lexists(f"{folder}/{name}") for name in ("HEAD", "objects", "refs")
    )


def default_branch_folder(repository: Repository) -> str:
    """Where configuration, settings and files to copy come from: the main checkout, in a bare repository the worktree
    of its default branch if there is one. No process."""
    if not repository.bare:
        return repository.main_root
    head = (read_text(repository.common_dir + "/HEAD") or "").removeprefix("ref: refs/heads/")
    for tree in repository.linked:
        if tree.branch == head and os.path.isdir(tree.path):
            return tree.path
    return repository.main_root


def _parse_list(fields: list[str]) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = [{}]
    for field in fields:
        if not field:
            entries.append({})
            continue
        key, _, value = field.partition(" ")
        entries[-1][key] = value
    return [entry for entry in entries if entry]


def _layout(main: dict[str, str], cwd: str) -> tuple[str, str, bool]:
    """Common dir, main root and bareness from git's first entry, which is the common dir with `/.git` cut off."""
    path = os.path.realpath(main["worktree"])
    bare = "bare" in main or _is_bare(path)
    if os.path.isdir(path + "/.git"):
        return path + "/.git", path, bare
    folder = cwd
    while True:  # a `.git` file (submodule, --separate-git-dir, bare repository beside its worktrees) or link
        if admin_of(folder) == path or os.path.realpath(folder + "/.git") == path:
            return path, folder, bare
        if folder == "/":
            break
        folder = os.path.dirname(folder)
    if not bare:
        answer = ask(path, "--git-dir", path, "config", "--get", "core.worktree")
        if answer.code == 0:
            return path, os.path.realpath(os.path.join(path, os.fsdecode(answer.out)[:-1])), False
        noted = read_text(path + MAIN_ROOT)
        if noted is None or admin_of(noted) != path:
            raise WtError(
                "git",
                f"cannot find the main checkout of {quoted(path)}: git does not know it either",
                hint="run git wt there once   (it was made with --separate-git-dir)",
            )
        return path, noted, False
    return path, os.path.dirname(path), bare


def _is_bare(path: str) -> bool:
    """Whether the repository is bare by main's own configuration, which git does not read in a linked worktree (so its
    list calls main a checkout: git 2.39). No process where it does not speak of bareness, else one."""
    common = path + "/.git" if os.path.isdir(path + "/.git") else path
    if "bare" not in (read_text(common + "/config.worktree") or "").lower():
        return False
    return ask(path, "--git-dir", common, "config", "--type=bool", "core.bare").out == b"true\n"


def _main_worktree(root: str, common: str, bare: bool, entry: dict[str, str] | None) -> Worktree:
    if entry is not None and bare:  # what git's list says of it in a linked worktree is no checkout's
        entry = {"worktree": root}
    if entry is None:
        head = read_text(common + "/HEAD") or ""
        return Worktree(root, common, None, head[16:] if head.startswith("ref: refs/heads/") else None, is_main=True)
    return _worktree(entry, common, root)._replace(is_main=True)


def _linked_from_list(entries: list[dict[str, str]], common: str) -> list[Worktree]:
    admins = admin_folders(common)
    found = []
    for entry in entries:
        path = entry["worktree"]
        admin = admins.get(path) or admins.get(os.path.realpath(path))
        if admin:
            found.append(_worktree(entry, admin, path))
    return found


def _worktree(entry: dict[str, str], admin: str, path: str) -> Worktree:
    head = entry.get("HEAD")
    unborn = head is None or not head.strip("0")
    branch = entry.get("branch", "").removeprefix("refs/heads/") or None
    return Worktree(path, admin, None if unborn else head, branch, entry.get("locked"), entry.get("prunable"))


def _standing_in(worktrees: tuple[Worktree, ...], cwd: str) -> Worktree | None:
    inside = [tree for tree in worktrees if cwd == tree.path or cwd.startswith(tree.path.rstrip("/") + "/")]
    return max(inside, key=lambda tree: len(tree.path), default=None)


def _common_dir(cwd: str, list_code: int) -> str:
    answer = ask(cwd, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if answer.code == 0 and list_code != 129:
        return os.path.realpath(os.fsdecode(answer.out)[:-1])
    version = ask("/", "version").out.decode("ascii", "replace").split()
    numbers = tuple(int(part) for part in (version[2] if len(version) > 2 else "0").split(".")[:2] if part.isdigit())
    if numbers < OLDEST_GIT:
        have, need = ".".join(map(str, numbers)), ".".join(map(str, OLDEST_GIT))
        raise WtError("git-too-old", f"cannot work with git {have}: git {need} or newer is needed", hint="upgrade git")
    if _looks_like_a_repository(cwd):
        raise failure(answer, f"read the repository at {quoted(cwd)}")
    raise WtError(
        "not-a-repository",
        f"cannot find a git repository at {quoted(cwd)} or above it",
        hint="cd into a repository, or name one: git -C <folder> wt …",
    )


def _looks_like_a_repository(cwd: str) -> bool:
    folder = cwd
    while True:
        if os.path.lexists(folder + "/.git") or (
            os.path.isdir(folder + "/objects") and os.path.isdir(folder + "/refs")
        ):
            return True
        if folder == "/":
            return False
        folder = os.path.dirname(folder)
