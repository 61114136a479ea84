"""Where a new worktree starts from: origin's default branch, REF, HEAD, a pull request."""

import http.server
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repos import branches, commit, commit_to_origin, git, head, leftovers, make_repo, origin_of, worktrees, write
from tests.wt import Session, wt

FETCH_LIMIT = 5.0
DAY = 86400


def test_fresh_base_is_the_default_branch_of_origin_as_it_is_now(cloned: str) -> None:
    now = commit_to_origin(cloned, "new.txt", "1\n")
    data = wt("enter", "x", "--json", cwd=cloned).ok().data
    assert (data["base"], data["baseCommit"]) == ("origin/main", now)
    assert head(data["worktreePath"]) == now


def test_default_branch_of_origin_may_have_any_name(cloned: str) -> None:
    git(origin_of(cloned), "branch", "develop", "main~1")
    git(origin_of(cloned), "symbolic-ref", "HEAD", "refs/heads/develop")
    git(cloned, "fetch", "-q")
    git(cloned, "remote", "set-head", "origin", "develop")
    data = wt("enter", "x", "--json", cwd=cloned).ok().data
    assert (data["base"], data["baseCommit"]) == ("origin/develop", head(cloned, "main~1"))


def test_origin_is_fetched_at_most_once_a_day(cloned: str) -> None:
    Session(cloned).enter("first")
    then = head(cloned)
    now = commit_to_origin(cloned, "new.txt", "1\n")
    assert head(Session(cloned).enter("same-day")) == then
    _age(f"{cloned}/.git/git-wt", DAY + 60)
    assert head(Session(cloned).enter("next-day")) == now


@pytest.mark.parametrize("url", ["ext::{script}", "ssh://nobody@example.invalid/repo.git"])
def test_remote_that_hangs_costs_five_seconds_once_and_leaves_no_process(cloned: str, tmp_path: Path, url: str) -> None:
    script = write(str(tmp_path), "hang", "#!/bin/sh\nexec sleep 61\n")
    os.chmod(script, 0o755)
    git(cloned, "config", "protocol.ext.allow", "always")
    git(cloned, "remote", "set-url", "origin", url.format(script=script))
    env = {"GIT_SSH_COMMAND": script, "GIT_SSH_VARIANT": "simple"}
    started = time.monotonic()
    ran = wt("enter", "x", "--json", cwd=cloned, session="one", env=env).ok()
    took = time.monotonic() - started
    assert FETCH_LIMIT - 1 < took < FETCH_LIMIT + 4
    assert ran.data["baseCommit"] == head(cloned, "origin/main")
    assert "could not fetch" in ran.err
    assert _running("sleep\x0061") == []
    started = time.monotonic()
    wt("enter", "y", cwd=cloned, session="two", env=env).ok()
    assert time.monotonic() - started < FETCH_LIMIT - 1


def test_password_is_never_asked_for(cloned: str, tmp_path: Path, http_401: str) -> None:
    asked = tmp_path / "asked"
    script = write(str(tmp_path), "askpass", f"#!/bin/sh\ntouch '{asked}'\necho secret\n")
    os.chmod(script, 0o755)
    git(cloned, "config", "core.askPass", script)
    git(cloned, "remote", "set-url", "origin", f"{http_401}/repo.git")
    env = {"GIT_ASKPASS": script, "SSH_ASKPASS": script, "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":9"}
    ran = wt("enter", "x", "--json", cwd=cloned, env=env).ok()
    assert "could not fetch" in ran.err
    assert not asked.exists()


def test_offline_falls_back_to_what_was_fetched_last_and_says_so(cloned: str) -> None:
    os.rename(origin_of(cloned), f"{cloned}.away")
    ran = wt("enter", "x", "--json", cwd=cloned).ok()
    assert (ran.data["base"], ran.data["baseCommit"]) == ("origin/main", head(cloned, "origin/main"))
    assert "could not fetch" in ran.err


def test_origin_that_was_never_fetched_falls_back_to_local_head(repo: str) -> None:
    git(repo, "remote", "add", "origin", "/nonexistent/repo.git")
    data = wt("enter", "x", "--json", cwd=repo).ok().data
    assert (data["base"], data["baseCommit"]) == ("main", head(repo))


def test_without_a_remote_the_base_is_local_head(repo: str) -> None:
    git(repo, "switch", "-q", "-c", "topic")
    commit(repo, "topic.txt", "1\n")
    data = wt("enter", "x", "--json", cwd=repo).ok().data
    assert (data["base"], data["baseCommit"]) == ("topic", head(repo))


def test_local_commits_that_are_left_out_are_warned_of(cloned: str) -> None:
    commit(cloned, "one.txt", "1\n")
    commit(cloned, "two.txt", "2\n")
    ran = wt("enter", "x", "--json", cwd=cloned).ok()
    assert ran.data["baseCommit"] == head(cloned, "origin/main")
    assert "2 commits" in ran.err
    assert "main" in ran.err


def test_nothing_is_warned_of_when_nothing_is_left_out(cloned: str) -> None:
    commit_to_origin(cloned, "new.txt", "1\n")
    assert "left out" not in wt("enter", "x", cwd=cloned).ok().err


def test_base_ref_head_is_the_head_of_where_you_are(cloned: str) -> None:
    write(cloned, ".git-wt.toml", 'baseRef = "head"\n')
    here = commit(cloned, "local.txt", "1\n")
    first = wt("enter", "first", "--json", cwd=cloned, session="one").ok().data
    assert (first["base"], first["baseCommit"]) == ("main", here)
    inside = commit(first["worktreePath"], "inside.txt", "1\n")
    second = wt("enter", "second", "--json", cwd=first["worktreePath"], session="two").ok().data
    assert (second["base"], second["baseCommit"]) == ("worktree-first", inside)


@pytest.mark.parametrize("ref", ["HEAD", "@", "HEAD~0", "worktree-first"])
def test_base_is_resolved_where_the_caller_stands(repo: str, ref: str) -> None:
    first = Session(repo).enter("first")
    inside = commit(first, "inside.txt", "1\n")
    data = Session(first).wt("enter", "second", "--base", ref, "--json").ok().data
    assert data["baseCommit"] == inside
    assert head(data["worktreePath"]) == inside


def test_base_may_be_a_tag_an_id_or_relative(repo: str) -> None:
    git(repo, "tag", "-a", "-m", "one", "v1", "HEAD~1")
    old = head(repo, "HEAD~1")
    for number, ref in enumerate(["v1", old, old[:10], "HEAD~1", "main^"]):
        data = Session(repo).wt("enter", f"x{number}", "--base", ref, "--json").ok().data
        assert data["baseCommit"] == old
        assert head(data["worktreePath"]) == old


@pytest.mark.parametrize("ref", ["nope", "", "-x", "HEAD:README", "--all"])
def test_base_that_is_no_commit_is_refused_and_leaves_nothing(repo: str, ref: str) -> None:
    ran = wt("enter", "x", f"--base={ref}", "--json", cwd=repo)
    assert ran.code in (1, 2)
    assert ran.error["code"] in ("not-found", "usage")
    assert (branches(repo), worktrees(repo)) == (["main"], [repo])


@pytest.mark.parametrize("arguments", [(), ("--base", "origin/main"), ("--branch", "mine", "--base", "origin/main")])
@pytest.mark.parametrize("merge", ["always", "inherit", "simple"])
def test_new_branch_never_gets_an_upstream(cloned: str, arguments: tuple[str, ...], merge: str) -> None:
    git(cloned, "config", "branch.autoSetupMerge", merge)
    git(cloned, "config", "branch.autoSetupRebase", "always")
    branch = wt("enter", "x", *arguments, "--json", cwd=cloned).ok().data["worktreeBranch"]
    assert git(cloned, "config", "--get-regexp", rf"^branch\.{branch}\.", check=False) == ""


@pytest.mark.parametrize(
    "name",
    ["#7", "pr:7", "https://github.com/o/r/pull/7", "https://github.com/o/r/pull/7/files#x",
     "https://gitlab.com/g/s/r/-/merge_requests/7"],
)  # fmt: skip
@pytest.mark.parametrize("ref", ["refs/pull/7/head", "refs/merge-requests/7/head"])
def test_pull_request_is_fetched_from_origin(cloned: str, name: str, ref: str) -> None:
    oid = _pull_request(cloned, ref)
    data = wt("enter", name, "--json", cwd=cloned).ok().data
    assert data["worktreePath"] == f"{cloned}/.claude/worktrees/pr-7"
    assert (data["worktreeBranch"], data["baseCommit"]) == ("worktree-pr-7", oid)
    assert head(data["worktreePath"]) == oid
    assert git(cloned, "config", "--get-regexp", r"^branch\.worktree-pr-7\.", check=False) == ""


def test_github_is_asked_for_its_own_ref_only(cloned: str) -> None:
    git(cloned, "config", f"url.{origin_of(cloned)}.insteadOf", "https://github.com/o/r.git")
    git(cloned, "remote", "set-url", "origin", "https://github.com/o/r.git")
    _pull_request(cloned, "refs/merge-requests/7/head")
    assert wt("enter", "#7", "--json", cwd=cloned).code == 1
    oid = _pull_request(cloned, "refs/pull/7/head", "more\n")
    assert wt("enter", "#7", "--json", cwd=cloned).ok().data["baseCommit"] == oid


def test_resumed_pull_request_moves_nothing_and_says_that_it_has_moved(cloned: str) -> None:
    old = _pull_request(cloned, "refs/pull/7/head")
    path = Session(cloned).enter("#7")
    still = Session(cloned).wt("enter", "#7", "--json").ok()
    assert "moved" not in still.err
    new = _pull_request(cloned, "refs/pull/7/head", "more\n")
    moved = Session(cloned).wt("enter", "pr:7", "--json").ok()
    assert (moved.data["resumed"], head(path)) == (True, old)
    assert "moved" in moved.err
    assert new[:7] in moved.err


def test_resumed_pull_request_needs_no_remote(cloned: str) -> None:
    _pull_request(cloned, "refs/pull/7/head")
    path = Session(cloned).enter("#7")
    os.rename(origin_of(cloned), f"{cloned}.away")
    assert Session(cloned).enter("#7") == path


def test_pull_request_that_is_not_there_leaves_nothing(cloned: str) -> None:
    ran = wt("enter", "#7", "--json", cwd=cloned)
    assert (ran.code, ran.error["code"]) == (1, "git")
    assert "7" in ran.error["message"]
    assert (branches(cloned), worktrees(cloned), leftovers(cloned)) == (["main"], [cloned], [])


def test_pull_request_of_a_closed_remote_leaves_nothing(cloned: str) -> None:
    os.rename(origin_of(cloned), f"{cloned}.away")
    ran = wt("enter", "#7", "--json", cwd=cloned)
    assert (ran.code, ran.error["code"]) == (1, "git")
    assert (branches(cloned), worktrees(cloned), leftovers(cloned)) == (["main"], [cloned], [])


def test_pull_request_without_origin_is_refused(repo: str) -> None:
    ran = wt("enter", "#7", "--json", cwd=repo)
    assert ran.code == 1
    assert "origin" in ran.error["message"]
    assert worktrees(repo) == [repo]


def test_repository_without_commits_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(str(empty), "init", "-q")
    ran = wt("enter", "x", "--json", cwd=str(empty))
    assert (ran.code, ran.error["code"]) == (1, "no-commits")
    assert leftovers(str(empty)) == []
    assert not (empty / ".claude").exists()


def test_clone_of_an_empty_repository_is_refused(tmp_path: Path) -> None:
    git(str(tmp_path), "init", "-q", "--bare", "o.git")
    git(str(tmp_path), "clone", "-q", "o.git", "c")
    ran = wt("enter", "x", "--json", cwd=str(tmp_path / "c"))
    assert (ran.code, ran.error["code"]) == (1, "no-commits")


def test_shallow_clone_is_enough(tmp_path: Path) -> None:
    repo = make_repo(str(tmp_path / "repo"), remote=True)
    git(str(tmp_path), "clone", "-q", "--depth=1", f"file://{origin_of(repo)}", "shallow")
    path = Session(str(tmp_path / "shallow")).enter("x")
    assert head(path) == head(repo)


def _pull_request(repo: str, ref: str, content: str = "pr\n") -> str:
    """Let somebody open or update a pull request at the origin of `repo`; returns its commit."""
    other = f"{repo}.fork"
    if not os.path.isdir(other):
        git(os.path.dirname(repo), "clone", "-q", origin_of(repo), other)
    oid = commit(other, "pr.txt", content)
    git(other, "push", "-q", "--force", origin_of(repo), f"HEAD:{ref}")
    return oid


def _age(folder: str, seconds: float) -> None:
    """Make everything in a folder older, as if time had passed."""
    for entry in os.scandir(folder):
        then = entry.stat().st_mtime - seconds
        os.utime(entry.path, (then, then))


def _running(command: str) -> list[str]:
    """The process ids whose command line has `command` in it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if command.encode() in file.read():
                    found.append(pid)
        except OSError:
            continue
    return found


@pytest.fixture
def http_401() -> Iterator[str]:
    """The address of a web server that wants a password."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            del format, args

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
