"""Settings: where they may stand, which wins, and what is wrong with them. TOML through tomli, settings.json as it is.

First that says something wins: environment; `.git-wt.local.toml`, `.git-wt.toml`,
`.claude/settings.local.json`, `.claude/settings.json` (all at the main root); `$XDG_CONFIG_HOME/git-wt/config.toml`;
`~/.claude/settings.json`; defaults.
No process. tomli is imported only when a TOML file is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping

from git_wt.errors import WtError
from git_wt.model import Json
from git_wt.naming import quoted
from git_wt.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    _Kind = tuple[str, Callable[[Any], bool]]

DEFAULTS: Json = {
    "directory": ".claude/worktrees/{slug}",
    "branch": "worktree-{slug}",
    "baseRef": "fresh",
    "symlinkDirectories": [],
    "sparsePaths": [],
    "gitHooks": "share",
    "copySettings": [".claude/settings.local.json"],
    "regenerable": [
        "node_modules",
        "bower_components",
        "target",
        "build",
        "dist",
        "out",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        "__pycache__",
        "*.pyc",
        "*.pyo",
        "*.egg-info",
        ".eggs",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        "htmlcov",
        ".coverage",
        "coverage",
        ".nyc_output",
        ".cache",
        ".parcel-cache",
        ".turbo",
        ".next",
        ".nuxt",
        ".svelte-kit",
        ".angular",
        ".vite",
        ".gradle",
        ".terraform",
        ".direnv",
        ".DS_Store",
        "Thumbs.db",
        "*.o",
        "*.class",
        ".ccls-cache",
        "CMakeFiles",
        "_build",
        ".stack-work",
        ".dart_tool",
        ".sass-cache",
        ".eslintcache",
        ".tsbuildinfo",
    ],
    "setup": [],
    "teardown": [],
    "hooks.WorktreeCreate": None,
    "hooks.WorktreeRemove": None,
    "trash.days": 7,
    "trash.size": "20GB",
    "sweep.auto": True,
    "sweep.days": 30,
    "tmux.auto": False,
    "tmux.windows": [],
}
_SIZE = r"(?i)([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)i?B?\Z"


class Problem(NamedTuple):
    """Something wrong in a settings file: where, and what was expected."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class Config(NamedTuple):
    """The settings in force, the place each comes from, and what is wrong."""

    values: Json
    origins: Mapping[str, str]
    problems: tuple[Problem, ...]

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
        match = re.match(_SIZE, str(self.values[key]))
        number, unit = (match.group(1), match.group(2).upper()) if match else ("0", "")
        return int(float(number) * 1024 ** " KMGT".index(unit or " "))

    def require_valid(self) -> Config:
        """Itself. Raises `config` (exit code 1) with the first problem, for the commands that make things."""
        if self.problems:
            first = self.problems[0]
            raise WtError("config", f"cannot use the settings: {first}", hint="mend the file, then try again")
        return self


def load(root: str, env: Mapping[str, str]) -> Config:
    """The settings for the repository whose main checkout is `root`. Problems are listed, never raised. No process."""
    home = env.get("HOME") or os.path.expanduser("~")
    user = env.get("XDG_CONFIG_HOME") or home + "/.config"
    problems: list[Problem] = []
    layers = [("environment", _from_environment(env, problems))]
    for path, read in (
        (root + "/.git-wt.local.toml", _from_toml),
        (root + "/.git-wt.toml", _from_toml),
        (root + "/.claude/settings.local.json", _from_claude),
        (root + "/.claude/settings.json", _from_claude),
        (user + "/git-wt/config.toml", _from_toml),
        (home + "/.claude/settings.json", _from_claude),
    ):
        if os.path.exists(path):
            layers.append((path, read(path, problems)))
    values, origins = dict(DEFAULTS), dict.fromkeys(DEFAULTS, "default")
    for place, layer in reversed(layers):
        values.update(layer)
        origins.update(dict.fromkeys(layer, place))
    return Config(values, origins, tuple(problems))


def _from_environment(env: Mapping[str, str], problems: list[Problem]) -> Json:
    names = {re.sub("[^a-z]", "", key.lower()): key for key in DEFAULTS}
    found: Json = {}
    for variable, text in env.items():
        if not variable.startswith("GIT_WT_CONFIG_"):
            continue
        key = names.get(re.sub("[^a-z]", "", variable[14:].lower()))
        if key is None:
            problems.append(Problem(variable, "there is no such setting"))
        else:
            _take(found, key, _from_word(text, DEFAULTS[key]), variable, problems)
    return found


def _from_word(text: str, like: object) -> object:
    if isinstance(like, bool):
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(text.lower(), text)
    if isinstance(like, int):
        return int(text) if text.isdigit() else text
    return [word for word in text.split(",") if word] if isinstance(like, list) else text


def _from_toml(path: str, problems: list[Problem]) -> Json:
    import tomli

    try:
        with open(path, "rb") as file:
            text = file.read().decode("utf-8")
        data = tomli.loads(text)
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        problems.append(Problem(path, str(error)))
        return {}
    found: Json = {}
    for key, value in _flat(data):
        line = _line_of(text, key)
        _take(found, key, value, f"{path}:{line}" if line else path, problems)
    return found


def _flat(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    tables = {key.split(".")[0] for key in DEFAULTS if "." in key}
    flat: list[tuple[str, Any]] = []
    for key, value in data.items():
        if key in tables and isinstance(value, dict):
            flat += [(f"{key}.{inner}", item) for inner, item in value.items()]
        else:
            flat.append((key, value))
    return flat


def _line_of(text: str, key: str) -> int | None:
    last = re.escape(key.rpartition(".")[2])
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"""\s*(\[+\s*)?(["']?)({last}|{re.escape(key)})\2\s*(=|\])""", line):
            return number
    return None


def _from_claude(path: str, problems: list[Problem]) -> Json:
    import json

    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
    except (OSError, ValueError) as error:
        problems.append(Problem(path, f"not valid JSON: {error}"))
        return {}
    if not isinstance(data, dict):
        problems.append(Problem(path, "an object was expected"))
        return {}
    found: Json = {}
    worktree = data.get("worktree")
    for key in ("symlinkDirectories", "sparsePaths", "baseRef"):
        if isinstance(worktree, dict) and key in worktree:
            _take(found, key, worktree[key], f"{path}: worktree.{key}", problems)
    if "cleanupPeriodDays" in data:
        _take(found, "sweep.days", data["cleanupPeriodDays"], f"{path}: cleanupPeriodDays", problems)
    return found


def _take(found: Json, key: str, value: object, place: str, problems: list[Problem]) -> None:
    if key not in DEFAULTS:
        import difflib

        near = difflib.get_close_matches(key, DEFAULTS, 1)
        problems.append(Problem(place, f"unknown key {quoted(key)}" + (f", did you mean '{near[0]}'?" if near else "")))
        return
    expected, fits = _KINDS.get(key) or _kind_of(DEFAULTS[key])
    if fits(value):
        found[key] = value
    else:
        problems.append(Problem(place, f"'{key}' must be {expected}"))


_STRING: _Kind = ("a string", lambda value: isinstance(value, str) and bool(value))
_KINDS: dict[str, _Kind] = {
    "baseRef": ('"fresh" or "head"', lambda value: value in ("fresh", "head")),
    "gitHooks": ('"share" or "off"', lambda value: value in ("share", "off")),
    "trash.size": ('a size like "20GB"', lambda value: isinstance(value, str) and bool(re.match(_SIZE, value))),
    **dict.fromkeys(
        ("setup", "teardown", "tmux.windows"),
        (
            "a list of tables",
            lambda value: isinstance(value, list) and all(isinstance(item, dict) for item in value),
        ),
    ),
}


def _kind_of(default: object) -> _Kind:
    if isinstance(default, bool):
        return "true or false", lambda value: isinstance(value, bool)
    if isinstance(default, int):
        return "a number, 0 or more", lambda value: type(value) in (int, float) and value >= 0
    if isinstance(default, list):
        return (
            "a list of strings",
            lambda value: isinstance(value, list) and all(isinstance(item, str) for item in value),
        )
    return _STRING
