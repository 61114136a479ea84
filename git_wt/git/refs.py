"""Branches, refs and commits: what they are, how many are only here, and compare-and-swap changes of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from git_wt.git.call import act, ask, environment, lines, reading, require, split_z
from git_wt.proc.run import Completed, run
from git_wt.value import NamedTuple


class Ref(NamedTuple):
    """A ref: the commit it peels to, the ref it points to, and its upstream ('' for none)."""

    oid: str
    symref: str
    upstream: str


def resolve(folder: str, revision: str) -> str | None:
    """The commit that `revision` names where `folder` stands, or None. One process."""
    answer = ask(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}")
    return os.fsdecode(answer.out).strip() or None


def full_name(folder: str, revision: str) -> str | None:
    """The full name of the ref that `revision` is short for, or None when it is no ref. One process."""
    answer = ask(folder, "rev-parse", "--symbolic-full-name", "--verify", "--quiet", revision)
    name = os.fsdecode(answer.out).strip()
    return name if name.startswith("refs/") else None


def find_refs(folder: str, *patterns: str) -> dict[str, Ref]:
    """The refs that match (for-each-ref patterns: exact names or whole folders), by full name. One process."""
    form = "%(refname)%00%(objectname)%00%(*objectname)%00%(symref)%00%(upstream)"
    out = require(ask(folder, "for-each-ref", "--format", form, *patterns), "read the branches")
    found = {}
    for line in lines(out):
        name, oid, peeled, symref, upstream = line.split("\0")
        found[name] = Ref(peeled or oid, symref, upstream)
    return found


def is_bad_branch(name: str) -> bool:
    """Whether git refuses `name` as a branch (`git check-ref-format --branch`). One process."""
    return ask("/", "check-ref-format", "--branch", name).code != 0


def configuration(folder: str) -> dict[str, str]:
    """git's own settings in force in `folder`; names in lower case but for the middle part. One process."""
    found = {}
    answer = run(["git", "-C", folder, "config", "-z", "--list"], env=environment())  # not through our own `-c`
    for item in split_z(require(answer, "read git's configuration")):
        key, _, value = item.partition("\n")
        found[key] = value
    return found


def first_reflog_message(folder: str, ref: str) -> str | None:
    """What the oldest entry of a ref's reflog says, or None without one. One process."""
    answer = ask(folder, "reflog", "show", "--format=%gs", ref, "--")
    entries = lines(answer.out)
    return entries[-1] if answer.code == 0 and entries else None


def reflog_question(folder: str) -> list[str]:
    """The argv that lists the reflog of HEAD, for `parse_reflog`."""
    return reading(folder, "log", "-g", "-z", "--format=%H %gs", "HEAD", "--")


def parse_reflog(answer: Completed) -> list[tuple[str, str]]:
    """(commit, message) of each entry, newest first. No reflog is an empty list."""
    fields = os.fsdecode(answer.out).split("\0") if answer.code == 0 else []
    return [(oid, message) for oid, _, message in (field.partition(" ") for field in fields if field)]


def commits_question(folder: str, tips: Iterable[str], without: Iterable[str], *arguments: str) -> list[str]:
    """The argv that lists commits of `tips` that `without` does not contain, with parents. Names that resolve to
    nothing are ignored by git (`--ignore-missing`)."""
    return reading(folder, "rev-list", "--parents", "--ignore-missing", *tips, "--not", *without, *arguments, "--")


def parse_commits(answer: Completed, doing: str) -> dict[str, tuple[str, ...]]:
    """Commit -> parents."""
    rows = (line.split() for line in lines(require(answer, doing)))
    return {row[0]: tuple(row[1:]) for row in rows}


def graph_question(folder: str, tips: Iterable[str], without: Iterable[str], names: Iterable[str]) -> list[str]:
    """The argv that lists the commits of `tips` and of the refs `names` that `without` does not contain, with parents
    and with those of `names` that point at each, for `parse_graph`."""
    named = list(names)
    shown = [f"--decorate-refs={name}" for name in named]
    form = "--format=%H %P%x09%D"
    return reading(
        folder, "log", form, "--decorate=full", *shown, "--ignore-missing", *tips, *named, "--not", *without, "--"
    )


def parse_graph(answer: Completed) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Commit -> parents, and ref -> commit for the refs that point into the graph."""
    graph, points = {}, {}
    for line in lines(answer.out) if answer.code == 0 else ():
        commits, _, names = line.partition("\t")
        oid, *parents = commits.split()
        graph[oid] = tuple(parents)
        points.update(dict.fromkeys((name.rpartition("-> ")[2] for name in names.split(", ") if name), oid))
    return graph, points


def reached(tip: str | None, graph: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """The commits of `graph` that `tip` reaches. No process."""
    found: set[str] = set()
    ahead = [tip] if tip else []
    while ahead:
        oid = ahead.pop()
        if oid in graph and oid not in found:
            found.add(oid)
            ahead += graph[oid]
    return frozenset(found)


def count_only_here(folder: str, oid: str, branch: str) -> int:
    """How many commits of `oid` no branch but `branch`, no remote branch and no tag has. One process."""
    argv = ("rev-list", "--count", oid, "--not", f"--exclude={branch}", "--branches", "--remotes", "--tags")
    return int(require(ask(folder, *argv), "count commits"))


def count_between(folder: str, since: str, until: str) -> int:
    """How many commits `until` has and `since` has not; 0 if either cannot be read. One process."""
    answer = ask(folder, "rev-list", "--count", "--end-of-options", f"{since}..{until}")
    return int(answer.out or 0) if answer.code == 0 else 0


def merge_question(folder: str, into: str, tip: str) -> list[str]:
    """The argv that merges `tip` into `into` in memory, for `parse_merge`. Needs git 2.38."""
    return reading(folder, "merge-tree", "--write-tree", "--no-messages", into, tip)


def parse_merge(answer: Completed) -> str | None:
    """The tree of a merge without conflicts, or None. Exit code 129 (an older git) is for the caller to see."""
    return lines(answer.out)[0] if answer.code == 0 and answer.out else None


def trees(folder: str, revisions: Sequence[str]) -> list[str]:
    """The tree of each revision, in order. One process."""
    argv = ["rev-parse", *(f"{revision}^{{tree}}" for revision in revisions)]
    return list(lines(require(ask(folder, *argv), "read commits")))


def merge_base(folder: str, one: str, other: str) -> str | None:
    """A best common ancestor, or None. One process."""
    return os.fsdecode(ask(folder, "merge-base", one, other).out).strip() or None


def squash_is_in(folder: str, tip: str, base: str, into: str) -> bool:
    """Whether one commit with all changes since `base` is in `into` already: `git cherry` on a commit made for the
    purpose (for git older than 2.38, which cannot merge in memory). Two processes."""
    squashed = commit_tree(folder, tip + "^{tree}", [base], "git-wt: for comparison")
    answer = ask(folder, "cherry", into, squashed, base)
    return answer.code == 0 and answer.out.startswith(b"-")


def commit_tree(folder: str, tree: str, parents: Sequence[str], message: str) -> str:
    """Write a commit that no ref points to and return its name. Needs no identity of the user. One process."""
    named = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _OURSELVES}
    parent_arguments = [word for parent in parents for word in ("-p", parent)]
    argv = ("commit-tree", tree, *parent_arguments, "-m", message)
    return act(folder, *argv, doing="write the trash entry's commit", extra_env=named).decode("ascii").strip()


_OURSELVES = (("NAME", "git-wt"), ("EMAIL", "git-wt@localhost"))


def change_ref(
    folder: str, ref: str, new: str, old: str, message: str, on_group: Callable[[int], None] | None = None
) -> None:
    """Set a ref to `new` if it is at `old` ('' means: it does not exist), with a reflog. Raises `git`. One process."""
    argv = ("update-ref", "--create-reflog", "-m", message, ref, new, old)
    act(folder, *argv, doing=f"set '{ref.removeprefix('refs/heads/')}'", on_group=on_group)


def delete_ref(folder: str, ref: str, old: str, on_group: Callable[[int], None] | None = None) -> None:
    """Delete a ref if it is at `old`; raises `git` when it has moved. One process."""
    doing = f"delete '{ref.removeprefix('refs/heads/')}'"
    act(folder, "update-ref", "-d", ref, old, doing=doing, on_group=on_group)


def branch_settings(folder: str, branch: str) -> list[tuple[str, str]]:
    """git's settings of one branch (`branch.<name>.*`: upstream, description), in order. One process."""
    items = split_z(ask(folder, "config", "-z", "--local", "--list").out)
    pairs = (item.partition("\n") for item in items)
    return [(key, value) for key, _, value in pairs if key.rpartition(".")[0] == f"branch.{branch}"]


def drop_branch_settings(folder: str, branch: str) -> None:
    """Take away what `git branch -d` takes away besides the branch: its section in the configuration. One process."""
    act(folder, "config", "--local", "--remove-section", f"branch.{branch}", doing=f"forget the upstream of '{branch}'")


def restore_branch_settings(folder: str, settings: Sequence[tuple[str, str]]) -> None:
    """Put the settings of a branch back. One process a setting."""
    for key, value in settings:
        act(folder, "config", "--local", "--add", key, value, doing=f"set '{key}'")
