"""sparsePaths: the cone is set before the files are written (`worktrees.create`); this says so, and widens it when the
setting has grown. It never narrows a worktree: git would delete ignored files in what falls out of the cone."""

from __future__ import annotations

from git_wt.git import sparse
from git_wt.naming import plural, quoted
from git_wt.setup.step import DONE, SKIPPED, WARNING, Report, Site

STEP = "sparsePaths"


def run(site: Site) -> Report:
    """Report the cone of the worktree, widened to what is configured. No process where nothing is configured, else two
    or three. Raises `git`."""
    asked = site.config.words("sparsePaths")
    if not asked:
        return Report(STEP, SKIPPED, detail="nothing configured")
    folders, refused = sparse.sort_out(asked)
    warnings = [f"refused {quoted(path)}: {why}" for path, why in refused.items()]
    if folders:
        return _in_cone(site, folders, warnings)
    return Report(STEP, WARNING, detail="; ".join(warnings))


def _in_cone(site: Site, folders: tuple[str, ...], warnings: list[str]) -> Report:
    cone = sparse.find_cone(site.path)
    if cone is None:
        why = "this worktree has every file; only a new one is made sparse"
        return Report(STEP, WARNING if warnings else SKIPPED, detail="; ".join([*warnings, why]))
    more = [folder for folder in folders if not any(f"{folder}/".startswith(f"{have}/") for have in cone)]
    if more:
        sparse.widen_cone(site.path, more)
    missing = sparse.not_folders(site.path, folders)
    warnings += [f"{quoted(folder)} is no folder of this branch" for folder in missing]
    there = [folder for folder in folders if folder not in missing]
    detail = f"{plural(len(there), 'folder')} checked out" + (f", {len(more)} of them new" if more else "")
    return Report(STEP, WARNING if warnings else DONE, len(there), "; ".join([detail, *warnings]))
