"""What `enter` answers: paths, JSON, the file of the shell integration, commands, errors."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.repos import branches, git, head, make_repo, status, worktrees, write
from tests.wt import Session, executable, wt


def test_without_terminal_stdout_is_exactly_the_path(repo: str) -> None:
    ran = wt("enter", "x", cwd=repo).ok()
    assert ran.out == f"{repo}/.claude/worktrees/x\n"
    assert ran.err.startswith("git-wt: ")
    assert len(ran.err.splitlines()) == 1


def test_quiet_says_nothing_on_stderr(repo: str) -> None:
    ran = wt("enter", "x", "-q", cwd=repo).ok()
    assert (ran.out, ran.err) == (f"{repo}/.claude/worktrees/x\n", "")


@pytest.mark.parametrize("odd", ["plain", "a b'c\"d\n\N{SNOWMAN}", "caf\udce9", " end\n"])
def test_cd_file_gets_the_raw_path_and_stdout_nothing(tmp_path: Path, odd: str) -> None:
    repo = make_repo(os.path.join(str(tmp_path), odd))
    file = tmp_path / "cd"
    ran = wt("enter", "x", cwd=repo, env={"GIT_WT_CD_FILE": str(file)}).ok()
    assert ran.out == ""
    assert file.read_bytes() == os.fsencode(f"{repo}/.claude/worktrees/x")
    assert len(ran.err.splitlines()) == 1


def test_cd_file_stays_empty_when_enter_fails(repo: str, tmp_path: Path) -> None:
    file = tmp_path / "cd"
    ran = wt("enter", "a//b", cwd=repo, env={"GIT_WT_CD_FILE": str(file)})
    assert (ran.code, ran.out) == (2, "")
    assert not file.exists() or file.read_bytes() == b""


def test_json_with_a_cd_file_gives_both(repo: str, tmp_path: Path) -> None:
    file = tmp_path / "cd"
    data = wt("enter", "x", "--json", cwd=repo, env={"GIT_WT_CD_FILE": str(file)}).ok().data
    assert file.read_bytes() == os.fsencode(data["worktreePath"])


def test_json_document_has_the_shape_of_the_contract(cloned: str) -> None:
    ran = wt("enter", "x", "--json", cwd=cloned, session="me").ok()
    assert set(ran.json) == {"success", "tool", "data"}
    assert (ran.json["success"], ran.json["tool"]) == (True, "enter")
    data = dict(ran.data)
    assert "'x'" in data.pop("message")
    assert data == {
        "worktreePath": f"{cloned}/.claude/worktrees/x",
        "worktreeBranch": "worktree-x",
        "base": "origin/main",
        "baseCommit": head(cloned, "origin/main"),
        "resumed": False,
        "session": "me",
        "setup": data["setup"],
    }
    assert isinstance(data["setup"], list)


def test_detached_worktree_has_no_branch_in_json(repo: str, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "hand"))
    assert "worktreeBranch" not in wt("enter", "hand", "--json", cwd=repo).ok().data


def test_path_that_is_not_utf8_survives_json(tmp_path: Path) -> None:
    repo = make_repo(os.path.join(str(tmp_path), "caf\udce9"))
    ran = wt("enter", "x", "--json", cwd=repo).ok()
    ran.out_bytes.decode("ascii")
    assert ran.data["worktreePath"] == f"{repo}/.claude/worktrees/x"
    assert os.path.isdir(ran.data["worktreePath"])


@pytest.mark.parametrize("place", ["before", "after"])
def test_json_may_stand_before_and_behind_the_command(repo: str, place: str) -> None:
    args = ("--json", "enter", "x") if place == "before" else ("enter", "x", "--json")
    assert wt(*args, cwd=repo).ok().data["worktreePath"].endswith("/x")


def test_error_is_one_json_document(repo: str) -> None:
    ran = wt("enter", "a//b", "--json", cwd=repo)
    assert ran.err == ""
    assert ran.json == {
        "success": False,
        "tool": "enter",
        "data": None,
        "errors": [{"code": "invalid-name", "message": ran.error["message"], "hint": ran.error["hint"]}],
    }


def test_error_is_a_line_and_a_hint_on_stderr(repo: str) -> None:
    wt("enter", "x", cwd=repo).ok()
    ran = wt("enter", "y", cwd=repo)
    assert (ran.code, ran.out) == (1, "")
    first, second = ran.err.splitlines()
    assert first.startswith("git-wt: cannot enter")
    assert second.startswith("hint: git wt ")


@pytest.mark.parametrize(
    "args",
    [("enter", "x", "--nonsense"), ("enter", "x", "y"), ("enter", "--base"), ("enter", "x", "--tmux=odd"),
     ("enter", "x", "--path", "."), ("enter", "--path", ".", "--branch", "b"),
     ("enter", "x", "--reuse-branch", "--reset-branch"), ("nonsense",), ("enter", "-C", "/nonexistent", "x")],
)  # fmt: skip
def test_wrong_usage_is_exit_code_2_in_words_and_in_json(repo: str, args: tuple[str, ...]) -> None:
    words = wt(*args, cwd=repo)
    assert (words.code, words.out) == (2, "")
    assert words.err.startswith("git-wt: cannot ")
    document = wt(*args, "--json", cwd=repo)
    assert (document.code, document.error["code"]) == (2, "usage")
    assert (branches(repo), worktrees(repo)) == (["main"], [repo])


def test_command_runs_in_the_worktree_as_this_session(repo: str) -> None:
    script = 'pwd; echo "$GIT_WT_SESSION"; cat'
    ran = wt("enter", "x", "--", "sh", "-c", script, cwd=repo, session="me", input="typed\n").ok()
    path = f"{repo}/.claude/worktrees/x"
    assert ran.out.splitlines()[:3] == [path, "me", "typed"]
    assert worktrees(repo) == [repo, path]  # kept: there is no terminal to ask
    assert wt("exit", "--json", cwd=repo, session="me").ok().data["action"] == "none"


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_exit_code_of_the_command_passes(repo: str, code: int) -> None:
    assert wt("enter", "x", "--", "sh", "-c", f"exit {code}", cwd=repo).code == code


def test_signal_that_ends_the_command_passes_as_in_a_shell(repo: str) -> None:
    assert wt("enter", "x", "--", "sh", "-c", "kill -TERM $$", cwd=repo).code == 143


def test_command_that_is_not_found_is_127_and_named(repo: str) -> None:
    ran = wt("enter", "x", "--", "no-such-program", cwd=repo)
    assert ran.code == 127
    assert "no-such-program" in ran.err
    assert worktrees(repo)[1:] == [f"{repo}/.claude/worktrees/x"]


def test_command_without_a_name_gets_a_random_worktree(repo: str) -> None:
    ran = wt("enter", "--", "sh", "-c", "pwd", cwd=repo).ok()
    assert ran.out.splitlines()[0] == worktrees(repo)[1]
    assert os.path.basename(worktrees(repo)[1]) not in ("sh", "-c", "pwd")


@pytest.mark.parametrize(
    "command", [("git", "log", "--", "-x"), ("printf", "%s,", "--json", "-q", "--", "-C", "a b"), ("echo", "--", "--")]
)
def test_words_of_the_command_are_passed_untouched(repo: str, command: tuple[str, ...]) -> None:
    program = write(repo, "words", "#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    os.chmod(program, 0o755)
    ran = wt("enter", "x", "--base", "HEAD", "--", program, *command, cwd=repo).ok()
    assert ran.out.startswith("".join(f"<{word}>" for word in command))


def test_json_of_an_error_is_not_asked_for_by_the_words_of_the_command(repo: str) -> None:
    ran = wt("enter", "a//b", "--", "cat", "--json", cwd=repo)
    assert (ran.code, ran.out) == (2, "")


def test_json_with_a_command_is_one_document_on_stdout(repo: str) -> None:
    ran = wt("enter", "x", "--json", "--", "sh", "-c", "echo said by the command", cwd=repo).ok()
    assert ran.data["worktreePath"] == f"{repo}/.claude/worktrees/x"
    assert "said by the command" in ran.err


def test_leaked_git_variables_do_not_reach_the_command(repo: str) -> None:
    env = {"GIT_DIR": f"{repo}/.git", "GIT_INDEX_FILE": f"{repo}/.git/index", "GIT_WORK_TREE": repo}
    ran = wt("enter", "x", "--", "sh", "-c", "env; git status --short", cwd=repo, env=env).ok()
    assert [line for line in ran.out.splitlines() if line.startswith(("GIT_DIR", "GIT_INDEX", "GIT_WORK"))] == []
    assert status(repo) == []


def test_reader_that_goes_away_gets_no_traceback(repo: str) -> None:
    Session(repo).enter("x")
    script = f"'{executable()}' list --json | true"
    ran = subprocess.run(["sh", "-c", script], cwd=repo, capture_output=True, check=False, text=True)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("variable", ["HOME", "XDG_STATE_HOME", "PATH", "LC_ALL", "GIT_WT_SESSION", "TERM"])
def test_environment_with_a_hole_still_works(repo: str, variable: str) -> None:
    if variable == "PATH":
        env: dict[str, str | None] = {"PATH": f"{os.path.dirname(executable())}:/usr/bin:/bin"}
    else:
        env = {variable: None}
    ran = wt("enter", "x", "--json", cwd=repo, env=env, session="" if variable == "GIT_WT_SESSION" else None)
    assert ran.ok().data["worktreePath"] == f"{repo}/.claude/worktrees/x"


def test_session_id_may_be_anything(repo: str) -> None:
    for number, name in enumerate(["../../x", "a b", "\N{SNOWMAN}", "x" * 5000, "a\nb", "-x"]):
        data = wt("enter", f"x{number}", f"--session={name}", "--json", cwd=repo).ok().data
        assert data["session"] == name
        assert wt("exit", "keep", f"--session={name}", "--json", cwd=repo).ok().data["action"] == "keep"


def test_session_flag_wins_over_the_variable(repo: str) -> None:
    wt("enter", "x", "--session", "flag", cwd=repo, session="variable").ok()
    assert wt("exit", "keep", "--json", cwd=repo, session="variable").ok().data["action"] == "none"
    assert wt("exit", "keep", "--json", cwd=repo, session="flag").ok().data["action"] == "keep"


def test_session_is_the_posix_session_when_nothing_else_is_said(repo: str) -> None:
    script = f"'{executable()}' enter x --json; '{executable()}' exit keep --json"
    ran = subprocess.run(
        ["setsid", "--wait", "sh", "-c", script],
        cwd=repo,
        env={name: value for name, value in os.environ.items() if name != "GIT_WT_SESSION"},
        capture_output=True,
        check=True,
        text=True,
    )
    first, second = ran.stdout.split("\n}\n", 1)
    assert json.loads(first + "\n}")["data"]["session"]
    assert json.loads(second)["data"]["action"] == "keep"
    assert wt("exit", "keep", "--json", cwd=repo, session="").ok().data["action"] == "none"


@pytest.mark.parametrize("content", ["nonsense = 1\n", "baseRef = 3\n", "[trash]\ndayz = 1\n", "not toml"])
def test_settings_that_are_wrong_fail_enter_before_anything_is_made(repo: str, content: str) -> None:
    write(repo, ".git-wt.toml", content)
    ran = wt("enter", "x", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (1, "config")
    assert ".git-wt.toml" in ran.error["message"]
    assert (branches(repo), worktrees(repo)) == (["main"], [repo])
    assert not os.path.exists(f"{repo}/.claude")


def test_settings_name_the_line_and_the_nearest_key(repo: str) -> None:
    write(repo, ".git-wt.toml", '# settings\n\nbranhc = "{name}"\n')
    message = wt("enter", "x", "--json", cwd=repo).error["message"]
    assert ".git-wt.toml:3" in message
    assert "'branch'" in message
