"""The real executable `git-wt`, run without a terminal, and a session to run it in."""

import functools
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

TIME_LIMIT = 120  # seconds; no command of a test takes nearly as long


class Ran(NamedTuple):
    """What came of one run."""

    args: tuple[str, ...]
    code: int
    out_bytes: bytes
    err_bytes: bytes

    @property
    def out(self) -> str:
        """Standard output; bytes that are not UTF-8 survive as in `os.fsdecode`."""
        return os.fsdecode(self.out_bytes)

    @property
    def err(self) -> str:
        """Standard error; bytes that are not UTF-8 survive as in `os.fsdecode`."""
        return os.fsdecode(self.err_bytes)

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise AssertionError(f"no JSON from {self}") from error

    @property
    def data(self) -> Any:
        """`data` of a JSON answer that says success."""
        assert self.json["success"] is True, self
        return self.json["data"]

    @property
    def error(self) -> Any:
        """The first error of a JSON answer that says no success."""
        assert self.json["success"] is False, self
        return self.json["errors"][0]

    def ok(self) -> "Ran":
        """Itself, after a check that the exit code is 0."""
        assert self.code == 0, self
        return self

    def __str__(self) -> str:
        said = f"--- stdout\n{self.out}\n--- stderr\n{self.err}"
        whole = f"git-wt {' '.join(self.args)}: exit code {self.code}\n{said}"
        return whole.encode(errors="backslashreplace").decode()  # pytest-xdist dies of lone surrogates

    def __repr__(self) -> str:
        return str(self)


def wt(
    *args: str,
    cwd: str,
    session: str | None = None,
    env: Mapping[str, str | None] | None = None,
    input: str | bytes | None = None,
) -> Ran:
    """Run `git-wt` in `cwd` and wait for it.

    `session` is the session's id: None takes the test's own (`GIT_WT_SESSION` as sealed), "" none at all.
    `env` adds variables; None as a value removes one.
    """
    ran = subprocess.run(
        [executable(), *args],
        cwd=cwd,
        env=environment(session=session, env=env),
        input=os.fsencode(input) if isinstance(input, str) else input,
        stdin=subprocess.DEVNULL if input is None else None,
        capture_output=True,
        check=False,
        timeout=TIME_LIMIT,
    )
    return Ran(args, ran.returncode, ran.stdout, ran.stderr)


def start_wt(
    *args: str,
    cwd: str,
    session: str | None = None,
    env: Mapping[str, str | None] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start `git-wt` in a process group and POSIX session of its own; wait for it with `finish`."""
    return subprocess.Popen(
        [executable(), *args],
        cwd=cwd,
        env=environment(session=session, env=env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(started: "subprocess.Popen[bytes]") -> Ran:
    """Wait for what `start_wt` started."""
    out, err = started.communicate(timeout=TIME_LIMIT)
    args = started.args
    assert isinstance(args, list)
    return Ran(tuple(args[1:]), started.returncode, out, err)


class Session:
    """One terminal or agent: an id, and the folder that its shell stands in."""

    def __init__(self, cwd: str, id: str | None = None) -> None:
        self.cwd = cwd
        self.id = id or f"session-{uuid.uuid4()}"

    def wt(
        self,
        *args: str,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        input: str | bytes | None = None,
    ) -> Ran:
        """Run `git-wt` as this session, in its folder unless `cwd` is given."""
        return wt(*args, cwd=cwd or self.cwd, session=self.id, env=env, input=input)

    def enter(self, *args: str) -> str:
        """Enter a worktree and stand in it from now on; returns its path."""
        path: str = self.wt("enter", *args, "--json").ok().data["worktreePath"]
        self.cwd = path
        return path


def environment(*, session: str | None = None, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """The sealed environment with the session's id and `env` put in (None removes)."""
    changed: dict[str, str | None] = {**os.environ}
    if session is not None:
        changed["GIT_WT_SESSION"] = session or None
    changed.update(env or {})
    return {name: value for name, value in changed.items() if value is not None}


@functools.cache
def executable() -> str:
    """The installed `git-wt` that is tested: the one beside this Python, else the first on PATH."""
    beside = os.path.join(os.path.dirname(sys.executable), "git-wt")
    found = beside if os.access(beside, os.X_OK) else shutil.which("git-wt")
    assert found, "git-wt is not installed: pip install -e ."
    return found


def executable_folder() -> str:
    """The folder to put first on PATH, so that `git wt` is what is tested; Python's own if not installed."""
    try:
        return os.path.dirname(executable())
    except AssertionError:
        return os.path.dirname(sys.executable)
