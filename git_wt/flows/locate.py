"""Which folder a NAME means, for `path` and `cd`: one git process, nothing changed but the note of where we were."""

from __future__ import annotations

import os

from git_wt import sessions
from git_wt.errors import WtError
from git_wt.flows.context import active_session, open_here, warned
from git_wt.model import Caller
from git_wt.naming import quoted
from git_wt.value import NamedTuple
from git_wt.worktrees import survey

PREVIOUS = "-"


class Located(NamedTuple):
    """A folder, and sentences to say."""

    path: str
    notes: tuple[str, ...] = ()


def locate(name: str | None, caller: Caller) -> Located:
    """The folder of NAME: `-` is the one this session left last, `^` the main checkout; without NAME the worktree of
    this session, else the one that the caller stands in. Raises `not-found`."""
    if name == PREVIOUS:
        previous = sessions.previous(caller.identity, caller.env)
        if previous is None or not os.path.isdir(previous):
            raise WtError("not-found", "cannot go back: no worktree was left in this session", hint="git wt list")
        return Located(previous)
    session, over = active_session(caller) if name is None else (None, ())
    if session:
        return Located(session.path, over)
    context = open_here(caller)
    if name is None:
        here = context.repository.here
        return Located(here.path if here else context.repository.main_root, (*over, *warned(context)))
    space = survey.require(survey.workspaces(context.repository), name, "find")
    if not os.path.isdir(space.worktree.path):
        raise WtError(
            "not-found", f"cannot go to {quoted(name)}: {quoted(space.worktree.path)} is missing", hint="git wt list"
        )
    return Located(space.worktree.path, warned(context))
