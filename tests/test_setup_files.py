"""Set-up steps that bring files: settings, links to folders, `.worktreeinclude`; and `git wt setup`."""

import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.repos import (
    admin_dir,
    commit,
    common_dir,
    differences,
    git,
    leftovers,
    make_repo,
    read,
    snapshot,
    status,
    worktrees,
    write,
)
from tests.wt import Session, environment, executable, finish, start_wt, wt

INCLUDE = "worktreeinclude"
LINKS = "symlinkDirectories"
SETTINGS = "settings.local.json"


def enter(repo: str, name: str = "here", **options: Any) -> tuple[str, dict[str, Any]]:
    """Make a worktree; its path and what each step reports."""
    data = Session(repo).wt("enter", name, "--json", **options).data
    return data["worktreePath"], {step["step"]: step for step in data["setup"]}


def again(path: str) -> dict[str, Any]:
    """What each step reports when set-up is run again."""
    data = wt("setup", "--json", cwd=path, session="").data
    return {step["step"]: step for step in data["setup"]}


def marker(path: str) -> Any:
    """What git-wt notes about a worktree."""
    return json.loads(read(admin_dir(path), "git-wt.json"))


def ignoring(repo: str, ignored: str, listed: str | bytes) -> None:
    """Commit a `.gitignore` and write the list."""
    commit(repo, ".gitignore", ignored + "/.worktreeinclude\n")
    Path(repo, ".worktreeinclude").write_bytes(listed.encode() if isinstance(listed, str) else listed)


def copied(path: str) -> set[str]:
    """The files and links in a worktree that its branch does not have."""
    tracked = set(git(path, "ls-files", "-z").split("\0"))
    found = {os.path.relpath(os.path.join(folder, name), path)
             for folder, folders, names in os.walk(path)
             for name in [*names, *(n for n in folders if os.path.islink(os.path.join(folder, n)))]}  # fmt: skip
    return found - tracked - {".git"}


def nothing_left(path: str) -> None:
    """No staging folder, no lock, no journal entry; the worktree is whole and unlocked."""
    admin = admin_dir(path)
    assert [name for name in [*os.listdir(admin), *os.listdir(path)] if "stage" in name] == []
    assert leftovers(path) == []
    assert not os.path.exists(f"{admin}/locked")


# settings.local.json


def test_personal_settings_are_copied_and_never_seen_as_a_change(repo: str) -> None:
    write(repo, ".claude/settings.local.json", '{"mine": 1}\n')
    path, steps = enter(repo)
    assert read(path, ".claude/settings.local.json") == '{"mine": 1}\n'
    assert (steps[SETTINGS]["status"], steps[SETTINGS]["count"]) == ("done", 1)
    assert steps[SETTINGS]["files"] == [".claude/settings.local.json"]
    assert status(path) == []
    assert ".claude/settings.local.json" in marker(path)["copied"]


def test_personal_settings_that_the_branch_tracks_stay_as_they_are(repo: str) -> None:
    commit(repo, ".claude/settings.local.json", '{"tracked": 1}\n')
    write(repo, ".claude/settings.local.json", '{"mine": 1}\n')
    path, steps = enter(repo)
    assert read(path, ".claude/settings.local.json") == '{"tracked": 1}\n'
    assert steps[SETTINGS]["count"] == 0
    assert status(path) == []


def test_copied_settings_that_were_edited_are_not_overwritten_by_setup(repo: str) -> None:
    write(repo, ".claude/settings.local.json", "{}\n")
    path, _ = enter(repo)
    write(path, ".claude/settings.local.json", '{"edited": 1}\n')
    assert again(path)[SETTINGS]["status"] == "skipped"
    assert read(path, ".claude/settings.local.json") == '{"edited": 1}\n'


@pytest.mark.parametrize("entry", ["/etc/passwd", "../outside", "a/../../outside", ".git/config", "link", "to/secret"])
def test_settings_from_elsewhere_are_refused(repo: str, tmp_path: Path, entry: str) -> None:
    write(str(tmp_path), "outside", "secret\n")
    write(str(tmp_path), "folder/secret", "secret\n")
    os.symlink("../outside", f"{repo}/link")
    os.symlink("../folder", f"{repo}/to")
    write(repo, ".git-wt.toml", f'copySettings = ["{entry}"]\n')
    path, steps = enter(repo)
    assert steps[SETTINGS]["status"] == "warning"
    assert entry in steps[SETTINGS]["detail"]
    assert copied(path) == set()


# symlinkDirectories


def test_directories_are_linked_relatively_and_are_no_changes(repo: str) -> None:
    commit(repo, ".gitignore", "node_modules/\n")
    write(repo, "node_modules/a/index.js", "1\n")
    write(repo, "deep/inner/.venv/bin/python", "1\n")
    write(repo, ".git-wt.toml", 'symlinkDirectories = ["node_modules", "./deep/inner/.venv/"]\n')
    path, steps = enter(repo)
    assert (steps[LINKS]["status"], steps[LINKS]["count"]) == ("done", 2)
    assert not os.path.isabs(os.readlink(f"{path}/node_modules"))
    assert read(path, "node_modules/a/index.js") == "1\n"
    assert read(path, "deep/inner/.venv/bin/python") == "1\n"
    assert status(path) == []
    assert marker(path)["links"] == ["node_modules", "deep/inner/.venv"]
    again(path)
    enter(repo, "other")
    assert read(common_dir(repo), "info/exclude").splitlines().count("/node_modules") == 1
    before = snapshot(f"{repo}/node_modules")
    wt("remove", "here", "--force-occupied", "--no-trash", cwd=repo).ok()
    assert not os.path.exists(path)
    assert differences(before, snapshot(f"{repo}/node_modules")) == []


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("/etc", "absolute"),
        ("../outside", ".."),
        ("a/../../outside", ".."),
        ("out", "leaves the repository"),
        ("out/below", "leaves the repository"),
        ("tracked", "tracks"),
        ("missing", "does not have"),
        (".git", "git's own"),
        (".git/hooks", "git's own"),
        ("dotgit", "git's own"),
        (".claude", "lies in it"),
        ("a-file", "no folder"),
        (".", "empty"),
    ],
)
def test_links_that_are_refused_are_said_and_nothing_is_made(repo: str, tmp_path: Path, entry: str, why: str) -> None:
    write(str(tmp_path), "outside/below/x", "1\n")
    os.symlink("../outside", f"{repo}/out")
    os.symlink(".git", f"{repo}/dotgit")
    write(repo, "a-file", "1\n")
    commit(repo, "tracked/file", "1\n")
    write(repo, ".git-wt.toml", f'symlinkDirectories = ["{entry}"]\n')
    path, steps = enter(repo)
    assert steps[LINKS]["status"] == "warning"
    assert why in steps[LINKS]["detail"]
    assert copied(path) == set()
    assert read(common_dir(repo), "info/exclude").splitlines()[-1] == "/.claude/worktrees/"


def test_a_link_is_not_made_through_a_link_that_the_branch_tracks(repo: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    git(repo, "switch", "-q", "-c", "evil")
    os.symlink(str(outside), f"{repo}/deep")
    git(repo, "add", "deep")
    git(repo, "commit", "-q", "-m", "a link")
    git(repo, "switch", "-q", "main")
    write(repo, "deep/node_modules/x", "1\n")
    write(repo, ".git-wt.toml", 'symlinkDirectories = ["deep/node_modules"]\n')
    _, steps = enter_on(repo, "evil")
    assert steps[LINKS]["status"] == "warning"
    assert list(outside.iterdir()) == []


def enter_on(repo: str, base: str) -> tuple[str, dict[str, Any]]:
    """As `enter`, from another branch."""
    data = Session(repo).wt("enter", "here", "--base", base, "--json").data
    return data["worktreePath"], {step["step"]: step for step in data["setup"]}


def test_something_at_the_place_of_a_link_stays(repo: str) -> None:
    write(repo, "node_modules/x", "main\n")
    write(repo, ".git-wt.toml", "symlinkDirectories = []\n")
    commit(repo, ".gitignore", "node_modules\n")
    path, _ = enter(repo)
    write(path, "node_modules/x", "mine\n")
    write(repo, ".git-wt.toml", 'symlinkDirectories = ["node_modules"]\n')
    assert again(path)[LINKS]["status"] == "warning"
    assert read(path, "node_modules/x") == "mine\n"


def test_our_link_is_mended_after_the_worktree_was_moved(repo: str, tmp_path: Path) -> None:
    write(repo, "node_modules/x", "1\n")
    write(repo, ".git-wt.toml", 'symlinkDirectories = ["node_modules"]\n')
    path, _ = enter(repo)
    moved = str(tmp_path / "a" / "b" / "moved")
    os.makedirs(os.path.dirname(moved))
    git(repo, "worktree", "move", path, moved)
    assert not os.path.exists(f"{moved}/node_modules/x")
    assert again(moved)[LINKS]["status"] == "done"
    assert read(moved, "node_modules/x") == "1\n"


# .worktreeinclude

IGNORED = """\
*.env
*.key
local/
node_modules/
/x/*
conf/*.secret
caché/
star\\*name
:odd
"""
FILES = (
    ".env", "prod.env", "a/b/c.env", "conf2/a.key", "conf2/plain", "local/top", "local/keep/f", "local/keep/deep/g",
    "local/other/h", "node_modules/p/.env", "node_modules/p/index.js", "x/y/1", "x/z", "conf/one.secret", "conf/plain",
    "caché/é", "star*name", "starXname", ":odd", "sp ace.key", "new\nline.key", "nested/t.key", "nested/keep.me",
    "lo\udcffcal.key", "local/build/only/é.txt", "UPPER.KEY", "-dash.key", "trail .key",
)  # fmt: skip
LISTS: dict[str, bytes] = {
    "a name": b".env\n",
    "any depth": b"**/*.key\n",
    "everything": b"*\n",
    "everything but folders": b"*\n!*/\n",
    "a folder": b"local/\n",
    "a folder without slash": b"local\n",
    "a folder that cannot be opened again": b"local/\n!local/keep/\n",
    "a folder in part": b"local/*\n!local/keep/\n",
    "a folder in part, deeper": b"/local/**\n!local/keep\n!local/keep/**\nlocal/keep/deep\n",
    "reopened folder": b"local\n!local/\n",
    "below an ignored folder": b"node_modules/*/.env\n",
    "inside, no slash": b"index.js\n",
    "negation": b"*.env\n!prod.env\n",
    "CRLF": b"*.env\r\n!prod.env\r\nlocal/keep/\r\n",
    "BOM": b"\xef\xbb\xbflocal/keep/f\n",
    "non-ASCII": "caché/\n*/é\n".encode(),
    "special": b"star\\*name\n:odd\n\\-dash.key\n",
    "raw bytes": b"lo\xffcal.key\nnew?line.key\n",
    "comments and blanks": b"# *.key\n\n  \n\\#x\ntrail\\ .key\n",
    "not ignored": b"conf2/plain\nconf/*\nnested/*\n",
    "upward": b"../outside\n/../outside\n../../*\n",
    "anchored": b"/local/keep/f\nx/*\n",
    "case": b"LOCAL/\n*.KEY\n",
}


@pytest.mark.parametrize("which", LISTS)
def test_exactly_what_git_would_match_is_copied(repo: str, which: str) -> None:
    ignoring(repo, IGNORED, LISTS[which])
    commit(repo, "nested/.gitignore", "*\n!keep.me\n!.gitignore\n")
    commit(repo, "local/tracked", "1\n")
    for name in FILES:
        write(repo, name, f"{name}\n")
    path, steps = enter(repo)
    assert copied(path) == expected(repo)
    assert all(read(path, name) == read(repo, name) for name in copied(path))
    assert status(path) == []
    assert steps[INCLUDE]["status"] in ("done", "skipped"), steps[INCLUDE]
    assert steps[INCLUDE]["count"] == len(copied(path))


def expected(repo: str) -> set[str]:
    """What git matches: untracked, ignored, and listed, each file by itself."""
    listed = git_z(repo, "ls-files", "-o", "-i", "--exclude-from=.worktreeinclude")
    ignored = git_z(repo, "ls-files", "-o", "-i", "--exclude-standard")
    return {name for name in listed & ignored if not name.startswith(".claude/worktrees/")}


def git_z(repo: str, *args: str) -> set[str]:
    """The fields of NUL-terminated output of git."""
    out = subprocess.run(["git", *args, "-z"], cwd=repo, capture_output=True, check=True).stdout
    return set(os.fsdecode(out).split("\0")) - {""}


def test_modes_times_and_links_are_kept(repo: str) -> None:
    ignoring(repo, "local/\n*.env\n", "local/\n*.env\n")
    write(repo, "local/bin/run", "#!/bin/sh\n")
    write(repo, "one.env", "1\n")
    os.makedirs(f"{repo}/local/empty")
    os.symlink("bin/run", f"{repo}/local/link")
    os.symlink("/nowhere", f"{repo}/local/dangling")
    os.symlink("one.env", f"{repo}/two.env")
    for name, mode in (("local/bin/run", 0o751), ("one.env", 0o666), ("local/empty", 0o1777), ("local/bin", 0o500)):
        os.chmod(f"{repo}/{name}", mode)
    for name in ("local/bin/run", "local/link", "one.env", "two.env", "local/bin", "local/empty", "local"):
        os.utime(f"{repo}/{name}", ns=(10**18, 10**18 + 123456789), follow_symlinks=False)
    path, steps = enter(repo)
    assert steps[INCLUDE]["status"] == "done"
    assert differences(snapshot(f"{repo}/local"), snapshot(f"{path}/local")) == []
    for name in ("one.env", "two.env"):
        assert snapshot(repo)[name] == snapshot(path)[name]


def test_copied_files_do_not_stand_in_the_way_of_removal_until_they_are_edited(repo: str) -> None:
    ignoring(repo, "local/\n*.env\n", "local/\n*.env\n")
    for name in (".env", "local/a", "local/b"):
        write(repo, name, "1\n")
    os.symlink("a", f"{repo}/local/link")
    path, _ = enter(repo)
    assert "ignored" not in wt("remove", "here", "--force-occupied", cwd=repo).ok().err
    wt("undo", cwd=repo).ok()
    write(path, "local/a", "edited\n")
    ran = wt("remove", "here", "--force-occupied", "--no-trash", "--json", cwd=repo)
    assert (ran.code, ran.json["errors"][0]["blockers"][0]["examples"]) == (3, ["local/a"])


def test_every_copied_file_is_named_but_what_builds_make_again_is_not_noted(repo: str) -> None:
    ignoring(repo, "node_modules/\n.env\n", "node_modules/\n.env\n")
    write(repo, "node_modules/p/x.js", "1\n")
    write(repo, ".env", "1\n")
    path, steps = enter(repo)
    assert steps[INCLUDE]["files"] == [".env", "node_modules/p/x.js"]
    assert list(marker(path)["copied"]) == [".env"]


def test_nothing_is_overwritten_and_setup_brings_what_is_missing(repo: str) -> None:
    ignoring(repo, "local/\n.env\n", "local/\n.env\n")
    write(repo, ".env", "main\n")
    write(repo, "local/a/1", "main\n")
    write(repo, "local/2", "main\n")
    path, _ = enter(repo)
    write(path, ".env", "mine\n")
    write(path, "local/2", "mine\n")
    os.unlink(f"{path}/local/a/1")
    write(repo, "local/new/3", "main\n")
    steps = again(path)
    assert (steps[INCLUDE]["status"], steps[INCLUDE]["count"]) == ("done", 2)
    assert [read(path, name) for name in (".env", "local/2")] == ["mine\n"] * 2
    assert [read(path, name) for name in ("local/a/1", "local/new/3")] == ["main\n"] * 2
    assert again(path)[INCLUDE]["count"] == 0


def test_worktrees_and_repositories_are_never_copied(repo: str) -> None:
    ignoring(repo, "vendor/\nbare/\n.claude/\n", "*\n")
    other = Session(repo).enter("other")
    write(repo, "vendor/plain", "1\n")
    make_repo(f"{repo}/vendor/inner")
    git(repo, "worktree", "add", "-q", "--detach", f"{repo}/vendor/linked")
    git(repo, "init", "-q", "--bare", f"{repo}/bare/it.git")
    path, steps = enter(repo)
    assert copied(path) == {"vendor/plain", ".worktreeinclude"}
    assert os.path.exists(other)
    assert all(f"{name} (a repository" in steps[INCLUDE]["detail"] for name in ("vendor/inner", "bare/it.git"))
    assert not any(os.path.lexists(f"{path}/{name}") for name in ("vendor/inner", "vendor/linked", "bare"))


def test_what_the_branch_tracks_or_does_not_ignore_is_not_copied(repo: str) -> None:
    commit(repo, "a", "1\n")
    git(repo, "branch", "old")
    ignoring(repo, "local/\n*.key\n.env\n", "local/\n*.key\n.env\n")
    for name in ("local/secret", "one.key", ".env"):
        write(repo, name, "secret\n")
    git(repo, "switch", "-q", "old")
    commit(repo, ".gitignore", "/.env\n.worktreeinclude\nlocal/\n")
    commit(repo, "local/secret", "branch\n")
    git(repo, "switch", "-q", "-f", "main")
    write(repo, "local/secret", "secret\n")
    write(repo, "local/other", "secret\n")
    path, steps = enter_on(repo, "old")
    assert copied(path) == {".env", "local/other"}
    assert read(path, "local/secret") == "branch\n"
    assert steps[INCLUDE]["status"] == "warning"
    assert "one.key" in steps[INCLUDE]["detail"]
    assert status(path) == []


def test_a_link_that_the_branch_tracks_leads_nothing_out(repo: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    git(repo, "switch", "-q", "-c", "evil")
    commit(repo, ".gitignore", "*.key\nwhole/\n")
    for name in ("cfg", "whole", "leaf.key"):
        os.symlink(str(outside / ("leaf" if name == "leaf.key" else "")), f"{repo}/{name}")
        git(repo, "add", "-f", name)
    git(repo, "commit", "-q", "-m", "links")
    git(repo, "switch", "-q", "main")
    ignoring(repo, "*.key\nwhole/\n", "*.key\nwhole/\n")
    for name in ("cfg/app.key", "cfg/deep/er.key", "whole/secret", "leaf.key", "fine.key"):
        write(repo, name, "secret\n")
    path, steps = enter_on(repo, "evil")
    assert list(outside.iterdir()) == []
    assert copied(path) == {"fine.key"}
    assert steps[INCLUDE]["status"] == "warning"
    assert "cfg/app.key" in steps[INCLUDE]["detail"]


def test_the_list_of_the_branch_does_not_count(repo: str) -> None:
    commit(repo, ".gitignore", "*.key\n")
    commit(repo, ".worktreeinclude", "*.key\n")
    write(repo, "a.key", "secret\n")
    os.unlink(f"{repo}/.worktreeinclude")
    path, steps = enter(repo)
    assert os.path.exists(f"{path}/.worktreeinclude")
    assert not os.path.exists(f"{path}/a.key")
    assert steps[INCLUDE]["status"] == "skipped"


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_a_list_that_is_no_file_is_not_read(repo: str, tmp_path: Path, kind: str) -> None:
    commit(repo, ".gitignore", "*.key\n.worktreeinclude\n")
    write(repo, "a.key", "secret\n")
    write(str(tmp_path), "list", "*\n")
    place = f"{repo}/.worktreeinclude"
    {"link": lambda: os.symlink("../list", place), "folder": lambda: os.mkdir(place),
     "fifo": lambda: os.mkfifo(place)}[kind]()  # fmt: skip
    path, steps = enter(repo)
    assert steps[INCLUDE]["status"] == "warning"
    assert copied(path) == set()


def test_fifos_sockets_and_devices_are_skipped_and_said(repo: str) -> None:
    ignoring(repo, "local/\n*.key\n", "local/\n*.key\n")
    write(repo, "local/file", "1\n")
    os.mkfifo(f"{repo}/local/fifo")
    os.mkfifo(f"{repo}/one.key")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(f"{repo}/local")
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        path, steps = enter(repo)
    assert copied(path) == {"local/file"}
    assert steps[INCLUDE]["status"] == "warning"
    assert "local/socket (a socket)" in steps[INCLUDE]["detail"]
    assert "local/fifo (a FIFO)" in steps[INCLUDE]["detail"]


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv here")
def test_unreadable_files_are_skipped_and_said(repo: str) -> None:
    ignoring(repo, "local/\n*.key\n", "local/\n*.key\n")
    for name in ("local/fine", "local/closed", "local/folder/x", "a.key", "b.key"):
        write(repo, name, "1\n")
    for name in ("local/closed", "local/folder", "a.key"):
        os.chmod(f"{repo}/{name}", 0)
    caps = "-dac_override,-dac_read_search"
    args = [executable(), "enter", "here", "--json"]
    if os.geteuid() == 0:
        args = ["setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}", *args]
    ran = subprocess.run(args, cwd=repo, env=environment(), capture_output=True, check=False)
    os.chmod(f"{repo}/local/folder", 0o700)
    assert ran.returncode == 0, ran
    data = json.loads(ran.stdout)["data"]
    assert copied(data["worktreePath"]) == {"local/fine", "b.key"}
    detail = {step["step"]: step for step in data["setup"]}[INCLUDE]["detail"]
    for name in ("local/closed", "local/folder", "a.key"):
        assert name in detail
    nothing_left(data["worktreePath"])


def test_files_that_vanish_meanwhile_are_skipped(repo: str) -> None:
    ignoring(repo, "local/\n*.key\n", "local/\n*.key\n")
    for number in range(3000):
        write(repo, f"local/{number:04}", "1\n")
    started = start_wt("enter", "here", "--json", cwd=repo, session="s")
    stage_of(repo, started, files=50)
    shutil.rmtree(f"{repo}/local")
    ran = finish(started).ok()
    path = ran.data["worktreePath"]
    steps = {step["step"]: step for step in ran.data["setup"]}
    assert steps[INCLUDE]["status"] == "warning", steps[INCLUDE]
    assert 50 <= steps[INCLUDE]["count"] < 3000
    assert len(os.listdir(f"{path}/local")) == steps[INCLUDE]["count"]
    assert all(os.path.getsize(f"{path}/local/{name}") == 2 for name in os.listdir(f"{path}/local"))


def stage_of(repo: str, started: "subprocess.Popen[bytes]", *, files: int) -> str:
    """The staging folder of a running set-up, once there are so many files in its first folder."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for stage in Path(common_dir(repo), "worktrees").glob("*/git-wt-stage/files"):
            try:
                if sum(len(names) for _, _, names in os.walk(stage)) >= files:
                    return str(stage)
            except OSError:
                continue
        assert started.poll() is None, finish(started)
        time.sleep(0.001)
    raise AssertionError("no staging folder came")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
@pytest.mark.parametrize("whole", [True, False], ids=["a folder", "single files"])
def test_an_interrupted_copy_leaves_no_half_file_and_goes_on(repo: str, number: signal.Signals, whole: bool) -> None:
    ignoring(repo, "local/\n", "local/\n" if whole else "local/*\n")
    for name in range(2500):
        write(repo, f"local/{name}", f"{name} " * 900 + "\n")
    started = start_wt("enter", "here", "--json", cwd=repo, session="s")
    if whole:
        stage_of(repo, started, files=100)
    else:
        while not Path(repo, ".claude/worktrees/here/local/1500").exists():
            assert started.poll() is None
    started.send_signal(number)
    ran = finish(started)
    assert ran.code == (-9 if number == signal.SIGKILL else 128 + number)
    path = f"{repo}/.claude/worktrees/here"
    there = copied(path)
    assert len(there) < 2500
    assert all(read(path, name) == read(repo, name) for name in there)
    assert status(path) == []
    assert marker(path)["setupUnfinished"] is True
    if number != signal.SIGKILL:
        nothing_left(path)
    resumed = Session(repo).wt("enter", "here").ok()
    assert "git wt setup" in resumed.err
    assert again(path)[INCLUDE]["status"] == "done"
    assert copied(path) == expected(repo)
    assert marker(path)["setupUnfinished"] is False
    assert len(marker(path)["copied"]) == 2500
    nothing_left(path)


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "tiny"
    place.mkdir()
    ran = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True)
    if ran.returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("whole", [True, False], ids=["a folder", "single files"])
def test_a_full_disk_fails_the_step_and_leaves_no_half_file(repo: str, tiny: Path, whole: bool) -> None:
    write(repo, ".git-wt.toml", f'directory = "{tiny}/{{slug}}"\n')
    ignoring(repo, "local/\n.env\n.git-wt.toml\n", "local/\n.env\n" if whole else "local/*\n.env\n")
    write(repo, ".env", "1\n")
    for number in range(30):
        write(repo, f"local/{number}", "x" * 50_000)
    ran = Session(repo).wt("enter", "here", "--json")
    path, steps = ran.data["worktreePath"], {step["step"]: step for step in ran.data["setup"]}
    assert (ran.code, steps[INCLUDE]["status"]) == (6, "failed")
    assert "No space left" in steps[INCLUDE]["detail"]
    assert read(path, ".env") == "1\n"
    assert all(read(path, name) == read(repo, name) for name in copied(path))
    nothing_left(path)
    subprocess.run(["mount", "-o", "remount,size=4m", str(tiny)], check=True)
    assert again(path)[INCLUDE]["status"] == "done"
    assert copied(path) == expected(repo)
    nothing_left(path)


def test_what_a_killed_run_left_on_another_file_system_goes_at_the_next_run(repo: str, tiny: Path) -> None:
    write(repo, ".git-wt.toml", f'directory = "{tiny}/{{slug}}"\n')
    ignoring(repo, ".env\n", ".env\n")
    write(repo, ".env", "1\n")
    path, _ = enter(repo)
    name = ".git-wt-stage-" + "0" * 16
    write(path, f"{name}/files/1", "half")
    write(admin_dir(path), "git-wt-stage-at", name)
    again(path)
    nothing_left(path)


# git wt setup


def test_setup_works_on_a_worktree_that_git_wt_did_not_make(repo: str, tmp_path: Path) -> None:
    ignoring(repo, ".env\n", ".env\n")
    write(repo, ".env", "1\n")
    path = str(tmp_path / "by-hand")
    git(repo, "worktree", "add", "-q", "--detach", path)
    ran = wt("setup", "by-hand", "--json", cwd=repo).ok()
    assert ran.data["worktreePath"] == path
    assert read(path, ".env") == "1\n"
    assert not os.path.exists(f"{admin_dir(path)}/git-wt.json")


def test_setup_without_name_takes_the_session_then_the_place(repo: str) -> None:
    ignoring(repo, ".env\n", ".env\n")
    session, other = Session(repo), Session(repo)
    one, two = session.enter("one"), other.enter("two")
    write(repo, ".env", "1\n")
    assert session.wt("setup", "--json", cwd=two).ok().data["worktreePath"] == one
    assert wt("setup", "--json", cwd=two, session="").ok().data["worktreePath"] == two
    assert "1 copied" not in wt("setup", "one", cwd=repo).ok().out


@pytest.mark.parametrize("args", [("setup",), ("setup", "^")])
def test_the_main_checkout_is_not_set_up(repo: str, args: tuple[str, ...]) -> None:
    ran = wt(*args, "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (2, "usage")


def test_setup_of_an_unknown_name_is_not_found(repo: str) -> None:
    assert wt("setup", "nope", "--json", cwd=repo).error["code"] == "not-found"


def test_files_come_from_the_default_branch_of_a_bare_repository(repo: str, tmp_path: Path) -> None:
    ignoring(repo, ".env\nnode_modules/\n", ".env\n")
    bare = str(tmp_path / "bare.git")
    git(repo, "clone", "-q", "--bare", repo, bare)
    main = str(tmp_path / "main")
    git(bare, "worktree", "add", "-q", main, "main")
    write(main, ".env", "1\n")
    write(main, ".worktreeinclude", ".env\n")
    write(main, "node_modules/x", "1\n")
    write(main, ".git-wt.toml", 'symlinkDirectories = ["node_modules"]\n')
    path, steps = enter(main)
    assert (steps[INCLUDE]["status"], steps[LINKS]["status"]) == ("done", "done")
    assert read(path, ".env") == read(path, "node_modules/x") == "1\n"
    assert wt("setup", "--json", cwd=main, session="").data["worktreePath"] == main


def test_many_worktrees_at_once_are_all_set_up(repo: str) -> None:
    ignoring(repo, ".env\n", ".env\n")
    write(repo, ".env", "1\n")
    write(repo, "node_modules/x", "1\n")
    write(repo, ".git-wt.toml", 'symlinkDirectories = ["node_modules"]\n')
    running = [start_wt("enter", f"n{number}", "--json", cwd=repo, session=f"s{number}") for number in range(12)]
    paths = [finish(one).ok().data["worktreePath"] for one in running]
    assert all(read(path, ".env") == read(path, "node_modules/x") == "1\n" for path in paths)
    assert len(worktrees(repo)) == 13
    lines = read(common_dir(repo), "info/exclude").splitlines()
    assert lines.count("/node_modules") == 1


def test_where_nothing_is_to_be_done_nothing_is_said(session: Session) -> None:
    ran = session.wt("enter", "here").ok()
    assert "set-up" not in ran.err


def test_mode_of_copied_secrets_is_not_widened(repo: str) -> None:
    ignoring(repo, ".env\n", ".env\n")
    write(repo, ".env", "1\n")
    os.chmod(f"{repo}/.env", 0o600)
    path, _ = enter(repo)
    assert stat.S_IMODE(os.stat(f"{path}/.env").st_mode) == 0o600


BAR = """
import time
from git_wt.setup.progress import Progress
with Progress(quiet=False) as progress:
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        progress.file()
        time.sleep(0.002)
"""


def test_a_copy_of_more_than_a_second_shows_a_bar_on_a_terminal_only() -> None:
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    piped = subprocess.Popen([sys.executable, "-c", BAR], stderr=subprocess.PIPE)
    subprocess.run([sys.executable, "-c", BAR], stderr=follower, check=True)
    assert b"git-wt: copying" in os.read(leader, 10_000)
    os.close(follower)
    os.close(leader)
    assert piped.communicate()[1] == b""
