"""Which NAMEs `enter` takes, and what each of them becomes."""

import os
import re

import pytest

from tests.repos import branches, commit, differences, git, head, snapshot, status, worktrees, write
from tests.wt import Session, wt

BAD = {
    "parent": "../x",
    "absolute": "/abs",
    "two dots": "a..b",
    "lock": "x.lock",
    "lock inside": "x.lock/y",
    "empty": "",
    "65 characters": "a" * 65,
    "two slashes": "a//b",
    "newline": "a\nb",
    "newline at the end": "ab\n",
    "slash at the end": "a/",
    "git": ".git",
    "git inside": "a/.GIT/b",
    "dot": "./a",
    "dot dot inside": "a/../b",
    "hidden part": "a/.b",
    "dot at the end": "a.",
    "reflog": "@{x}",
    "not ascii": "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
    "full width": "\N{FULLWIDTH LATIN SMALL LETTER A}",
    "bidi": "a\N{RIGHT-TO-LEFT OVERRIDE}b",
    "escape": "a\x1b[31mb",
    "undecodable": "caf\udce9",
    "space": "a b",
    "tilde": "a~1",
    "caret": "a^b",
    "colon": "a:b",
    "glob": "a*",
    "bracket": "a[b",
    "backslash": "a\\b",
    "shell": "$(touch x)",
    "slug of nothing": "a+b",
    "bad pull request": "#12x",
}


@pytest.mark.parametrize("name", BAD.values(), ids=list(BAD))
def test_bad_name_is_refused_before_anything_is_touched(repo: str, sealed: object, name: str) -> None:
    before, home = snapshot(repo), snapshot(str(sealed))
    ran = wt("enter", name, "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (2, "invalid-name")
    assert len(ran.error["message"]) > len("cannot use '' as a name: ")  # and the rule
    assert differences(before, snapshot(repo)) == []
    assert differences(home, snapshot(str(sealed))) == []


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31mb", "a\N{RIGHT-TO-LEFT OVERRIDE}b", "caf\udce9"])
def test_refused_name_is_shown_escaped_on_one_line(repo: str, name: str) -> None:
    ran = wt("enter", name, cwd=repo)
    assert ran.code == 2
    assert ran.out == ""
    first, *rest = ran.err.splitlines()
    assert first.startswith("git-wt: cannot ")
    assert [line[:6] for line in rest] == ["hint: "]
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\udc80-\udcff]", ran.err)


def test_name_that_looks_like_an_option_is_wrong_usage(repo: str) -> None:
    before = snapshot(repo)
    ran = wt("enter", "-x", "--json", cwd=repo)
    assert ran.code == 2
    assert ran.error["code"] in ("usage", "invalid-name")
    assert differences(before, snapshot(repo)) == []


@pytest.mark.parametrize("name", ["x", "A.b_c-d", "a" * 64, "0", "user/feature", "a/b/c/d", "a-/b", "x.locked", "agit"])
def test_good_name_gives_folder_and_branch_by_its_slug(repo: str, name: str) -> None:
    flat = name.replace("/", "+")
    data = wt("enter", name, "--json", cwd=repo).ok().data
    assert data["worktreePath"] == f"{repo}/.claude/worktrees/{flat}"
    assert data["worktreeBranch"] == f"worktree-{flat}"
    assert git(data["worktreePath"], "symbolic-ref", "HEAD") == f"refs/heads/worktree-{flat}"
    assert status(data["worktreePath"]) == []


def test_name_is_found_as_typed_and_by_its_slug(repo: str) -> None:
    path = Session(repo).enter("user/feature")
    for name in ("user/feature", "user+feature"):
        data = Session(repo).wt("enter", name, "--json").ok().data
        assert (data["resumed"], data["worktreePath"]) == (True, path)


def test_without_name_a_readable_random_one_is_made(repo: str) -> None:
    paths = {Session(repo).enter() for _ in range(5)}
    assert len(paths) == 5
    for path in paths:
        assert re.fullmatch(r"[a-z]+-[a-z]+-[0-9a-f]{4}", os.path.basename(path))
        assert f"worktree-{os.path.basename(path)}" in branches(repo)


def test_templates_of_directory_and_branch_are_filled(repo: str) -> None:
    write(repo, ".git-wt.toml", 'directory = "../{repo}.{slug}"\nbranch = "{name}"\n')
    data = wt("enter", "user/feature", "--json", cwd=repo).ok().data
    assert data["worktreePath"] == f"{repo}.user+feature"
    assert data["worktreeBranch"] == "user/feature"
    assert worktrees(repo) == [repo, f"{repo}.user+feature"]


def test_template_may_name_the_branch_and_the_main_root(repo: str) -> None:
    write(repo, ".git-wt.toml", 'directory = "{main}/trees/{branch}"\nbranch = "me/{slug}"\n')
    data = wt("enter", "a/b", "--json", cwd=repo).ok().data
    assert data["worktreeBranch"] == "me/a+b"
    assert data["worktreePath"] == f"{repo}/trees/me+a+b"
    assert status(repo) == ["?? .git-wt.toml"]


def test_field_that_no_template_knows_is_refused(repo: str) -> None:
    write(repo, ".git-wt.toml", 'branch = "{nmae}"\n')
    before = snapshot(repo)
    ran = wt("enter", "x", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (1, "config")
    assert "nmae" in ran.error["message"]
    assert branches(repo) == ["main"]
    assert [line for line in differences(before, snapshot(repo, times=True)) if "git-wt" not in line] == []


@pytest.mark.parametrize("branch", ["a..b", "", "x.lock", "-x", "HEAD", "a b", "@{-1}"])
def test_bad_branch_is_refused_before_anything_is_touched(repo: str, branch: str) -> None:
    before = snapshot(repo, times=False)
    ran = wt("enter", "x", f"--branch={branch}", "--json", cwd=repo)
    assert (ran.code, ran.error["code"]) == (2, "invalid-name")
    assert differences(before, snapshot(repo, times=False)) == []


def test_name_that_is_also_a_tag_gets_a_branch_at_the_base(repo: str) -> None:
    write(repo, ".git-wt.toml", 'branch = "{name}"\n')
    git(repo, "tag", "v1", "HEAD~1")
    path = Session(repo).enter("v1")
    assert git(path, "symbolic-ref", "HEAD") == "refs/heads/v1"
    assert head(path) == head(repo)


@pytest.mark.parametrize("name", ["HEAD", "0123456789abcdef0123456789abcdef01234567"])
def test_name_that_git_would_take_for_a_commit_leaves_nothing_or_works(repo: str, name: str) -> None:
    write(repo, ".git-wt.toml", 'branch = "{name}"\n')
    ran = wt("enter", name, "--json", cwd=repo)
    if ran.code:
        assert branches(repo) == ["main"]
        assert worktrees(repo) == [repo]
        assert not os.path.exists(f"{repo}/.claude/worktrees/{name}")
    else:
        assert git(ran.data["worktreePath"], "symbolic-ref", "HEAD") == f"refs/heads/{name}"


def test_branch_that_cannot_be_beside_another_is_refused_and_leaves_nothing(repo: str) -> None:
    write(repo, ".git-wt.toml", 'branch = "{name}"\n')
    git(repo, "branch", "feat")
    ran = wt("enter", "feat/x", "--json", cwd=repo)
    assert ran.code == 1
    assert branches(repo) == ["feat", "main"]
    assert worktrees(repo) == [repo]
    assert not os.path.exists(f"{repo}/.claude/worktrees/feat+x")


def test_names_that_differ_only_in_case_are_refused_where_the_filesystem_folds_case(repo: str) -> None:
    git(repo, "config", "core.ignoreCase", "true")
    Session(repo).enter("feat")
    ran = Session(repo).wt("enter", "Feat", "--json")
    assert (ran.code, ran.error["code"]) == (1, "exists")
    assert branches(repo) == ["main", "worktree-feat"]


def test_two_names_of_one_slug_never_share_a_worktree_silently(repo: str) -> None:
    write(repo, ".git-wt.toml", 'directory = "trees/same"\nbranch = "{name}"\n')
    first = Session(repo).enter("one")
    commit(first, "work", "1\n")
    ran = Session(repo).wt("enter", "two", "--json")
    assert ran.code == 1
    assert branches(repo) == ["main", "one"]
