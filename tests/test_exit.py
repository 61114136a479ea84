"""`exit` and `switch`, and what shows where one is: `path`, `cd`, `list`."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.repos import admin_dir, branches, commit, differences, git, head, make_repo, snapshot, worktrees, write
from tests.wt import Session, environment, wt

# Outside a session


@pytest.mark.parametrize(
    "args", [("exit",), ("exit", "keep"), ("exit", "remove"), ("exit", "remove", "--discard-changes")]
)
@pytest.mark.parametrize("place", ["main", "in a worktree", "no repository"])
def test_exit_outside_a_session_changes_nothing_at_all(
    repo: str, sealed: Path, tmp_path: Path, args: tuple[str, ...], place: str
) -> None:
    path = Session(repo).enter("x")
    write(path, "untracked", "1\n")
    cwd = {"main": repo, "in a worktree": path, "no repository": str(tmp_path)}[place]
    before, home = snapshot(repo), snapshot(str(sealed))
    ran = wt(*args, "--json", cwd=cwd).ok()
    assert ran.data["action"] == "none"
    assert "no worktree session is active" in ran.data["message"]
    words = wt(*args, cwd=cwd).ok()
    assert "no worktree session is active" in words.out + words.err
    assert differences(before, snapshot(repo)) == []
    assert differences(home, snapshot(str(sealed))) == []


def test_what_another_session_entered_is_never_left_from_here(repo: str) -> None:
    other = Session(repo)
    path = other.enter("x")
    for cwd in (repo, path):
        assert wt("exit", "remove", "--discard-changes", "--json", cwd=cwd).ok().data["action"] == "none"
    assert worktrees(repo) == [repo, path]
    assert other.wt("exit", "keep", "--json").ok().data["action"] == "keep"


# Keep and remove


def test_keep_leaves_worktree_and_branch_and_says_where_they_are(repo: str) -> None:
    write(repo, "sub/file", "1\n")
    session = Session(f"{repo}/sub")
    path = session.enter("x")
    ran = session.wt("exit", "keep", "--json").ok()
    data = dict(ran.data)
    message = data.pop("message")
    assert data == {
        "action": "keep",
        "originalCwd": f"{repo}/sub",
        "worktreePath": path,
        "worktreeBranch": "worktree-x",
    }
    assert path in message
    assert "worktree-x" in message
    assert (worktrees(repo), branches(repo)) == ([repo, path], ["main", "worktree-x"])


def test_remove_takes_worktree_and_branch_away_and_names_the_undo(repo: str) -> None:
    session = Session(repo)
    path = session.enter("x")
    data = session.wt("exit", "remove", "--json").ok().data
    assert (data["action"], data["originalCwd"], data["worktreePath"]) == ("remove", repo, path)
    assert data["worktreeBranch"] == "worktree-x"
    assert isinstance(data["undo"], str)
    assert "discardedFiles" not in data
    assert (worktrees(repo), branches(repo)) == ([repo], ["main"])
    assert not os.path.lexists(path)
    assert wt("undo", data["undo"], "--json", cwd=repo).ok().data["worktreePath"] == path


def test_remove_with_work_is_refused_and_changes_nothing(repo: str) -> None:
    session = Session(repo)
    path = session.enter("x")
    commit(path, "work", "1\n")
    write(path, "untracked", "1\n")
    before = snapshot(path)
    ran = session.wt("exit", "remove", "--json")
    assert (ran.code, ran.error["code"]) == (3, "has-changes")
    assert {blocker["code"]: blocker["count"] for blocker in ran.error["blockers"]} == {"uncommitted": 1, "commits": 1}
    assert "--discard-changes" in ran.error["hint"]
    assert differences(before, snapshot(path)) == []
    assert session.wt("exit", "keep", "--json").ok().data["action"] == "keep"


def test_discarding_says_how_much(repo: str) -> None:
    session = Session(repo)
    path = session.enter("x")
    commit(path, "work", "1\n")
    write(path, "one", "1\n")
    write(path, "two", "1\n")
    data = session.wt("exit", "remove", "--discard-changes", "--json").ok().data
    assert (data["discardedFiles"], data["discardedCommits"]) == (2, 1)
    assert (worktrees(repo), branches(repo)) == ([repo], ["main"])


def test_remove_never_takes_its_own_processes_for_occupants(repo: str) -> None:
    for number in range(8):
        session = Session(repo)
        session.enter(f"x{number}")
        session.wt("exit", "remove", cwd=repo if number % 2 else None).ok()


def test_keep_with_flags_of_removal_is_wrong_usage(repo: str) -> None:
    session = Session(repo)
    session.enter("x")
    assert session.wt("exit", "keep", "--discard-changes", "--json").error["code"] == "usage"


def test_without_terminal_and_action_exit_is_wrong_usage(repo: str) -> None:
    session = Session(repo)
    path = session.enter("x")
    ran = session.wt("exit", "--json")
    assert (ran.code, ran.error["code"]) == (2, "usage")
    assert worktrees(repo) == [repo, path]
    assert session.wt("exit", "keep", "--json").ok().data["action"] == "keep"


def test_enter_works_again_at_once(repo: str) -> None:
    session = Session(repo)
    for action in ("keep", "remove", "keep"):
        session.cwd = repo
        session.enter("x")
        session.wt("exit", action).ok()
    assert session.wt("exit", "keep", "--json").ok().data["action"] == "none"


@pytest.mark.parametrize("action", ["keep", "remove"])
def test_shell_goes_back_where_it_was(repo: str, tmp_path: Path, action: str) -> None:
    os.makedirs(f"{repo}/deep/er")
    session = Session(f"{repo}/deep/er")
    session.enter("x")
    file = tmp_path / "cd"
    ran = session.wt("exit", action, env={"GIT_WT_CD_FILE": str(file)}).ok()
    assert (ran.out, file.read_bytes()) == ("", os.fsencode(f"{repo}/deep/er"))
    assert ran.err.startswith("git-wt: ")


def test_shell_goes_to_the_main_root_when_its_folder_is_gone(repo: str, tmp_path: Path) -> None:
    os.makedirs(f"{repo}/deep/er")
    session = Session(f"{repo}/deep/er")
    session.enter("x")
    shutil.rmtree(f"{repo}/deep")
    file = tmp_path / "cd"
    session.wt("exit", "keep", env={"GIT_WT_CD_FILE": str(file)}).ok()
    assert file.read_bytes() == os.fsencode(repo)


def test_exit_works_from_anywhere(repo: str, tmp_path: Path) -> None:
    session = Session(repo)
    path = session.enter("x")
    assert session.wt("exit", "remove", "--json", cwd=str(tmp_path)).ok().data["worktreePath"] == path
    assert worktrees(repo) == [repo]


def test_exit_works_after_the_session_went_elsewhere(repo: str, tmp_path: Path) -> None:
    elsewhere = make_repo(str(tmp_path / "elsewhere"))
    session = Session(repo)
    path = session.enter("x")
    assert session.wt("exit", "remove", "--json", cwd=elsewhere).ok().data["worktreePath"] == path
    assert (worktrees(repo), worktrees(elsewhere)) == ([repo], [elsewhere])


# The worktree went away or moved


@pytest.mark.parametrize("how", ["git worktree remove", "rm -rf", "rm -rf and prune", "git wt remove", "made again"])
def test_session_whose_worktree_is_gone_says_so_and_goes_on(repo: str, how: str) -> None:
    session = Session(repo)
    path = session.enter("x")
    session.cwd = repo
    if how.startswith("rm"):
        shutil.rmtree(path)
        git(repo, "worktree", "prune") if "prune" in how else None
    elif how == "git wt remove":
        wt("remove", "x", "--force-occupied", cwd=repo).ok()
    else:
        git(repo, "worktree", "remove", "--force", path)
    if how == "made again":
        git(repo, "worktree", "add", "-q", path, "worktree-x")
        write(path, "precious", "1\n")
    ran = session.wt("exit", "remove", "--discard-changes", "--json").ok()
    assert ran.data["action"] == "none"
    assert "'x'" in ran.data["message"] + ran.err
    assert os.path.exists(f"{path}/precious") == (how == "made again")
    assert "'x'" not in session.wt("exit", "keep", "--json").ok().data["message"]
    assert session.enter("y").endswith("/y")


def test_session_is_that_of_the_moved_worktree_and_never_of_another_at_the_old_path(repo: str, tmp_path: Path) -> None:
    session = Session(repo)
    path = session.enter("x")
    session.cwd = repo
    moved = str(tmp_path / "moved")
    git(repo, "worktree", "move", path, moved)
    git(repo, "worktree", "add", "-q", "-b", "hand", path)
    write(path, "precious", "1\n")
    data = session.wt("exit", "remove", "--discard-changes", "--json").ok().data
    assert data["worktreePath"] == moved
    assert os.path.exists(f"{path}/precious")
    assert (worktrees(repo), branches(repo)) == ([repo, path], ["hand", "main"])


def test_main_checkout_that_moved_away_keeps_nobody_from_leaving(repo: str, tmp_path: Path) -> None:
    session = Session(repo)
    session.enter("x")
    os.rename(repo, str(tmp_path / "renamed"))
    ran = session.wt("exit", "keep", "--json", cwd=str(tmp_path)).ok()
    assert ran.data["action"] in ("keep", "none")
    assert session.wt("exit", "keep", "--json", cwd=str(tmp_path)).ok().data["action"] == "none"


# Switch


def test_switch_goes_to_another_and_keeps_the_first_original_folder(repo: str) -> None:
    write(repo, "sub/file", "1\n")
    session = Session(f"{repo}/sub")
    one = session.enter("one")
    ran = session.wt("switch", "two", "--json").ok()
    assert ran.json["tool"] == "switch"
    assert ran.data["worktreePath"] == f"{repo}/.claude/worktrees/two"
    session.cwd = ran.data["worktreePath"]
    data = session.wt("exit", "keep", "--json").ok().data
    assert (data["worktreePath"], data["originalCwd"]) == (session.cwd, f"{repo}/sub")
    assert worktrees(repo)[1:] == [one, session.cwd]


def test_switch_prints_exactly_the_path(repo: str, tmp_path: Path) -> None:
    session = Session(repo)
    session.enter("one")
    assert session.wt("switch", "two").ok().out == f"{repo}/.claude/worktrees/two\n"
    file = tmp_path / "cd"
    assert session.wt("switch", "one", env={"GIT_WT_CD_FILE": str(file)}).ok().out == ""
    assert file.read_bytes() == os.fsencode(f"{repo}/.claude/worktrees/one")


@pytest.mark.parametrize("why", ["bad name", "branch with commits", "file in the way", "folder not whole", "no base"])
def test_switch_that_fails_leaves_the_session_where_it_is(repo: str, why: str) -> None:
    session = Session(repo)
    one = session.enter("one")
    args: tuple[str, ...] = ("two",)
    if why == "bad name":
        args = ("a//b",)
    elif why == "branch with commits":
        git(repo, "branch", "worktree-two", "main~1")
    elif why == "file in the way":
        write(repo, ".claude/worktrees/two", "1\n")
    elif why == "folder not whole":
        os.unlink(f"{Session(repo).enter('two')}/.git")
    else:
        args = ("two", "--base", "nonsense")
    before = snapshot(one)
    assert session.wt("switch", *args, "--json").code in (1, 2, 3)
    assert differences(before, snapshot(one)) == []
    data = session.wt("exit", "keep", "--json").ok().data
    assert (data["worktreePath"], data["originalCwd"]) == (one, repo)


def test_switch_to_where_one_is_is_refused(repo: str) -> None:
    session = Session(repo)
    session.enter("a/b")
    for name in ("a/b", "a+b"):
        assert session.wt("switch", name, "--json").code == 1


def test_switch_outside_a_session_is_enter(repo: str) -> None:
    session = Session(repo)
    assert session.wt("switch", "x", "--json").ok().data["worktreePath"].endswith("/x")
    assert session.wt("exit", "keep", "--json").ok().data["originalCwd"] == repo


# Where one is: path, cd, list


def test_path_and_cd_name_a_worktree_the_main_checkout_and_the_previous_one(repo: str, tmp_path: Path) -> None:
    session = Session(repo)
    path = session.enter("a/b")
    for name in ("a/b", "a+b"):
        assert session.wt("path", name).ok().out == path + "\n"
    assert session.wt("path", "^").ok().out == repo + "\n"
    assert session.wt("path").ok().out == path + "\n"
    session.wt("exit", "keep").ok()
    session.cwd = repo
    assert session.wt("path", "-").ok().out == path + "\n"
    assert session.wt("cd", "-").ok().out == path + "\n"
    file = tmp_path / "cd"
    assert session.wt("cd", "^", env={"GIT_WT_CD_FILE": str(file)}).ok().out == ""
    assert file.read_bytes() == os.fsencode(repo)


def test_cd_starts_no_session(repo: str) -> None:
    Session(repo).enter("x")
    session = Session(repo)
    session.wt("cd", "x").ok()
    assert session.wt("exit", "remove", "--json").ok().data["action"] == "none"


@pytest.mark.parametrize("verb", ["path", "cd"])
def test_name_that_is_not_there_is_not_found_with_the_nearest(repo: str, verb: str) -> None:
    Session(repo).enter("feature")
    ran = wt(verb, "feture", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (1, "not-found")
    assert "feature" in ran.error["hint"]
    assert wt(verb, "-", "--json", cwd=repo).error["code"] == "not-found"


def test_list_shows_the_fields_of_the_contract(cloned: str) -> None:
    session = Session(cloned)
    path = session.enter("a/b")
    commit(path, "work", "1\n")
    write(path, "untracked", "1\n")
    write(path, "file0.txt", "changed\n")
    write(path, "file1.txt", "staged\n")
    git(path, "add", "file1.txt")
    main, row = session.wt("list", "--json").ok().data["worktrees"]
    assert {key: main[key] for key in ("name", "path", "branch", "head", "kind", "current", "missing")} == {
        "name": "^", "path": cloned, "branch": "main", "head": head(cloned), "kind": "main", "current": False,
        "missing": False,
    }  # fmt: skip
    assert main["upstream"] == {"name": "origin/main", "ahead": 0, "behind": 0, "gone": False}
    assert abs(row.pop("createdAt") - os.stat(path).st_mtime) < 60
    assert {blocker["code"] for blocker in row.pop("blockers")} >= {"uncommitted", "commits"}
    assert row == {
        "name": "a/b",
        "path": path,
        "branch": "worktree-a+b",
        "head": head(path),
        "kind": "session",
        "current": True,
        "base": "origin/main",
        "baseCommit": head(cloned, "origin/main"),
        "session": session.id,
        "changes": {"staged": 1, "modified": 1, "untracked": 1, "conflicted": 0},
        "ahead": 1,
        "behind": 0,
        "merged": row["merged"],
        "missing": False,
        "verdict": "partial",
    }
    assert row["merged"] in ("no", None)


def test_list_says_what_is_missing_locked_detached_by_hand_and_in_the_middle_of_something(repo: str) -> None:
    paths = {name: Session(repo).enter(name) for name in ("gone", "held", "merging", "fresh")}
    shutil.rmtree(paths["gone"])
    git(repo, "worktree", "lock", "--reason", "mine\n\x1b[31m", paths["held"])
    git(repo, "worktree", "add", "-q", "--detach", f"{repo}.hand")
    commit(repo, "file0.txt", "main\n")
    commit(paths["merging"], "file0.txt", "branch\n")
    git(paths["merging"], "merge", "-q", "main", check=False)
    rows = {row["name"]: row for row in wt("list", "--json", cwd=repo).ok().data["worktrees"]}
    assert rows["gone"]["missing"] is True
    assert "mine" in rows["held"]["locked"]
    assert rows["merging"]["operation"].startswith("merge")
    assert rows["merging"]["changes"]["conflicted"] == 1
    assert (rows["repo.hand"]["kind"], "branch" in rows["repo.hand"]) == ("other", False)
    assert (rows["fresh"]["merged"], rows["fresh"]["ahead"], rows["fresh"]["behind"]) == ("same", 0, 1)
    words = wt("list", cwd=repo).ok()
    assert "\x1b" not in words.out + words.err


def test_list_without_status_leaves_out_what_it_did_not_ask(repo: str) -> None:
    Session(repo).enter("x")
    row = wt("list", "--no-status", "--json", cwd=repo).ok().data["worktrees"][1]
    assert not {"changes", "ahead", "behind", "merged", "verdict", "blockers"} & set(row)


def test_whole_verdict_knows_what_the_partial_does_not(repo: str) -> None:
    path = Session(repo).enter("x")
    write(repo, ".git/info/exclude", "/.claude/\n*.key\n")
    write(path, "file0.txt", "hidden\n")
    git(path, "update-index", "--assume-unchanged", "file0.txt")
    rows = {flag: wt("list", *flag.split(), "--json", cwd=repo).ok().data["worktrees"][1] for flag in ("", "--verdict")}
    assert "hidden" not in {blocker["code"] for blocker in rows[""]["blockers"]}
    assert "hidden" in {blocker["code"] for blocker in rows["--verdict"]["blockers"]}
    assert rows["--verdict"]["verdict"] == "whole"


def test_current_is_where_one_stands_without_a_session(repo: str) -> None:
    path = Session(repo).enter("x")
    for cwd, names in ((repo, ["^"]), (path, ["x"])):
        rows = wt("list", "--no-status", "--json", cwd=cwd).ok().data["worktrees"]
        assert [row["name"] for row in rows if row["current"]] == names


# Every command


@pytest.mark.parametrize("args", [("-C", "{repo}", "list", "--no-status"), ("list", "--no-status", "-C", "{repo}")])
def test_folder_option_may_stand_before_and_behind_the_command(
    repo: str, tmp_path: Path, args: tuple[str, ...]
) -> None:
    words = [word.replace("{repo}", repo) for word in args]
    assert wt(*words, "--json", cwd=str(tmp_path)).ok().data["worktrees"][0]["path"] == repo


def test_no_colour_without_a_terminal(repo: str) -> None:
    Session(repo).enter("x")
    for env in ({}, {"NO_COLOR": "1"}, {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1"}):
        ran = wt("list", cwd=repo, env=env).ok()
        assert "\x1b" not in ran.out + ran.err


def test_dead_working_folder_keeps_nobody_from_leaving(repo: str, tmp_path: Path) -> None:
    session = Session(repo)
    path = session.enter("x")
    script = f"mkdir '{tmp_path}/dead' && cd '{tmp_path}/dead' && rmdir '{tmp_path}/dead' && git-wt exit keep --json"
    ran = session.wt("path").ok()
    assert ran.out == path + "\n"
    left = subprocess.run(
        ["sh", "-c", script], env=environment(session=session.id), capture_output=True, check=False, text=True
    )
    assert (left.returncode, '"action": "keep"' in left.stdout) == (0, True), left


@pytest.mark.parametrize("content", ["nonsense = 1\n", "not toml"])
def test_settings_that_are_wrong_are_a_warning_for_exit_list_and_path(repo: str, content: str) -> None:
    session = Session(repo)
    path = session.enter("x")
    write(repo, ".git-wt.toml", content)
    for args in (("list",), ("path", "x"), ("exit", "keep")):
        ran = session.wt(*args).ok()
        assert "warning" in ran.err
        assert ".git-wt.toml" in ran.err
    assert worktrees(repo) == [repo, path]


def test_exit_touches_nobody_elses_lock_or_entry(repo: str) -> None:
    session, other = Session(repo), Session(repo)
    session.enter("x")
    path = other.enter("y")
    git(repo, "worktree", "lock", path)
    before = snapshot(admin_dir(path))
    session.wt("exit", "remove", cwd=repo).ok()
    assert differences(before, snapshot(admin_dir(path))) == []
