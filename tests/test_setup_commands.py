"""Set-up and teardown commands: order, output, time limit, environment, ports, signals, other tools' files."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.repos import admin_dir, commit, make_repo, read, write
from tests.wt import Ran, Session, finish, start_wt, wt

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def configure(repo: str, text: str, *, trusted: bool = True) -> None:
    """Write `.git-wt.toml` and allow its commands."""
    write(repo, ".git-wt.toml", text)
    if trusted:
        wt("trust", "--yes", cwd=repo).ok()


def enter(repo: str, name: str = "task", **options: Any) -> Ran:
    """Enter a new worktree in a session of its own."""
    return Session(repo).wt("enter", name, "--json", **options)


def step(ran: Ran, name: str = "setup") -> Any:
    """What a step reported."""
    found = [report for report in ran.data["setup"] if report["step"] == name]
    assert len(found) == 1, ran
    return found[0]


def wait_for(path: str, seconds: float = 20) -> str:
    """The content of a file that somebody is about to write."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.path.exists(path) and read("/", path).endswith("\n"):
            return read("/", path)
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written")


def lives(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


# Running


def test_commands_run_in_order_in_the_worktree(repo: str) -> None:
    configure(repo, """
        [[setup]]
        run = "pwd -P >out; echo one >>out"
        [[setup]]
        run = ["sh", "-c", "echo two >>out"]
        [[setup]]
        run = ["touch", "$(touch x) y"]
    """)  # fmt: skip
    ran = enter(repo).ok()
    path = ran.data["worktreePath"]
    assert read(path, "out") == f"{path}\none\ntwo\n"
    assert os.path.exists(f"{path}/$(touch x) y")
    assert not os.path.exists(f"{path}/x")
    assert (step(ran)["status"], step(ran)["count"]) == ("done", 3)


def test_first_failure_ends_the_rest_and_the_worktree_is_usable(repo: str) -> None:
    configure(repo, """
        [[setup]]
        run = "touch first"
        [[setup]]
        name = "dependencies"
        run = "exit 3"
        [[setup]]
        run = "touch third"
    """)  # fmt: skip
    session = Session(repo)
    ran = session.wt("enter", "task", "--json")
    path = ran.data["worktreePath"]
    assert ran.code == 6
    assert (step(ran)["status"], step(ran)["count"]) == ("failed", 1)
    assert step(ran)["detail"] == "'dependencies' failed with exit code 3; 1 command not run"
    assert os.path.exists(f"{path}/first")
    assert not os.path.exists(f"{path}/third")
    assert not os.path.exists(f"{admin_dir(path)}/locked")
    configure(repo, '[[setup]]\nrun = "touch third"\n')
    assert step(session.wt("setup", "--json", cwd=path).ok())["status"] == "done"
    assert os.path.exists(f"{path}/third")


def test_what_is_no_program_is_said(repo: str) -> None:
    configure(repo, '[[setup]]\nrun = ["no-such-program", "x"]\n')
    ran = enter(repo)
    assert ran.code == 6
    assert "'no-such-program' is not on PATH" in step(ran)["detail"]


def test_output_comes_as_it_is_written_and_never_on_stdout(repo: str) -> None:
    configure(repo, """[[setup]]\nrun = "echo to out; echo to err >&2; while ! test -e go; do sleep 0.01; done" """)
    started = start_wt("enter", "task", "--json", cwd=repo, session="s")
    assert started.stderr is not None
    seen = b""
    while b"to err" not in seen or b"to out" not in seen:
        seen += os.read(started.stderr.fileno(), 100)
    write(f"{repo}/.claude/worktrees/task", "go", "")
    assert step(finish(started).ok())["status"] == "done"  # stdout is one JSON document


def test_without_json_stdout_is_the_path_alone(repo: str) -> None:
    configure(repo, '[[setup]]\nrun = "echo noise"\n')
    ran = Session(repo).wt("enter", "task").ok()
    assert ran.out == f"{repo}/.claude/worktrees/task\n"
    assert "noise\n" in ran.err


def test_quiet_shows_only_what_a_failed_command_said(repo: str) -> None:
    configure(repo, '[[setup]]\nrun = "echo fine"\n[[setup]]\nrun = "echo sorry; exit 1"\n')
    ran = Session(repo).wt("enter", "task", "-q")
    assert (ran.code, ran.err) == (6, "sorry\n")


def test_time_limit_ends_the_whole_process_group(repo: str) -> None:
    configure(repo, '[[setup]]\nrun = "sleep 300 & echo $! >pid; sleep 200"\ntimeout = 0.5\n')
    before = time.monotonic()
    ran = enter(repo)
    assert time.monotonic() - before < 20
    assert ran.code == 6
    assert step(ran)["detail"].endswith("took longer than 0.5 s and was ended")
    assert not lives(int(read(ran.data["worktreePath"], "pid")))


def test_a_command_cannot_wait_for_input(repo: str) -> None:
    configure(repo, '[[setup]]\nrun = "cat >input; tty >tty; true"\n')
    path = enter(repo).ok().data["worktreePath"]
    assert read(path, "input") == ""
    assert "not a tty" in read(path, "tty")


def test_commands_see_the_worktree_and_nothing_of_gits(repo: str) -> None:
    configure(repo, '[[setup]]\nrun = "env >env"\n')
    leaking = {
        "GIT_DIR": f"{repo}/.git",
        "GIT_INDEX_FILE": "/x",
        "GIT_EDITOR": ":",
        "GIT_AUTHOR_NAME": "me",
        "OWN": "1",
    }
    path = enter(repo, "feat/x", env=leaking).ok().data["worktreePath"]
    env = dict(line.partition("=")[::2] for line in read(path, "env").splitlines())
    port = env.pop("GIT_WT_PORT")
    assert port.endswith("0")
    kept = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}
    assert {name: env[name] for name in env if name.startswith("GIT_") and name not in kept} == {
        "GIT_WT_NAME": "feat/x",
        "GIT_WT_PATH": path,
        "GIT_WT_MAIN": repo,
        "GIT_WT_BRANCH": "worktree-feat+x",
    }
    assert (env["OWN"], env["PWD"]) == ("1", path)
    assert "git-core" not in env["PATH"]


def test_ports_differ_between_live_worktrees_and_stay(repo: str, tmp_path: Path) -> None:
    other = make_repo(str(tmp_path / "other"))
    ports: dict[str, str] = {}
    for number in range(4):
        place = other if number % 2 else repo
        configure(place, '[[setup]]\nrun = "echo $GIT_WT_PORT >port"\n')
        path = enter(place, f"task-{number}").ok().data["worktreePath"]
        ports[path] = read(path, "port").strip()
    blocks = [set(range(int(port), int(port) + 10)) for port in ports.values()]
    assert len(set().union(*blocks)) == 40
    for path, port in ports.items():
        wt("setup", "--json", cwd=path).ok()
        assert read(path, "port").strip() == port


def test_a_block_of_a_live_worktree_is_not_given_away_and_one_of_a_gone_worktree_is(repo: str, sealed: Path) -> None:
    live = admin_dir(Session(repo).enter("live"))
    ports = sealed / "xdg_state_home" / "git-wt" / "ports"
    ports.mkdir(parents=True, exist_ok=True)
    for port in range(20000, 32760, 10):
        (ports / str(port)).write_text(live)
    (ports / "25000").unlink()
    (ports / "26000").write_text(f"{repo}/.git/worktrees/gone")
    configure(repo, '[[setup]]\nrun = "echo port $GIT_WT_PORT >port"\n')
    found = {read(enter(repo, name).ok().data["worktreePath"], "port") for name in ("one", "two")}
    assert found == {"port 25000\n", "port 26000\n"}
    assert read(enter(repo, "three").ok().data["worktreePath"], "port") == "port\n"  # none is left


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_signal_ends_the_group_and_leaves_the_worktree(repo: str, number: signal.Signals) -> None:
    configure(repo, """
        [[setup]]
        run = "sleep 300 & echo $! >pid; sleep 200"
        [[setup]]
        run = "touch second"
    """)  # fmt: skip
    started = start_wt("enter", "task", cwd=repo, session="s")
    path = f"{repo}/.claude/worktrees/task"
    pid = int(wait_for(f"{path}/pid"))
    assert lives(pid)
    os.kill(started.pid, number)
    assert finish(started).code == 128 + number
    assert not lives(pid)
    assert not os.path.exists(f"{path}/second")
    assert not os.path.exists(f"{admin_dir(path)}/locked")
    configure(repo, '[[setup]]\nrun = "touch second"\n')
    wt("setup", "task", cwd=repo).ok()
    assert os.path.exists(f"{path}/second")


def test_a_users_own_configuration_needs_no_trust(repo: str, sealed: Path) -> None:
    write(str(sealed / "xdg_config_home"), "git-wt/config.toml", '[[setup]]\nrun = "touch mine"\n')
    ran = enter(repo).ok()
    assert os.path.exists(f"{ran.data['worktreePath']}/mine")


# Teardown


def test_teardown_runs_in_the_worktree_before_removal(repo: str) -> None:
    configure(repo, """[[teardown]]\nrun = "echo $GIT_WT_NAME $PWD >>$GIT_WT_MAIN/../gone" """)
    session = Session(repo)
    first = session.enter("one")
    session.wt("exit", "remove").ok()
    session.cwd = repo
    second = session.enter("two")
    session.wt("exit", "keep").ok()
    wt("remove", "two", cwd=repo).ok()
    assert read(repo, "../gone") == f"one {first}\ntwo {second}\n"
    assert not os.path.exists(second)


@pytest.mark.parametrize("args", [("exit", "remove"), ("remove", "task")])
def test_a_failing_teardown_keeps_the_worktree(repo: str, args: tuple[str, ...]) -> None:
    configure(repo, '[[teardown]]\nname = "stop the database"\nrun = "exit 4"\n')
    session = Session(repo)
    path = session.enter("task")
    ran = session.wt(*args, cwd=path if args[0] == "exit" else repo)
    assert ran.code == 1, ran
    assert "'stop the database' failed with exit code 4" in ran.err
    assert os.path.isdir(path)


@pytest.mark.parametrize("args", [("exit", "remove"), ("remove", "task")])
def test_what_teardown_leaves_is_looked_at_before_the_worktree_goes(repo: str, args: tuple[str, ...]) -> None:
    configure(repo, '[[teardown]]\nrun = "date >report"\n')
    session = Session(repo)
    path = session.enter("task")
    ran = session.wt(*args, cwd=path if args[0] == "exit" else repo)
    assert ran.code == 3, ran
    assert "1 file is not committed" in ran.err
    assert os.path.exists(f"{path}/report")


def test_teardown_that_nobody_allowed_is_skipped_and_said(repo: str) -> None:
    configure(repo, '[[teardown]]\nrun = "touch $GIT_WT_MAIN/../ran"\n', trusted=False)
    session = Session(repo)
    path = session.enter("task")
    ran = session.wt("exit", "remove").ok()
    assert "git wt trust" in ran.err
    assert not os.path.exists(path)
    assert not os.path.exists(f"{repo}/../ran")


def test_teardown_does_not_run_when_removal_is_refused(repo: str) -> None:
    configure(repo, '[[teardown]]\nrun = "touch $GIT_WT_MAIN/../ran"\n')
    session = Session(repo)
    path = session.enter("task")
    write(path, "work", "")
    assert session.wt("exit", "remove").code == 3
    assert not os.path.exists(f"{repo}/../ran")


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_signal_in_teardown_keeps_the_worktree_and_the_session(repo: str, number: signal.Signals) -> None:
    configure(repo, """[[teardown]]\nrun = 'sleep 300 & echo $! >"$GIT_WT_MAIN/../pid"; sleep 200' """)
    session = Session(repo)
    path = session.enter("task")
    started = start_wt("exit", "remove", cwd=path, session=session.id)
    pid = int(wait_for(os.path.abspath(f"{repo}/../pid")))
    os.kill(started.pid, number)
    assert finish(started).code == 128 + number
    assert not lives(pid)
    assert os.path.isdir(path)
    assert session.wt("exit", "keep", "--json").ok().data["action"] == "keep"


# Other tools' files

SAY = "echo setup $%s >>$%s/said"
FOREIGN: dict[str, tuple[dict[str, str], str]] = {
    "Cursor": ({".cursor/worktrees.json": '{"setup-worktree": ["echo $ROOT_WORKTREE_PATH >said"]}'}, "{main}"),
    "Cursor for Unix": (
        {".cursor/worktrees.json": '{"setup-worktree": ["exit 1"], "setup-worktree-unix": ["echo a >said"]}'},
        "a",
    ),
    "Cursor's script": (
        {".cursor/worktrees.json": '{"setup-worktree": "../tools/x"}', "tools/x": "echo $CURSOR_WORKTREE_PATH >said\n"},
        "{path}",
    ),
    "Codex": (
        {
            ".codex/environments/environment.toml": "[setup]\nscript = '''\nA=$CODEX_SOURCE_TREE_PATH\n"
            "echo $A $CODEX_WORKTREE_PATH >said\n'''\n"
        },
        "{main} {path}",
    ),
    "Codex for one platform": (
        {
            ".codex/environments/other.toml": "[setup]\nscript = 'exit 1'\n[setup.linux]\nscript = 'echo b >said'\n"
            "[setup.darwin]\nscript = 'echo b >said'\n"
        },
        "b",
    ),
    "Conductor": (
        {"conductor.json": '{"scripts": {"setup": "echo $CONDUCTOR_ROOT_PATH $CONDUCTOR_WORKSPACE_NAME >said"}}'},
        "{main} task",
    ),
    "Conductor's settings": (
        {
            "conductor.json": '{"scripts": {"setup": "exit 1"}}',
            ".conductor/settings.toml": "[scripts]\nsetup = 'echo $COLOUR $CONDUCTOR_IS_LOCAL >said'\n"
            "[environment_variables]\nCOLOUR = 'red'\n",
        },
        "red 1",
    ),
    "Superset": (
        {
            ".superset/config.json": '{"setup": ["exit 0", "echo $SUPERSET_WORKSPACE_NAME >>said"]}',
            ".superset/config.local.json": '{"setup": {"before": ["echo before >said"]}}',
        },
        "before\ntask",
    ),
    "Emdash": ({".emdash.json": '{"shellSetup": "A=1", "scripts": {"setup": "echo $A >said"}}'}, "1"),
    "phantom": (
        {"phantom.config.json": '{"postCreate": {"commands": ["echo $PHANTOM $PHANTOM_NAME >said"]}}'},
        "1 task",
    ),
}


@pytest.mark.parametrize("tool", FOREIGN)
def test_another_tools_file_is_used_as_it_is_after_trust(repo: str, tool: str) -> None:
    files, said = FOREIGN[tool]
    for name, content in files.items():
        write(repo, name, content)
    before = enter(repo, "before")
    assert (before.code, step(before)["status"]) == (6, "not-trusted")
    assert not os.path.exists(f"{before.data['worktreePath']}/said")
    wt("trust", "--yes", cwd=repo).ok()
    ran = enter(repo).ok()
    path = ran.data["worktreePath"]
    assert read(path, "said") == said.format(main=repo, path=path) + "\n"
    assert wt("config", "--json", cwd=repo).ok().data["setupFile"]["tool"] == tool.split("'")[0].split(" ")[0]


def test_superset_goes_on_after_a_failure(repo: str) -> None:
    write(repo, ".superset/config.json", '{"setup": ["exit 2", "touch later"], "teardown": []}')
    wt("trust", "--yes", cwd=repo).ok()
    ran = enter(repo)
    assert (ran.code, step(ran)["status"]) == (6, "failed")
    assert os.path.exists(f"{ran.data['worktreePath']}/later")


def test_another_tools_teardown_runs_too(repo: str) -> None:
    write(repo, "phantom.config.json", '{"preDelete": {"commands": ["echo $PHANTOM_NAME >../../../../gone"]}}')
    wt("trust", "--yes", cwd=repo).ok()
    session = Session(repo)
    session.enter("task")
    session.wt("exit", "remove").ok()
    assert read(repo, "../gone") == "task\n"


def test_ours_wins_over_other_tools_files(repo: str) -> None:
    write(repo, "conductor.json", '{"scripts": {"setup": "touch theirs", "archive": "exit 1"}}')
    configure(repo, '[[setup]]\nrun = "touch ours"\n')
    session = Session(repo)
    path = session.enter("task")
    assert os.path.exists(f"{path}/ours")
    assert not os.path.exists(f"{path}/theirs")
    data = wt("config", "--json", cwd=repo).ok().data
    assert data["setupFile"]["path"] == f"{repo}/.git-wt.toml"
    assert data["otherSetupFiles"] == [{"tool": "Conductor", "path": f"{repo}/conductor.json"}]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"scripts": {"setup": 3}}', "'scripts.setup' must be a string or a list of strings"),
        ('{\n// no\n"scripts": {}}', ":2: not valid JSON: comments are not allowed in JSON"),
        ("[]", "an object was expected"),
    ],
)
def test_another_tools_broken_file_is_said_and_nothing_of_it_runs(repo: str, content: str, why: str) -> None:
    write(repo, "conductor.json", content)
    ran = enter(repo)
    assert (ran.code, step(ran)["status"]) == (6, "failed")
    assert why in step(ran)["detail"]
    assert why in wt("config", cwd=repo).ok().err


def test_a_folder_outside_of_the_worktree_is_refused(repo: str) -> None:
    write(repo, ".superset/config.json", '{"setup": ["touch out"], "cwd": "../.."}')
    wt("trust", "--yes", cwd=repo).ok()
    ran = enter(repo)
    assert "outside of the worktree" in step(ran)["detail"]
    assert not os.path.exists(f"{repo}/.claude/out")


def test_a_script_of_the_worktree_sees_committed_files_only_of_its_branch(repo: str) -> None:
    commit(repo, "tools/s", "echo of the branch >said\n")
    configure(repo, '[[setup]]\nrun = "sh tools/s"\n')
    assert read(enter(repo).ok().data["worktreePath"], "said") == "of the branch\n"
