"""hooksPath: git hooks run in the worktree as they do in the main checkout.

A relative `core.hooksPath` (husky: `.husky`, `.husky/_`) is taken from the top of each worktree: there the folder is
missing, or the branch's own, which nobody has looked at. Then the main checkout's is set, for this worktree only.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from git_wt import journal
from git_wt.files import read_text, write_whole
from git_wt.git import hooks
from git_wt.git.worktree_config import has_settings, set_for_worktree, unset_for_worktree
from git_wt.model import Repository
from git_wt.naming import quoted
from git_wt.setup.step import DONE, SKIPPED, WARNING, Report, Site

STEP = "hooksPath"
NOTE = "/git-wt-hooks"  # below the admin folder: what git-wt set, so that another value is known to be the user's
_KEY = "core.hooksPath"
_OFF = "/dev/null"


def run(site: Site) -> Report:
    """Let the main checkout's hooks run, or none (`gitHooks = "off"`). One git process where nothing is to be done;
    else up to nine. The shared configuration is only given the extension that settings of one worktree need. Raises
    `git`, `busy`."""
    repository, common = site.repository, site.repository.common_dir
    ours = read_text(site.admin + NOTE)
    here = hooks.hooks_path(site.path)
    main = _of_main(repository, here)
    if here.own not in (None, ours, main.own):
        return Report(STEP, SKIPPED, detail=f"{_KEY} is {quoted(str(here.own))} for this worktree already")
    main_value = main.shared if main.own is None else main.own
    left_alone = here.shared if here.own is None or here.own == ours else here.own
    there = hooks.folder_at(common, site.path, left_alone)
    stands_for_main = hooks.is_default_branch(repository, site.branch)
    wanted = there if stands_for_main else hooks.folder_in_force(repository, main_value)
    if site.config.text("gitHooks") == "off":
        wanted = _OFF
    if wanted == there:
        return _leave_alone(site, ours is not None and here.own == ours)
    if here.own != wanted:
        write_whole(site.admin + NOTE, os.fsencode(wanted))
        with _journaled(site):
            set_for_worktree(common, site.admin, _KEY, wanted)
    return _report(repository, wanted)


def _of_main(repository: Repository, here: hooks.HooksPath) -> hooks.HooksPath:
    """What the main checkout has. No process where it cannot be another than the worktree has; else one."""
    if here.conditional or has_settings(repository.common_dir):
        return hooks.hooks_path(repository.git_folder)
    return here._replace(own=None)


def _leave_alone(site: Site, was_set: bool) -> Report:
    """The worktree finds the right folder by itself: what git-wt set before goes."""
    if not was_set:
        return Report(STEP, SKIPPED, detail="the main checkout's hooks run here as it is")
    with _journaled(site):
        unset_for_worktree(site.repository.common_dir, site.admin, _KEY)
    os.unlink(site.admin + NOTE)
    return Report(STEP, DONE, detail="the main checkout's hooks run here again")


@contextmanager
def _journaled(site: Site) -> Iterator[None]:
    """The repository's lock, and an entry by which a later command clears what a crash leaves (`recover`)."""
    state = site.repository.state_dir
    with journal.lock(state):
        entry = journal.begin(state, "set-up", path=site.path, admin=site.admin)
        try:
            yield
        finally:
            entry.done()


def _report(repository: Repository, wanted: str) -> Report:
    if wanted == _OFF:
        return Report(STEP, DONE, 1, "git hooks are off here")
    if not os.path.isdir(wanted):
        as_in_main = "" if repository.bare else ", nor in the main checkout"
        why = f"no hooks run here{as_in_main}: {quoted(wanted)} is not there"
        return Report(STEP, WARNING if repository.bare else DONE, 1, why)
    return Report(STEP, DONE, 1, f"hooks run from {quoted(wanted)}")
