"""`git wt` with tmux: real servers on a private socket, real clients in a pty."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pexpect
import pytest

from tests.repos import branches, commit, git, make_repo, write
from tests.wt import Session, environment, executable, finish, start_wt, wt

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

PATIENCE = 15.0  # seconds for what tmux does in its own time
BEFORE_THE_KILL = 2.0  # seconds; the helper that kills from inside waits half of one
# Every shell in a pane reads this; a login shell of root gets its PATH from /etc/profile.
PROFILE = """\
export PATH={path}
PS1='$ '
unset HISTFILE PROMPT_COMMAND
eval "$(git wt init bash)"
"""
# tmux runs `#(…)` in what it expands; the file's name comes from the server's environment, as no branch may hold it.
INJECTION = "#(touch${IFS}$PWNED)"
HOSTILE_BRANCHES = [
    INJECTION, "x$(touch${IFS}$PWNED)", "#{pid}", "#S", "a;", ";", "50%", "q'uote", 'dou"ble', "caf\u00e9", "$1", "=x",
]  # fmt: skip
HOSTILE_FOLDERS = [
    "#(touch $PWNED)", "#{pid}", "d#S", "end;", ";", "two  spaces ", "line\nbreak", "tab\tstop", "50%", "q'uote",
    'dou"ble', "back\\slash\\n", "caf\u00e9", "-dash", "$HOME", "~",
]  # fmt: skip


def test_detached_makes_a_tmux_session_in_the_worktree(session: Session) -> None:
    data = session.wt("enter", "feature", "--tmux=detached", "--json").ok().data
    assert data["tmuxSessionName"] == "repo_worktree-feature"
    assert names() == ["repo_worktree-feature"]
    assert option("repo_worktree-feature", "@git_wt_root") == data["worktreePath"]
    assert option("repo_worktree-feature", "@git_wt_name") == "feature"
    assert start_folder("repo_worktree-feature") == data["worktreePath"]
    assert tmux("list-clients") == ""


@pytest.mark.parametrize("args", [("--tmux",), ("--tmux", "--json"), ("--tmux=detached", "-q")])
def test_without_a_terminal_nothing_attaches(session: Session, args: tuple[str, ...]) -> None:
    session.wt("enter", "feature", *args).ok()
    assert names() == ["repo_worktree-feature"]


def test_settings_ask_for_a_tmux_session_and_a_flag_declines(repo: str) -> None:
    write(repo, ".git-wt.toml", "[tmux]\nauto = true\n")
    assert "tmuxSessionName" not in Session(repo).wt("enter", "without", "--no-tmux", "--json").ok().data
    assert Session(repo).wt("enter", "with", "--json").ok().data["tmuxSessionName"] == "repo_worktree-with"
    assert names() == ["repo_worktree-with"]


def test_json_never_attaches_on_a_terminal(session: Session) -> None:
    child = on_terminal("enter", "feature", "--tmux", "--json", cwd=session.cwd)
    child.expect(pexpect.EOF)
    assert '"tmuxSessionName": "repo_worktree-feature"' in child.before
    assert clients() == {}


def test_calling_shell_stays_where_it_is_and_its_session_enters(session: Session, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.touch()
    path = session.wt("enter", "feature", "--tmux=detached", "--json", env={"GIT_WT_CD_FILE": str(target)})
    path.ok()
    assert target.read_bytes() == b""
    assert session.wt("enter", "other", "--json").error["code"] == "session-active"


def test_changed_character_puts_a_hash_behind_the_name(session: Session) -> None:
    name = session.wt("enter", "fix/v1.2", "--tmux=detached", "--json").ok().data["tmuxSessionName"]
    assert re.fullmatch(r"repo_worktree-fix_v1_2-[0-9a-f]{6}", name)
    session.wt("exit", "remove").ok()
    assert session.wt("enter", "fix/v1.2", "--tmux=detached", "--json").ok().data["tmuxSessionName"] == name


def test_tmux_session_of_the_user_that_has_the_name_is_neither_adopted_nor_killed(session: Session, repo: str) -> None:
    theirs = user_session("repo_worktree-feature")
    name = session.wt("enter", "feature", "--tmux=detached", "--json").ok().data["tmuxSessionName"]
    assert re.fullmatch(r"repo_worktree-feature-[0-9a-f]{6}", name)
    session.wt("exit", "remove").ok()
    assert names() == ["repo_worktree-feature"]
    assert session_id("repo_worktree-feature") == theirs
    session.wt("enter", "feature").ok()
    assert session.wt("exit", "remove", "--json").ok().data.get("tmuxSessionName") is None
    assert session_id("repo_worktree-feature") == theirs
    assert wt("attach", "repo_worktree-feature", "--json", cwd=repo).error["code"] == "not-found"


def test_two_repositories_of_one_name_have_a_tmux_session_each(tmp_path: Path) -> None:
    made = []
    for parent in ("one", "two"):
        repo = make_repo(str(tmp_path / parent / "app"))
        made.append(Session(repo).wt("enter", "feature", "--tmux=detached", "--json").ok().data["tmuxSessionName"])
    assert made[0] == "app_worktree-feature"
    assert re.fullmatch(r"app_worktree-feature-[0-9a-f]{6}", made[1])
    assert session_id(made[0]) != session_id(made[1])


@needs_proc
@pytest.mark.parametrize("running", [False, True], ids=["cold server", "running server"])
def test_nothing_of_the_callers_git_gets_into_tmux(session: Session, running: bool) -> None:
    if running:
        user_session("mine")
    leaks = {
        "GIT_DIR": f"{session.cwd}/.git",
        "GIT_INDEX_FILE": ".git/index",
        "GIT_AUTHOR_NAME": "Leak",
        "GIT_PREFIX": "x/",
        "GIT_EDITOR": ":",
        "GIT_WT_CD_FILE": "/dev/null",
        "GIT_WT_CONFIG_BRANCH": "worktree-{name}",
        "GIT_WT_SESSION": session.id,
    }
    subprocess.run(
        ["git", "-c", "a.b=c", "wt", "enter", "feature", "--tmux=detached"],
        cwd=session.cwd,
        env=environment(env=dict(leaks)),
        check=True,
        capture_output=True,
    )
    name = "repo_worktree-feature"
    environments = [tmux("show-environment", "-t", f"={name}").splitlines(), process_environment(pane_pid(name))]
    if not running:
        environments.append(tmux("show-environment", "-g").splitlines())
        environments.append(process_environment(server_pid()))
    for found in environments[:2]:
        assert [line for line in found if line.startswith("GIT_")] == [f"GIT_WT_SESSION={session.id}"]
    for found in environments[2:]:
        assert [line for line in found if line.startswith("GIT_")] == []
    for found in environments:
        assert [line for line in found if line.startswith("PATH=") and "git-core" in line] == []


@needs_proc
def test_server_stands_in_no_worktree(session: Session) -> None:
    path = session.enter("feature", "--tmux=detached")
    folder = os.readlink(f"/proc/{server_pid()}/cwd")
    assert folder != path
    assert not folder.startswith(f"{session.cwd}/")
    assert folder == os.environ["HOME"]


@pytest.mark.parametrize("branch", HOSTILE_BRANCHES)
def test_hostile_branch_is_data(repo: str, pwned: Path, branch: str) -> None:
    user_session("mine")
    session = Session(repo)
    data = session.wt("enter", "feature", "--branch", branch, "--tmux=detached", "--json").ok().data
    assert re.fullmatch(r"[A-Za-z0-9_-]+", data["tmuxSessionName"])
    assert data["tmuxSessionName"].startswith("repo_")
    assert start_folder(data["tmuxSessionName"]) == data["worktreePath"]
    assert option(data["tmuxSessionName"], "@git_wt_root") == data["worktreePath"]
    row = listed(repo, "feature")
    assert row["tmuxSessionName"] == data["tmuxSessionName"]
    session.wt("exit", "remove").ok()
    assert names() == ["mine"]
    require_nothing_ran(pwned)


@pytest.mark.parametrize("folder", HOSTILE_FOLDERS[:8])
@pytest.mark.parametrize("running", [False, True], ids=["cold server", "running server"])
def test_repository_in_a_hostile_folder_is_data(tmp_path: Path, pwned: Path, folder: str, running: bool) -> None:
    if running:
        user_session("mine")
    repo = make_repo(str(tmp_path / folder / folder))
    session = Session(repo)
    data = session.wt("enter", "feature", "--tmux=detached", "--json").ok().data
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", data["tmuxSessionName"])
    assert start_folder(data["tmuxSessionName"]) == data["worktreePath"]
    assert listed(repo, "feature")["tmuxSessionName"] == data["tmuxSessionName"]
    session.wt("exit", "remove").ok()
    assert names() == (["mine"] if running else [])
    require_nothing_ran(pwned)


@pytest.mark.parametrize("folder", HOSTILE_FOLDERS)
def test_worktree_made_by_hand_in_a_hostile_folder_gets_one_tmux_session(
    repo: str, tmp_path: Path, pwned: Path, folder: str
) -> None:
    user_session("mine")
    path = str(tmp_path / "by hand" / folder)
    git(repo, "worktree", "add", "-q", "-b", "theirs", "--", path)
    session = Session(repo)
    name = session.wt("enter", "--path", path, "--tmux=detached", "--json").ok().data["tmuxSessionName"]
    assert name == "repo_theirs"
    assert start_folder(name) == path
    session.wt("exit", "keep").ok()
    again = session.wt("enter", "--path", path, "--tmux=detached", "--json").ok().data["tmuxSessionName"]
    assert (again, names()) == (name, ["mine", name])
    require_nothing_ran(pwned)


def test_command_runs_in_the_first_pane_as_this_session(session: Session, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = 'printf "%s\\n" "$PWD" "$GIT_WT_SESSION" "$@" >"$0.new"; mv "$0.new" "$0"; exec sleep 1000'
    words = ["a b", "#{pid}", "end;", ";", "$HOME", "\\;", ""]
    path = enter_with_command(session, "sh", "-c", script, str(out), *words)
    eventually(out.exists)
    assert out.read_text().splitlines() == [path, session.id, *words]
    assert tmux("list-panes", "-s", "-t", "=repo_worktree-feature", "-F", "#{pane_current_command}") == "sleep"


def test_command_of_one_word_is_a_program_and_no_shell_command(session: Session, tmp_path: Path) -> None:
    program = write(str(tmp_path), "my prog;#", f"#!/bin/sh\ntouch {shlex.quote(str(tmp_path / 'ran'))}; sleep 1000\n")
    os.chmod(program, 0o755)
    enter_with_command(session, program)
    eventually((tmp_path / "ran").exists)


def test_command_is_run_or_refused_where_the_tmux_session_is_there_already(session: Session, tmp_path: Path) -> None:
    main = session.cwd
    session.enter("feature", "--tmux=detached")
    session.wt("exit", "keep").ok()
    ran = tmp_path / "ran"
    answer = session.wt("enter", "feature", "--tmux=detached", "--", "touch", str(ran), cwd=main)
    if answer.code == 0 and "touch" not in answer.err:
        eventually(ran.exists)


def test_resuming_takes_the_living_tmux_session(session: Session) -> None:
    session.enter("feature", "--tmux=detached")
    first = session_id("repo_worktree-feature")
    session.wt("exit", "keep").ok()
    assert session_id("repo_worktree-feature") == first
    data = session.wt("enter", "feature", "--tmux", "--json").ok().data
    assert data["tmuxSessionName"] == "repo_worktree-feature"
    assert (names(), session_id("repo_worktree-feature")) == (["repo_worktree-feature"], first)


def test_resuming_makes_a_new_tmux_session_where_the_old_one_was_killed_by_hand(session: Session) -> None:
    user_session("mine")
    path = session.enter("feature", "--tmux=detached")
    tmux("kill-session", "-t", "=repo_worktree-feature")
    assert "tmuxSessionName" not in listed(path, "feature")
    session.wt("exit", "keep").ok()
    data = session.wt("enter", "feature", "--tmux=detached", "--json").ok().data
    assert data["tmuxSessionName"] == "repo_worktree-feature"
    assert start_folder("repo_worktree-feature") == path
    assert names() == ["mine", "repo_worktree-feature"]


def test_tmux_session_made_for_a_worktree_that_is_there_already(session: Session) -> None:
    path = session.enter("feature")
    session.wt("exit", "keep").ok()
    assert session.wt("enter", "feature", "--tmux=detached", "--json").ok().data["resumed"] is True
    assert start_folder("repo_worktree-feature") == path


def test_tmux_session_renamed_by_hand_stays_the_worktrees(session: Session) -> None:
    session.enter("feature", "--tmux=detached")
    tmux("rename-session", "-t", "=repo_worktree-feature", "mine now")
    assert session.wt("exit", "keep", "--json").ok().data["tmuxSessionName"] == "mine now"
    assert session.wt("enter", "feature", "--tmux=detached", "--json").ok().data["tmuxSessionName"] == "mine now"
    session.wt("exit", "remove").ok()
    assert names() == []


def test_moved_worktree_keeps_its_tmux_session(session: Session, repo: str, tmp_path: Path) -> None:
    path = session.enter("feature", "--tmux=detached")
    moved = str(tmp_path / "moved")
    git(repo, "worktree", "move", path, moved)
    assert listed(repo, "feature")["tmuxSessionName"] == "repo_worktree-feature"
    session.wt("exit", "remove", cwd=repo).ok()
    assert (names(), os.path.exists(moved)) == ([], False)


def test_removal_kills_exactly_its_own_among_names_that_begin_alike(tmp_path: Path) -> None:
    repo = make_repo(str(tmp_path / "app"))
    write(repo, ".git-wt.toml", 'branch = "{name}"\n')
    short, long = Session(repo), Session(repo)
    long.enter("feature-login", "--tmux=detached")
    short.enter("feature", "--tmux=detached")
    user_session("app_feature-mine")
    assert names() == ["app_feature", "app_feature-login", "app_feature-mine"]
    short.wt("exit", "remove").ok()
    assert names() == ["app_feature-login", "app_feature-mine"]
    short.cwd = repo
    short.enter("feature", "--tmux=detached")
    tmux("kill-session", "-t", "=app_feature")
    short.wt("exit", "remove").ok()
    assert names() == ["app_feature-login", "app_feature-mine"]
    wt("remove", "feature-login", "--force-occupied", cwd=repo).ok()
    assert names() == ["app_feature-mine"]


def test_remove_by_name_kills_the_tmux_session_and_undo_makes_none(session: Session, repo: str) -> None:
    user_session("mine")
    session.enter("feature", "--tmux=detached")
    session.wt("exit", "keep").ok()
    assert wt("remove", "feature", "--json", cwd=repo).ok().data["removed"][0]["tmuxSessionName"]
    assert names() == ["mine"]
    wt("undo", cwd=repo).ok()
    assert names() == ["mine"]
    assert "tmuxSessionName" not in listed(repo, "feature")


def test_refused_removal_leaves_tmux_alone(session: Session) -> None:
    path = session.enter("feature", "--tmux=detached")
    write(path, "work.txt", "mine\n")
    with Client("repo_worktree-feature") as client:
        assert session.wt("exit", "remove", "--json").error["code"] == "has-changes"
        assert client.shows() == "repo_worktree-feature"
    assert names() == ["repo_worktree-feature"]


def test_removal_from_outside_moves_clients_back_and_has_killed_when_it_returns(session: Session, repo: str) -> None:
    user_session("mine")
    path = session.enter("feature", "--tmux=detached")
    with Client("mine") as came, Client("repo_worktree-feature") as direct, Client("mine") as elsewhere:
        tmux("switch-client", "-c", came.name, "-t", "=repo_worktree-feature")
        assert came.shows() == "repo_worktree-feature"
        session.wt("exit", "remove", cwd=repo).ok()
        assert names() == ["mine"]
        assert not os.path.exists(path)
        assert came.shows() == "mine"
        assert elsewhere.shows() == "mine"
        direct.wait_for_end()


def test_typed_in_a_pane_exit_remove_takes_everything_and_moves_all_clients_back(bash_panes: str) -> None:
    repo = bash_panes
    user_session("work", repo)
    user_session("other", repo)
    with Client("work") as typing, Client("other") as watching, Client("work") as elsewhere:
        typing.type("git wt enter feature --tmux")
        eventually(lambda: typing.shows() == "repo_worktree-feature")
        path = listed(repo, "feature")["path"]
        tmux("switch-client", "-c", watching.name, "-t", "=repo_worktree-feature")
        direct = Client("repo_worktree-feature")
        with direct:
            tmux("split-window", "-t", "=repo_worktree-feature:")
            type_in("repo_worktree-feature", "git wt exit remove")
            eventually(lambda: names() == ["other", "work"])
            direct.wait_for_end()
        assert not os.path.exists(path)
        assert branches(repo) == ["main"]
        assert typing.shows() == "work"
        assert watching.shows() == "other"
        assert elsewhere.shows() == "work"
    assert [row["name"] for row in wt("list", "--json", cwd=repo).ok().data["worktrees"]] == ["^"]
    type_in("work", "git wt enter again")
    eventually(lambda: folder_of_pane("work").endswith("/again"))


def test_typed_in_tmux_enter_says_its_sentence_once(bash_panes: str) -> None:
    user_session("work", bash_panes)
    with Client("work") as typing:
        typing.type("git wt enter feature --tmux")
        eventually(lambda: typing.shows() == "repo_worktree-feature")
        eventually(lambda: has_prompt("work"))
    assert screen("work").count("made worktree 'feature'") == 1


def test_attached_shell_that_ends_in_a_session_asks_what_becomes_of_the_worktree(bash_panes: str) -> None:
    with Terminal(on_terminal("enter", "feature", "--tmux", cwd=bash_panes)) as terminal:
        eventually(lambda: terminal.shows() == "repo_worktree-feature")
        eventually(lambda: has_prompt("repo_worktree-feature"))
        terminal.child.send("exit\r")
        terminal.child.expect_exact("[K/r/c]")
        terminal.child.send("r\r")
        terminal.child.expect(pexpect.EOF)
    assert branches(bash_panes) == ["main"]


def test_detaching_asks_nothing_and_the_session_goes_on(bash_panes: str) -> None:
    with Terminal(on_terminal("enter", "feature", "--tmux", cwd=bash_panes)) as terminal:
        eventually(lambda: terminal.shows() == "repo_worktree-feature")
        terminal.child.send("\x02d")
        terminal.child.expect_exact("[detached")
        terminal.child.expect(pexpect.EOF)
        assert "[K/r/c]" not in terminal.child.before
    assert listed(bash_panes, "feature")["tmuxSessionName"] == names()[0]
    type_in("repo_worktree-feature", "git wt exit remove")
    eventually(lambda: names() == [])


def test_typed_in_a_pane_refused_removal_keeps_everything(bash_panes: str) -> None:
    repo = bash_panes
    path = Session(repo).enter("feature", "--tmux=detached")
    write(path, "work.txt", "mine\n")
    type_in("repo_worktree-feature", "git wt exit remove")
    eventually(lambda: "hint: git wt exit remove --discard-changes" in screen("repo_worktree-feature"))
    time.sleep(BEFORE_THE_KILL)
    assert names() == ["repo_worktree-feature"]
    type_in("repo_worktree-feature", "clear; git wt exit remove --discard-changes")
    eventually(lambda: names() == [])
    assert not os.path.exists(path)


def test_typed_in_a_pane_exit_keep_switches_back_or_detaches_and_names_the_tmux_session(bash_panes: str) -> None:
    repo = bash_panes
    user_session("work", repo)
    with Client("work") as typing:
        typing.type("git wt enter feature --tmux")
        eventually(lambda: typing.shows() == "repo_worktree-feature")
        with Client("repo_worktree-feature") as direct:
            type_in("repo_worktree-feature", "git wt exit keep")
            eventually(lambda: typing.shows() == "work")
            direct.wait_for_end()
    assert names() == ["repo_worktree-feature", "work"]
    assert "git wt attach repo_worktree-feature" in screen("repo_worktree-feature")
    assert "session" not in listed(repo, "feature")


def test_keep_outside_the_tmux_session_leaves_its_clients_and_names_it(session: Session) -> None:
    session.enter("feature", "--tmux=detached")
    with Client("repo_worktree-feature") as client:
        data = session.wt("exit", "keep", "--json").ok().data
        assert data["tmuxSessionName"] == "repo_worktree-feature"
        assert client.shows() == "repo_worktree-feature"


def test_exit_in_a_pane_ends_the_session_that_resumed_last(bash_panes: str) -> None:
    repo = bash_panes
    first, second = Session(repo), Session(repo)
    first.enter("feature", "--tmux=detached")
    first.wt("exit", "keep").ok()
    path = second.enter("feature", "--tmux=detached")
    type_in("repo_worktree-feature", "git wt exit remove")
    eventually(lambda: names() == [])
    assert not os.path.exists(path)
    assert second.wt("exit", "keep", "--json", cwd=repo).ok().data["action"] == "none"


def test_processes_in_the_panes_do_not_occupy_and_one_outside_does(session: Session, repo: str) -> None:
    path = enter_with_command(session, "sh", "-c", "sleep 1000; true")
    tmux("split-window", "-d", "-t", "=repo_worktree-feature:", "-c", path, "sleep 1000; true")
    tmux("new-window", "-d", "-t", "=repo_worktree-feature:", "-c", path, "sleep 1000; true")
    eventually(lambda: commands_in("repo_worktree-feature").count("sleep") == 3)
    for args in ((), ("--verdict",)):
        assert listed(repo, "feature", *args, session=session.id)["blockers"] == []
    with subprocess.Popen(["sleep", "1000"], cwd=path, start_new_session=True) as outside:
        try:
            for args in ((), ("--verdict",)):
                row = listed(repo, "feature", *args, session=session.id)
                assert [found["code"] for found in row["blockers"]] == ["occupied"]
            refused = session.wt("exit", "remove", "--json", cwd=repo)
            assert (refused.code, refused.error["code"]) == (3, "has-changes")
            assert [found["code"] for found in refused.error["blockers"]] == ["occupied"]
        finally:
            outside.kill()
    session.wt("exit", "remove", cwd=repo).ok()
    assert names() == []


def test_process_that_a_script_started_beside_git_wt_occupies(session: Session, repo: str) -> None:
    path = session.enter("feature")
    script = 'cd "$1"; sleep 1000 & cd /; "$0" -C "$2" exit remove --json; echo "code $?"; kill $!'
    ran = subprocess.run(
        ["sh", "-c", script, executable(), path, repo],
        env=environment(session=session.id),
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    assert "code 3\n" in ran.stdout, ran.stdout
    assert os.path.isdir(path)


def test_panes_of_another_tmux_session_occupy(session: Session, repo: str) -> None:
    path = session.enter("feature", "--tmux=detached")
    user_session("mine", path)
    refused = session.wt("exit", "remove", "--json", cwd=repo)
    assert [found["code"] for found in refused.error["blockers"]] == ["occupied"]
    assert names() == ["mine", "repo_worktree-feature"]


@pytest.mark.parametrize("name", ["feature", "repo_worktree-feature"])
def test_attach_shows_the_tmux_session_by_either_name(session: Session, repo: str, name: str) -> None:
    Session(repo).enter("feature-login", "--tmux=detached")
    session.enter("feature", "--tmux=detached")
    with Terminal(on_terminal("attach", name, cwd=repo)) as terminal:
        eventually(lambda: terminal.shows() == "repo_worktree-feature")


def test_attach_takes_a_tmux_name_outside_any_repository(session: Session, tmp_path: Path) -> None:
    user_session("mine")
    session.enter("feature", "--tmux=detached")
    with Terminal(on_terminal("attach", "repo_worktree-feature", cwd=str(tmp_path))) as terminal:
        eventually(lambda: terminal.shows() == "repo_worktree-feature")


def test_attach_takes_neither_a_prefix_nor_a_tmux_session_of_the_user(session: Session, repo: str) -> None:
    user_session("mine")
    session.enter("feature-login", "--tmux=detached")
    for name in ("feature", "repo_worktree-feature", "mine", "repo*", "$0", "="):
        answer = wt("attach", name, "--json", cwd=repo)
        assert (answer.code, answer.error["code"]) == (1, "not-found"), name


def test_attach_without_a_name_takes_the_only_one(session: Session, repo: str) -> None:
    session.enter("feature", "--tmux=detached")
    with Terminal(on_terminal("attach", cwd=repo)) as terminal:
        eventually(lambda: terminal.shows() == "repo_worktree-feature")
    Session(repo).enter("second", "--tmux=detached")
    assert wt("attach", "--json", cwd=repo).code in (1, 2)


def test_attach_inside_tmux_switches_the_client(bash_panes: str) -> None:
    repo = bash_panes
    user_session("work", repo)
    Session(repo).enter("feature", "--tmux=detached")
    with Client("work") as client, Client("work") as other:
        tmux("new-window", "-t", "=work:", "-c", repo)
        other.type("git wt attach feature")
        eventually(lambda: other.shows() == "repo_worktree-feature")
        assert client.shows() == "work"


def test_enter_with_tmux_on_a_terminal_attaches(session: Session) -> None:
    with Terminal(on_terminal("enter", "feature", "--tmux", cwd=session.cwd)) as terminal:
        eventually(lambda: terminal.shows() == "repo_worktree-feature")
        tmux("detach-client", "-t", terminal.name)
        terminal.child.expect(pexpect.EOF)
    assert names() == ["repo_worktree-feature"]


def test_enter_detached_on_a_terminal_does_not_attach(session: Session) -> None:
    child = on_terminal("enter", "feature", "--tmux=detached", cwd=session.cwd)
    child.expect(pexpect.EOF)
    assert (names(), clients()) == (["repo_worktree-feature"], {})
    assert "feature" in child.before


@pytest.mark.parametrize("state", ["no tmux", "no server", "no tmux session"])
def test_attach_says_plainly_that_there_is_nothing_to_attach_to(session: Session, repo: str, state: str) -> None:
    session.enter("feature")
    env = {"PATH": without_tmux()} if state == "no tmux" else {}
    if state == "no tmux session":
        user_session("mine")
    for name, code in (("feature", "not-found"), ("repo_worktree-feature", "not-found"), (None, "not-found")):
        args = [name] if name else []
        answer = wt("attach", *args, cwd=repo, env=env)
        assert (answer.code, answer.out) == (1, ""), answer
        assert answer.err.startswith("git-wt: cannot attach"), answer
        assert "hint: " in answer.err
        assert wt("attach", *args, "--json", cwd=repo, env=env).error["code"] in (code, "tmux")


def test_attach_without_a_terminal_is_an_error_that_names_the_way(session: Session, repo: str) -> None:
    session.enter("feature", "--tmux=detached")
    answer = wt("attach", "feature", cwd=repo)
    assert (answer.code, answer.out) == (1, "")
    hint = answer.err.rpartition("hint: ")[2].strip()
    with Terminal(spawn("sh", "-c", f"exec {hint}", cwd=repo)) as terminal:
        eventually(lambda: terminal.shows() == "repo_worktree-feature")


def test_without_tmux_on_path_nothing_else_fails(session: Session, repo: str) -> None:
    env = {"PATH": without_tmux()}
    assert shutil.which("tmux", path=env["PATH"]) is None
    for server in (False, True):
        if server:
            user_session("mine")
        path = session.enter("feature")
        assert "feature" in wt("list", cwd=repo, env=env).ok().out
        session.wt("exit", "keep", env=env).ok()
        session.wt("enter", "feature", cwd=repo, env=env).ok()
        session.wt("exit", "remove", env=env).ok()
        assert not os.path.exists(path)
        session.cwd = repo


def test_entering_with_tmux_where_there_is_none_is_said_and_leaves_nothing_half_done(
    session: Session, repo: str
) -> None:
    answer = session.wt("enter", "feature", "--tmux=detached", "--json", env={"PATH": without_tmux()})
    if answer.code:
        assert "tmux" in answer.error["message"]
        assert branches(repo) == ["main"]
    else:
        assert "tmuxSessionName" not in answer.data
        assert "tmux" in answer.err
        session.wt("exit", "remove", cwd=answer.data["worktreePath"]).ok()


@pytest.mark.parametrize("args", [("list",), ("list", "--no-status"), ("exit", "keep"), ("path", "feature")])
def test_socket_that_tmux_refuses_is_no_reason_to_fail(session: Session, args: tuple[str, ...]) -> None:
    user_session("mine")
    session.enter("feature")
    folder = f"{os.environ['TMUX_TMPDIR']}/tmux-{os.getuid()}"
    os.chmod(folder, 0o777)
    try:
        session.wt(*args).ok()
    finally:
        os.chmod(folder, 0o700)


def test_mistake_in_the_users_tmux_conf_changes_nothing(session: Session, sealed: Path) -> None:
    (sealed / ".tmux.conf").write_text("bogus-command\nset -g base-index 1\nset -g pane-base-index 1\n")
    path = session.enter("feature", "--tmux=detached")
    assert (names(), start_folder("repo_worktree-feature")) == (["repo_worktree-feature"], path)
    session.wt("exit", "remove").ok()
    assert names() == []


def test_dead_socket_is_no_server(session: Session) -> None:
    user_session("mine")
    os.kill(server_pid(), 9)
    eventually(lambda: "no server" in tmux("list-sessions", check=False) or not names())
    path = session.enter("feature")
    session.wt("exit", "keep").ok()
    session.wt("enter", "feature", "--tmux=detached", cwd=path).ok()
    assert names() == ["repo_worktree-feature"]
    session.wt("exit", "remove").ok()
    assert names() == []


@pytest.mark.parametrize("stale", ["{gone}/default,4242,0", "{gone}/default,4242,", "nonsense", ",,"])
def test_stale_tmux_variable_means_the_default_server(session: Session, repo: str, tmp_path: Path, stale: str) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    user_session("mine")
    env = {"TMUX": stale.format(gone=gone)}
    name = session.wt("enter", "feature", "--tmux=detached", "--json", env=env).ok().data["tmuxSessionName"]
    assert names() == ["mine", name]
    assert listed(repo, "feature", env=env)["tmuxSessionName"] == name
    session.wt("exit", "keep", env=env).ok()
    session.wt("enter", "feature", "--tmux=detached", env=env).ok()
    assert names() == ["mine", name]
    with Terminal(on_terminal("attach", "feature", cwd=repo, env=env)) as terminal:
        eventually(lambda: terminal.shows() == name)
    session.wt("exit", "remove", env=env).ok()
    assert names() == ["mine"]
    assert os.listdir(gone) == []


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_tmux_works_in_the_c_locale(tmp_path: Path, locale: str) -> None:
    repo = make_repo(str(tmp_path / "caf\u00e9 \u2603"))
    session, env = Session(repo), {"LC_ALL": locale, "LANG": locale}
    user_session("mine")
    data = session.wt("enter", "feature", "--tmux=detached", "--json", env=env).ok().data
    assert start_folder(data["tmuxSessionName"]) == data["worktreePath"]
    assert listed(repo, "feature", env=env)["tmuxSessionName"] == data["tmuxSessionName"]
    assert data["tmuxSessionName"] in wt("list", cwd=repo, env=env).ok().out
    session.wt("exit", "remove", env=env).ok()
    assert names() == ["mine"]


@pytest.mark.parametrize(
    "running",
    [False, True],
    ids=["cold server", "running server"],
)
def test_entering_and_leaving_start_tmux_at_most_twice(
    session: Session, repo: str, tmp_path: Path, running: bool
) -> None:
    counted = Counted(tmp_path / "counted")
    if running:
        user_session("repo_worktree-feature")
    session.wt("enter", "feature", "--tmux=detached", env=counted.env()).ok()
    assert 1 <= len(counted.lines()) <= 2, counted.lines()
    session.wt("exit", "keep", env=counted.env()).ok()
    assert len(counted.lines()) == 1, counted.lines()
    session.wt("enter", "feature", "--tmux=detached", env=counted.env()).ok()
    assert 1 <= len(counted.lines()) <= 2, counted.lines()
    name = listed(repo, "feature")["tmuxSessionName"]
    with Client(name):
        session.wt("exit", "remove", env=counted.env()).ok()
    assert len(counted.lines()) == 2, counted.lines()


def test_without_tmux_entering_asks_tmux_nothing(session: Session, tmp_path: Path) -> None:
    counted = Counted(tmp_path / "counted")
    user_session("mine")
    session.wt("enter", "feature", env=counted.env()).ok()
    assert counted.lines() == []


def test_listing_names_the_tmux_session(session: Session, repo: str) -> None:
    user_session("mine")
    Session(repo).enter("plain")
    session.enter("feature", "--tmux=detached")
    rows = {row["name"]: row.get("tmuxSessionName") for row in wt("list", "--json", cwd=repo).ok().data["worktrees"]}
    assert rows == {"^": None, "plain": None, "feature": "repo_worktree-feature"}
    assert "repo_worktree-feature" in wt("list", "--no-status", cwd=repo).ok().out


def test_ten_at_once_from_a_cold_server(repo: str) -> None:
    started = [
        start_wt("enter", f"task-{number}", "--tmux=detached", "--json", cwd=repo, session=f"cold-{number}")
        for number in range(10)
    ]
    made = [finish(one).ok().data for one in started]
    assert names() == sorted(data["tmuxSessionName"] for data in made)
    assert len(set(names())) == 10
    for data in made:
        assert option(data["tmuxSessionName"], "@git_wt_root") == data["worktreePath"]
        assert start_folder(data["tmuxSessionName"]) == data["worktreePath"]


def test_ten_sessions_that_want_tmux_for_one_worktree_share_it(repo: str) -> None:
    Session(repo).enter("feature")
    started = [
        start_wt("enter", "feature", "--tmux=detached", "--json", cwd=repo, session=f"same-{number}")
        for number in range(10)
    ]
    made = {finish(one).ok().data["tmuxSessionName"] for one in started}
    assert names() == sorted(made) == ["repo_worktree-feature"]


def test_removal_with_lost_commits_is_still_judged_with_tmux(session: Session, repo: str) -> None:
    path = session.enter("feature", "--tmux=detached")
    commit(path, "work.txt", "mine\n")
    refused = session.wt("exit", "remove", "--json", cwd=repo)
    assert (refused.code, [found["code"] for found in refused.error["blockers"]]) == (3, ["commits"])
    assert names() == ["repo_worktree-feature"]


class Counted:
    """A `tmux` on PATH that notes its command line and becomes the real one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.log = folder / "log"
        shim = folder / "tmux"
        real = shutil.which("tmux")
        shim.write_text(f'#!/bin/sh\necho tmux >>{shlex.quote(str(self.log))}\nexec {real} "$@"\n')
        shim.chmod(0o755)
        self.path = f"{folder}{os.pathsep}{os.environ['PATH']}"

    def env(self) -> dict[str, str | None]:
        """Forgets what was noted before."""
        self.log.unlink(missing_ok=True)
        return {"PATH": self.path}

    def lines(self) -> list[str]:
        """One line a process since `env`."""
        return self.log.read_text().splitlines() if self.log.exists() else []


AnyTerminal = TypeVar("AnyTerminal", bound="Terminal")


class Terminal:
    """A pty in which a tmux client runs sooner or later; a context manager."""

    def __init__(self, child: "pexpect.spawn[str]") -> None:
        self.child = child
        found = subprocess.run(["ps", "-o", "tty=", "-p", str(child.pid)], capture_output=True, text=True, check=True)
        self.name = f"/dev/{found.stdout.strip()}"

    def shows(self) -> str | None:
        """The tmux session that the client shows now, None when there is no client."""
        return clients().get(self.name)

    def wait_for_end(self) -> None:
        """Wait until the client has ended."""
        eventually(lambda: self.shows() is None)
        self.child.expect(pexpect.EOF)

    def __enter__(self: AnyTerminal) -> AnyTerminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close(force=True)


class Client(Terminal):
    """A terminal of the user that shows a tmux session."""

    def __init__(self, name: str) -> None:
        super().__init__(spawn("tmux", "-u", "attach-session", "-t", f"={name}", cwd="/"))
        eventually(lambda: self.shows() == name)

    def type(self, line: str) -> None:
        """Type a line at this terminal, once the shell that it shows has a prompt."""
        name = self.shows()
        assert name
        eventually(lambda: has_prompt(name))
        self.child.send(line + "\r")


@pytest.fixture
def pwned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that every injection of these tests would make."""
    path = tmp_path / "pwned"
    monkeypatch.setenv("PWNED", str(path))
    return path


@pytest.fixture
def bash_panes(repo: str, sealed: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Panes run bash with the shell integration. The session is not set: a person types. Returns the repository."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash here")
    (sealed / ".bash_profile").write_text(PROFILE.format(path=shlex.quote(os.environ["PATH"])))
    monkeypatch.setenv("SHELL", bash)
    monkeypatch.delenv("GIT_WT_SESSION")
    return repo


def enter_with_command(session: Session, *command: str) -> str:
    """Enter `feature` with a command in the first pane of its tmux session; returns the worktree's path."""
    args = ("enter", "feature", "--tmux=detached", "--json", "--", *command)
    return str(session.wt(*args).ok().data["worktreePath"])


def tmux(*args: str, check: bool = True) -> str:
    """Ask the test's own tmux server; returns standard output (standard error too if `check` is false)."""
    ran = subprocess.run(["tmux", "-u", *args], stdin=subprocess.DEVNULL, capture_output=True, check=False, cwd="/")
    if check and ran.returncode:
        raise AssertionError(f"tmux {' '.join(args)}: exit code {ran.returncode}: {os.fsdecode(ran.stderr)}")
    return os.fsdecode(ran.stdout if check else ran.stdout + ran.stderr).rstrip("\n")


def names() -> list[str]:
    """The tmux sessions that are there, sorted; none without a server."""
    ran = subprocess.run(["tmux", "-u", "list-sessions", "-F", "#{session_name}"], capture_output=True, check=False)
    return sorted(os.fsdecode(ran.stdout).splitlines())


def user_session(name: str, folder: str = "/") -> str:
    """Make a tmux session as the user would; returns its id."""
    argv = ["tmux", "-u", "new-session", "-d", "-P", "-F", "#{session_id}", "-s", name, "-c", folder]
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return os.fsdecode(subprocess.run(argv, env=env, check=True, capture_output=True).stdout).strip()


def session_id(name: str) -> str:
    """The id of a tmux session."""
    return tmux("display-message", "-p", "-t", f"={name}:", "#{session_id}")


def option(name: str, key: str) -> str:
    """A user option of a tmux session."""
    return tmux("show-options", "-v", "-t", f"={name}:", key)


def start_folder(name: str) -> str:
    """The folder that a tmux session was made in, as tmux keeps it; also asserts that the first pane stands there."""
    folder = tmux("display-message", "-p", "-t", f"={name}:", "#{session_path}")
    if sys.platform.startswith("linux"):
        until = time.monotonic() + 5
        while (stands := os.readlink(f"/proc/{pane_pid(name)}/cwd")) != folder and time.monotonic() < until:
            time.sleep(0.05)  # tmux has forked, but is not there yet
            if "\n" in stands or "\t" in stands:
                break
        assert "\n" in stands or "\t" in stands or folder == stands
        return stands
    return folder


def folder_of_pane(name: str) -> str:
    """The folder that the shell of the active pane stands in."""
    return tmux("display-message", "-p", "-t", f"={name}:", "#{pane_current_path}")


def commands_in(name: str) -> list[str]:
    """What runs in the panes of a tmux session; children of the panes' own shells included."""
    pids = tmux("list-panes", "-s", "-t", f"={name}", "-F", "#{pane_pid}").splitlines()
    ran = subprocess.run(["ps", "-o", "comm=", "--ppid", ",".join(pids)], capture_output=True, text=True, check=False)
    return ran.stdout.split()


def pane_pid(name: str) -> int:
    """The process that the first pane of a tmux session started with."""
    return int(tmux("list-panes", "-s", "-t", f"={name}", "-F", "#{pane_pid}").splitlines()[0])


def server_pid() -> int:
    """The process of the tmux server."""
    return int(tmux("display-message", "-p", "#{pid}"))


def process_environment(pid: int) -> list[str]:
    """What a process was started with, a `NAME=value` each."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return [os.fsdecode(entry) for entry in file.read().split(b"\0") if entry]


def clients() -> dict[str, str]:
    """The terminal of every client and the tmux session that it shows; none without a server."""
    question = ["tmux", "-u", "list-clients", "-F", "#{client_tty} #{session_name}"]
    lines = os.fsdecode(subprocess.run(question, capture_output=True, check=False).stdout).splitlines()
    return {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines}


def screen(name: str) -> str:
    """What the active pane shows, wrapped lines joined."""
    return tmux("capture-pane", "-p", "-J", "-t", f"={name}:")


def has_prompt(name: str) -> bool:
    """Whether the shell of the active pane waits for a line."""
    return screen(name).rstrip().endswith("$")


def type_in(name: str, line: str) -> None:
    """Type a line in the active pane, once its shell shows a prompt."""
    eventually(lambda: has_prompt(name))
    tmux("send-keys", "-t", f"={name}:", "-l", line)
    tmux("send-keys", "-t", f"={name}:", "Enter")


def on_terminal(*args: str, cwd: str, env: dict[str, str] | None = None) -> "pexpect.spawn[str]":
    """Run git-wt in a pty."""
    return spawn(executable(), *args, cwd=cwd, env=env)


def spawn(program: str, *args: str, cwd: str, env: dict[str, str] | None = None) -> "pexpect.spawn[str]":
    """Run a program in a pty of 40 lines."""
    return pexpect.spawn(
        program,
        list(args),
        cwd=cwd,
        env={**os.environ, **(env or {})},
        timeout=PATIENCE,
        dimensions=(40, 200),
        encoding="utf-8",
        codec_errors="surrogateescape",
    )


def without_tmux() -> str:
    """A PATH with git and the basics, and without tmux."""
    folder = Path(os.environ["HOME"]) / "no-tmux"
    if not folder.exists():
        folder.mkdir()
        for program in ("git", "sh", "sleep", "env", "rm", "mktemp"):
            real = shutil.which(program)
            assert real
            (folder / program).symlink_to(real)
    return str(folder)


def listed(
    cwd: str, name: str, *args: str, env: dict[str, str] | None = None, session: str | None = None
) -> dict[str, Any]:
    """The row of one worktree in `list`."""
    rows = wt("list", "--json", *args, cwd=cwd, env=dict(env or {}), session=session).ok().data["worktrees"]
    found: dict[str, Any] = next(row for row in rows if row["name"] == name)
    return found


def require_nothing_ran(pwned: Path) -> None:
    """AssertionError if an injection was run; tmux runs `#(…)` in its own time."""
    time.sleep(0.2)
    assert not pwned.exists()


def eventually(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; AssertionError after `PATIENCE` seconds."""
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            shown = [f"--- {name}\n{screen(name)}" for name in names()]
            raise AssertionError("\n".join(["waited in vain", *shown]))
        time.sleep(0.05)
