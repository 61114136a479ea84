"""Any number of callers at once in one repository, beside plain git: all succeed."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.repos import (
    branches,
    commit_to_origin,
    git,
    head,
    leftovers,
    make_repo,
    require_sound,
    status,
    worktrees,
    write,
)
from tests.wt import Ran, Session, finish, start_wt

CROWD = 50


def all_at_once(repo: str, commands: list[tuple[str, ...]]) -> list[Ran]:
    """Start all of them, a session each, then wait for all."""
    started = [start_wt(*args, cwd=repo, session=f"{repo}#{n}") for n, args in enumerate(commands)]
    return [finish(process) for process in started]


def require_all_good(repo: str, ran: list[Ran]) -> None:
    """All exit codes are 0, the repository is sound, nothing is left over, every worktree is whole."""
    assert not [each for each in ran if each.code], "\n".join(str(each) for each in ran if each.code)
    require_sound(repo)
    assert leftovers(repo) == []
    for path in worktrees(repo)[1:]:
        assert status(path) == []
        assert not os.path.exists(f"{repo}/.git/worktrees/{os.path.basename(path)}/locked")


@contextmanager
def meanwhile(*loops: Callable[[int], None]) -> Iterator[list[int]]:
    """Call each of `loops` again and again, with a number, until the block ends; yields how often each was."""
    stop, counts = threading.Event(), [0] * len(loops)

    def repeat(nth: int, loop: Callable[[int], None]) -> None:
        while not stop.is_set():
            loop(counts[nth])
            counts[nth] += 1

    threads = [threading.Thread(target=repeat, args=pair) for pair in enumerate(loops)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def plain(repo: str, *args: str) -> None:
    """Run plain git that may fail beside others: it has no retries."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["git", *args], cwd=repo, capture_output=True, check=False, timeout=60)


def test_fifty_enter_at_once(cloned: str) -> None:
    now = commit_to_origin(cloned, "new.txt", "1\n")
    ran = all_at_once(cloned, [("enter", f"x{n}", "--json") for n in range(CROWD)])
    require_all_good(cloned, ran)
    assert len(worktrees(cloned)) == CROWD + 1
    assert branches(cloned) == sorted(["main", *(f"worktree-x{n}" for n in range(CROWD))])
    assert {each.data["baseCommit"] for each in ran} == {now}
    assert {head(path) for path in worktrees(cloned)[1:]} == {now}
    assert git(cloned, "config", "--get-regexp", r"^branch\.worktree-", check=False) == ""


def test_fifty_enter_at_once_beside_plain_git(cloned: str) -> None:
    def add_and_remove(number: int) -> None:
        plain(cloned, "worktree", "add", "-q", "-b", f"hand{number}", f"{cloned}.hand{number}")
        plain(cloned, "worktree", "remove", "--force", f"{cloned}.hand{number}")
        plain(cloned, "branch", "-q", "-D", f"hand{number}")

    def fetch(number: int) -> None:
        commit_to_origin(cloned, "new.txt", f"{number}\n")
        plain(cloned, "fetch", "-q")

    def collect(_: int) -> None:
        plain(cloned, "gc", "-q")

    with meanwhile(add_and_remove, fetch, collect) as counts:
        ran = all_at_once(cloned, [("enter", f"x{n}", "--json") for n in range(CROWD)])
    assert min(counts) > 0
    ours = [path for path in worktrees(cloned)[1:] if "/.claude/" in path]
    assert not [each for each in ran if each.code], "\n".join(str(each) for each in ran if each.code)
    assert len(ours) == CROWD
    for path in ours:
        assert status(path) == []
    assert {f"worktree-x{n}" for n in range(CROWD)} <= set(branches(cloned))
    assert leftovers(cloned) == []


def test_eight_enter_the_same_name_at_once(repo: str) -> None:
    ran = all_at_once(repo, [("enter", "same", "--json")] * 8)
    require_all_good(repo, ran)
    assert sorted(each.data["resumed"] for each in ran) == [False] + [True] * 7
    assert {each.data["worktreePath"] for each in ran} == {f"{repo}/.claude/worktrees/same"}
    assert worktrees(repo) == [repo, f"{repo}/.claude/worktrees/same"]


def test_eight_enter_one_branch_at_once_and_one_has_it(repo: str) -> None:
    git(repo, "branch", "wanted")
    ran = all_at_once(repo, [("enter", f"x{n}", "--branch", "wanted", "--json") for n in range(8)])
    losers = [each for each in ran if each.code]
    assert len(losers) == 7
    assert {(each.code, each.error["code"]) for each in losers} == {(1, "branch-in-use")}
    assert len(worktrees(repo)) == 2
    assert leftovers(repo) == []
    require_sound(repo)


def test_eight_make_one_new_branch_at_once_and_one_has_it(repo: str) -> None:
    ran = all_at_once(repo, [("enter", f"x{n}", "--branch", "new", "--json") for n in range(8)])
    assert sorted(each.code for each in ran) == [0] + [1] * 7
    assert {each.error["code"] for each in ran if each.code} == {"branch-in-use"}
    assert branches(repo) == ["main", "new"]
    assert (len(worktrees(repo)), leftovers(repo)) == (2, [])


def test_twenty_enter_and_remove_at_once(repo: str) -> None:
    sessions = [Session(repo) for _ in range(20)]

    def live(session: Session, results: list[Ran]) -> None:
        results.append(session.wt("enter", "--json"))
        results.append(session.wt("exit", "remove", "--json"))

    results: list[Ran] = []
    threads = [threading.Thread(target=live, args=(session, results)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require_all_good(repo, results)
    assert {each.data["action"] for each in results if "action" in each.data} == {"remove"}
    assert (worktrees(repo), branches(repo)) == ([repo], ["main"])


def test_the_same_name_is_made_and_removed_by_many_at_once(repo: str) -> None:
    """Whoever comes second resumes, makes it again or is refused; nobody is left in a worktree that is not there."""
    sessions = [Session(repo) for _ in range(8)]
    odd: list[str] = []

    def live(session: Session) -> None:
        for _ in range(3):
            entered = session.wt("enter", "same", "--json")
            left = session.wt("exit", "remove", "--json")
            if entered.code or left.code not in (0, 3):
                odd.append(f"{entered}{left}")
            if left.code:
                session.wt("exit", "keep").ok()

    threads = [threading.Thread(target=live, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not odd, "\n".join(odd)
    assert leftovers(repo) == []
    require_sound(repo)


def test_a_crowd_in_a_repository_with_many_files(tmp_path: object) -> None:
    repo = make_repo(f"{tmp_path}/repo", files=500)
    write(repo, ".git-wt.toml", 'directory = "../{repo}.{slug}"\n')
    ran = all_at_once(repo, [("enter", f"x{n}", "--json") for n in range(10)])
    require_all_good(repo, ran)
