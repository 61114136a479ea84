"""`git wt` in real interactive shells, with the integration and without; nothing here is a stand-in for a shell."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.repos import branches, commit, make_repo, worktrees, write
from tests.shells import Ran, Shell, require_shell
from tests.wt import Session, environment, wt

Start = Callable[..., Shell]
Shim = Callable[..., None]

HERE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shell")
INTEGRATION = {
    "bash": 'eval "$(git wt init bash)"',
    "zsh": 'eval "$(git wt init zsh)"',
    "fish": "git wt init fish | source",
}
HOSTILE_NAME = "a b'c\"d$(touch pwned)`touch pwned`\ne*"
HOSTILE_OPTIONS = {
    "bash": [
        "set -eu -o pipefail -o noclobber",
        "set -o posix",
        "IFS=/tw; CDPATH=/:/tmp",
        "shopt -s nullglob failglob nocasematch lastpipe cdable_vars",
        "trap 'exit 9' ERR; set -E",
    ],
    "zsh": [
        "setopt err_exit no_unset pipe_fail no_clobber",
        "setopt ksh_arrays sh_word_split null_glob glob_subst extended_glob warn_create_global noglob",
        "setopt posix_builtins sh_glob ignore_close_braces no_interactive_comments all_export",
        "IFS=/tw; CDPATH=/:/tmp",
        "setopt auto_pushd; chpwd() { return 1 }",
    ],
    "fish": ["set -g IFS /tw", "set -gx CDPATH / /tmp"],
}
POSIX_ALIASES = "; ".join(
    f"alias {name}='echo alias-of-{name}'"
    for name in ("builtin", "cd", "command", "kill", "local", "mktemp", "read", "rm", "trap", "true")
)
TAKEN_NAMES = {  # set-ups in which the names that the wrapper needs belong to the user
    "bash": [f"shopt -s expand_aliases; {POSIX_ALIASES}; alias git='git --no-pager'",
             "cd() { echo mine; }; rm() { echo mine; }; mktemp() { echo mine; }"],
    "zsh": [f"{POSIX_ALIASES}; alias git='git --no-pager'",
            "cd() { echo mine; }; rm() { echo mine; }; mktemp() { echo mine; }"],
    "fish": ["alias rm 'echo mine'; alias mktemp 'echo mine'; alias cd 'echo mine'; alias sh 'echo mine'"],
}  # fmt: skip


@pytest.fixture(params=["bash", "zsh", "fish"])
def kind(request: pytest.FixtureRequest) -> str:
    """Each shell in turn."""
    name = str(request.param)
    if not shutil.which(name):
        pytest.skip(f"no {name} here")
    return name


@pytest.fixture
def start(kind: str, sealed: Path) -> Iterator[Start]:
    """Starts a shell in a folder, `setup` read before the integration. No file of the wrapper may be left over."""
    scratch = sealed / "tmp"
    scratch.mkdir()
    shells = []

    def start_shell(cwd: str, setup: str = "", *, integrated: bool = True) -> Shell:
        lines = f"{setup}\n{INTEGRATION[kind] if integrated else ''}"
        shells.append(Shell(kind, cwd, sealed, setup=lines, env={"TMPDIR": str(scratch), "GIT_PAGER": "cat"}))
        return shells[-1]

    yield start_shell
    for shell in shells:
        shell.close()
    assert [name for name in os.listdir(scratch) if name.startswith("git-wt")] == []


@pytest.fixture
def shim(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> Shim:
    """Puts a program of that name first on PATH, which does what `before` says and then goes on as the real one."""
    folder = sealed / "shims"
    folder.mkdir()

    def write_shim(name: str, before: str) -> None:
        real = shutil.which(name)
        (folder / name).write_text(f"#!/bin/sh\n{before}\nexec '{real}' \"$@\"\n")
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    return write_shim


def ok(ran: Ran) -> str:
    """What was on the screen, after a check that the exit code is 0."""
    assert ran.code == 0, ran
    return ran.output


def worktree_of(repo: str, name: str) -> str:
    """Where `git wt enter` puts a worktree."""
    return os.path.join(repo, ".claude", "worktrees", name)


def each(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    """(shell, line) of a table of lines by shell."""
    return [(kind, line) for kind, lines in table.items() for line in lines]


# with the integration


def test_init_prints_the_file_of_this_shell(kind: str, repo: str) -> None:
    with open(os.path.join(HERE, f"git-wt.{kind}"), encoding="utf-8") as file:
        assert wt("init", kind, cwd=repo).ok().out == file.read()


def test_enter_moves_the_shell_and_exit_keep_brings_it_back(start: Start, repo: str) -> None:
    before = os.path.dirname(write(repo, "sub/folder/file", ""))
    shell = start(before)
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit keep"))
    assert shell.pwd() == before
    assert worktrees(repo) == [repo, worktree_of(repo, "task")]


def test_enter_moves_the_shell_and_exit_remove_brings_it_back(start: Start, repo: str) -> None:
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit remove"))
    assert shell.pwd() == repo
    assert (worktrees(repo), branches(repo)) == ([repo], ["main"])


def test_shell_stays_where_it_is_when_work_would_be_lost(start: Start, repo: str) -> None:
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    write(shell.pwd(), "new.txt", "not committed\n")
    refused = shell.run("git wt exit remove")
    assert refused.code == 3
    assert "--discard-changes" in refused.output
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit remove --discard-changes"))
    assert shell.pwd() == repo


def test_exit_code_of_wrong_usage_passes_and_the_shell_stays(start: Start, repo: str) -> None:
    shell = start(repo)
    assert shell.run("git wt enter no..name").code == 2
    assert shell.run("git wt no-such-command").code == 2
    assert shell.pwd() == repo


def test_switch_and_cd_move_the_shell(start: Start, repo: str) -> None:
    shell = start(repo)
    ok(shell.run("git wt enter one"))
    ok(shell.run("git wt switch two"))
    assert shell.pwd() == worktree_of(repo, "two")
    ok(shell.run("git wt cd one"))
    assert shell.pwd() == worktree_of(repo, "one")
    ok(shell.run("git wt cd ^"))
    assert shell.pwd() == repo
    ok(shell.run("git wt cd -"))
    assert shell.pwd() == worktree_of(repo, "one")


def test_removing_the_worktree_that_the_shell_stands_in_moves_it_to_the_main_checkout(start: Start, repo: str) -> None:
    Session(repo).wt("enter", "task", "--json").ok()
    Session(repo).wt("exit", "keep").ok()
    shell = start(repo)
    ok(shell.run("git wt cd task"))
    ran = shell.run("git wt remove task --force-occupied")
    assert (ran.code, shell.pwd()) == (0, repo), ran


def test_cd_minus_goes_back_as_after_any_cd(start: Start, repo: str) -> None:
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    ok(shell.run("cd -"))
    assert shell.pwd() == repo


@pytest.mark.parametrize(
    "options",
    [
        "-C sub",
        "-c color.ui=always",
        "--no-pager -p",
        "--git-dir .git",
        "--git-dir=.git --work-tree .",
        "--namespace wt --literal-pathspecs",
        "--config-env=a.b=HOME --config-env c.d=HOME -c e.f -C . -C sub",
    ],
)
def test_wt_is_found_behind_options_of_git(start: Start, repo: str, options: str) -> None:
    write(repo, "sub/file", "")
    shell = start(repo)
    level = shell.variable("SHLVL")
    ok(shell.run(f"git {options} wt enter task"))
    assert (shell.pwd(), shell.variable("SHLVL")) == (worktree_of(repo, "task"), level)  # moved, no subshell


def test_dash_c_names_the_repository(start: Start, repo: str, tmp_path: Path) -> None:
    shell = start(str(tmp_path))
    ok(shell.run("git -C repo wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit keep"))
    assert shell.pwd() == str(tmp_path)


def test_program_called_by_its_own_name_moves_the_shell(start: Start, repo: str) -> None:
    shell = start(repo)
    level = shell.variable("SHLVL")
    ok(shell.run("git-wt enter task"))
    assert (shell.pwd(), shell.variable("SHLVL")) == (worktree_of(repo, "task"), level)
    ok(shell.run("git-wt exit remove"))
    assert shell.pwd() == repo


@pytest.mark.parametrize(("kind", "options"), each(HOSTILE_OPTIONS), indirect=["kind"])
def test_options_of_the_shell_do_not_matter(start: Start, repo: str, options: str) -> None:
    shell = start(repo, options)
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit remove"))
    assert shell.pwd() == repo


@pytest.mark.parametrize(("kind", "setup"), each(TAKEN_NAMES), indirect=["kind"])
def test_aliases_and_functions_of_the_user_do_not_matter(start: Start, repo: str, setup: str) -> None:
    shell = start(repo, setup)
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit remove"))
    assert shell.pwd() == repo


def test_posix_mode_of_bash_goes_without_the_function_that_it_does_not_allow(repo: str) -> None:
    require_shell("bash")
    ran = run_script("bash", f"set -o posix; {INTEGRATION['bash']}; git wt cd ^ && echo alive", repo)
    assert (ran.stdout, ran.returncode) == ("alive\n", 0), ran
    assert "identifier" not in ran.stderr


def test_failure_ends_a_shell_that_ends_on_errors_and_no_other(start: Start, kind: str, repo: str) -> None:
    if kind == "fish":
        pytest.skip("fish has no errexit")
    shell = start(repo, "set -eu")
    ok(shell.run("git wt enter no..name || echo $?"))
    shell.start("git wt enter no..name")
    assert shell.wait_for_end() == 2


def test_folders_that_cannot_hold_the_temporary_file_are_passed_over(start: Start, repo: str) -> None:
    shell = start(repo, "export XDG_RUNTIME_DIR=/nonexistent; export TMPDIR=relative")
    level = shell.variable("SHLVL")
    ran = shell.run("git wt enter task")
    assert (ran.code, shell.pwd(), shell.variable("SHLVL")) == (0, worktree_of(repo, "task"), level)
    assert "mktemp" not in ran.output


def test_sourcing_twice_is_harmless(start: Start, kind: str, repo: str) -> None:
    shell = start(repo, INTEGRATION[kind])
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    assert shell.run("git wt enter no..name").code == 2


def test_sourcing_starts_no_process(kind: str, repo: str) -> None:
    source = f"source '{HERE}/git-wt.{kind}'"
    ran = run_script(kind, f"{source}; {source}; echo alive", repo, PATH="/nonexistent")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("alive\n", "", 0)


def test_no_byte_of_a_path_is_taken_for_code(start: Start, tmp_path: Path) -> None:
    repo = make_repo(str(tmp_path / HOSTILE_NAME))
    before = os.path.join(repo, "ends in newlines\n\n")
    os.mkdir(before)
    shell = start(before)
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit remove"))
    assert shell.pwd() == before
    assert list(tmp_path.rglob("pwned")) == []


@pytest.mark.skipif(sys.platform == "darwin", reason="file names are UTF-8 there")
def test_path_need_not_be_utf_8(start: Start, tmp_path: Path) -> None:
    repo = make_repo(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit keep"))
    assert shell.pwd() == repo


@pytest.mark.parametrize("action", ["keep", "remove"])
def test_exit_works_when_the_folder_has_gone_under_the_shell(start: Start, repo: str, shim: Shim, action: str) -> None:
    shim("git-wt", before='[ -d "$PWD" ] || exit 1')  # as the shims of pyenv do
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    shutil.rmtree(shell.pwd())
    ran = shell.run(f"git wt exit {action}")
    assert (ran.code, shell.pwd()) == (0, repo), ran


def test_exit_works_when_somebody_else_has_removed_the_worktree(start: Start, repo: str) -> None:
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    Session(repo).wt("remove", "task", "--force-occupied").ok()
    ran = shell.run("git wt exit keep")
    assert (ran.code, shell.pwd()) == (0, repo), ran


def test_other_commands_of_git_start_no_other_process(start: Start, repo: str, shim: Shim, tmp_path: Path) -> None:
    told = tmp_path / "told"
    for name in ("mktemp", "rm"):
        shim(name, before=f"echo {name} >>'{told}'")
    shell = start(repo)
    told.unlink(missing_ok=True)
    write(repo, "wt", "")
    for line in (
        "git",
        "git status",
        "git add wt",
        "git commit -q -m wt wt",
        "git -c a.b=wt log --oneline -- wt",
        "git --no-pager branch wt",
        "git help wt </dev/null",
        "git --help wt </dev/null",
        "git -C wt",
    ):
        shell.run(line)
    assert branches(repo) == ["main", "wt"]
    assert not told.exists()
    shell.run("git wt cd ^")
    assert "mktemp" in told.read_text()


def test_folder_that_cannot_be_gone_to_is_a_failure_unless_there_was_one_already(
    start: Start, repo: str, shim: Shim
) -> None:
    shim("git-wt", before='[ "$1" != cd ] || { printf %s /nonexistent >"$GIT_WT_CD_FILE"; exit "$2"; }')
    shell = start(repo)
    failed = shell.run("git wt cd 0")
    assert (failed.code, shell.pwd()) == (1, repo)
    assert "/nonexistent" in failed.output
    assert shell.run("git wt cd 6").code == 6


def test_variables_of_the_wrapper_stay_within_it(start: Start, repo: str) -> None:
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    assert [shell.variable(name) for name in ("GIT_WT_CD_FILE", "GIT_WT_SHELL", "file", "dir", "rc")] == [""] * 5


def test_subshell_is_moved_alone(start: Start, kind: str, repo: str) -> None:
    if kind == "fish":
        pytest.skip("fish has no subshells")
    Session(repo).wt("enter", "task", "--json").ok()
    shell = start(repo)
    assert f"[{worktree_of(repo, 'task')}]" in ok(shell.run('( git wt cd task && printf "[%s]\\n" "$PWD" )'))
    assert shell.pwd() == repo


def test_substitution_and_pipeline_get_the_answer(start: Start, repo: str) -> None:
    Session(repo).wt("enter", "task", "--json").ok()
    shell = start(repo)
    substitution = "(git wt path task)" if shell.kind == "fish" else '"$(git wt path task)"'
    assert f"[{worktree_of(repo, 'task')}]" in ok(shell.run(f"printf '[%s]\\n' {substitution}"))
    assert worktree_of(repo, "task") in ok(shell.run("git wt path task | cat"))
    assert shell.pwd() == repo


# questions


def test_exit_without_an_action_asks_and_keeps_on_enter(start: Start, repo: str) -> None:
    shell = entered_with_work(start, repo)
    shell.start("git wt exit")
    assert "Keep" in shell.see("[K/r/c]")
    shell.press("\r")
    ok(shell.finish())
    assert shell.pwd() == repo
    assert worktrees(repo) == [repo, worktree_of(repo, "task")]


def test_exit_without_an_action_removes_when_told_to(start: Start, repo: str) -> None:
    shell = entered_with_work(start, repo)
    shell.start("git wt exit")
    shell.see("[K/r/c]")
    shell.press("r\r")
    ok(shell.finish())
    assert shell.pwd() == repo
    assert worktrees(repo) == [repo]


def test_exit_that_is_cancelled_changes_nothing(start: Start, repo: str) -> None:
    shell = entered_with_work(start, repo)
    shell.start("git wt exit")
    shell.see("[K/r/c]")
    shell.press("c\r")
    shell.finish()
    assert shell.pwd() == worktree_of(repo, "task")
    assert worktrees(repo) == [repo, worktree_of(repo, "task")]
    ok(shell.run("git wt exit keep"))


def test_interrupt_ends_the_question_and_the_rest_of_the_line(start: Start, repo: str) -> None:
    shell = entered_with_work(start, repo)
    shell.start("git wt exit; touch not-reached")
    shell.see("[K/r/c]")
    shell.press("\x03")
    assert shell.finish().code == 130
    assert shell.pwd() == worktree_of(repo, "task")
    assert not os.path.exists(os.path.join(shell.pwd(), "not-reached"))
    assert shell.variable("GIT_WT_CD_FILE") == ""


def test_clean_unnamed_worktree_is_left_without_a_question(start: Start, repo: str) -> None:
    shell = start(repo)
    ok(shell.run("git wt enter"))
    assert os.path.dirname(shell.pwd()) == os.path.dirname(worktree_of(repo, "any"))
    ok(shell.run("git wt exit"))
    assert (shell.pwd(), worktrees(repo)) == (repo, [repo])


def test_exit_without_an_action_and_without_a_terminal_is_wrong_usage(repo: str) -> None:
    session = Session(repo)
    session.enter("task")
    assert session.wt("exit").code == 2


# without the integration


def test_without_a_terminal_enter_prints_exactly_the_path(repo: str) -> None:
    assert wt("enter", "task", cwd=repo).ok().out == worktree_of(repo, "task") + "\n"


def test_without_the_integration_enter_starts_a_shell_that_exit_ends(start: Start, repo: str) -> None:
    shell = start(repo, integrated=False)
    outer = shell.variable("fish_pid") if shell.kind == "fish" else shell.run("echo $$").output
    ok(shell.run("git wt enter task"))
    assert shell.pwd() == worktree_of(repo, "task")
    inner = shell.variable("fish_pid") if shell.kind == "fish" else shell.run("echo $$").output
    assert inner != outer
    ok(shell.run("git wt exit keep"))
    assert shell.pwd() == repo
    assert worktrees(repo) == [repo, worktree_of(repo, "task")]


def test_shell_around_gets_the_exit_code_of_a_refusal_and_stays_inside(start: Start, repo: str) -> None:
    shell = start(repo, integrated=False)
    ok(shell.run("git wt enter task"))
    write(shell.pwd(), "new.txt", "not committed\n")
    assert shell.run("git wt exit remove").code == 3
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit remove --discard-changes"))
    assert (shell.pwd(), worktrees(repo)) == (repo, [repo])


def test_shell_that_ends_in_a_session_asks_and_keeps_on_enter(start: Start, repo: str) -> None:
    shell = start(repo, integrated=False)
    ok(shell.run("git wt enter task"))
    shell.press("\x04")
    shell.see("[K/r/c]")
    shell.press("\r")
    ok(shell.finish())
    assert shell.pwd() == repo
    assert worktrees(repo) == [repo, worktree_of(repo, "task")]
    ok(shell.run("git wt exit"))  # no session is left: nothing to do


def test_shell_that_ends_in_a_session_asks_and_removes_when_told_to(start: Start, repo: str) -> None:
    shell = start(repo, integrated=False)
    ok(shell.run("git wt enter task"))
    commit(shell.pwd(), "work.txt", "committed\n")
    shell.press("\x04")
    shell.see("[K/r/c]")
    shell.press("r\r")
    ok(shell.finish())
    assert (shell.pwd(), worktrees(repo)) == (repo, [repo])


def test_shell_that_ends_in_a_session_goes_on_when_cancelled(start: Start, repo: str) -> None:
    shell = start(repo, integrated=False)
    ok(shell.run("git wt enter task"))
    shell.press("\x04")
    shell.see("[K/r/c]")
    shell.press("c\r")
    shell.finish()
    assert shell.pwd() == worktree_of(repo, "task")
    ok(shell.run("git wt exit keep"))
    assert shell.pwd() == repo


def run_script(kind: str, script: str, cwd: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a script in a shell that is not interactive and reads no set-up."""
    clean = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[kind]
    return subprocess.run(
        [require_shell(kind), *clean, "-c", script],
        cwd=cwd,
        env=environment(env=dict(env)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def entered_with_work(start: Start, repo: str) -> Shell:
    """A shell in the worktree `task`, with work in it that is not committed."""
    shell = start(repo)
    ok(shell.run("git wt enter task"))
    write(shell.pwd(), "new.txt", "not committed\n")
    return shell
