"""Step 4, symlinkDirectories: a relative link to the main checkout's folder for each entry (`node_modules`, …).

`/<entry>` goes into `info/exclude`, since git does not match a link with a pattern like `node_modules/`.
"""

from __future__ import annotations

import os

from git_wt.errors import WtError
from git_wt.git.ignored import tracked_of
from git_wt.setup.entries import exclude, link_on_the_way, plain, why_unfit
from git_wt.setup.step import DONE, FAILED, SKIPPED, WARNING, Report, Site

STEP = "symlinkDirectories"


def run(site: Site) -> Report:
    """Make the links. Refused, and said, per entry: absolute, `..`, leaving the repository through a link, tracked by
    the branch, missing in the main checkout, something there already. One git process, none without entries."""
    entries = site.config.words("symlinkDirectories")
    if not entries or site.source == site.path:
        return Report(STEP, SKIPPED, detail="nothing configured")
    refused = {entry: why for entry in entries if (why := why_unfit(entry))}
    wanted = list(dict.fromkeys(plain(entry) for entry in entries if entry not in refused))
    made, links, broken = 0, list[str](), list[str]()
    try:
        tracked = tracked_of(site.path, wanted) if wanted else set()
        for entry in wanted:
            why = "the branch tracks it" if entry in tracked else _why_no_source(site, entry)
            try:
                why, new = (why, False) if why else _link(site, entry)
            except OSError as error:
                broken.append(f"cannot link {entry}: {error.strerror}")
                continue
            made += new
            if why:
                refused[entry] = why
            else:
                links.append(entry)
    except WtError as error:
        return Report(STEP, FAILED, made, error.message, links=tuple(links))
    parts = [*broken, *([f"{made} linked"] if made else [])]
    if refused:
        parts.append("not linked: " + ", ".join(f"{entry} ({why})" for entry, why in refused.items()))
    status = FAILED if broken else WARNING if refused else DONE if made else SKIPPED
    return Report(STEP, status, made, "; ".join(parts) or "there already", links=tuple(links))


def _why_no_source(site: Site, entry: str) -> str | None:
    """Why the main checkout's folder cannot be linked to, or None."""
    source = f"{site.source}/{entry}"
    root, real = os.path.realpath(site.source), os.path.realpath(source)
    if not os.path.lexists(source):
        return "the main checkout does not have it"
    if not real.startswith(root + "/"):
        return "it leaves the repository through a link"
    if (real + "/").startswith(os.path.realpath(site.repository.common_dir) + "/"):
        return "it is git's own"
    if not os.path.isdir(real):
        return "it is no folder"
    if (os.path.realpath(site.path) + "/").startswith(real + "/"):
        return "the worktree lies in it"
    return None


def _link(site: Site, entry: str) -> tuple[str | None, bool]:
    """Make one link, or find it there; why not, and whether it is new."""
    place = f"{site.path}/{entry}"
    link = link_on_the_way(site.path, entry)
    if link:
        return f"'{link}' is a link in the worktree", False
    parent = os.path.dirname(place)
    if os.path.lexists(parent) and not os.path.isdir(parent):
        return "something else is at its place", False
    text = os.path.relpath(os.path.realpath(site.source) + "/" + entry, os.path.realpath(parent))
    if os.path.islink(place):
        ours = site.marker is not None and entry in site.marker.links
        if os.readlink(place) != text and not ours:
            return "a link is there already", False
        if os.readlink(place) == text:
            exclude(site.repository, entry)
            return None, False
        os.unlink(place)  # ours, but the worktree was moved
    elif os.path.lexists(place):
        return "it is there already", False
    exclude(site.repository, entry)
    os.makedirs(parent, exist_ok=True)
    os.symlink(text, place)
    return None, True
