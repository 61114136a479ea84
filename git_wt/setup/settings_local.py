"""Step 2: copy personal settings (`copySettings`, by default `.claude/settings.local.json`) from the main checkout."""

from __future__ import annotations

import os
import re

from git_wt.errors import WtError
from git_wt.git.ignored import ignored_of, tracked_of
from git_wt.setup.copying import Copier
from git_wt.setup.entries import exclude, link_on_the_way, plain, why_unfit
from git_wt.setup.progress import Progress
from git_wt.setup.staging import staging
from git_wt.setup.step import DONE, FAILED, SKIPPED, WARNING, Report, Site

STEP = "settings.local.json"
_NEVER = re.compile(r"\Z.")


def run(site: Site) -> Report:
    """Copy each entry that is a file in the main checkout, unless the worktree tracks or has it; git is made to ignore
    it where it does not. Two git processes, none where there is nothing to copy."""
    refused: list[str] = []
    checked = [_checked(site, entry, refused) for entry in site.config.words("copySettings")]
    wanted = [entry for entry in checked if entry]
    if not wanted or site.source == site.path:
        return (
            Report(STEP, WARNING, 0, _said(0, refused)) if refused else Report(STEP, SKIPPED, detail="nothing to copy")
        )
    try:
        tracked = tracked_of(site.path, wanted)
        with staging(site.admin, site.path) as stage, Progress(quiet=True) as progress:
            copier = Copier(site.source, site.path, stage, _NEVER, progress, frozenset())
            try:
                for entry in wanted:
                    if entry not in tracked:
                        copier.add(entry, entry)
            finally:
                copier.close()
        ours = [path for path in copier.files if path not in tracked]
        for path in set(ours) - ignored_of(site.path, ours):
            exclude(site.repository, path)
    except WtError as error:
        return Report(STEP, FAILED, 0, error.message)
    except OSError as error:
        return Report(STEP, FAILED, 0, f"cannot copy: {error.strerror}")
    refused += copier.skipped
    status = WARNING if refused else DONE if copier.made else SKIPPED
    return Report(STEP, status, copier.made, _said(copier.made, refused), copier.files)


def _said(made: int, refused: list[str]) -> str:
    parts = [f"{made} copied"] if made else []
    return "; ".join(parts + ([f"not copied: {', '.join(refused)}"] if refused else [])) or "there already"


def _checked(site: Site, entry: str, refused: list[str]) -> str | None:
    """The plain form of an entry that may be copied, else None; `refused` says why unless it just is not there."""
    why, path = why_unfit(entry), plain(entry)
    full = f"{site.source}/{path}"
    if why is None and not os.path.lexists(full):
        return None
    if why is None:
        link = path if os.path.islink(full) else link_on_the_way(site.source, path)
        why = f"'{link}' is a link" if link else None if os.path.isfile(full) else "it is no file"
    if why:
        refused.append(f"{entry} ({why})")
    return None if why else path
