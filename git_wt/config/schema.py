"""Which settings there are, what each may be, and what is said about one that is wrong. Pure: no file, no process."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

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
SIZE = r"(?i)([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)i?B?\Z"
_CLAUDE = "worktree."  # the prefix of the same settings in Claude Code's settings.json


class Problem(NamedTuple):
    """Something wrong in a settings file: where (`file:line`), and what was expected."""

    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


def take(found: Json, key: str, value: object, place: Callable[[str], str], problems: list[Problem]) -> None:
    """Put one setting into `found`, or say in `problems` what is wrong with it. `place` tells where a key path of the
    file (`trash.days`, `setup[0].run`) stands."""
    if key not in DEFAULTS:
        problems.append(Problem(place(key), f"unknown key {quoted(key)}{_near(key, DEFAULTS)}"))
        return
    if key in _ENTRIES:
        wrong = list(_wrong_entries(key, value, place))
        problems += wrong
        if not wrong:
            found[key] = value
        return
    expected, fits = _KINDS.get(key) or _kind_of(DEFAULTS[key])
    if fits(value):
        found[key] = value
    else:
        problems.append(Problem(place(key), f"'{key}' must be {expected}, not {_said(value)}"))


def flat(data: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The settings of a TOML document by key path: `[trash] days` is `trash.days`."""
    tables = {key.split(".")[0] for key in DEFAULTS if "." in key}
    found: list[tuple[str, Any]] = []
    for key, value in data.items():
        if isinstance(value, dict) and (key in tables or (value and key not in DEFAULTS)):
            found += [(f"{key}.{inner}", item) for inner, item in value.items()]
        else:
            found.append((key, value))
    return found


def from_word(key: str, text: str) -> object:
    """A setting from the text of a variable: lists are split at commas; `setup` and `teardown` are one command."""
    like = DEFAULTS[key]
    if key in ("setup", "teardown"):
        return [{"run": text}] if text else []
    if isinstance(like, bool):
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}.get(text.lower(), text)
    if isinstance(like, int):
        try:
            return float(text) if "." in text else int(text)
        except ValueError:
            return text
    return [word for word in text.split(",") if word] if isinstance(like, list) else text


def _near(key: str, known: Mapping[str, object]) -> str:
    """The end of a sentence: the key that was meant, most likely."""
    import difflib

    if key.startswith(_CLAUDE) and key.removeprefix(_CLAUDE) in known:
        return f", did you mean '{key.removeprefix(_CLAUDE)}'? (the prefix is for settings.json)"
    near = difflib.get_close_matches(key, known, 1)
    if not near and "." not in key:  # `days` outside of its table
        near = [name for name in known if name.endswith("." + key)][:1]
    return f", did you mean '{near[0]}'?" if near else ""


def _wrong_entries(key: str, value: object, place: Callable[[str], str]) -> list[Problem]:
    """What is wrong in a list of tables such as `[[setup]]`."""
    fields, required = _ENTRIES[key]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return [Problem(place(key), f"'{key}' must be a list of tables ([[{key}]]), not {_said(value)}")]
    wrong = []
    for number, entry in enumerate(value):
        at = f"{key}[{number}]"
        for name, item in entry.items():
            if name not in fields:
                wrong.append(Problem(place(f"{at}.{name}"), f"unknown key '{at}.{name}'{_near(name, fields)}"))
            elif not fields[name][1](item):
                what = f"'{at}.{name}' must be {fields[name][0]}, not {_said(item)}"
                wrong.append(Problem(place(f"{at}.{name}"), what))
        wrong += [Problem(place(at), f"'{at}' has no '{name}'") for name in required if name not in entry]
    return wrong


def _said(value: object) -> str:
    """A value for a message, short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value if len(value) < 40 else value[:36] + "...")
    if isinstance(value, int | float):
        return str(value)
    return {list: "a list", dict: "a table", type(None): "null"}.get(type(value), f"a {type(value).__name__}")


def _is_number(value: object) -> bool:
    """A finite number, 0 or more; true and false are none."""
    return not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value) and value >= 0


def _is_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and bool(item) for item in value)


_STRING: _Kind = ("a string", lambda value: isinstance(value, str) and bool(value))
_RUN: _Kind = (
    "a string or a list of strings",
    lambda value: bool(value.strip()) if isinstance(value, str) else _is_words(value) and bool(value),
)
_SECONDS: _Kind = ("a number of seconds above 0", lambda value: _is_number(value) and value > 0)
_COUNT: _Kind = ("a whole number above 0", lambda value: type(value) is int and value > 0)
_COMMAND: dict[str, _Kind] = {"name": _STRING, "run": _RUN, "timeout": _SECONDS}
_ENTRIES: dict[str, tuple[dict[str, _Kind], tuple[str, ...]]] = {
    "setup": (_COMMAND, ("run",)),
    "teardown": (_COMMAND, ("run",)),
    "tmux.windows": ({"name": _STRING, "run": _STRING, "panes": _COUNT}, ()),
}
_KINDS: dict[str, _Kind] = {
    "baseRef": ('"fresh" or "head"', lambda value: value in ("fresh", "head")),
    "gitHooks": ('"share" or "off"', lambda value: value in ("share", "off")),
    "trash.size": ('a size like "20GB"', lambda value: isinstance(value, str) and bool(re.match(SIZE, value))),
}


def _kind_of(default: object) -> _Kind:
    if isinstance(default, bool):
        return "true or false", lambda value: isinstance(value, bool)
    if isinstance(default, int):
        return "a number, 0 or more", _is_number
    if isinstance(default, list):
        return "a list of strings", _is_words
    return _STRING
