"""`git wt cd`: go to a worktree's folder without starting a session."""

from __future__ import annotations

from argparse import Namespace

from git_wt import external, sessions, terminal
from git_wt.commands.path import arguments as arguments
from git_wt.flows.locate import locate
from git_wt.model import Caller, Result


def run(args: Namespace, caller: Caller) -> Result:
    """Move the calling shell to NAME: through the integration, else a subshell on a terminal, else print the path."""
    found = locate(args.name, caller)
    sessions.remember(caller.identity, caller.folder, caller.env)
    if terminal.interactive() and terminal.output_is_terminal() and not caller.moved_by_wrapper and not caller.json:
        code = external.run_here(external.shell(caller.env), cwd=found.path, env=caller.env)
        return Result("quiet", {}, found.notes, None, code)
    return Result("cd", {"path": found.path, "message": f"now in {found.path}"}, found.notes, found.path)
