"""The commands that run in a worktree before it is taken away."""

from __future__ import annotations

from git_wt.config.commands import TEARDOWN, plan_for
from git_wt.errors import WtError
from git_wt.flows.context import Context
from git_wt.git.repository import default_branch_folder
from git_wt.model import Caller, Workspace
from git_wt.naming import quoted
from git_wt.value import NamedTuple


class Torn(NamedTuple):
    """Whether commands ran (the worktree may look different now), and sentences to say."""

    ran: bool
    notes: tuple[str, ...] = ()


def run_teardown(context: Context, space: Workspace, caller: Caller) -> Torn:
    """Run `[[teardown]]` in the worktree. What is not allowed is skipped and said: a repository that nobody trusts does
    not keep anyone from removing its worktrees. Raises `hook-failed` when a command fails: the worktree stays."""
    source = default_branch_folder(context.repository)
    if not plan_for(context.config, source, TEARDOWN).commands:
        return Torn(False)
    from git_wt.setup import commands
    from git_wt.setup.step import FAILED, NOT_TRUSTED, Site

    tree = space.worktree
    site = Site(
        context.repository, tree.path, tree.admin, source, context.config, space.marker, space.name, tree.branch,
        caller.quiet,
    )  # fmt: skip
    report = commands.teardown(site)
    if report is None:
        return Torn(False)
    if report.status == FAILED:
        raise WtError(
            "hook-failed",
            f"cannot remove {quoted(space.name)}: its teardown failed: {report.detail}",
            hint="mend it, or forbid the repository's commands: git wt trust --revoke",
        )
    if report.status == NOT_TRUSTED:
        return Torn(report.count > 0, (f"warning: teardown: {report.detail}",))
    return Torn(True)
