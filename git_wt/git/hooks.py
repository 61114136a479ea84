"""Where git looks for hooks: `core.hooksPath` as the main checkout and as one worktree have it.

Source: git-config(1), core.hooksPath: a relative folder is taken from where the hook runs, the top of the worktree.
"""

from __future__ import annotations

import os

from git_wt.files import read_text
from git_wt.git.call import environment, require, split_z
from git_wt.git.repository import default_branch_folder
from git_wt.model import Repository
from git_wt.proc.run import run
from git_wt.value import NamedTuple


class HooksPath(NamedTuple):
    """`core.hooksPath` in a folder: what everybody has (`shared`), and what its worktree alone has (`own`).
    `conditional`: it may be another one elsewhere (`includeIf`)."""

    shared: str | None
    own: str | None
    conditional: bool


def hooks_path(folder: str) -> HooksPath:
    """What is configured in `folder`. Raises `git`. One process."""
    answer = run(["git", "-C", folder, "config", "-z", "--show-scope", "--list"], env=environment())
    fields = split_z(require(answer, "read git's configuration"))
    found: dict[bool, str] = {}
    conditional = False
    for scope, item in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = item.partition("\n")
        conditional = conditional or key.startswith("includeif.")
        if key == "core.hookspath":
            found[scope == "worktree"] = value
    return HooksPath(found.get(False), found.get(True), conditional)


def folder_in_force(repository: Repository, configured: str | None) -> str:
    """The hooks folder in force in the main checkout where `core.hooksPath` is `configured`, absolute. A bare
    repository has the worktree of its default branch as main checkout; without one, itself. No process."""
    top = default_branch_folder(repository)
    if repository.bare and top == repository.main_root:
        top = repository.common_dir
    return folder_at(repository.common_dir, top, configured)


def folder_at(common: str, top: str, configured: str | None) -> str:
    """The hooks folder of a worktree at `top`, absolute. No process."""
    if not configured:
        return common + "/hooks"
    return os.path.normpath(os.path.join(top, os.path.expanduser(configured)))


def is_default_branch(repository: Repository, branch: str | None) -> bool:
    """Whether `branch` is what HEAD of a bare repository names: its worktree stands for the main checkout. No
    process."""
    return repository.bare and read_text(repository.common_dir + "/HEAD") == f"ref: refs/heads/{branch}"
