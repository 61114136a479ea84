"""What a repository wants to run, and what the person has allowed: `git wt trust`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from git_wt import trust
from git_wt.config.commands import SETUP, TEARDOWN, plan_for
from git_wt.errors import NOT_TRUSTED
from git_wt.flows.context import open_here, warned
from git_wt.git.repository import default_branch_folder
from git_wt.model import Caller, Json, Result
from git_wt.naming import plural, quoted
from git_wt.setup.commands import grant_for
from git_wt.value import NamedTuple


class Wanted(NamedTuple):
    """What is not allowed yet, how much is already, and sentences to say."""

    grants: tuple[trust.Grant, ...]
    allowed: int
    repository: str
    notes: tuple[str, ...]


def wanted(caller: Caller) -> Wanted:
    """The commands that would run in the worktree of the caller's folder and need a yes. At most five git processes."""
    context = open_here(caller)
    repository = context.repository
    source = default_branch_folder(repository)
    folder = repository.here.path if repository.here and os.path.isdir(repository.here.path) else source
    plans = [plan_for(context.config, source, event) for event in (SETUP, TEARDOWN)]
    found = [grant_for(plan, repository, folder, source) for plan in plans if plan.commands and plan.needs_trust]
    pending = tuple(grant for grant in found if not trust.allowed(grant, caller.env))
    broken = tuple(f"warning: {problem}" for problem in dict.fromkeys(p for plan in plans for p in plan.problems))
    return Wanted(pending, len(found) - len(pending), repository.common_dir, (*warned(context), *broken))


def allow(want: Wanted, caller: Caller) -> Result:
    """Allow exactly the grants that were shown. No process."""
    for grant in want.grants:
        trust.allow(grant, caller.env)
    if want.grants:
        message = f"allowed {_commands(want.grants)} of {quoted(want.repository)}; now: git wt setup"
    elif want.allowed:
        message = f"everything is allowed already in {quoted(want.repository)}"
    else:
        message = f"nothing to allow: {quoted(want.repository)} has no commands that need it"
    return Result("trust", _data(want.grants, message), want.notes)


def decline(want: Wanted) -> Result:
    """Nothing is allowed."""
    message = f"nothing allowed: {_commands(want.grants)} of {quoted(want.repository)} will not run"
    return Result("trust", _data((), message), want.notes, None, NOT_TRUSTED)


def listing(caller: Caller) -> Result:
    """Everything that this user has allowed, in all repositories. No process."""
    found = trust.grants(caller.env)
    data: Json = {"trusted": [{**grant.as_json(), "allowedAt": round(when)} for grant, when in found]}
    return Result("trusted", {**data, "message": "" if found else "nothing is allowed"})


def revoke(caller: Caller) -> Result:
    """Forbid everything again that was allowed for the caller's repository. One git process."""
    context = open_here(caller)
    gone = trust.revoke(context.repository.common_dir, caller.env)
    what = f"{_commands(gone)} will not run any more" if gone else "nothing was allowed"
    message = f"{what} in {quoted(context.repository.common_dir)}"
    return Result("trust", {"revoked": [grant.as_json() for grant in gone], "message": message}, warned(context))


def as_json(want: Wanted) -> list[Json]:
    """What would be allowed, to show."""
    return [grant.as_json() for grant in want.grants]


def _data(grants: Sequence[trust.Grant], message: str) -> Json:
    return {"allowed": [grant.as_json() for grant in grants], "message": message}


def _commands(grants: Sequence[trust.Grant]) -> str:
    return plural(sum(len(grant.commands) for grant in grants), "command")
