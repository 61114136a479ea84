"""The user's own programs: the shell or command that runs in a worktree with the terminal passed through, and the
commands of set-up, which have no terminal and a time limit."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from git_wt.naming import quoted
from git_wt.proc.environment import without_exec_path
from git_wt.proc.run import end_group, foreground

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOT_FOUND = 127
_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
# Set by people in their profile, never by git for what it starts; without them `git fetch` in a set-up command fails.
_PEOPLES = (
    "GIT_ASKPASS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_SSH", "GIT_SSH_COMMAND",
    "GIT_TERMINAL_PROMPT",
)  # fmt: skip


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


def without_git(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without what git and git-wt put there: every GIT_... but those that people set for good. No process."""
    kept = {name: value for name, value in without_exec_path(env).items() if not name.startswith("GIT_")}
    return {**kept, **{name: env[name] for name in _PEOPLES if name in env}}


def run_limited(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], seconds: float, output: int = 2
) -> str | None:
    """Run a command in `cwd` with exactly `env`, no input, and all that it prints to the descriptor `output` as it
    comes. Returns None when its exit code is 0, else what went wrong as a sentence part. It leads a session of its own;
    when the time is up or we are interrupted its whole process group is ended. One process."""
    import shutil

    program = os.path.join(cwd, argv[0]) if "/" in argv[0] else shutil.which(argv[0], path=env.get("PATH"))
    if program is None:
        return f"cannot be run: {quoted(argv[0])} is not on PATH"
    until = time.monotonic() + seconds
    group = None
    try:
        with _put_off():
            process = _start([program, *argv[1:]], cwd, env, output)
            group = int(process.pid)
        pause = 0.001
        while process.poll() is None:
            if time.monotonic() > until:
                return f"took longer than {seconds:g} s and was ended"
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        group = None
    except OSError as error:
        return f"cannot be run: {error.strerror or error}"
    finally:
        if group is not None:
            end_group(group, own_child=True)
    code = int(process.returncode)
    if code < 0:
        return f"was ended by signal {-code}"
    return f"failed with exit code {code}" if code else None


def _start(argv: Sequence[str], cwd: str, env: Mapping[str, str], output: int) -> Any:
    """Start it through plumbum, whose commands run with its own copy of our environment unless that is emptied."""
    from plumbum import local

    with local.env():
        local.env.clear()
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            command = local[argv[0]][list(argv[1:])]
            own = {**env, "PWD": cwd}
            return command.popen(cwd=cwd, env=own, stdin=null, stdout=output, stderr=output, new_session=True)
        finally:
            os.close(null)


@contextmanager
def _put_off() -> Iterator[None]:
    """Hold back hang-up, interrupt and terminate until a process is started and its group known; then they act."""
    came: list[int] = []
    kept = {number: signal.getsignal(number) for number in _ENDING}
    caught = [number for number, handler in kept.items() if callable(handler)]
    for number in caught:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, kept[number])
    if came:
        signal.raise_signal(came[0])
