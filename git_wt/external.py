"""The user's own programs: the shell or command that runs in a worktree with the terminal passed through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from git_wt.proc.environment import without_exec_path
from git_wt.proc.run import foreground

NOT_FOUND = 127


def shell(env: Mapping[str, str]) -> list[str]:
    """The argv of the person's shell. No process."""
    return [env.get("SHELL") or "/bin/sh"]


def run_here(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    started: Callable[[int], None] = lambda _: None,
    output: int = 1,
) -> int:
    """Run a program of the user's in `cwd` with our terminal, its stdout to the descriptor `output`, and return its
    exit code (127: not found, which is said). One process."""
    own = {**without_exec_path(env), "PWD": cwd}
    own.pop("OLDPWD", None)
    return foreground(argv, cwd=cwd, env=own, started=started, output=output)
