"""What a command may cost: modules imported, git and tmux processes started, time to start."""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.repos import commit, make_repo, write
from tests.wt import Session, environment, executable, wt

TOO_DEAR = {
    "plumbum",
    "libtmux",
    "tomli",
    "subprocess",
    "asyncio",
    "logging",
    "dataclasses",
    "importlib.metadata",
}
START_UP = 3.5  # times the start of a bare Python
ROUNDS = 25


class Counter:
    """Counts the git and tmux processes that git-wt itself starts; a git that git started does not count."""

    def __init__(self, folder: Path) -> None:
        self.traces = folder / "traces"
        self.tmux_log = folder / "tmux.log"
        shim = folder / "shim" / "tmux"
        shim.parent.mkdir(parents=True)
        real = shutil.which("tmux") or "/nonexistent/tmux"
        shim.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$*\" | tr '\\n' ' ' >>'{self.tmux_log}'\n"
                        f"echo >>'{self.tmux_log}'\nexec '{real}' \"$@\"\n")  # fmt: skip
        shim.chmod(0o755)
        self.path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"

    def env(self) -> dict[str, str | None]:
        """What makes git and tmux leave a note of every start; forgets the notes of before."""
        shutil.rmtree(self.traces, ignore_errors=True)
        self.traces.mkdir()
        self.tmux_log.unlink(missing_ok=True)
        return {"GIT_TRACE2_EVENT": str(self.traces), "PATH": self.path}

    def git(self) -> list[str]:
        """The git commands started since `env`, in order; fetches and what goes on in the background do not count."""
        started: dict[str, str] = {}
        ourselves = {""}  # `git wt` is a git process, too: its children are git-wt's
        for event in sorted(self._events(), key=lambda event: str(event["time"])):
            if event["event"] == "start":
                started[event["sid"]] = without_options(event["argv"])
            elif event["event"] == "cmd_name" and event["name"] == "_run_dashed_":
                ourselves.add(event["sid"])
            elif event["event"] == "cmd_ancestry" and own_name() not in event["ancestry"]:
                started.pop(event["sid"], None)  # no child of the test any more: git-wt has let go of it
        return [
            command
            for sid, command in started.items()
            if sid.rpartition("/")[0] in ourselves and sid not in ourselves and command.split(" ")[0] != "fetch"
        ]

    def tmux(self) -> list[str]:
        """The tmux command lines started since `env`."""
        return [line.rstrip() for line in self.tmux_log.read_text().splitlines()] if self.tmux_log.exists() else []

    def listing(self) -> str:
        """All of them, a line each."""
        return "\n".join([*(f"git {line}" for line in self.git()), *(f"tmux {line}" for line in self.tmux())])

    def _events(self) -> list[dict[str, Any]]:
        """What every git process noted, once all of them have ended (5 s at most)."""
        until = time.monotonic() + 5
        while True:
            notes = [path.read_text() for path in self.traces.iterdir()]
            if time.monotonic() > until or all('"event":"atexit"' in note for note in notes):
                return [json.loads(line) for note in notes for line in note.splitlines() if line.endswith("}")]
            time.sleep(0.05)


def own_name() -> str:
    """The name of this process as the system has it (only Linux is asked; elsewhere git notes no ancestry)."""
    return Path("/proc/self/comm").read_text().strip()


def without_options(argv: list[str]) -> str:
    """A git command line from the command's name on."""
    rest = argv[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-c", "-C") else rest[1:]
    return " ".join(rest)


@pytest.fixture
def counter(tmp_path: Path) -> Counter:
    """Counts processes below; its shim of tmux runs the real one."""
    return Counter(tmp_path / "counted")


@pytest.mark.parametrize("args", [("list",), ("list", "--no-status"), ("path", "here"), ("--version",)])
def test_command_imports_nothing_dear(session: Session, args: tuple[str, ...]) -> None:
    main = session.cwd
    session.enter("here")
    imported = modules_imported(*args, cwd=main)
    assert "git_wt" in imported
    assert imported & TOO_DEAR == set()


def test_imports_are_really_seen(repo: str) -> None:
    write(repo, ".git-wt.toml", 'baseRef = "head"\n')
    assert "tomli" in modules_imported("list", cwd=repo)


def test_counter_sees_git_and_tmux_but_no_children_of_git(counter: Counter, repo: str, tmp_path: Path) -> None:
    script = "git worktree add -q -b x ../x; git rev-parse HEAD; git fetch; tmux -V; tmux -V"
    subprocess.run(["sh", "-c", script], cwd=repo, env=environment(env=counter.env()), check=True)
    assert (tmp_path / "x").is_dir()
    assert sorted(counter.git()) == ["rev-parse HEAD", "worktree add -q -b x ../x"]
    assert counter.tmux() == ["-V", "-V"]
    counter.env()
    assert (counter.git(), counter.tmux()) == ([], [])


@pytest.mark.skipif(sys.platform != "linux", reason="git notes the ancestry on Linux only")
def test_counter_leaves_out_what_goes_on_in_the_background(counter: Counter, repo: str) -> None:
    script = "git rev-parse HEAD; (setsid sh -c 'sleep 0.2; git status; :' >out 2>&1 &)"
    subprocess.run(["sh", "-c", script], cwd=repo, env=environment(env=counter.env()), check=True)
    time.sleep(0.5)
    assert len(list(counter.traces.iterdir())) == 2
    assert counter.git() == ["rev-parse HEAD"]


def test_counter_takes_children_of_git_wt_for_ours(counter: Counter, repo: str) -> None:
    program = write(repo, "bin/git-wt", "#!/bin/sh\ngit rev-parse HEAD\n")
    os.chmod(program, 0o755)
    env = counter.env()
    env["PATH"] = f"{os.path.dirname(program)}{os.pathsep}{env['PATH']}"
    subprocess.run(["git", "wt"], cwd=repo, env=environment(env=env), check=True)
    assert counter.git() == ["rev-parse HEAD"]


@pytest.mark.parametrize("args", [("list", "--no-status"), ("list", "--no-status", "--json"), ("path", "here")])
def test_quick_commands_ask_git_and_tmux_once(counter: Counter, session: Session, args: tuple[str, ...]) -> None:
    main = session.cwd
    session.enter("here")
    session.wt(*args, cwd=main, env=counter.env()).ok()
    assert len(counter.git()) <= 1, counter.listing()
    assert len(counter.tmux()) <= 1, counter.listing()


@pytest.mark.parametrize("worktrees", [0, 1, 5])
def test_list_asks_git_twice_and_once_a_worktree(counter: Counter, repo: str, worktrees: int) -> None:
    for number in range(worktrees):
        Session(repo).enter(f"task-{number}")
    wt("list", cwd=repo, env=counter.env()).ok()
    assert len(counter.git()) <= 1 + 1 + (1 + worktrees), counter.listing()
    assert len(counter.tmux()) <= 1, counter.listing()


@pytest.mark.parametrize("remote", [False, True], ids=["no remote", "remote"])
def test_new_worktree_takes_at_most_nine_git_processes(counter: Counter, tmp_path: Path, remote: bool) -> None:
    repo = make_repo(str(tmp_path / "repo"), remote=remote)
    wt("enter", "new", cwd=repo, env=counter.env()).ok()
    assert len(counter.git()) <= 9, counter.listing()
    assert len(counter.tmux()) <= 2, counter.listing()


def test_existing_worktree_takes_at_most_three_git_processes(counter: Counter, repo: str) -> None:
    Session(repo).enter("here")
    wt("enter", "here", cwd=repo, env=counter.env()).ok()
    assert len(counter.git()) <= 3, counter.listing()
    assert len(counter.tmux()) <= 2, counter.listing()


@pytest.mark.parametrize("remote", [False, True], ids=["no remote", "remote"])
@pytest.mark.parametrize("dirty", [False, True], ids=["clean", "with work"])
def test_removal_takes_at_most_fourteen_git_processes(
    counter: Counter, tmp_path: Path, remote: bool, dirty: bool
) -> None:
    session = Session(make_repo(str(tmp_path / "repo"), remote=remote))
    path = session.enter("here")
    if dirty:
        commit(path, "work.txt", "committed\n")
        write(path, "new.txt", "not committed\n")
    session.wt("exit", "remove", "--discard-changes", env=counter.env()).ok()
    assert not os.path.exists(path)
    assert len(counter.git()) <= 14, counter.listing()
    assert len(counter.tmux()) <= 2, counter.listing()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_tmux_is_started_at_most_twice_with_a_server_running(counter: Counter, repo: str) -> None:
    session = Session(repo)
    session.wt("enter", "here", "--tmux=detached", env=counter.env()).ok()
    assert 1 <= len(counter.tmux()) <= 2, counter.listing()
    path = session.wt("path", "here").ok().out.rstrip("\n")
    wt("list", cwd=repo, env=counter.env()).ok()
    assert len(counter.tmux()) == 1, counter.listing()
    session.wt("exit", "remove", cwd=path, env=counter.env()).ok()
    assert 1 <= len(counter.tmux()) <= 2, counter.listing()


@pytest.mark.slow
@pytest.mark.parametrize("args", [("list", "--no-status"), ("path", "here"), ("--version",)])
def test_start_up_is_short(session: Session, args: tuple[str, ...]) -> None:
    main = session.cwd
    session.enter("here")
    bare, ours = [], []
    for _ in range(ROUNDS):  # in turns, so that noise meets both; the least is what the machine can do
        bare.append(seconds_of([interpreter(), "-c", "pass"], main))
        ours.append(seconds_of([executable(), *args], main))
    # Other work on the machine lengthens the time by the clock; git and tmux, running at once, that of the processors.
    ratios = [min(ours)[0] / min(bare)[0], min(took for _, took in ours) / min(took for _, took in bare)]
    assert min(ratios) <= START_UP, ratios


def modules_imported(*args: str, cwd: str) -> set[str]:
    """Every module that one run of the installed console script imports."""
    ran = subprocess.run(
        [interpreter(), "-X", "importtime", executable(), *args],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    lines = (line for line in ran.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


def interpreter() -> str:
    """The Python that the console script names in its first line."""
    with open(executable(), "rb") as script:
        first = os.fsdecode(script.readline()).strip()
    return first[2:] if first.startswith("#!/") and "python" in first else sys.executable


def seconds_of(argv: list[str], cwd: str) -> tuple[float, float]:
    """How long a program runs: by the clock, and of the processors for it and its children."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, cwd=cwd, env=environment(), capture_output=True, check=True)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
