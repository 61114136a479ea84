"""Set-up of a worktree: the steps in their order, right after creation or again on one that is there."""

from __future__ import annotations

import os
from collections.abc import Sequence

from git_wt import errors, journal
from git_wt.errors import Interrupted, WtError
from git_wt.files import read_text
from git_wt.flows.context import Context, active_session, all_workspaces, open_here
from git_wt.git.repository import default_branch_folder, why_not_registered
from git_wt.marker import save_marker
from git_wt.model import Caller, Marker, Result, Workspace, Worktree
from git_wt.naming import pasteable, quoted, shown
from git_wt.setup import NAMES, find_step
from git_wt.setup.step import DONE, FAILED, NOT_TRUSTED, SKIPPED, Report, Site
from git_wt.value import NamedTuple
from git_wt.worktrees import create, survey


class SetUp(NamedTuple):
    """A worktree after its set-up, and what each step reports."""

    worktree: Worktree
    marker: Marker | None
    reports: tuple[Report, ...]


def after_creation(context: Context, created: create.Created, caller: Caller) -> SetUp:
    """Run the steps on a worktree whose checkout is complete, then unlock it. Whatever ends it early leaves the
    worktree unlocked, its set-up marked unfinished."""
    space = Workspace(created.worktree, created.marker.name, created.marker)
    try:
        marker, reports = _run(context, space, caller)
    except BaseException as error:
        create.finish(created)
        if isinstance(error, Interrupted):
            error.error.hint = (
                f"git wt setup {pasteable(space.name)}   (the worktree is made, its set-up is not finished)"
            )
        raise
    return SetUp(create.finish(created), marker, reports)


def again(name: str | None, caller: Caller) -> Result:
    """Run all steps on one worktree: NAME, else this session's, else the one that the caller stands in; also one that
    git-wt did not make. Raises `usage` for the main checkout, `not-found`, `not-a-worktree`, `busy`, `config`."""
    session, over = active_session(caller) if name is None else (None, ())
    context = open_here(caller, folder=session.path if session else None)
    context.config.require_valid()
    space = _chosen(context, caller, name)
    os.chdir(space.worktree.path)  # nobody removes it meanwhile: it is occupied
    _, reports = _run(context, space, caller)
    data = {"name": space.name, "worktreePath": space.worktree.path, "setup": [step.as_json() for step in reports]}
    return Result("setup", data, (*over, *context.notes), code=code_of(reports, alone=True))


def code_of(reports: Sequence[Report], *, alone: bool) -> int:
    """The exit code: 6 when a step failed or was not trusted, 4 when only trust is missing and set-up was all that was
    asked for (`alone`)."""
    statuses = {report.status for report in reports}
    if FAILED in statuses or (NOT_TRUSTED in statuses and not alone):
        return errors.SETUP_FAILED
    return errors.NOT_TRUSTED if NOT_TRUSTED in statuses else errors.DONE


def sentences(reports: Sequence[Report], name: str) -> tuple[str, ...]:
    """What a person is told about set-up after `enter`."""
    marks = {DONE: "", SKIPPED: "", FAILED: "failed: ", NOT_TRUSTED: "not trusted: "}
    said = [
        f"set-up {report.step}: {marks.get(report.status, 'warning: ')}{report.detail}"
        for report in reports
        if report.detail and report.status != SKIPPED
    ]
    if code_of(reports, alone=False):
        trust = any(report.status == NOT_TRUSTED for report in reports)
        said.append(f"hint: {'git wt trust, then ' if trust else ''}git wt setup {pasteable(name)}")
    return tuple(said)


def unfinished(space: Workspace) -> tuple[str, ...]:
    """A sentence about a worktree whose set-up did not come to its end."""
    if space.marker is None or not space.marker.setup_unfinished:
        return ()
    return (f"warning: set-up of {quoted(space.name)} was not finished", f"hint: git wt setup {pasteable(space.name)}")


def _chosen(context: Context, caller: Caller, name: str | None) -> Workspace:
    spaces = all_workspaces(context, caller)
    if name is not None:
        space = survey.require(spaces, name, "set up")
    else:
        here = context.repository.here
        space = next((found for found in spaces if here and found.worktree.admin == here.admin), spaces[0])
    if space.worktree.is_main:
        raise WtError(
            "usage", "cannot set up the main checkout: set-up brings its files to a worktree", hint="git wt setup NAME"
        )
    reason = why_not_registered(space.worktree)
    if reason:
        raise WtError("not-a-worktree", f"cannot set up {quoted(space.name)}: {reason}", hint="git worktree repair")
    locked = read_text(space.worktree.admin + "/locked") or ""
    if locked.startswith("git-wt: being made"):
        raise _busy(space, shown(locked.removeprefix("git-wt: ")))
    return space


def _busy(space: Workspace, why: str) -> WtError:
    return WtError("busy", f"cannot set up {quoted(space.name)}: it is {why}", hint="try again in a moment")


def _run(context: Context, space: Workspace, caller: Caller) -> tuple[Marker | None, tuple[Report, ...]]:
    """Run the steps, one run at a time for a worktree; what each did is in the marker as soon as it has ended."""
    admin = space.worktree.admin
    with journal.lock_or_none(admin + "/git-wt-setup") as mine:
        if not mine:
            raise _busy(space, "being set up by another command")
        site = _noted(_site(context, space, caller), (), unfinished=True)
        reports: list[Report] = []
        for name in NAMES:
            reports.append(_attempt(name, site))
            site = _noted(site, reports[-1:], unfinished=True)
        failed = any(report.status in (FAILED, NOT_TRUSTED) for report in reports)
        site = _noted(site, (), unfinished=failed)
    return site.marker, tuple(reports)


def _site(context: Context, space: Workspace, caller: Caller) -> Site:
    repository, tree = context.repository, space.worktree
    return Site(
        repository=repository,
        path=tree.path,
        admin=tree.admin,
        source=default_branch_folder(repository),
        config=context.config,
        marker=space.marker,
        name=space.name,
        branch=tree.branch,
        quiet=caller.quiet,
    )


def _attempt(name: str, site: Site) -> Report:
    try:
        return find_step(name)(site)
    except WtError as error:
        return Report(name, FAILED, 0, error.message)
    except OSError as error:
        return Report(name, FAILED, 0, str(error))


def _noted(site: Site, reports: Sequence[Report], *, unfinished: bool) -> Site:
    """The site with what `reports` put there in its marker; a worktree that git-wt did not make gets none."""
    marker = site.marker
    if marker is None:
        return site
    copied, links = dict(marker.copied or {}), dict.fromkeys(marker.links)
    for report in reports:
        copied.update({path: digest for path, digest in report.copied.items() if digest})
        links.update(dict.fromkeys(report.links))
    new = marker._replace(copied=copied, links=tuple(links), setup_unfinished=unfinished)
    if new != marker:
        save_marker(site.admin, new)
    return site._replace(marker=new)
