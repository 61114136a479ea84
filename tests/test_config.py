"""Settings: places and their order, origins, and what is said about what is wrong."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.repos import write
from tests.wt import Ran, Session, wt


def settings(repo: str, **options: Any) -> Any:
    """What `git wt config --json` tells."""
    return wt("config", "--json", cwd=repo, **options).ok().data


def problems(repo: str) -> list[str]:
    """What is wrong, each with its place below the repository."""
    found = settings(repo)["problems"]
    return [f"{problem['place']}: {problem['message']}".replace(f"{repo}/", "") for problem in found]


def test_every_setting_has_a_value_and_an_origin(repo: str) -> None:
    data = settings(repo)
    assert data["settings"]["baseRef"] == {"value": "fresh", "origin": "default"}
    assert (data["files"], data["setupFile"], data["problems"]) == ([], None, [])
    words = wt("config", cwd=repo).ok().out
    assert "baseRef" in words
    assert "set-up commands: none" in words


def test_the_first_place_that_says_something_wins(repo: str, sealed: Path) -> None:
    home, config = str(sealed), str(sealed / "xdg_config_home")
    places = [
        write(repo, ".git-wt.local.toml", "\n\n[sweep]\ndays = 2\n"),
        write(repo, ".git-wt.toml", "sweep.days = 3\n"),
        write(repo, ".claude/settings.local.json", '{"cleanupPeriodDays": 4}'),
        write(repo, ".claude/settings.json", '{\n"model": "x",\n"cleanupPeriodDays": 5}'),
        write(config, "git-wt/config.toml", "# mine\n[trash]\ndays = 1\n[sweep]\ndays = 6\n"),
        write(home, ".claude/settings.json", '{"cleanupPeriodDays": 7}'),
    ]
    lines = [4, 1, 1, 3, 5, 1]
    own = settings(repo, env={"GIT_WT_CONFIG_SWEEP_DAYS": "1"})["settings"]["sweep.days"]
    assert own == {"value": 1, "origin": "GIT_WT_CONFIG_SWEEP_DAYS"}
    for number, (place, line) in enumerate(zip(places, lines, strict=True), 2):
        found = settings(repo)
        assert found["files"] == places[number - 2 :]
        assert found["settings"]["sweep.days"] == {
            "value": number,
            "origin": f"{place}:{line}",
            "file": place,
            "line": line,
        }
        os.unlink(place)
    assert settings(repo)["settings"]["sweep.days"]["origin"] == "default"


def test_settings_of_claude_code_are_read_as_they_are(repo: str) -> None:
    text = '{"permissions": {}, "worktree": {"symlinkDirectories": ["a"], "sparsePaths": ["b"], "baseRef": "head"}}'
    write(repo, ".claude/settings.json", text)
    data = settings(repo)
    values = {key: data["settings"][key]["value"] for key in ("symlinkDirectories", "sparsePaths", "baseRef")}
    assert values == {"symlinkDirectories": ["a"], "sparsePaths": ["b"], "baseRef": "head"}
    assert data["problems"] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\nbaseref = 'head'", "2: unknown key 'baseref', did you mean 'baseRef'?"),
        ("[trash]\n# x\ndayz = 3", "3: unknown key 'trash.dayz', did you mean 'trash.days'?"),
        ("[worktree]\nsparsePaths = []", "2: unknown key 'worktree.sparsePaths', did you mean 'sparsePaths'?"),
        ("windows = []", "1: unknown key 'windows', did you mean 'tmux.windows'?"),
        ("[tmux]\nauto = 1", "2: 'tmux.auto' must be true or false, not 1"),
        ("[sweep]\ndays = true", "2: 'sweep.days' must be a number, 0 or more, not true"),
        ("sweep.days = -1", "1: 'sweep.days' must be a number, 0 or more, not -1"),
        ("sweep.days = inf", "1: 'sweep.days' must be a number, 0 or more, not inf"),
        ("baseRef = 'stale'", "1: 'baseRef' must be \"fresh\" or \"head\", not 'stale'"),
        ("trash.size = 20", "1: 'trash.size' must be a size like \"20GB\", not 20"),
        ("symlinkDirectories = 'x'", "1: 'symlinkDirectories' must be a list of strings, not 'x'"),
        ("symlinkDirectories = [1]", "1: 'symlinkDirectories' must be a list of strings, not a list"),
        ("[setup]\nrun = 'x'", "1: 'setup' must be a list of tables ([[setup]]), not a table"),
        ("[[setup]]\nrun = 'x'\n[[setup]]\nrun = 3", "4: 'setup[1].run' must be a string or a list of strings, not 3"),
        ("[[setup]]\nrun = []", "2: 'setup[0].run' must be a string or a list of strings, not a list"),
        ("[[setup]]\nname = 'x'", "1: 'setup[0]' has no 'run'"),
        ("[[setup]]\nrun = 'x'\ntimeout = true", "3: 'setup[0].timeout' must be a number of seconds above 0, not true"),
        ("[[setup]]\nrun = 'x'\ntimeout = 0", "3: 'setup[0].timeout' must be a number of seconds above 0, not 0"),
        ("[[teardown]]\nrun = 'x'\ncmd = 1\n", "3: unknown key 'teardown[0].cmd'"),
        ("[tmux]\nwindows = [{ panes = 1.5 }]", "2: 'tmux.windows[0].panes' must be a whole number above 0, not 1.5"),
        ('directory = """\nsweep.days = 1\n"""\nsweep.days = true', "4: 'sweep.days' must be a number"),
        ("baseRef = 'head'\nbranch = ", "2: not valid TOML: Invalid value"),
        ("baseRef = 'head'\nbaseRef = 'head'", "2: not valid TOML: Cannot overwrite a value"),
        ("a = '\udce4'", "1: not UTF-8"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(repo: str, text: str, expected: str) -> None:
    write(repo, ".git-wt.toml", text)
    assert any(problem.startswith(f".git-wt.toml:{expected}") for problem in problems(repo)), problems(repo)
    ran = Session(repo).wt("enter", "task", "--json")
    assert (ran.code, ran.error["code"]) == (1, "config")
    assert f"{repo}/.git-wt.toml:" in ran.error["message"]
    assert not os.path.exists(f"{repo}/.claude/worktrees/task")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  // why\n  "cleanupPeriodDays": 3}', "2: not valid JSON: comments are not allowed in JSON"),
        ('{\n "cleanupPeriodDays": 3, /* x */\n "a": 1}', "2: not valid JSON: comments are not allowed in JSON"),
        ('{"a": [1, 2,],\n}', "1: not valid JSON: a comma may not stand before a closing bracket"),
        ('{"a": 1,\n}', ":not valid JSON: a comma may not stand before a closing bracket"),
        ("[]", "1: an object was expected"),
        ("[" * 100000, "not valid JSON"),
        ('{"worktree": []}', "1: 'worktree' must be an object"),
        ('{\n"worktree": {\n"sparsePaths": "x"}}', "3: worktree: 'sparsePaths' must be a list of strings, not 'x'"),
        ('{\n"cleanupPeriodDays": true}', "2: cleanupPeriodDays: 'sweep.days' must be a number, 0 or more, not true"),
        ("", "1: not valid JSON"),
    ],
)
def test_json_that_is_wrong_is_said_with_its_line(repo: str, text: str, expected: str) -> None:
    write(repo, ".claude/settings.json", text)
    (found,) = problems(repo)
    line, _, what = expected.partition(":") if expected[0] in "0123456789:" else ("", "", expected)
    assert found.startswith(f".claude/settings.json:{line}")
    assert what.strip() in found


def test_a_byte_order_mark_is_no_error_in_json(repo: str) -> None:
    write(repo, ".claude/settings.json", '\ufeff{"cleanupPeriodDays": 3}')
    assert settings(repo)["settings"]["sweep.days"]["value"] == 3


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("SWEEPDAYS", "x", "'sweep.days' must be a number, 0 or more, not 'x'"),
        ("TMUX_AUTO", "maybe", "'tmux.auto' must be true or false, not 'maybe'"),
        ("NOTHING", "x", "there is no such setting"),
    ],
)
def test_a_wrong_variable_is_said(repo: str, variable: str, text: str, expected: str) -> None:
    ran = Session(repo).wt("enter", "task", env={f"GIT_WT_CONFIG_{variable}": text})
    assert ran.code == 1
    assert f"GIT_WT_CONFIG_{variable}: {expected}" in ran.err


def test_a_broken_file_keeps_nobody_from_leaving_and_undoing(repo: str) -> None:
    session = Session(repo)
    path = session.enter("task")
    write(repo, ".git-wt.toml", "baseRef = [\n")
    for args in (("list",), ("exit", "remove"), ("undo",), ("trash",), ("config",), ("path", "task")):
        ran = session.wt(*args, cwd=repo).ok()
        assert f"warning: {repo}/.git-wt.toml:" in ran.err, args
    assert os.path.isdir(path)


def test_the_other_settings_of_a_file_with_one_wrong_key_hold(repo: str) -> None:
    write(repo, ".git-wt.toml", "nonsense = 1\n[trash]\ndays = 3\n")
    assert settings(repo)["settings"]["trash.days"]["value"] == 3


def test_a_pipe_in_place_of_a_file_holds_nobody_up(repo: str) -> None:
    os.mkfifo(f"{repo}/.git-wt.toml")
    assert problems(repo) == [".git-wt.toml: not a file"]


def test_the_setup_file_in_use_is_named(repo: str) -> None:
    write(repo, "phantom.config.json", '{"postCreate": {"commands": ["a", "b"]}}')
    write(repo, "conductor.json", '{"scripts": {"setup": "a", "archive": "b"}}')
    data = settings(repo)
    assert data["setupFile"] == {"tool": "Conductor", "path": f"{repo}/conductor.json", "setup": 1, "teardown": 1}
    assert data["otherSetupFiles"] == [{"tool": "phantom", "path": f"{repo}/phantom.config.json"}]
    words: Ran = wt("config", cwd=repo).ok()
    assert f"set-up commands: {repo}/conductor.json (Conductor)\n" in words.out
    assert f"not used: {repo}/phantom.config.json (phantom)\n" in words.out
    write(repo, ".git-wt.toml", "setup = []\n")
    assert settings(repo)["setupFile"]["path"] == f"{repo}/.git-wt.toml"
