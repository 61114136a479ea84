"""Which scripts of the repository commands name, and what is in them: a trusted command must not run another text than
the one that was shown.

Counted is every tracked file that a command names, in the worktree or (`$GIT_WT_MAIN/...`) in the main checkout, also
behind `cd` and through links; in the main checkout also what is executable or an argument by itself. Untracked files of
the worktree are what set-up makes and copies: they differ from run to run, and no branch brings them. What a script or
a program like `npm` or `make` runs in turn is theirs, and not looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence

from git_wt.config.foreign import Command
from git_wt.git.call import ask, split_z

MAIN = "$GIT_WT_MAIN/"
_BREAKS = r"""[\s;&|()<>{}"'`=,:\[\]]+"""
_CD = re.compile(r"""\bcd\s+(?:--\s+)?["']?([^\s;&|"')]+)""")
_MOST_FOLDERS = 32


def named_scripts(
    commands: Sequence[Command], aliases: Mapping[str, str], worktree: str, source: str
) -> dict[str, str]:
    """The scripts by path (relative to the worktree, or `$GIT_WT_MAIN/...`), each with the sha256 of its content in
    hex. No git process when no file is named, else one, or two when the main checkout's are named as well."""
    here: set[str] = set()
    main: set[str] = set()
    for command in commands:
        for path in _named(command, aliases, worktree, source):
            if path.startswith("/"):
                if path.startswith(source + "/") and os.path.isfile(path):
                    main.add(path[len(source) + 1 :])
            elif os.path.isfile(f"{worktree}/{path}"):
                here.add(path)
    found = {path: content_hash(f"{worktree}/{path}") for path in _tracked(worktree, here)}
    given = {word for command in commands if not isinstance(command.run, str) for word in command.run}
    sure = {path for path in main if f"{source}/{path}" in given or os.access(f"{source}/{path}", os.X_OK)}
    main = sure.union(_tracked(source, main - sure))
    return {**found, **{MAIN + path: content_hash(f"{source}/{path}") for path in sorted(main)}}


def changed_script(scripts: Mapping[str, str], worktree: str, source: str) -> str | None:
    """The first script whose content is no longer the one that was hashed, or None. No process."""
    for path, expected in scripts.items():
        real = f"{source}/{path[len(MAIN) :]}" if path.startswith(MAIN) else f"{worktree}/{path}"
        if content_hash(real) != expected:
            return path
    return None


def content_hash(path: str) -> str:
    """The sha256 of a file in hex; `-` for what is no file or cannot be read."""
    from hashlib import sha256

    if not os.path.isfile(path):
        return "-"
    digest = sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError:
        return "-"
    return digest.hexdigest()


def _named(command: Command, aliases: Mapping[str, str], worktree: str, source: str) -> Iterator[str]:
    """Paths that a command may mean: relative to the worktree, absolute those outside of it."""
    words = [command.run] if isinstance(command.run, str) else list(command.run)
    words = [re.sub(r"\$\{(\w+)\}", r"$\1", word) for word in words]  # the braces would part the word
    text = " ".join(words)
    folders = [command.folder or "."]
    for target in _CD.findall(text):
        target = _filled(target, aliases, source)
        folders += [os.path.join(folder, target) for folder in folders[:_MOST_FOLDERS]]
    for word in {*_shell_words(text), *re.split(_BREAKS, text), *words}:
        if not word or word.startswith("-") or "\0" in word:
            continue
        word = _filled(word, aliases, source)
        for folder in folders:
            path = os.path.normpath(os.path.join(folder, word))
            if path.startswith("../"):
                path = os.path.normpath(os.path.join(worktree, path))
            yield path


def _filled(word: str, aliases: Mapping[str, str], source: str) -> str:
    """A word with the variables that name the worktree or the main checkout filled in."""
    names = {"GIT_WT_MAIN": source, "GIT_WT_PATH": ".", "PWD": "."}
    names |= {alias: names[name] for alias, name in aliases.items() if name in names}

    def value(match: re.Match[str]) -> str:
        return names.get(match.group(1), match.group())

    return re.sub(r"\$(\w+)", value, word)


def _shell_words(text: str) -> list[str]:
    import shlex

    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # quotes that do not match: the shell will say so
        return []


def _tracked(folder: str, paths: set[str]) -> list[str]:
    """Those of `paths` that git tracks, under their name or where links lead to; all of them where git cannot say."""
    if not paths:
        return []
    top = os.path.realpath(folder)
    real = {path: os.path.relpath(os.path.realpath(f"{top}/{path}"), top) for path in paths}
    inside = {path for path in (*paths, *real.values()) if not path.startswith("../")}
    answer = ask(folder, "--literal-pathspecs", "ls-files", "-z", "--", *sorted(inside))
    if answer.code:
        return sorted(paths)
    known = set(split_z(answer.out))
    return sorted(path for path in paths if path in known or real[path] in known)
