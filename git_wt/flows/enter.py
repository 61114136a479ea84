"""`enter`: resume or make a worktree, then record the session."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from git_wt import journal, sessions, tmux
from git_wt.errors import WtError
from git_wt.files import read_text
from git_wt.flows import plan as planning
from git_wt.flows import setup
from git_wt.flows.context import REPAIR, Context, active_session, all_workspaces, open_here
from git_wt.flows.expiry import expire_later
from git_wt.flows.tmux_session import tmux_session_for
from git_wt.git import refs as git_refs
from git_wt.git.repository import why_not_registered
from git_wt.marker import save_marker
from git_wt.model import Caller, Identity, Json, Repository, Result, Session, TmuxSession, Workspace
from git_wt.naming import (
    parse_pull_request,
    pasteable,
    quoted,
    random_name,
    require_name,
    short_ref,
    shown,
    slug,
)
from git_wt.setup.step import Report
from git_wt.value import NamedTuple
from git_wt.worktrees import create, survey


class Request(NamedTuple):
    """What the command line asked for. `tmux` says whether the worktree gets a tmux session."""

    name: str | None = None
    path: str | None = None
    base: str | None = None
    branch: str | None = None
    reuse_branch: bool = False
    reset_branch: bool = False
    tmux: bool | None = None
    command: Sequence[str] = ()
    original_cwd: str | None = None


class Found(NamedTuple):
    """The worktree that was resumed or made, sentences to say, and what set-up reports about one that was made."""

    space: Workspace
    notes: tuple[str, ...] = ()
    resumed: bool = True
    reports: tuple[Report, ...] = ()


class Entered(NamedTuple):
    """The session that was begun, its tmux session if there is one, and the result to show."""

    session: Session
    tmux: TmuxSession | None
    result: Result


def enter(request: Request, caller: Caller) -> Entered:
    """Resume the worktree of that name or make it, and put this session into it. Raises `session-active` (nesting),
    `invalid-name`, and whatever making raises; nothing is left of a failure. At most 3 git processes to resume, 9 to
    make."""
    _check_name(request)
    over = _refuse_nesting(caller)
    context = open_here(caller)
    context.config.require_valid()
    wants_tmux = context.config.values["tmux.auto"] if request.tmux is None else request.tmux
    tmux_survey, unread = tmux.survey_or_note() if wants_tmux else (None, ())
    found = _find_or_make(context, caller, request, tmux_survey)
    space = found.space
    identity = caller.identity or sessions.fresh_identity()
    on_tmux, unmade = space.tmux, tuple[str, ...]()
    if wants_tmux:
        on_tmux, unmade = tmux_session_for(context.repository, space, identity, request.command, tmux_survey)
    if on_tmux and space.marker and space.marker.tmux_session != on_tmux.name:
        space = space._replace(marker=space.marker._replace(tmux_session=on_tmux.name))
        save_marker(space.worktree.admin, space.marker)  # type: ignore[arg-type]
    session = _record(context.repository, space, identity, on_tmux, request, caller)
    if not found.resumed:
        expire_later(context)
    notes = (*over, *context.notes, *found.notes, *unread, *unmade)
    return Entered(session, on_tmux, _result(found._replace(space=space, notes=notes), session, on_tmux))


def require_enterable(request: Request, caller: Caller, session: Session) -> None:
    """What `switch` checks before it leaves: the name, that it is not where `session` is already, and whether an
    existing worktree of it is whole. Raises as `enter`. One git process."""
    _check_name(request)
    context = open_here(caller)
    context.config.require_valid()
    name = _asked_name(request)
    found = survey.find(survey.workspaces(context.repository), name) if name else None
    if found and found.worktree.admin == session.admin:
        raise WtError("session-active", f"cannot switch: this session is in {quoted(session.name)} already")
    if found:
        _require_resumable(found, request, caller)


def _check_name(request: Request) -> None:
    if request.name is not None and parse_pull_request(request.name) is None and request.name != survey.MAIN:
        require_name(request.name.replace("+", "/"))


def _asked_name(request: Request) -> str | None:
    number = parse_pull_request(request.name) if request.name else None
    return f"pr-{number}" if number is not None else request.name


def _refuse_nesting(caller: Caller) -> tuple[str, ...]:
    """The sentence about a session that has just ended. Raises `session-active`."""
    session, over = active_session(caller)
    if session:
        raise WtError(
            "session-active",
            f"cannot enter: this session is in {quoted(session.name)} already",
            hint="git wt exit keep   (or: git wt switch NAME)",
            extra={"worktreePath": session.path, "session": session.id},
        )
    return over


def _find_or_make(context: Context, caller: Caller, request: Request, tmux_survey: tmux.Survey | None) -> Found:
    """The worktree of that path or name."""
    if request.path is not None:
        return Found(_by_path(context, caller, request.path, tmux_survey))
    return _by_name(context, caller, request, tmux_survey)


def _by_path(context: Context, caller: Caller, path: str, tmux_survey: tmux.Survey | None) -> Workspace:
    real = os.path.realpath(os.path.join(caller.cwd, path))
    found = survey.find(all_workspaces(context, caller, tmux_survey), real)
    if found is None or found.worktree.is_main:
        why = "that is the main checkout" if found else "git knows no worktree there"
        raise WtError("not-a-worktree", f"cannot enter {quoted(path)}: {why}", hint="git wt list")
    _require_whole(found)
    return found


def _by_name(context: Context, caller: Caller, request: Request, tmux_survey: tmux.Survey | None) -> Found:
    """As `_find_or_make` by NAME. Looks again where another command made or removed the same worktree meanwhile."""
    name = _asked_name(request) or _free_name(all_workspaces(context, caller))
    if name == survey.MAIN:
        raise WtError("usage", "cannot enter '^': it is the main checkout", hint="git wt cd ^")
    for tries_left in range(_TRIES, -1, -1):
        try:
            return _resume_or_make(context, caller, request, name, tmux_survey)
        except create.Raced as raced:
            why = raced.why
        except WtError as error:
            why = error
            if error.code not in _PASSING or not journal.taken_since(context.repository.state_dir, context.opened_at):
                raise
        if not tries_left:
            raise why
        with journal.lock(context.repository.state_dir):
            pass  # until the other one is done
        context = open_here(caller)
    raise AssertionError("the last try returns or raises")


_TRIES = 5
_PASSING = (
    "not-found",
    "not-a-worktree",
    "branch-in-use",
    "branch-has-commits",
    "exists",
)  # what somebody else's change may have caused


def _resume_or_make(
    context: Context, caller: Caller, request: Request, name: str, tmux_survey: tmux.Survey | None
) -> Found:
    number = parse_pull_request(request.name) if request.name else None
    found = survey.find(all_workspaces(context, caller, tmux_survey), name)
    if found:
        found = _await_making(found, context, caller)
        _require_resumable(found, request, caller)
        return Found(found, (*_moved(context.repository, found, number), *setup.unfinished(found)))
    require_name(name)
    wish = planning.Wish(name, request.base, request.branch, number, request.reuse_branch, request.reset_branch)
    made = planning.make_plan(context, wish, caller.cwd)
    created = create.create(context.repository, made.plan, hooks=made.hooks)
    notes = (*made.notes, created.hook_failure) if created.hook_failure else made.notes
    after = setup.after_creation(context, created, caller)
    notes = (*notes, *setup.sentences(after.reports, name))
    return Found(Workspace(after.worktree, name, after.marker), notes, False, after.reports)


def _free_name(spaces: Sequence[Workspace]) -> str:
    taken = {slug(space.name) for space in spaces}
    return next(name for name in iter(random_name, None) if name not in taken)


def _await_making(space: Workspace, context: Context, caller: Caller) -> Workspace:
    """Wait until another command has made the worktree. Raises `busy` after 60 s, `not-found` if it gave up."""
    until = time.monotonic() + 60
    while (read_text(space.worktree.admin + "/locked") or "").startswith(create.BEING_MADE):
        if time.monotonic() > until:
            whose = (read_text(space.worktree.admin + "/locked") or "").removeprefix("git-wt: ")
            raise WtError("busy", f"cannot enter {quoted(space.name)}: it is still {shown(whose)}", hint="try again")
        time.sleep(0.05)
        context = open_here(caller)
        space = survey.require(all_workspaces(context, caller), os.path.realpath(space.worktree.path), "enter")
    return space


def _require_resumable(space: Workspace, request: Request, caller: Caller) -> None:
    """Folder and registration name each other, and nothing else was asked for than what is there."""
    _require_whole(space)
    branch = space.worktree.branch
    if request.branch is not None and request.branch != branch:
        raise WtError(
            "exists",
            f"cannot enter {quoted(space.name)} on {quoted(request.branch)}: it is on {quoted(branch or 'no branch')}",
            hint=f"git wt enter {pasteable(space.name)}",
        )
    if request.base is not None and space.marker:
        asked = git_refs.resolve(caller.cwd, request.base)
        if asked != space.marker.base_commit and request.base not in (
            space.marker.base,
            short_ref(space.marker.base),
        ):
            raise WtError(
                "exists",
                f"cannot enter {quoted(space.name)} from {quoted(request.base)}: it is there, made from "
                f"{quoted(short_ref(space.marker.base))}",
                hint=f"git wt enter {pasteable(space.name)}   (or use another name)",
            )


def _require_whole(space: Workspace) -> None:
    reason = why_not_registered(space.worktree)
    if reason:
        raise WtError(
            "not-a-worktree",
            f"cannot enter {quoted(space.name)}: {reason} (git in it would act on another checkout)",
            hint=REPAIR,
        )


def _moved(repository: Repository, space: Workspace, number: int | None) -> tuple[str, ...]:
    if number is None or space.marker is None:
        return ()
    moved = planning.pull_request_moved(repository, number, space.marker.base_commit)
    return (moved,) if moved else ()


def _record(
    repository: Repository,
    space: Workspace,
    identity: Identity,
    on_tmux: TmuxSession | None,
    request: Request,
    caller: Caller,
) -> Session:
    session = Session(
        id=identity.id,
        admin=space.worktree.admin,
        token=space.marker.token if space.marker else "",
        name=space.name,
        path=space.worktree.path,
        branch=space.worktree.branch,
        main_root=repository.main_root,
        original_cwd=request.original_cwd or caller.folder,
        own=space.marker is not None and request.path is None,
        named=request.name is not None or request.path is not None,
        leader=identity.leader,
        tmux_session=on_tmux.name if on_tmux else None,
        entered_at=time.time(),
    )
    sessions.save_session(session, caller.env)
    sessions.remember(identity, caller.folder, caller.env)
    return session


def _result(found: Found, session: Session, on_tmux: TmuxSession | None) -> Result:
    space, resumed = found.space, found.resumed
    tree = space.worktree
    data: Json = {"worktreePath": tree.path}
    if tree.branch:
        data["worktreeBranch"] = tree.branch
    where = f"on branch {quoted(tree.branch)}" if tree.branch else "on no branch"
    verb = "resumed" if resumed else "made"
    data["message"] = f"{verb} worktree {quoted(space.name)} {where}"
    if space.marker:
        data["base"] = short_ref(space.marker.base)
        data["baseCommit"] = space.marker.base_commit
        if not resumed and space.marker.made_branch:
            data["message"] += f" from {quoted(data['base'])} ({space.marker.base_commit[:12]})"
    data["resumed"] = resumed
    data["session"] = session.id
    if on_tmux:
        data["tmuxSessionName"] = on_tmux.name
    data["setup"] = [report.as_json() for report in found.reports]
    return Result("enter", data, found.notes, goto=tree.path, code=setup.code_of(found.reports, alone=False))
