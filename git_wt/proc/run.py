"""Start programs, collect what they print, end them. argv lists only; bytes in, bytes out.

Written on `posix_spawn` because importing `subprocess` alone costs a third of the start-up budget. Knows nothing of
what it runs.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from git_wt.errors import WtError
from git_wt.naming import shown
from git_wt.value import NamedTuple

_CHUNK = 1 << 16
_SMALL = 4096  # fits every pipe's buffer, so it can be written before anything is read


class Completed(NamedTuple):
    """How a process ended: `code` is its exit code, or minus the signal's number."""

    argv: Sequence[str]
    code: int
    out: bytes
    err: bytes


class Child(NamedTuple):
    """A running process and the pipes that it writes to. `group` says that it leads a session of its own."""

    argv: Sequence[str]
    pid: int
    out: int
    err: int
    group: bool


def start(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    on_group: Callable[[int], None] | None = None,
    group: bool = False,
    cwd: str | None = None,
) -> Child:
    """Start `argv` and return at once; `finish` collects it. One process.

    With `on_group` the child leads a session and process group of its own (no terminal, so that nothing in it can
    stop to ask) and does not run before `on_group(pid)` has returned: the caller journals the group first. If this
    program dies before that, the child ends without having run. `group` alone gives it a session of its own;
    `cwd` is its working folder.
    """
    read_in = _input(stdin)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    environment = dict(os.environ if env is None else env)
    try:
        if on_group or group or cwd:
            fds = (read_in, out_write, err_write)
            pid = _fork_gated(argv, environment, fds, on_group, cwd, bool(on_group) or group)
        else:
            actions = [(os.POSIX_SPAWN_DUP2, fd, n) for n, fd in enumerate((read_in, out_write, err_write))]
            pid = os.posix_spawnp(
                argv[0], list(argv), environment, file_actions=actions, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
            )
    except BaseException as error:
        os.close(out_read)
        os.close(err_read)
        if isinstance(error, FileNotFoundError):
            raise WtError("not-found", f"cannot run '{argv[0]}': it is not on PATH") from error
        raise
    finally:
        for fd in (read_in, out_write, err_write):
            os.close(fd)
    return Child(argv, pid, out_read, err_read, bool(on_group) or group)


def finish(child: Child, *, deadline: float | None = None) -> Completed:
    """Wait for `child` and return what it printed. With a `deadline` (seconds of `time.monotonic`) its group is ended
    when the time is up (`code` is then negative). If this program is interrupted meanwhile, a group is ended too."""
    streams: dict[int, list[bytes]] = {child.out: [], child.err: []}
    open_fds = [child.out, child.err]
    out, err = streams[child.out], streams[child.err]
    try:
        while open_fds:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select(open_fds, [], [], left)
            if not ready:
                end_group(child.pid, own_child=True)
                break
            for fd in ready:
                data = os.read(fd, _CHUNK)
                if data:
                    streams[fd].append(data)
                else:
                    open_fds.remove(fd)
        code = _wait(child.pid)
    except BaseException:
        if child.group:
            end_group(child.pid, own_child=True)
        raise
    finally:
        os.close(child.out)
        os.close(child.err)
    return Completed(child.argv, code, b"".join(out), b"".join(err))


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    on_group: Callable[[int], None] | None = None,
    seconds: float | None = None,
    cwd: str | None = None,
) -> Completed:
    """Run `argv` to its end; after `seconds` its whole process group is ended. One process."""
    child = start(argv, env=env, stdin=stdin, on_group=on_group, group=seconds is not None, cwd=cwd)
    return finish(child, deadline=None if seconds is None else time.monotonic() + seconds)


def run_all(
    argvs: Iterable[Sequence[str]], *, env: Mapping[str, str] | None = None, at_once: int = 64
) -> Iterator[Completed]:
    """Run all of them side by side, at most `at_once` at a time, and yield the results in order."""
    waiting = iter(argvs)
    running: list[Child] = []
    for argv in waiting:
        running.append(start(argv, env=env))
        if len(running) >= at_once:
            break
    while running:
        yield finish(running.pop(0))
        for argv in waiting:
            running.append(start(argv, env=env))
            break


def detach(argv: Sequence[str], *, env: Mapping[str, str] | None = None, nice: int = 0) -> None:
    """Start `argv` as a daemon: a session of its own, hang-up ignored, working folder `/`, none of our descriptors.
    Returns at once; nobody waits for it. One process that outlives this one."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.chdir("/")
        os.nice(nice)
        null = os.open(os.devnull, os.O_RDWR)
        _become(argv, dict(os.environ if env is None else env), (null, null, null))
    finally:
        os._exit(127)


def foreground(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    started: Callable[[int], None] = lambda _: None,
    output: int = 1,
) -> int:
    """Run a program with our terminal and descriptors in `cwd` and return its exit code (128 + signal when killed; 127,
    said on stderr, when it cannot be run). `started(pid)` is called once it runs; `output` is the descriptor that its
    stdout goes to. Interrupts from the keyboard are the program's business meanwhile."""
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        pid = os.fork()
        if pid == 0:
            try:
                for number in kept:
                    signal.signal(number, signal.SIG_DFL)
                os.chdir(cwd)
                _become(argv, dict(env), (0, output, 2))
            except OSError as error:
                os.write(2, os.fsencode(f"git-wt: cannot run '{shown(argv[0])}': {error.strerror}\n"))
            finally:
                os._exit(127)
        started(pid)
        code = _wait(pid)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


@contextmanager
def undisturbed() -> Iterator[None]:
    """Put off hang-up, interrupt and terminate until something is done or taken back as a whole. Programs started
    meanwhile get the default handlers."""
    came: list[int] = []
    kept = {
        number: signal.signal(number, lambda caught, _: came.append(caught))
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for arrived in came[:1]:
            os.kill(os.getpid(), arrived)


def end_group(group: int, *, own_child: bool = False, patience: float = 2.0) -> None:
    """End a process group and wait until nobody is in it: SIGTERM (git then takes its lock files away), after
    `patience` seconds SIGKILL. `own_child` says that its leader is our child and must be reaped."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 10.0)):
        _signal_group(group, number)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if own_child:
                _reap(group)
            if not _signal_group(group, 0):
                return
            time.sleep(0.005)


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group of zombies
        return False
    return True


def _reap(pid: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _wait(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return -signal.SIGKILL


def _input(stdin: bytes) -> int:
    if not stdin:
        return os.open(os.devnull, os.O_RDONLY)
    if len(stdin) <= _SMALL:
        reader, writer = os.pipe()
        os.write(writer, stdin)
        os.close(writer)
        return reader
    import tempfile

    fd, path = tempfile.mkstemp(prefix="git-wt-")
    os.unlink(path)
    written = 0
    while written < len(stdin):
        written += os.write(fd, stdin[written:])
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _fork_gated(
    argv: Sequence[str],
    env: dict[str, str],
    fds: tuple[int, int, int],
    on_group: Callable[[int], None] | None,
    cwd: str | None,
    group: bool,
) -> int:
    gate_read, gate_write = os.pipe()
    failed_read, failed_write = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if pid == 0:
        try:
            if group:
                os.setsid()
            os.close(gate_write)
            if os.read(gate_read, 1):
                os.chdir(cwd or ".")
                _become(argv, env, fds)
        except OSError as error:
            os.write(failed_write, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(gate_read)
    os.close(failed_write)
    try:
        if on_group:
            on_group(pid)
        os.write(gate_write, b"1")
    finally:
        os.close(gate_write)  # closed without a byte: the child ends unrun
    with os.fdopen(failed_read, "rb") as failed:
        number = failed.read()
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)), argv[0])
    return pid


def _become(argv: Sequence[str], env: dict[str, str], fds: tuple[int, int, int]) -> None:
    for number, fd in enumerate(fds):
        if fd != number:
            os.dup2(fd, number)
    _reset_signals()
    os.execvpe(argv[0], list(argv), env)


def _reset_signals() -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
