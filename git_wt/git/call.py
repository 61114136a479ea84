"""How git is called: scrubbed environment, reads that take no lock and run no hook, bounded retries, WtErrors.

Source: git(1), and measurements of concurrent `git worktree add` with git 2.39.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence

from git_wt.errors import WtError
from git_wt.naming import shown
from git_wt.proc.run import Completed, run

# `git rev-parse --local-env-vars`: they name another repository, index or configuration than the folder does, and
# leak from hooks and aliases.
LOCAL_VARIABLES = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_QUARANTINE_PATH",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_DEFAULT_HASH",
]

# A repository's fsmonitor is a command that `git status` would run; reading must run nothing. The two
# stat settings are weakened by some people for speed; a verdict must see an edit that keeps size and time.
READING = [
    "git",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.checkStat=default",
    "-c",
    "core.trustctime=true",
]
# Our own writes: no hook may run while the lock is held.
WRITING = [
    "git",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
]

# What git says while another git process is in the middle of something (seen with 20 `git worktree add` at once).
_AGAIN = (
    rb"could not lock config file|failed to read .*/commondir|cannot lock ref .*(File exists|Unable to create)"
    rb"|bad object worktrees/.*/HEAD|did not send all necessary objects|index\.lock|packed-refs\.lock"
    rb"|(unable to|could not) (open|create|write)[^\n]*worktrees/"
)
_BUDGET = 10.0
_OWN_CODES = 129  # git's own failures are 1, 128 (fatal) and 129 (usage); above, something it ran was killed


def environment(*, english: bool = True) -> dict[str, str]:
    """The environment for git: ours (scrubbed once at the start by `scrub`), no password prompt and no optional lock.
    `english` is for commands whose errors are compared with the retry list; not for those that run filters."""
    env = dict(os.environ)
    env["GIT_TERMINAL_PROMPT"] = "0"
    env["GIT_OPTIONAL_LOCKS"] = "0"
    if english:
        env["LC_ALL"] = "C"
        env.pop("LANGUAGE", None)
    return env


def scrub() -> str | None:
    """Take the variables that would point git elsewhere out of this process's environment, once, before anything
    else. Returns the former GIT_DIR, if there was one."""
    git_dir = os.environ.get("GIT_DIR")
    git_dir = os.path.abspath(git_dir) if git_dir else None
    for name in LOCAL_VARIABLES:
        os.environ.pop(name, None)
    for name in [name for name in os.environ if name.startswith(("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"))]:
        del os.environ[name]
    return git_dir


def reading(folder: str, *arguments: str) -> list[str]:
    """The argv of a question to git about the repository of `folder`."""
    return [*READING, "-C", folder, *arguments]


def ask(folder: str, *arguments: str, stdin: bytes = b"") -> Completed:
    """Ask git; the caller looks at the exit code. One process."""
    return run(reading(folder, *arguments), env=environment(), stdin=stdin)


def require(answer: Completed, doing: str) -> bytes:
    """What git printed. Raises `git` with git's own reason when it failed; `doing` completes 'cannot …'."""
    if answer.code:
        raise failure(answer, doing)
    return answer.out


def failure(answer: Completed, doing: str) -> WtError:
    """The WtError for a git command that failed, with git's first line as the reason and its advice as the hint."""
    lines = [line for line in os.fsdecode(answer.err).splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines or ["git said nothing"]
    reason = re.sub(r"^(fatal|error): ", "", reasons[-1] if reasons[-1].startswith("fatal") else reasons[0])
    advice = next((line.strip() for line in lines if line.strip().startswith("git config --global --add safe.")), None)
    if answer.code < 0:
        reason = f"git was ended by signal {-answer.code}"
    extra: dict[str, object] = {"killed": True} if answer.code < 0 or answer.code > _OWN_CODES else {}
    return WtError("git", f"cannot {doing}: {shown(reason)}", hint=advice, extra=extra)


def act(
    folder: str,
    *arguments: str,
    doing: str,
    stdin: bytes = b"",
    on_group: Callable[[int], None] | None = None,
    before_retry: Callable[[], None] = lambda: None,
    extra_env: dict[str, str] | None = None,
) -> bytes:
    """Change something through git, with bounded retries against other git processes (10 s, random pause).
    `before_retry` puts right what the failed try left. Raises `git`. One process a try, no hooks."""
    argv = [*WRITING, "-C", folder, *arguments]
    env = {**environment(), **(extra_env or {})}
    until = time.monotonic() + _BUDGET
    while True:
        answer = run(argv, env=env, stdin=stdin, on_group=on_group)
        if not answer.code:
            return answer.out
        if not re.search(_AGAIN, answer.err, re.IGNORECASE | re.DOTALL) or time.monotonic() > until:
            raise failure(answer, doing)
        before_retry()
        time.sleep(0.01 + os.urandom(1)[0] / 1000)


def split_z(data: bytes) -> list[str]:
    """The fields of NUL-terminated output, as file-system strings."""
    return os.fsdecode(data).split("\0")[:-1] if data else []


def lines(data: bytes) -> Sequence[str]:
    """The lines of output that cannot hold a newline within a line (object names, ref names)."""
    return os.fsdecode(data).splitlines()
