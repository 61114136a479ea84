"""`exit`: leave the worktree of this session and keep it, or take it away if nothing would be lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

from git_wt import sessions, tmux
from git_wt.errors import WtError
from git_wt.flows import remove as removal
from git_wt.flows.context import Context, active_session, all_workspaces, open_here, warned
from git_wt.model import Caller, Json, Result, Session, Workspace
from git_wt.naming import pasteable, quoted
from git_wt.proc import table
from git_wt.worktrees.verdict import Leave

KEEP, REMOVE, CANCEL = "keep", "remove", "cancel"
CANCELLED = 1  # the exit code of an exit that was called off
Ask = Callable[[str, Sequence[str]], str | None]  # a question, the answers -> one of them, None when the input ends


def leave(action: str | None, flags: Leave, caller: Caller, *, to_trash: bool, ask: Ask | None) -> Result:
    """Leave this session's worktree. Without `action`, `ask` asks keep, remove or cancel. Outside a session nothing
    happens at all. Raises `usage` (no action and nobody to ask), `has-changes`, `not-a-worktree`."""
    before = sessions.load_session(caller.identity, caller.env)
    session, over = active_session(caller)
    session = session or _session_of_pane(caller)
    if session is None:
        return _nothing(before, over)
    if action is None and ask is None:
        raise WtError(
            "usage", "cannot exit: say 'keep' or 'remove'", hint="git wt exit keep   (or: git wt exit remove)"
        )
    context = open_here(caller, folder=_folder_of(session))
    tmux_survey, unread = (tmux.survey(), ()) if action == REMOVE else tmux.survey_or_note()
    space = _by_admin(all_workspaces(context, caller, tmux_survey), session)
    if action is None and ask is not None:
        action, flags = _asked(context, space, session, flags, tmux_survey, caller, ask)
    if action == CANCEL:
        return Result(
            "exit", {"action": "none", "message": f"still in {quoted(space.name)}"}, warned(context), None, CANCELLED
        )
    if action == REMOVE:
        result = _remove(context, space, session, flags, tmux_survey, caller, to_trash)
    else:
        result = _keep(space, session, tmux_survey)
    sessions.end_session(session.id, caller.env)
    sessions.remember(caller.identity, space.worktree.path, caller.env)
    result = result._replace(notes=(*warned(context), *unread, *result.notes))
    _end_subshell(session, result.code, caller)
    return result


def _session_of_pane(caller: Caller) -> Session | None:
    """The session whose tmux session we run in: a pane may be older than the session that resumed its worktree. One
    tmux process, none outside tmux."""
    inside = tmux.current_session_id()
    known = tmux.survey_or_note()[0] if inside else tmux.Survey()
    for tmux_session in known.sessions:
        if tmux_session.id == inside and tmux_session.root:
            for session, _ in sessions.all_sessions(caller.env):
                if session.tmux_session == tmux_session.name and session.token == (tmux_session.token or ""):
                    return session
    return None


def _nothing(before: Session | None, over: tuple[str, ...]) -> Result:
    """No session; the shell goes back where it was if one has just ended because its worktree is gone."""
    message = over[0] if over else "no worktree session is active"
    return Result("exit", {"action": "none", "message": message}, (), _way_back(before) if before else None)


def _folder_of(session: Session) -> str:
    """A folder of the repository that is there: the main root, else the common dir."""
    return (
        session.main_root
        if os.path.isdir(session.main_root + "/.git")
        else os.path.dirname(os.path.dirname(session.admin))
    )


def _by_admin(spaces: Sequence[Workspace], session: Session) -> Workspace:
    """The session's worktree by its identity, the admin entry: it may have been moved, and another may be at its old
    path."""
    for space in spaces:
        if space.worktree.admin == session.admin:
            return space
    raise WtError("not-found", f"cannot find the worktree {quoted(session.name)} of this session", hint="git wt list")


def _asked(
    context: Context,
    space: Workspace,
    session: Session,
    flags: Leave,
    tmux_survey: tmux.Survey,
    caller: Caller,
    ask: Ask,
) -> tuple[str, Leave]:
    """The dialog: clean and unnamed goes without a word, else the person decides, knowing the counts."""
    if not session.own:
        answer = ask(f"worktree {quoted(space.name)} was not made for a session, it stays. Leave it?", (KEEP, CANCEL))
        return (CANCEL if answer == CANCEL else KEEP), flags
    looked = removal.look_at(context, space, flags, tmux_survey, caller, session)
    if not looked.verdict.blockers and not looked.verdict.warnings and not session.named:
        return REMOVE, flags
    what = f"worktree {quoted(space.name)}: {removal.summary(looked)}"
    if looked._replace(leave=flags._replace(discard=True)).standing():  # what no answer may pass
        answer = ask(f"{what}: it cannot be removed now. Keep or cancel?", (KEEP, CANCEL))
    else:
        answer = ask(f"{what}. Keep, remove or cancel?", (KEEP, REMOVE, CANCEL))
    if answer is None:
        return KEEP, flags
    return answer, flags._replace(discard=True) if answer == REMOVE else flags


def _keep(space: Workspace, session: Session, tmux_survey: tmux.Survey) -> Result:
    data = _data("keep", space, session)
    branch = f", branch {quoted(space.worktree.branch)}" if space.worktree.branch else ""
    data["message"] = f"kept worktree {quoted(space.name)} at {quoted(space.worktree.path)}{branch}"
    if space.tmux:
        data["tmuxSessionName"] = space.tmux.name
        data["message"] += f"; tmux session: git wt attach {space.tmux.name}"
        if tmux.current_session_id() == space.tmux.id:
            clients = tmux_survey.watching(space.tmux)
            tmux.leave(clients, elsewhere=tmux_survey.came_from(clients))
    return Result("exit", data, (), _way_back(session))


def _remove(
    context: Context,
    space: Workspace,
    session: Session,
    flags: Leave,
    tmux_survey: tmux.Survey,
    caller: Caller,
    to_trash: bool,
) -> Result:
    if not session.own:
        raise WtError(
            "not-a-worktree",
            f"cannot remove {quoted(space.name)}: it was made by hand or entered by --path; it can only be kept",
            hint=f"git wt exit keep; git wt remove {pasteable(space.name)}",
        )
    looked, said = removal.look_and_tear_down(context, space, flags, tmux_survey, caller, session, "git wt exit remove")
    removed = removal.take_away(context, looked, tmux_survey, to_trash=to_trash)
    data = _data("remove", space, session)
    data["message"] = f"removed worktree {quoted(space.name)}"
    if removed.branch_deleted and space.marker:
        data["message"] += f" and branch {quoted(space.marker.branch or '')}"
    if space.tmux:
        data["tmuxSessionName"] = space.tmux.name
        data["message"] += f", its tmux session {quoted(space.tmux.name)} with it"
    files, commits = removal.counts(looked)
    if flags.discard:
        data["discardedFiles"], data["discardedCommits"] = files, commits
    if removed.undo:
        data["undo"] = removed.undo
        data["message"] += f" (git wt undo {removed.undo})"
    elif not removed.left:
        data["message"] += " for good"
    notes = [*removal.branch_note(looked, removed), *removal.warning_notes(looked, removed.undo)]
    return Result("exit", data, (*notes, *removed.left, *said), _way_back(session))


def _data(action: str, space: Workspace, session: Session) -> Json:
    data: Json = {
        "action": action,
        "originalCwd": session.original_cwd,
        "worktreePath": space.worktree.path,
        "message": "",
    }
    if space.worktree.branch:
        data["worktreeBranch"] = space.worktree.branch
    return data


def _way_back(session: Session) -> str:
    """Where the shell was before `enter`; the main root when that is gone."""
    for folder in (session.original_cwd, session.main_root):
        if os.path.isdir(folder):
            return folder
    return os.path.expanduser("~")


def _end_subshell(session: Session, code: int, caller: Caller) -> None:
    """`exit` typed in a subshell that `enter` started ends it; the shell around it gets the exit code."""
    if session.subshell is None:
        return
    pid, _, started = session.subshell.partition(":")
    if table.alive(int(pid), started):
        sessions.subshell_outcome(session.id, caller.env, code)
        os.kill(int(pid), signal.SIGHUP)
