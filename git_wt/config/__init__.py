"""Settings: where they may stand, which wins, and what is wrong with them. TOML through tomli, settings.json as it is.

First that says something wins: environment; `.git-wt.local.toml`, `.git-wt.toml`,
`.claude/settings.local.json`, `.claude/settings.json` (all at the main root); `$XDG_CONFIG_HOME/git-wt/config.toml`;
`~/.claude/settings.json`; defaults. `schema` knows the settings, `files` reads them, `commands` and `foreign` find the
commands of set-up, ours and other tools'.
No process. tomli is imported only when a TOML file is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from git_wt.config.schema import DEFAULTS as DEFAULTS
from git_wt.config.schema import SIZE, Problem, from_word, take
from git_wt.errors import WtError
from git_wt.model import Json
from git_wt.value import NamedTuple

VARIABLE = "GIT_WT_CONFIG_"


class Config(NamedTuple):
    """The settings in force, where each comes from (`default`, a variable, `file:line`), the file of each that comes
    from one, and what is wrong."""

    values: Json
    origins: Mapping[str, str]
    problems: tuple[Problem, ...]
    files: Mapping[str, str] = {}

    def text(self, key: str) -> str:
        """A setting that is a string."""
        return str(self.values[key])

    def words(self, key: str) -> list[str]:
        """A setting that is a list of strings."""
        return list(self.values[key])

    def number(self, key: str) -> float:
        """A setting that is a number."""
        return float(self.values[key])

    def size(self, key: str) -> int:
        """A setting like `20GB` in bytes (powers of 1024)."""
        match = re.match(SIZE, str(self.values[key]))
        number, unit = (match.group(1), match.group(2).upper()) if match else ("0", "")
        return int(float(number) * 1024 ** " KMGT".index(unit or " "))

    def require_valid(self) -> Config:
        """Itself. Raises `config` (exit code 1) with the first problem, for the commands that make things."""
        if self.problems:
            first = self.problems[0]
            raise WtError("config", f"cannot use the settings: {first}", hint="mend the file, then try again")
        return self


def places(root: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Every file that may hold settings of the repository whose main checkout is `root`; the first wins."""
    home = env.get("HOME") or os.path.expanduser("~")
    user = env.get("XDG_CONFIG_HOME") or home + "/.config"
    return (
        root + "/.git-wt.local.toml",
        root + "/.git-wt.toml",
        root + "/.claude/settings.local.json",
        root + "/.claude/settings.json",
        user + "/git-wt/config.toml",
        home + "/.claude/settings.json",
    )


def load(root: str, env: Mapping[str, str]) -> Config:
    """The settings for the repository whose main checkout is `root`. Problems are listed, never raised. No process."""
    problems: list[Problem] = []
    values, origins, files = dict(DEFAULTS), dict.fromkeys(DEFAULTS, "default"), dict[str, str]()
    there = [path for path in places(root, env) if os.path.exists(path)]
    for path in reversed(there):
        from git_wt.config import files as reading

        found, lines, wrong = reading.read(path)
        values.update(found)
        origins.update({key: lines(key) for key in found})
        files.update(dict.fromkeys(found, path))
        problems[:0] = wrong
    found, variables = _from_environment(env, problems)
    values.update(found)
    origins.update(variables)
    for key in found:
        files.pop(key, None)
    return Config(values, origins, tuple(problems), files)


def _from_environment(env: Mapping[str, str], problems: list[Problem]) -> tuple[Json, dict[str, str]]:
    """What variables set, and the variable of each key."""
    names = {re.sub("[^a-z]", "", key.lower()): key for key in DEFAULTS}
    found: Json = {}
    variables: dict[str, str] = {}
    for variable, text in env.items():
        if not variable.startswith(VARIABLE):
            continue
        key = names.get(re.sub("[^a-z]", "", variable[len(VARIABLE) :].lower()))
        if key is None:
            problems.insert(0, Problem(variable, "there is no such setting"))
            continue
        wrong: list[Problem] = []
        take(found, key, from_word(key, text), lambda _, at=variable: at, wrong)  # type: ignore[misc]
        problems[:0] = wrong
        variables[key] = variable
    return found, {key: variables[key] for key in found}
