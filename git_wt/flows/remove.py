"""Take worktrees away: look, judge, move clients, rename into the trash, kill the tmux session."""

from __future__ import annotations

import os
from collections.abc import Sequence

from git_wt import sessions, tmux
from git_wt.errors import WtError
from git_wt.flows.context import REPAIR, Context, all_workspaces, open_here, warned
from git_wt.flows.expiry import expire_later
from git_wt.flows.teardown import run_teardown
from git_wt.git.repository import why_not_registered
from git_wt.model import Blocker, Caller, Json, Repository, Result, Session, Verdict, Workspace
from git_wt.naming import pasteable, plural, quoted
from git_wt.proc import table
from git_wt.value import NamedTuple
from git_wt.worktrees import removal, survey, trash, verdict
from git_wt.worktrees.facts import Facts, look
from git_wt.worktrees.verdict import Leave


class Looked(NamedTuple):
    """A worktree with its facts and the verdict on them, at one moment."""

    space: Workspace
    facts: Facts
    verdict: Verdict
    leave: Leave

    def standing(self) -> tuple[Blocker, ...]:
        """The blockers that the flags do not pass."""
        return verdict.standing(self.verdict, self.leave, mounts=self.facts.mounts)


def look_at(
    context: Context, space: Workspace, leave: Leave, tmux_survey: tmux.Survey, caller: Caller, own: Session | None
) -> Looked:
    """Ask and judge; the caller's session `own` may be in it. Raises `not-a-worktree` for main and for what folder and
    registration do not agree on."""
    tree = space.worktree
    _require_removable(space)
    undoable = leave.undoable and trash.place(context.repository, tree.path) is not None
    leave = leave._replace(undoable=undoable)
    facts = look(
        context.repository,
        space,
        regenerable=context.config.words("regenerable"),
        aside=table.relatives(tmux_survey.processes(space.tmux)),
        sessions=[_who(session) for session in _others_inside(space, caller, own)],
    )
    return Looked(space, facts, verdict.judge(facts, leave), leave)


def look_and_tear_down(
    context: Context,
    space: Workspace,
    leave: Leave,
    tmux_survey: tmux.Survey,
    caller: Caller,
    own: Session | None,
    command: str,
) -> tuple[Looked, tuple[str, ...]]:
    """Look, and refuse what stands in the way; run the teardown, and look again if it did anything. Returns the last
    look and sentences to say. Raises as `look_at` and `refusal`, and `hook-failed` when the teardown fails."""
    looked = look_at(context, space, leave, tmux_survey, caller, own)
    if looked.standing():
        raise refusal(looked, command)
    torn = run_teardown(context, space, caller)
    if torn.ran:
        looked = look_at(context, space, leave, tmux_survey, caller, own)
        if looked.standing():
            raise refusal(looked, command)
    return looked, torn.notes


def _others_inside(space: Workspace, caller: Caller, own: Session | None) -> list[Session]:
    """The other live sessions in a worktree. One that lives only through its tmux session goes with that."""
    living = {session.id for session in sessions.live_sessions(caller.env, frozenset())}
    mine = {own.id if own else None, caller.identity.id if caller.identity else None}
    return [session for session in space.sessions if session.id in living - mine]


def _who(session: Session) -> str:
    """A session as a person knows it."""
    pid = (session.leader or "").partition(":")[0]
    return f"session of {table.command(int(pid))} ({pid})" if pid else f"session {session.id}"


def _require_removable(space: Workspace) -> None:
    """Main, and what folder and registration do not agree on, go with no flag at all."""
    if space.worktree.is_main:
        raise WtError("not-a-worktree", f"cannot remove {quoted(space.worktree.path)}: it is the main checkout")
    reason = why_not_registered(space.worktree)
    if reason:
        raise WtError("not-a-worktree", f"cannot remove {quoted(space.name)}: {reason}", hint=REPAIR)


def refusal(looked: Looked, command: str) -> WtError:
    """The error for a worktree that may not go: what stands in the way, and the flags that go past it."""
    blockers = looked.standing()
    flags = verdict.flags_for(blockers)
    if looked.facts.mounts:
        flags = []
    name = pasteable(looked.space.name)
    hint = f"{command.replace('NAME', name)} {' '.join(flags)}" if flags else "unmount it first"
    keep = "" if "--discard-changes" not in flags else "   (git wt undo brings it back)"
    return WtError(
        "has-changes",
        f"cannot remove {quoted(looked.space.name)}: {verdict.why(blockers)}",
        hint=hint + keep,
        extra={"blockers": [blocker.as_json() for blocker in blockers]},
    )


def take_away(context: Context, looked: Looked, tmux_survey: tmux.Survey, *, to_trash: bool) -> removal.Removed:
    """Remove what was judged fit, then kill its tmux session: its clients are moved first, and when we run inside it a
    helper does it that survives the hang-up. Raises as `removal.remove`."""
    space, leave = looked.space, looked.leave
    os.chdir("/")
    delete_branch = bool(space.marker and space.marker.made_branch) and not leave.keep_branch
    removed = removal.remove(
        context.repository, space, looked.facts, discard=leave.discard, delete_branch=delete_branch, keep=to_trash
    )
    unkilled = kill_tmux(space, tmux_survey)
    expire_later(context)
    return removed._replace(left=(*removed.left, *unkilled))


def kill_tmux(space: Workspace, tmux_survey: tmux.Survey) -> tuple[str, ...]:
    """Kill a worktree's tmux session after moving the clients that look at it. Returns a sentence when it is still
    there. One process."""
    if space.tmux is None:
        return ()
    clients = tmux_survey.watching(space.tmux)
    elsewhere = tmux_survey.came_from(clients)
    if tmux.current_session_id() == space.tmux.id:
        tmux.kill_later(space.tmux, clients, elsewhere=elsewhere)
    elif not tmux.kill(space.tmux, clients, elsewhere=elsewhere):
        return (f"warning: its tmux session '{space.tmux.name}' could not be killed",)
    return ()


def branch_note(looked: Looked, removed: removal.Removed) -> tuple[str, ...]:
    """A sentence when a branch stays, and why."""
    space, leave = looked.space, looked.leave
    branch = looked.facts.branch
    made = space.marker.branch if space.marker and f"refs/heads/{space.marker.branch}" in looked.facts.refs else None
    if removed.branch_kept:
        return (f"branch {quoted(made or '')} stays: {removed.branch_kept}",)
    notes = []
    if made and not removed.branch_deleted and not leave.keep_branch:
        notes.append(f"branch {quoted(made)} stays: git-wt did not make it")
    if branch and branch != made:
        notes.append(f"branch {quoted(branch)} stays: git-wt did not make it")
    return tuple(notes)


def warning_notes(looked: Looked, undo: str | None) -> tuple[str, ...]:
    """What went along silently, and how to get it back."""
    back = f" (git wt undo {undo})" if undo else ""
    return tuple(f"gone with it: {warning.what}: {_some(warning)}{back}" for warning in looked.verdict.warnings)


def _some(blocker: Blocker) -> str:
    """A few examples, and how many more there are."""
    more = blocker.count - len(blocker.examples[:3])
    return ", ".join(blocker.examples[:3]) + (f" and {more} more" if more else "")


def remove(names: Sequence[str], leave: Leave, caller: Caller, *, to_trash: bool, active: Session | None) -> Result:
    """`git wt remove NAME…`: those that can go go; the exit code is 3 if one was refused. Names are checked before the
    first one goes; what went is told whatever becomes of the others."""
    context = open_here(caller)
    tmux_survey = tmux.survey()
    spaces = all_workspaces(context, caller, tmux_survey)
    chosen = [survey.require(spaces, name, "remove") for name in dict.fromkeys(names)]
    for space in chosen:
        _require_removable(space)
    gone: list[Json] = []
    kept: list[Json] = []
    undo: list[str] = []
    notes, code, goto = list(warned(context)), 0, None
    for space in chosen:
        try:
            looked, said = look_and_tear_down(context, space, leave, tmux_survey, caller, active, "git wt remove NAME")
            removed = take_away(context, looked, tmux_survey, to_trash=to_trash)
        except WtError as error:
            blockers = error.extra.get("blockers", [])
            kept.append({"name": space.name, "code": error.code, "blockers": blockers, "message": error.message})
            notes += [error.message, *([f"hint: {error.hint}"] if error.hint else [])]
            code = max(code, error.exit_code)
            continue
        gone.append(_gone(space, removed))
        undo += [removed.undo] if removed.undo else []
        notes += [*branch_note(looked, removed), *warning_notes(looked, removed.undo), *removed.left, *said]
        goto = _way_out(caller, context.repository, space, active, goto)
    return Result("remove", {"removed": gone, "kept": kept, "undo": undo}, tuple(notes), goto, code)


def _gone(space: Workspace, removed: removal.Removed) -> Json:
    data: Json = {"name": space.name, "path": space.worktree.path, "branchDeleted": removed.branch_deleted}
    if space.worktree.branch:
        data["branch"] = space.worktree.branch
    if space.tmux:
        data["tmuxSessionName"] = space.tmux.name
    return data


def _way_out(
    caller: Caller, repository: Repository, space: Workspace, active: Session | None, goto: str | None
) -> str | None:
    """Where the calling shell goes when its folder went away under it."""
    inside = os.path.realpath(caller.folder) if os.path.isdir(caller.folder) else caller.cwd
    if inside != space.worktree.path and not inside.startswith(space.worktree.path + "/"):
        return goto
    if active and active.admin == space.worktree.admin and os.path.isdir(active.original_cwd):
        return active.original_cwd
    return repository.main_root


def counts(looked: Looked) -> tuple[int, int]:
    """How many files and commits a removal throws away."""
    by_code = {blocker.code: blocker.count for blocker in looked.verdict.blockers}
    return by_code.get("uncommitted", 0) + by_code.get("hidden", 0), by_code.get("commits", 0)


def summary(looked: Looked) -> str:
    """The counts as the dialog shows them."""
    files, commits = counts(looked)
    parts = [plural(files, "changed file")] if files else []
    parts += [plural(commits, "unmerged commit")] if commits else []
    others = [b.what for b in (*looked.verdict.blockers, *looked.verdict.warnings) if b.code not in _COUNTED]
    return ", ".join([*parts, *others]) or "no changes"


_COUNTED = ("uncommitted", "hidden", "commits")
