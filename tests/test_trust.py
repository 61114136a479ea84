"""Trust: nothing of a repository runs before a person has seen and allowed it; what was hashed is what runs."""

import hashlib
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.repos import commit, git, make_repo, write
from tests.wt import Ran, Session, environment, executable, wt

TOUCH = '[[setup]]\nrun = "touch ran"\n'


def enter(repo: str, name: str = "task") -> Ran:
    """Enter a new worktree in a session of its own."""
    return Session(repo).wt("enter", name, "--json")


def step(ran: Ran) -> Any:
    """What the commands' step reported."""
    return next(report for report in ran.data["setup"] if report["step"] == "setup")


def require_not_run(ran: Ran, *, code: int = 6) -> None:
    """The worktree is there, the commands did not run, and it says how to allow them."""
    assert (ran.code, step(ran)["status"]) == (code, "not-trusted"), ran
    assert "git wt trust" in step(ran)["detail"]
    assert not os.path.exists(f"{ran.data['worktreePath']}/ran")


def require_run(ran: Ran) -> None:
    """The commands ran."""
    assert step(ran.ok())["status"] == "done"
    assert os.path.exists(f"{ran.data['worktreePath']}/ran")


def store(sealed: Path) -> Path:
    """The folder of what is allowed."""
    return sealed / "xdg_state_home" / "git-wt" / "trust"


# Asking


@pytest.mark.parametrize("name", [".git-wt.toml", ".git-wt.local.toml"])
def test_commands_of_a_repository_do_not_run_unasked(repo: str, name: str) -> None:
    write(repo, name, TOUCH)
    require_not_run(enter(repo))
    write(repo, name, '[[teardown]]\nrun = "true"\n' + TOUCH)
    wt("trust", "--yes", cwd=repo).ok()
    require_run(enter(repo, "other"))


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["words", "json"])
def test_without_a_terminal_nothing_is_allowed(repo: str, sealed: Path, json: tuple[str, ...]) -> None:
    write(repo, ".git-wt.toml", TOUCH)
    ran = wt("trust", *json, cwd=repo, input="y\nyes\n")
    assert ran.code == 4
    assert "touch ran" in ran.out + ran.err
    assert not store(sealed).exists()
    if json:
        assert ran.error["code"] == "not-trusted"
    require_not_run(enter(repo))


def test_yes_names_what_it_allowed(repo: str) -> None:
    commit(repo, "tools/s", "echo\n")
    write(repo, ".git-wt.toml", '[[setup]]\nrun = "sh tools/s"\n[[setup]]\nrun = ["touch", "a b"]\n')
    words = wt("trust", "--yes", cwd=repo).ok()
    digest = hashlib.sha256(b"echo\n").hexdigest()
    assert "  1. sh tools/s\n  2. touch 'a b'\n" in words.out
    assert f"script tools/s, sha256 {digest}" in words.out
    wt("trust", "--revoke", cwd=repo).ok()
    (allowed,) = wt("trust", "--yes", "--json", cwd=repo).ok().data["allowed"]
    assert allowed["commands"] == [{"run": "sh tools/s"}, {"run": ["touch", "a b"]}]
    assert allowed["scripts"] == {"tools/s": digest}


@pytest.mark.parametrize(
    ("answer", "code"), [("y", 0), ("n", 4), ("", 4), ("\x04", 4)], ids=["yes", "no", "enter", "end"]
)
def test_on_a_terminal_the_text_is_shown_and_only_yes_allows(repo: str, answer: str, code: int) -> None:
    write(repo, ".git-wt.toml", TOUCH)
    child = pexpect.spawn(executable(), ["trust"], cwd=repo, env=environment(), encoding="utf-8", timeout=20)
    child.expect_exact("1. touch ran")
    child.expect_exact("allow this to run")
    child.send(answer) if answer == "\x04" else child.sendline(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == code
    ran = enter(repo)
    require_not_run(ran) if code else require_run(ran)


def test_what_is_shown_cannot_hide_anything(repo: str) -> None:
    write(repo, ".git-wt.toml", '[[setup]]\nrun = "touch ran\\u001b[2K\\r\\u202e\\ntouch more"\n')
    shown = wt("trust", cwd=repo).err
    assert "  1. touch ran\\x1b[2K\\r\\u202e\n     touch more\n" in shown


# What was hashed is what runs


def test_a_change_after_trust_asks_again(repo: str) -> None:
    write(repo, ".git-wt.toml", TOUCH)
    wt("trust", "--yes", cwd=repo).ok()
    require_run(enter(repo, "one"))
    write(repo, ".git-wt.toml", '[[setup]]\nrun = "touch ran; true"\n')
    require_not_run(enter(repo, "two"))
    write(repo, ".git-wt.toml", "# the same commands again\nbaseRef = 'head'\n" + TOUCH)
    require_run(enter(repo, "three"))


@pytest.mark.parametrize(
    "run",
    [
        "./tools/s", "sh tools/s", "true && tools/s", "cd tools && ./s", "'./tools/s'", "sh -c 'A=1 ./tools/s;'",
        "$GIT_WT_PATH/tools/s", '"${PWD}"/tools/s',
    ],
)  # fmt: skip
def test_a_script_that_the_branch_changes_after_trust_is_not_run(repo: str, run: str) -> None:
    write(repo, "tools/s", "#!/bin/sh\ntrue\n")
    os.chmod(f"{repo}/tools/s", 0o755)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "script")
    git(repo, "branch", "hostile")
    write(repo, ".git-wt.toml", f"[[setup]]\nrun = '''{run}'''\n")
    wt("trust", "--yes", cwd=repo).ok()
    assert step(enter(repo, "good").ok())["status"] == "done"
    write(repo, "tools/s", '#!/bin/sh\ntouch "$GIT_WT_PATH/ran"\n')
    git(repo, "commit", "-qam", "hostile")
    require_not_run(enter(repo, "bad"))
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    assert step(enter(repo, "good-again").ok())["status"] == "done"


def test_a_script_in_an_argument_list_counts_too(repo: str) -> None:
    commit(repo, "tools/s", "true\n")
    write(repo, ".git-wt.toml", '[[setup]]\nrun = ["sh", "-c", "exec sh tools/s"]\n')
    wt("trust", "--yes", cwd=repo).ok()
    assert step(enter(repo, "good").ok())["status"] == "done"
    commit(repo, "tools/s", "touch ran\n")
    require_not_run(enter(repo, "bad"))


@pytest.mark.parametrize("run", ['sh "$GIT_WT_MAIN/tools/s"', "sh -c 'exec sh \"${GIT_WT_MAIN}/tools/s\"'"])
def test_a_script_of_the_main_checkout_counts_too(tmp_path: Path, run: str) -> None:
    repo = make_repo(str(tmp_path / "a repo"))
    commit(repo, "tools/s", "true\n")
    write(repo, ".git-wt.toml", f"[[setup]]\nrun = '''{run}'''\n")
    wt("trust", "--yes", cwd=repo).ok()
    assert step(enter(repo, "good").ok())["status"] == "done"
    write(repo, "tools/s", "touch ran\n")
    require_not_run(enter(repo, "bad"))


def test_a_branch_cannot_put_a_link_where_a_program_was_expected(repo: str) -> None:
    write(repo, ".git/info/exclude", "tools\n")
    write(repo, "tools/s", "true\n")
    write(repo, ".git-wt.toml", '[[setup]]\nrun = "sh tools/s || true"\n')
    wt("trust", "--yes", cwd=repo).ok()
    assert step(enter(repo, "good").ok())["status"] == "done"
    os.rename(f"{repo}/tools", f"{repo}/kept")
    os.symlink("evil", f"{repo}/tools")
    write(repo, "evil/s", "touch ran\n")
    git(repo, "add", "-f", "tools", "evil/s")
    git(repo, "commit", "-qm", "hostile")
    require_not_run(enter(repo, "bad"))


def test_cursors_script_counts_though_nobody_tracks_it(repo: str) -> None:
    write(repo, ".cursor/worktrees.json", '{"setup-worktree": "setup.sh"}')
    write(repo, ".cursor/setup.sh", "true\n")
    wt("trust", "--yes", cwd=repo).ok()
    assert step(enter(repo, "good").ok())["status"] == "done"
    write(repo, ".cursor/setup.sh", "touch ran\n")
    require_not_run(enter(repo, "bad"))


def test_a_script_is_looked_at_again_right_before_it_runs(repo: str) -> None:
    commit(repo, "tools/s", "true\n")
    write(repo, ".git-wt.toml", '[[setup]]\nrun = "echo touch ran >tools/s"\n[[setup]]\nrun = "sh tools/s"\n')
    wt("trust", "--yes", cwd=repo).ok()
    ran = enter(repo)
    require_not_run(ran)
    assert step(ran)["count"] == 1


def test_the_changed_script_of_a_branch_can_be_allowed_there(repo: str) -> None:
    commit(repo, "tools/s", "true\n")
    write(repo, ".git-wt.toml", '[[setup]]\nrun = "sh tools/s"\n')
    wt("trust", "--yes", cwd=repo).ok()
    commit(repo, "tools/s", "touch ran\n")
    ran = enter(repo)
    require_not_run(ran)
    path = ran.data["worktreePath"]
    wt("trust", "--yes", cwd=path).ok()
    require_run(Ran(ran.args, *_setup(path)))


def _setup(path: str) -> tuple[int, bytes, bytes]:
    ran = wt("setup", "--json", cwd=path)
    return ran.code, ran.out_bytes.replace(b'"setup": [', f'"worktreePath": "{path}", "setup": ['.encode()), b""


def test_a_repository_copied_to_another_place_is_not_trusted(repo: str, tmp_path: Path) -> None:
    write(repo, ".git-wt.toml", TOUCH)
    wt("trust", "--yes", cwd=repo).ok()
    copy = str(tmp_path / "copy")
    shutil.copytree(repo, copy, symlinks=True)
    require_not_run(enter(copy))
    require_run(enter(repo))


def test_variables_that_a_file_sets_are_part_of_what_is_allowed(repo: str) -> None:
    text = "[scripts]\nsetup = 'touch ran'\n[environment_variables]\nPATH = '%s'\n"
    write(repo, ".conductor/settings.toml", text % os.environ["PATH"])
    assert f"with PATH={os.environ['PATH']}\n" in wt("trust", cwd=repo).err
    wt("trust", "--yes", cwd=repo).ok()
    require_run(enter(repo, "one"))
    write(repo, ".conductor/settings.toml", text % (repo + ":" + os.environ["PATH"]))
    require_not_run(enter(repo, "two"))


# The store


def test_list_and_revoke(repo: str) -> None:
    write(repo, ".git-wt.toml", TOUCH)
    assert "nothing is allowed" in wt("trust", "--list", cwd="/").ok().out
    wt("trust", "--yes", cwd=repo).ok()
    (entry,) = wt("trust", "--list", "--json", cwd="/").ok().data["trusted"]
    assert (entry["repository"], entry["event"]) == (f"{repo}/.git", "setup")
    assert "touch ran" in wt("trust", "--list", cwd="/").ok().out
    (gone,) = wt("trust", "--revoke", "--json", cwd=repo).ok().data["revoked"]
    assert gone["commands"] == [{"run": "touch ran"}]
    assert wt("trust", "--list", "--json", cwd=repo).ok().data["trusted"] == []
    require_not_run(enter(repo))


def test_revoke_leaves_other_repositories_alone(repo: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    shutil.copytree(repo, other)
    for place in (repo, other):
        write(place, ".git-wt.toml", TOUCH)
        wt("trust", "--yes", cwd=place).ok()
    wt("trust", "--revoke", cwd=repo).ok()
    require_run(enter(other))


def test_the_store_is_the_persons_alone(repo: str, sealed: Path) -> None:
    write(repo, ".git-wt.toml", TOUCH)
    wt("trust", "--yes", cwd=repo).ok()
    (file,) = store(sealed).iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(store(sealed).stat().st_mode) == 0o700
    assert len(file.stem) == 64
    assert wt("trust", "--yes", cwd=repo).ok().out.startswith("everything is allowed already")


@pytest.mark.parametrize("how", ["writable by others", "other content", "a link", "broken"])
def test_a_file_of_the_store_that_is_not_as_it_was_written_allows_nothing(repo: str, sealed: Path, how: str) -> None:
    write(repo, ".git-wt.toml", TOUCH)
    wt("trust", "--yes", cwd=repo).ok()
    (file,) = store(sealed).iterdir()
    if how == "writable by others":
        file.chmod(0o622)
    elif how == "other content":
        file.write_text(file.read_text().replace("touch ran", "touch run"))
    elif how == "a link":
        file.rename(sealed / "elsewhere")
        file.symlink_to(sealed / "elsewhere")
    else:
        file.write_text("[" * 10)
    require_not_run(enter(repo))


def test_commands_of_the_environment_and_of_the_user_need_no_yes(repo: str) -> None:
    ran = Session(repo).wt("enter", "task", "--json", env={"GIT_WT_CONFIG_SETUP": "touch ran"})
    require_run(ran)


def test_a_users_file_inside_the_repository_is_the_repositorys(repo: str) -> None:
    write(repo, "dot/git-wt/config.toml", TOUCH)
    ran = Session(repo).wt("enter", "task", "--json", env={"XDG_CONFIG_HOME": f"{repo}/dot"})
    require_not_run(ran)


def test_nothing_to_allow_is_said(repo: str) -> None:
    assert "nothing to allow" in wt("trust", cwd=repo).ok().out
