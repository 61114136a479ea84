"""Read one settings file: TOML of ours, or Claude Code's settings.json. Every problem names file and line.

No process. tomli is imported only for a TOML file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from git_wt.config.schema import Problem, flat, take
from git_wt.model import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_ASSIGNED = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")
_CLAUDE_KEYS = ("symlinkDirectories", "sparsePaths", "baseRef")
BROKEN = (OSError, ValueError, RecursionError)  # what a file that cannot be read or parsed raises


def read(path: str) -> tuple[Json, Callable[[str], str], list[Problem]]:
    """The settings of a file, a function from a key to `file:line`, and what is wrong. Never raises."""
    problems: list[Problem] = []
    found: Json = {}
    if path.endswith(".toml"):
        data, text = parse_toml(path, problems)
        lines = _lines_of_toml(text)
        place = _placing(path, lines)
        for key, value in flat(data):
            take(found, key, value, place, problems)
        return found, place, problems
    data, text = parse_json(path, problems)
    _from_claude(path, data, text, found, problems)
    names = {"sweep.days": "cleanupPeriodDays"}
    return found, lambda key: _json_place(path, text, names.get(key, key)), problems


def parse_toml(path: str, problems: list[Problem]) -> tuple[dict[str, Any], str]:
    """A TOML file and its text; nothing when it is broken, which is said with the line."""
    import tomli

    text = _text(path, problems)
    if text is None:
        return {}, ""
    try:
        return tomli.loads(text), text
    except BROKEN as error:
        match = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        what = re.sub(r" \(at .*\)\Z", "", str(error)) if str(error) else type(error).__name__
        line = int(match.group(1)) if match else text.count("\n") + 1
        problems.append(Problem(f"{path}:{line}", f"not valid TOML: {what}"))
        return {}, text


def parse_json(path: str, problems: list[Problem]) -> tuple[dict[str, Any], str]:
    """A JSON file's object and its text; nothing when it is broken, which is said with the line and, for comments and
    trailing commas, by name."""
    import json

    text = _text(path, problems)
    if text is None:
        return {}, ""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        why = _why_not_json(text, error.pos, error.msg)
        problems.append(Problem(f"{path}:{error.lineno}", f"not valid JSON: {why}"))
        return {}, text
    except BROKEN as error:
        problems.append(Problem(path, f"not valid JSON: {str(error) or type(error).__name__}"))
        return {}, text
    if not isinstance(data, dict):
        problems.append(Problem(f"{path}:1", "an object was expected"))
        return {}, text
    return data, text


def _text(path: str, problems: list[Problem]) -> str | None:
    """The text of a file. A FIFO or a device is not opened: it could hold us up for ever."""
    if not os.path.isfile(path):
        problems.append(Problem(path, "not a file"))
        return None
    data = b""
    try:
        with open(path, "rb") as file:
            data = file.read()
        return data.decode("utf-8-sig" if path.endswith(".json") else "utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problems.append(Problem(f"{path}:{line}", "not UTF-8"))
    except OSError as error:
        problems.append(Problem(path, f"cannot be read: {error.strerror}"))
    return None


def _why_not_json(text: str, position: int, message: str) -> str:
    rest, before = text[position:].lstrip(), text[:position].rstrip()
    if rest.startswith(("//", "/*", "#")):
        return "comments are not allowed in JSON"
    if rest.startswith(("}", "]")) and before.endswith(","):
        return "a comma may not stand before a closing bracket"
    if rest.startswith(",") and rest[1:].lstrip().startswith(("}", "]")):  # Python 3.13 points at the comma
        return "a comma may not stand before a closing bracket"
    return message


def _lines_of_toml(text: str) -> dict[str, int]:
    """Key path -> line: `trash.days`, `setup[1].run`. tomli tells no places; texts over several lines are skipped."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    prefix, inside = "", ""
    for number, line in enumerate(text.split("\n"), 1):
        if inside:
            inside = "" if inside in line else inside
            continue
        header, assigned = _HEADER.match(line), _ASSIGNED.match(line)
        if header:
            prefix = _plain(header.group(2))
            found.setdefault(prefix, number)
            if header.group(1) == "[[":
                index = counts[prefix] = counts.get(prefix, -1) + 1
                prefix = f"{prefix}[{index}]"
                found[prefix] = number
            prefix += "."
        elif assigned:
            found.setdefault(prefix + _plain(assigned.group(1)), number)
        for quotes in ('"""', "'''"):
            if line.count(quotes) % 2:
                inside = quotes
    return found


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in re.findall(_KEY, key))


def _placing(path: str, lines: dict[str, int]) -> Callable[[str], str]:
    def place(key: str) -> str:
        while key:
            if key in lines:
                return f"{path}:{lines[key]}"
            key = re.sub(r"(\[\d+\]|\.[^.\[]*|^[^.\[]*)\Z", "", key)
        return path

    return place


def _json_place(path: str, text: str, key: str) -> str:
    match = re.search(rf'"{re.escape(key.rpartition(".")[2])}"\s*:', text)
    return f"{path}:{text.count(chr(10), 0, match.start()) + 1}" if match else path


def _from_claude(path: str, data: Json, text: str, found: Json, problems: list[Problem]) -> None:
    """The settings of Claude Code that are ours, too; all others are its own."""
    worktree = data.get("worktree", {})
    if not isinstance(worktree, dict):
        problems.append(Problem(_json_place(path, text, "worktree"), "'worktree' must be an object"))
        worktree = {}
    for key in _CLAUDE_KEYS:
        if key in worktree:
            take(found, key, worktree[key], lambda name: f"{_json_place(path, text, name)}: worktree", problems)
    if "cleanupPeriodDays" in data:
        take(
            found,
            "sweep.days",
            data["cleanupPeriodDays"],
            lambda _: f"{_json_place(path, text, 'cleanupPeriodDays')}: cleanupPeriodDays",
            problems,
        )
