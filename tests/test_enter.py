"""`enter` makes or resumes a worktree, from wherever it is called, and harms nothing."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.repos import (
    admin_dir,
    branches,
    commit,
    common_dir,
    differences,
    git,
    head,
    leftovers,
    make_repo,
    read,
    require_sound,
    snapshot,
    status,
    worktrees,
    write,
)
from tests.wt import Session, environment, finish, start_wt, wt

HOOK = """#!/bin/sh
{
    printf '%s\\n' "$@"
    pwd -P
    git rev-parse --show-toplevel
} >>'{log}'
{more}
"""


def hook(folder: str, log: str, more: str = "") -> None:
    """Write a post-checkout hook that notes its arguments, its working folder and the worktree that git sees."""
    path = write(folder, "post-checkout", HOOK.replace("{log}", log).replace("{more}", more))
    os.chmod(path, 0o755)


def git_wt(*args: str, cwd: str, session: str = "git") -> str:
    """Run git with the session's id in its environment, as a shell would run `git wt`; returns what it printed."""
    ran = subprocess.run(
        ["git", *args], cwd=cwd, env=environment(session=session), capture_output=True, check=True, text=True
    )
    return ran.stdout.strip()


# Nesting


def test_session_in_a_worktree_cannot_enter_another(session: Session) -> None:
    path = session.enter("first")
    ran = session.wt("enter", "second", "--json")
    assert (ran.code, ran.error["code"]) == (1, "session-active")
    assert "'first'" in ran.error["message"]
    assert "git wt exit keep" in ran.error["hint"]
    assert "git wt switch" in ran.error["hint"]
    assert worktrees(path)[1:] == [path]


def test_session_cannot_enter_the_worktree_again_that_it_is_in(session: Session) -> None:
    session.enter("first")
    assert session.wt("enter", "first", "--json").error["code"] == "session-active"


def test_two_sessions_may_be_in_two_worktrees_at_once(repo: str) -> None:
    one, other = Session(repo), Session(repo)
    assert one.enter("one") != other.enter("other")
    for each in (one, other):
        assert each.wt("exit", "keep", "--json").ok().data["worktreePath"] == each.cwd


def test_session_may_enter_inside_a_worktree_that_another_session_is_in(repo: str) -> None:
    first = Session(repo).enter("first")
    assert Session(first).enter("second") == f"{repo}/.claude/worktrees/second"


def test_session_whose_worktree_is_gone_may_enter_and_is_told(repo: str) -> None:
    session = Session(repo)
    git(repo, "worktree", "remove", "--force", session.enter("gone"))
    session.cwd = repo
    ran = session.wt("enter", "next", "--json").ok()
    assert "'gone'" in ran.err
    assert ran.data["resumed"] is False


# Where it is called from


def test_subfolder_works_from_the_main_root(repo: str) -> None:
    write(repo, "a/b/file", "1\n")
    assert Session(f"{repo}/a/b").enter("x") == f"{repo}/.claude/worktrees/x"


def test_linked_worktree_works_from_the_main_root(repo: str, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "hand", str(tmp_path / "hand"))
    assert Session(str(tmp_path / "hand")).enter("x") == f"{repo}/.claude/worktrees/x"


def test_git_c_and_our_own_c_work_from_the_main_root(repo: str, tmp_path: Path) -> None:
    assert git_wt("-C", repo, "wt", "enter", "one", cwd=str(tmp_path)) == f"{repo}/.claude/worktrees/one"
    assert Session(str(tmp_path)).wt("-C", repo, "enter", "two", "--json").ok().data["worktreePath"].endswith("/two")
    assert Session(str(tmp_path)).wt("enter", "three", "-C", repo, "--json").ok().data["worktreePath"].endswith("three")


@pytest.mark.parametrize("alias", ["wt", "!git wt"])
@pytest.mark.parametrize("place", ["", "sub", "linked"])
def test_alias_works_from_anywhere(repo: str, alias: str, place: str, tmp_path: Path) -> None:
    git(repo, "config", "alias.w", alias)
    write(repo, "sub/file", "1\n")
    git(repo, "worktree", "add", "-q", "-b", "hand", str(tmp_path / "hand"))
    cwd = str(tmp_path / "hand") if place == "linked" else os.path.join(repo, place)
    assert git_wt("w", "enter", "x", cwd=cwd) == f"{repo}/.claude/worktrees/x"
    assert status(f"{repo}/.claude/worktrees/x") == []


@pytest.mark.parametrize("layout", ["repo.git", ".bare"])
def test_bare_repository_has_its_worktrees_beside_it(repo: str, tmp_path: Path, layout: str) -> None:
    place = tmp_path / "place"
    place.mkdir()
    git(str(place), "clone", "-q", "--bare", repo, layout)
    if layout == ".bare":
        write(str(place), ".git", "gitdir: ./.bare\n")
    start = str(place / layout) if layout == "repo.git" else str(place)
    data = Session(start).wt("enter", "x", "--json").ok().data
    assert data["worktreePath"] == f"{os.path.realpath(place)}/.claude/worktrees/x"
    assert (data["base"], data["baseCommit"]) == ("main", head(repo))
    assert status(data["worktreePath"]) == []
    second = Session(data["worktreePath"]).enter("y")
    assert second == f"{os.path.realpath(place)}/.claude/worktrees/y"
    assert git(str(place / layout), "config", "core.bare") == "true"
    require_sound(second)


def test_submodule_is_a_repository_of_its_own(repo: str, tmp_path: Path) -> None:
    outer = make_repo(str(tmp_path / "outer"))
    git(outer, "submodule", "--quiet", "add", repo, "sub")
    git(outer, "commit", "-q", "-m", "sub")
    before = read(common_dir(f"{outer}/sub"), "config")
    path = Session(f"{outer}/sub").enter("x")
    assert path == f"{outer}/sub/.claude/worktrees/x"
    assert git(path, "rev-parse", "--show-toplevel") == path
    assert (status(path), status(f"{outer}/sub"), status(outer)) == ([], [], [])
    assert read(common_dir(f"{outer}/sub"), "config") == before
    assert Session(path).enter("y") == f"{outer}/sub/.claude/worktrees/y"
    assert Session(outer).enter("z") == f"{outer}/.claude/worktrees/z"


def test_separate_git_dir_is_found_from_the_main_checkout_and_from_its_worktrees(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    git(str(tmp_path), "init", "-q", "--separate-git-dir", "meta/r.git", "work")
    root = os.path.realpath(tmp_path / "work")
    commit(root, "file", "1\n")
    path = Session(root).enter("x")
    assert path == f"{root}/.claude/worktrees/x"
    assert Session(path).enter("y") == f"{root}/.claude/worktrees/y"
    assert (status(root), status(path)) == ([], [])


def test_separate_git_dir_with_worktrees_elsewhere_never_takes_another_folder_for_the_main_root(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    git(str(tmp_path), "init", "-q", "--separate-git-dir", "meta/r.git", "work")
    root = os.path.realpath(tmp_path / "work")
    write(root, ".git-wt.toml", 'directory = "../{repo}.{slug}"\n')
    commit(root, "file", "1\n")
    path = Session(root).enter("x")
    ran = Session(path).wt("enter", "y", "--json")
    assert sorted(os.listdir(tmp_path / "meta")) == ["r.git"]
    if ran.code:
        assert "separate" in ran.error["message"]
    else:
        assert ran.data["worktreePath"] == f"{root}.y"


def test_outside_any_repository_is_a_clear_error(tmp_path: Path) -> None:
    before = snapshot(str(tmp_path))
    ran = wt("enter", "x", "--json", cwd=str(tmp_path))
    assert (ran.code, ran.error["code"]) == (1, "not-a-repository")
    assert str(tmp_path) in ran.error["message"]
    assert differences(before, snapshot(str(tmp_path))) == []


def test_main_root_with_an_odd_name_works(tmp_path: Path) -> None:
    odd = make_repo(str(tmp_path / "a b'c\"$(touch x)\n\N{SNOWMAN}*"))
    path = Session(odd).enter("x")
    assert path == f"{odd}/.claude/worktrees/x"
    assert (status(path), status(odd)) == ([], [])


@pytest.mark.parametrize("bare", ["true", "false"])
def test_setting_that_says_bare_of_a_main_checkout_is_left_alone(repo: str, bare: str) -> None:
    git(repo, "config", "core.bare", bare)
    before = read(repo, ".git/config")
    path = Session(repo).enter("x")
    assert path == f"{repo}/.claude/worktrees/x"
    assert status(path) == []
    assert read(repo, ".git/config") == before
    git(repo, "config", "core.bare", "false")
    assert status(repo) == []


def test_repository_of_3000_files_is_checked_out_whole(tmp_path: Path) -> None:
    repo = make_repo(str(tmp_path / "repo"), files=3000)
    started = time.monotonic()
    path = Session(repo).enter("x")
    assert time.monotonic() - started < 20
    assert status(path) == []
    assert len(os.listdir(path)) == len(os.listdir(repo)) - 1 == 3002  # README and .git, too; .claude is in main only


# Place and branch


def test_folder_of_worktrees_is_ignored_in_this_clone_only(repo: str) -> None:
    Session(repo).enter("one")
    Session(repo).enter("two")
    assert status(repo) == []
    assert read(repo, ".git/info/exclude").splitlines().count("/.claude/worktrees/") == 1
    assert not os.path.exists(f"{repo}/.gitignore")


def test_folder_of_worktrees_with_glob_characters_is_ignored(repo: str) -> None:
    write(repo, ".git-wt.local.toml", 'directory = "trees [a]*/{slug}"\n')
    Session(repo).enter("one")
    assert status(repo) == ["?? .git-wt.local.toml"]


@pytest.mark.parametrize("link", [".claude", ".claude/worktrees", ".claude/worktrees/x"])
@pytest.mark.parametrize("target", ["folder", "nothing"])
def test_symlink_on_the_way_is_refused(repo: str, tmp_path: Path, link: str, target: str) -> None:
    (tmp_path / "folder").mkdir()
    os.makedirs(os.path.dirname(f"{repo}/{link}"), exist_ok=True)
    os.symlink(tmp_path / target, f"{repo}/{link}")
    ran = wt("enter", "x", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (1, "exists")
    assert "symbolic link" in ran.error["message"]
    assert os.listdir(tmp_path / "folder") == []
    assert not (tmp_path / "nothing").exists()
    assert (branches(repo), worktrees(repo)) == (["main"], [repo])


@pytest.mark.parametrize("kind", ["file", "folder with a file", "copy of a worktree", "repository"])
def test_what_is_at_the_path_already_is_refused_and_left(repo: str, kind: str) -> None:
    path = f"{repo}/.claude/worktrees/x"
    if kind == "file":
        write(repo, ".claude/worktrees/x", "mine\n")
    elif kind == "folder with a file":
        write(path, "mine", "mine\n")
    elif kind == "repository":
        make_repo(path)
    else:
        shutil.copytree(Session(repo).enter("other"), path)
    before = snapshot(repo + "/.claude")
    known = (branches(repo), worktrees(repo))
    ran = wt("enter", "x", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (1, "exists")
    assert differences(before, snapshot(repo + "/.claude")) == []
    assert (branches(repo), worktrees(repo), leftovers(repo)) == (*known, [])


def test_empty_folder_at_the_path_is_used(repo: str) -> None:
    os.makedirs(f"{repo}/.claude/worktrees/x")
    assert status(Session(repo).enter("x")) == []


def test_branch_may_name_an_existing_one_which_is_kept_as_it_is(repo: str) -> None:
    git(repo, "switch", "-q", "-c", "mine")
    tip = commit(repo, "mine.txt", "1\n")
    git(repo, "switch", "-q", "main")
    session = Session(repo)
    data = session.wt("enter", "x", "--branch", "mine", "--json").ok().data
    assert data["worktreeBranch"] == "mine"
    assert head(data["worktreePath"]) == head(repo, "mine") == tip
    session.wt("exit", "remove", "--json").ok()
    assert head(repo, "mine") == tip


def test_branch_may_name_a_new_one(repo: str) -> None:
    session = Session(repo)
    data = session.wt("enter", "x", "--branch", "me/new", "--json").ok().data
    assert data["worktreeBranch"] == "me/new"
    assert branches(repo) == ["main", "me/new"]
    session.wt("exit", "remove").ok()
    assert branches(repo) == ["main"]


def test_branch_in_use_is_refused(repo: str, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "-b", "used", str(tmp_path / "hand"))
    for branch in ("main", "used"):
        ran = wt("enter", "x", "--branch", branch, "--json", cwd=repo)
        assert (ran.code, ran.error["code"]) == (1, "branch-in-use")
    assert worktrees(repo) == [repo, str(tmp_path / "hand")]


def test_branch_that_a_rebase_elsewhere_comes_back_to_is_in_use(repo: str, tmp_path: Path) -> None:
    other = str(tmp_path / "hand")
    git(repo, "worktree", "add", "-q", "-b", "used", other)
    commit(other, "file0.txt", "theirs\n")
    commit(repo, "file0.txt", "ours\n")
    git(other, "rebase", "main", check=False)
    assert git(other, "symbolic-ref", "-q", "HEAD", check=False) == ""
    assert wt("enter", "x", "--branch", "used", "--json", cwd=repo).error["code"] == "branch-in-use"


def test_shared_configuration_is_never_written(cloned: str) -> None:
    before = read(cloned, ".git/config")
    session = Session(cloned)
    session.enter("x")
    assert read(cloned, ".git/config") == before
    session.wt("exit", "remove").ok()
    assert read(cloned, ".git/config") == before


# Resuming


def test_worktree_that_is_there_is_resumed_without_moving_its_branch(cloned: str) -> None:
    first = Session(cloned)
    path = first.enter("x")
    tip = commit(path, "work", "1\n")
    write(path, "untracked", "1\n")
    first.wt("exit", "keep").ok()
    commit(cloned, "main.txt", "1\n")
    data = Session(cloned).wt("enter", "x", "--json").ok().data
    assert (data["resumed"], data["worktreePath"], data["setup"]) == (True, path, [])
    assert (data["base"], data["baseCommit"]) == ("origin/main", head(cloned, "origin/main"))
    assert (head(path), status(path)) == (tip, ["?? untracked"])


def test_resuming_is_fast_and_takes_three_git_processes_at_most(cloned: str, tmp_path: Path) -> None:
    Session(cloned).enter("x")
    stale = f"{cloned}/.git/git-wt"
    for entry in os.scandir(stale):
        os.utime(entry.path, (0, 0))
    git(cloned, "remote", "set-url", "origin", "ssh://nobody@example.invalid/x.git")
    traces = tmp_path / "traces"
    traces.mkdir()
    started = time.monotonic()
    env = {"GIT_TRACE2_EVENT": str(traces), "GIT_SSH_COMMAND": "sleep 30 #"}
    assert Session(cloned).wt("enter", "x", "--json", env=env).ok().data["resumed"] is True
    assert time.monotonic() - started < 3
    assert len([name for name in os.listdir(traces) if "/" not in name]) <= 3


def test_differing_base_or_branch_is_refused_on_resuming(repo: str) -> None:
    path = Session(repo).enter("x")
    for arguments in (("--base", "HEAD~1"), ("--branch", "other"), ("--branch", "main")):
        ran = Session(repo).wt("enter", "x", *arguments, "--json")
        assert (ran.code, ran.error["code"]) == (1, "exists"), ran
    for arguments in (("--base", "main"), ("--base", "HEAD"), ("--branch", "worktree-x")):
        assert Session(repo).wt("enter", "x", *arguments, "--json").ok().data["resumed"] is True
    assert (branches(repo), head(path)) == (["main", "worktree-x"], head(repo))


@pytest.mark.parametrize("damage", ["no .git", "another's .git", "a link", "gone", "entry names another folder"])
def test_folder_that_only_looks_like_the_worktree_is_refused_loudly(repo: str, damage: str) -> None:
    path, other = Session(repo).enter("x"), Session(repo).enter("other")
    admin = admin_dir(path)
    if damage == "no .git":
        os.unlink(f"{path}/.git")
    elif damage == "another's .git":
        shutil.copy(f"{other}/.git", f"{path}/.git")
    elif damage == "a link":
        shutil.rmtree(path)
        os.symlink(other, path)
    elif damage == "gone":
        shutil.rmtree(path)
    else:
        write(admin, "gitdir", f"{repo}/elsewhere/.git\n")
    ran = wt("enter", "x", "--json", cwd=repo)
    assert ran.code == 1
    assert ran.error["code"] in ("not-a-worktree", "exists")
    assert "'x'" in ran.error["message"] or path in ran.error["message"]
    assert ran.error["hint"]
    assert wt("list", cwd=repo).ok()


def test_worktree_moved_by_git_is_still_ours(repo: str, tmp_path: Path) -> None:
    session = Session(repo)
    moved = str(tmp_path / "moved")
    git(repo, "worktree", "move", session.enter("x"), moved)
    session.cwd = repo
    assert session.wt("path").ok().out == moved + "\n"
    assert Session(repo).enter("x") == moved
    assert session.wt("exit", "keep", "--json").ok().data["worktreePath"] == moved


def test_several_sessions_resume_one_worktree(repo: str) -> None:
    sessions = [Session(repo) for _ in range(4)]
    assert len({session.enter("x") for session in sessions}) == 1
    for session in sessions[:3]:
        session.wt("exit", "keep").ok()
    assert worktrees(repo) == [repo, sessions[0].cwd]


def test_last_session_may_remove_what_others_made_and_left(repo: str) -> None:
    maker, other = Session(repo), Session(repo)
    path = maker.enter("x")
    maker.wt("exit", "keep").ok()
    assert other.enter("x") == path
    other.wt("exit", "remove", cwd=repo).ok()
    assert (branches(repo), worktrees(repo)) == (["main"], [repo])


def test_worktree_made_by_hand_is_resumed_by_its_folder_and_can_only_be_kept(repo: str, tmp_path: Path) -> None:
    hand = str(tmp_path / "hand")
    git(repo, "worktree", "add", "-q", "-b", "hand", hand)
    session = Session(repo)
    assert session.enter("hand") == hand
    ran = session.wt("exit", "remove", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (1, "not-a-worktree")
    assert "git wt remove" in ran.error["hint"]
    assert session.wt("exit", "keep", "--json", cwd=repo).ok().data["worktreePath"] == hand


def test_worktree_locked_by_somebody_is_resumed_and_stays_locked(repo: str) -> None:
    path = Session(repo).enter("x")
    git(repo, "worktree", "lock", "--reason", "mine", path)
    assert Session(repo).enter("x") == path
    assert read(admin_dir(path), "locked").strip() == "mine"


@pytest.mark.parametrize("arguments", [("--path", ".claude/worktrees/x"), ("--path", "{path}"), ("--path", "../hand")])
def test_path_enters_a_worktree_that_git_knows_and_makes_it_keep_only(repo: str, arguments: tuple[str, ...]) -> None:
    path = Session(repo).enter("x")
    hand = f"{os.path.dirname(repo)}/hand"
    git(repo, "worktree", "add", "-q", "-b", "hand", hand)
    session = Session(repo)
    entered = session.enter(*(word.replace("{path}", path) for word in arguments))
    assert entered in (path, hand)
    assert session.wt("exit", "remove", "--json", cwd=repo).error["code"] == "not-a-worktree"
    assert session.wt("list", "--no-status", "--json", cwd=repo).ok().data["worktrees"][0]["current"] is False
    session.wt("exit", "keep", cwd=repo).ok()


def test_path_refuses_the_main_checkout_a_plain_folder_and_another_repository(repo: str, tmp_path: Path) -> None:
    os.mkdir(f"{repo}/plain")
    other = make_repo(str(tmp_path / "other"))
    for path in (".", "plain", other, "nonexistent"):
        ran = wt("enter", "--path", path, "--json", cwd=repo)
        assert (ran.code, ran.error["code"]) == (1, "not-a-worktree"), ran


def test_main_checkout_cannot_be_entered(repo: str) -> None:
    ran = wt("enter", "^", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (2, "usage")
    assert "main checkout" in ran.error["message"]


# Only the branch is there


def orphan(repo: str) -> str:
    """Make a worktree `x` and take it away by hand, so that its branch is left; returns the branch's commit."""
    git(repo, "worktree", "remove", "--force", Session(repo).enter("x"))
    return head(repo, "worktree-x")


def test_orphan_branch_of_ours_that_loses_nothing_is_moved_to_the_base(repo: str) -> None:
    orphan(repo)
    now = commit(repo, "main.txt", "1\n")
    data = wt("enter", "x", "--json", cwd=repo).ok().data
    assert (data["baseCommit"], head(data["worktreePath"])) == (now, now)
    assert git(data["worktreePath"], "symbolic-ref", "--short", "HEAD") == "worktree-x"
    assert status(data["worktreePath"]) == []


def test_orphan_branch_of_ours_with_commits_is_refused(repo: str) -> None:
    path = Session(repo).enter("x")
    tip = commit(path, "work", "1\n")
    git(repo, "worktree", "remove", path)
    before = snapshot(f"{repo}/.git/refs")
    ran = wt("enter", "x", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (3, "branch-has-commits")
    assert "1 commit" in ran.error["message"]
    assert "--reuse-branch" in ran.error["hint"]
    assert "--reset-branch" in ran.error["hint"]
    assert differences(before, snapshot(f"{repo}/.git/refs")) == []
    assert (head(repo, "worktree-x"), worktrees(repo)) == (tip, [repo])


def test_branch_that_is_not_ours_is_refused_though_nothing_would_be_lost(repo: str) -> None:
    git(repo, "branch", "worktree-x", "main~1")
    ran = wt("enter", "x", "--json", cwd=repo)
    assert ran.error["code"] == "branch-has-commits"
    assert head(repo, "worktree-x") == head(repo, "main~1")


def test_reuse_branch_takes_it_as_it_is(repo: str) -> None:
    git(repo, "branch", "worktree-x", "main~1")
    data = wt("enter", "x", "--reuse-branch", "--json", cwd=repo).ok().data
    assert head(data["worktreePath"]) == head(repo, "main~1")


def test_reset_branch_moves_it_and_keeps_a_rescue_ref(repo: str) -> None:
    path = Session(repo).enter("x")
    tip = commit(path, "work", "1\n")
    git(repo, "worktree", "remove", path)
    ran = wt("enter", "x", "--reset-branch", "--json", cwd=repo).ok()
    assert head(ran.data["worktreePath"]) == head(repo)
    rescued = git(repo, "for-each-ref", "--format=%(objectname) %(refname)", "refs/git-wt/rescue").splitlines()
    assert [line.split()[0] for line in rescued] == [tip]
    assert rescued[0].split()[1] in ran.err
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")
    assert git(repo, "cat-file", "-t", tip) == "commit"


def test_reset_branch_twice_keeps_both_rescue_refs(repo: str) -> None:
    tips = set()
    for number in range(2):
        session = Session(repo)
        path = session.enter("x", "--reset-branch")
        tips.add(commit(path, f"work{number}", "1\n"))
        git(repo, "worktree", "remove", path)
    wt("enter", "x", "--reset-branch", cwd=repo).ok()
    assert tips == set(git(repo, "for-each-ref", "--format=%(objectname)", "refs/git-wt/rescue").splitlines())


def test_branch_of_others_stays_theirs_after_reset_and_reuse(repo: str) -> None:
    git(repo, "branch", "worktree-x", "main~1")
    session = Session(repo)
    session.enter("x", "--reuse-branch")
    session.wt("exit", "remove", cwd=repo).ok()
    assert "worktree-x" in branches(repo)


# Hooks of the main checkout


def test_post_checkout_hook_runs_in_the_worktree_as_for_plain_git(repo: str, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    hook(f"{repo}/.git/hooks", log)
    path = Session(repo).enter("x")
    assert Path(log).read_text().split("\n")[:-1] == ["0" * 40, head(repo), "1", path, path]
    Session(repo).enter("x")
    assert len(Path(log).read_text().splitlines()) == 5  # resuming runs none


@pytest.mark.parametrize("setting", [".husky", "{repo}/.husky", "~/hooks"])
def test_hooks_path_is_that_of_the_main_checkout(repo: str, tmp_path: Path, sealed: Path, setting: str) -> None:
    log = str(tmp_path / "log")
    hook(str(sealed / "hooks") if setting.startswith("~") else f"{repo}/.husky", log)
    git(repo, "config", "core.hooksPath", setting.replace("{repo}", repo))
    path = Session(repo).enter("x")
    assert Path(log).read_text().splitlines()[3:] == [path, path]


def test_no_hook_of_the_main_checkout_runs_when_git_hooks_are_off(repo: str, tmp_path: Path) -> None:
    write(repo, ".git-wt.toml", 'gitHooks = "off"\n')
    hook(f"{repo}/.git/hooks", str(tmp_path / "log"))
    Session(repo).enter("x")
    assert not (tmp_path / "log").exists()


def test_failing_hook_is_reported_and_the_worktree_stays(repo: str, tmp_path: Path) -> None:
    hook(f"{repo}/.git/hooks", str(tmp_path / "log"), "echo 'no luck today' >&2; exit 9")
    ran = wt("enter", "x", "--json", cwd=repo)
    assert ran.code in (0, 6)
    assert "post-checkout" in ran.err
    assert "no luck today" in ran.err
    assert worktrees(repo) == [repo, ran.data["worktreePath"]]
    assert (status(ran.data["worktreePath"]), leftovers(repo)) == ([], [])
    assert not os.path.exists(f"{admin_dir(ran.data['worktreePath'])}/locked")


def test_signal_during_the_hook_ends_it_and_leaves_the_worktree_unlocked(repo: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    hook(f"{repo}/.git/hooks", str(log), f"sleep 20; echo late >>'{log}'")
    started = start_wt("enter", "x", cwd=repo)
    until = time.monotonic() + 20
    while not log.exists() and time.monotonic() < until:
        time.sleep(0.02)
    started.terminate()
    begun = time.monotonic()
    assert finish(started).code == 143
    assert time.monotonic() - begun < 5
    path = f"{repo}/.claude/worktrees/x"
    assert worktrees(repo) == [repo, path]
    assert not os.path.exists(f"{admin_dir(path)}/locked")
    assert (status(path), leftovers(repo)) == ([], [])
    assert subprocess.run(["pgrep", "-f", str(log)], capture_output=True, check=False).stdout == b""


def test_smudge_filter_that_fails_rolls_everything_back(repo: str, tmp_path: Path) -> None:
    git(repo, "config", "filter.lfs.clean", "cat")
    git(repo, "config", "filter.lfs.smudge", "false")
    git(repo, "config", "filter.lfs.required", "true")
    write(repo, ".gitattributes", "*.bin filter=lfs\n")
    commit(repo, "big.bin", "pointer\n")
    git(repo, "add", ".gitattributes")
    git(repo, "commit", "-q", "-m", "attributes")
    hook(f"{repo}/.git/hooks", str(tmp_path / "log"))
    ran = wt("enter", "x", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (1, "git")
    assert (branches(repo), worktrees(repo), leftovers(repo)) == (["main"], [repo], [])
    assert not os.path.exists(f"{repo}/.claude/worktrees/x")
    assert not os.path.exists(f"{repo}/.git/worktrees/x")
    assert not (tmp_path / "log").exists()
    git(repo, "config", "filter.lfs.smudge", "cat")
    assert status(Session(repo).enter("x")) == []


# Variables that leak from hooks and aliases


@pytest.mark.parametrize(
    "leak",
    ["GIT_DIR=.git", "GIT_DIR={repo}/.git", "GIT_DIR={linked}", "GIT_INDEX_FILE={repo}/.git/index",
     "GIT_INDEX_FILE=.git/index", "GIT_WORK_TREE={repo}", "GIT_WORK_TREE=/", "GIT_COMMON_DIR={repo}/.git/worktrees",
     "GIT_CONFIG_PARAMETERS='core.bare'='true'",
     "GIT_CONFIG_COUNT=1;GIT_CONFIG_KEY_0=core.bare;GIT_CONFIG_VALUE_0=true",
     "GIT_OBJECT_DIRECTORY=/nonexistent", "GIT_NAMESPACE=x", "GIT_PREFIX=nonexistent/", "GIT_CEILING_DIRECTORIES=/"],
)  # fmt: skip
def test_leaked_variable_does_no_harm(repo: str, tmp_path: Path, leak: str) -> None:
    git(repo, "worktree", "add", "-q", "-b", "hand", str(tmp_path / "hand"))
    write(repo, "file0.txt", "staged\n")
    git(repo, "add", "file0.txt")
    pairs = (pair.split("=", 1) for pair in leak.split(";"))
    env = {name: value.format(repo=repo, linked=admin_dir(str(tmp_path / "hand"))) for name, value in pairs}
    config = read(repo, ".git/config")
    ran = wt("enter", "x", "--json", cwd=repo, env=env).ok()
    assert ran.data["worktreePath"] == f"{repo}/.claude/worktrees/x"
    assert status(ran.data["worktreePath"]) == []
    assert status(repo) == ["M  file0.txt"]
    assert (status(str(tmp_path / "hand")), read(repo, ".git/config")) == ([], config)
    assert "GIT_DIR" not in ran.err  # it names this very repository, if anything
    require_sound(repo)


@pytest.mark.parametrize("other", ["other", "repo2"])
def test_git_dir_of_another_repository_is_ignored_and_said_once(repo: str, tmp_path: Path, other: str) -> None:
    elsewhere = make_repo(str(tmp_path / other))
    before = snapshot(elsewhere)
    ran = wt("enter", "x", "--json", cwd=repo, env={"GIT_DIR": f"{elsewhere}/.git"}).ok()
    assert ran.data["worktreePath"] == f"{repo}/.claude/worktrees/x"
    assert ran.err.count("GIT_DIR") == 1
    assert differences(before, snapshot(elsewhere)) == []


def test_git_dir_of_this_repository_is_not_worth_a_word(repo: str) -> None:
    write(repo, "sub/file", "1\n")
    inside = Session(repo).enter("x")
    for cwd, git_dir in ((f"{repo}/sub", f"{repo}/.git"), (inside, admin_dir(inside)), (inside, f"{repo}/.git")):
        assert "GIT_DIR" not in wt("list", "--no-status", cwd=cwd, env={"GIT_DIR": git_dir}).ok().err


def test_enter_in_a_pre_commit_hook_leaves_the_commit_whole(repo: str) -> None:
    write(repo, ".git/hooks/pre-commit", "#!/bin/sh\nexec git wt enter x --session hooked >&2\n")
    os.chmod(f"{repo}/.git/hooks/pre-commit", 0o755)
    write(repo, "file0.txt", "staged\n")
    git(repo, "add", "file0.txt")
    write(repo, "file1.txt", "committed\n")
    git(repo, "commit", "-q", "-m", "by path", "file1.txt")
    assert git(repo, "show", "--format=", "--name-only") == "file1.txt"
    assert status(repo) == ["M  file0.txt"]
    assert status(f"{repo}/.claude/worktrees/x") == []
