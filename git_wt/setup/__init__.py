"""Set-up after creation: what makes a worktree ready to work in. One module a step; `STEPS` is their order.

Each step has `run(site) -> Report`, can run again without harm, and never raises for what it can tell: a rule that
skips or refuses one entry is a warning, what could not be done is `failed`.
"""

from __future__ import annotations

from collections.abc import Callable

from git_wt.setup.step import Report, Site

# The sparse checkout comes before the files are written (`create`); it is in this list only to run again.
NAMES = ("sparsePaths", "settings.local.json", "hooksPath", "symlinkDirectories", "worktreeinclude", "setup")
_MODULES = {
    "sparsePaths": "sparse",
    "settings.local.json": "settings_local",
    "hooksPath": "hooks_path",
    "symlinkDirectories": "symlinks",
    "worktreeinclude": "include",
    "setup": "commands",
}


def find_step(name: str) -> Callable[[Site], Report]:
    """The function of one step; its module is imported only now. No process."""
    import importlib

    run: Callable[[Site], Report] = importlib.import_module(f"git_wt.setup.{_MODULES[name]}").run
    return run
