"""Set-up files of other tools, used as they are: which there are, their fields, and the variables that they promise.

Sources: the documentation of Cursor, Codex, Conductor, Superset, Emdash and phantom. No process; nothing is run here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from git_wt.config.files import parse_json, parse_toml
from git_wt.config.schema import Problem
from git_wt.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TIMEOUT = 600.0  # seconds, for a command that names none


class Command(NamedTuple):
    """One command: a text for `sh -c` or an argument list; seconds; the folder to run in, relative to the worktree."""

    run: str | tuple[str, ...]
    name: str = ""
    timeout: float = TIMEOUT
    folder: str = ""


class SetupFile(NamedTuple):
    """What another tool's file says. Fields as in `commands.Plan`."""

    tool: str
    path: str
    setup: tuple[Command, ...] = ()
    teardown: tuple[Command, ...] = ()
    aliases: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    go_on: bool = False
    problems: tuple[Problem, ...] = ()


def find(source: str) -> tuple[SetupFile, ...]:
    """Every file of another tool that is in the folder `source`, in the order in which they win."""
    found = []
    for load in (_cursor, _codex, _conductor, _superset, _emdash, _phantom):
        file = load(source)
        if file is not None:
            found.append(file)
    return tuple(found)


def _cursor(source: str) -> SetupFile | None:
    path = f"{source}/.cursor/worktrees.json"
    if not os.path.exists(path):
        return None
    field = _Fields(path, *_json(path))
    key = "setup-worktree-unix" if "setup-worktree-unix" in field.data else "setup-worktree"
    if isinstance(field.data.get(key), str):  # the path of a script, relative to the file
        script = os.path.normpath(os.path.join(os.path.dirname(path), field.data[key]))
        run = (script,) if os.access(script, os.X_OK) else ("sh", script)
        setup: tuple[Command, ...] = (Command(run, field.data[key]),)
    else:
        setup = field.commands(key)
    main = "GIT_WT_MAIN"
    return field.file("Cursor", setup, (), {"ROOT_WORKTREE_PATH": main, "CURSOR_WORKTREE_PATH": "GIT_WT_PATH"})


def _codex(source: str) -> SetupFile | None:
    folder = f"{source}/.codex/environments"
    try:
        names = sorted(os.listdir(folder), key=lambda name: (name != "environment.toml", name))
    except OSError:
        return None
    name = next((name for name in names if name.endswith(".toml")), None)
    if name is None:
        return None
    field = _Fields(f"{folder}/{name}", *_toml(f"{folder}/{name}"))
    platform = "darwin" if sys.platform == "darwin" else "linux"
    scripts = {
        event: field.commands(f"{event}.{platform}.script") or field.commands(f"{event}.script")
        for event in ("setup", "cleanup")
    }
    aliases = {"CODEX_SOURCE_TREE_PATH": "GIT_WT_MAIN", "CODEX_WORKTREE_PATH": "GIT_WT_PATH"}
    return field.file("Codex", scripts["setup"], scripts["cleanup"], aliases)


def _conductor(source: str) -> SetupFile | None:
    path = next(
        (p for p in (f"{source}/.conductor/settings.toml", f"{source}/conductor.json") if os.path.exists(p)), None
    )
    if path is None:
        return None
    field = _Fields(path, *(_toml(path) if path.endswith(".toml") else _json(path)))
    local = f"{source}/.conductor/settings.local.toml"
    if path.endswith(".toml") and os.path.exists(local):
        own, wrong = _toml(local)
        for key in ("scripts", "environment_variables"):
            if isinstance(own.get(key), dict):
                field.data[key] = {**(field.at(key) or {}), **own[key]}
        field.problems.extend(wrong)
    variables = field.at("environment_variables")
    env = {k: str(v) for k, v in variables.items()} if isinstance(variables, dict) else {}
    aliases = {
        "CONDUCTOR_ROOT_PATH": "GIT_WT_MAIN",
        "CONDUCTOR_WORKSPACE_PATH": "GIT_WT_PATH",
        "CONDUCTOR_WORKSPACE_NAME": "GIT_WT_NAME",
        "CONDUCTOR_PORT": "GIT_WT_PORT",
        "CONDUCTOR_DEFAULT_BRANCH": "GIT_WT_DEFAULT_BRANCH",
    }
    made = field.file("Conductor", field.commands("scripts.setup"), field.commands("scripts.archive"), aliases)
    return made._replace(env={"CONDUCTOR_IS_LOCAL": "1", **env})


def _superset(source: str) -> SetupFile | None:
    paths = (f"{source}/.superset/config.json", f"{source}/.superset/config.toml")
    path = next((path for path in paths if os.path.exists(path)), None)
    if path is None:
        return None
    aliases = {"SUPERSET_ROOT_PATH": "GIT_WT_MAIN", "SUPERSET_WORKSPACE_NAME": "GIT_WT_NAME"}
    if path.endswith(".toml"):
        field = _Fields(path, *_toml(path))
        made = field.file("Superset", field.commands("setup.run"), field.commands("archive.run"), aliases)
        return made._replace(go_on=True)
    field = _Fields(path, *_json(path))
    local = f"{source}/.superset/config.local.json"
    if os.path.exists(local):
        own, wrong = _json(local)
        field.problems.extend(wrong)
        for event in ("setup", "teardown"):
            _put_around(field.data, event, own.get(event))
    folder = field.text("cwd")
    setup, teardown = (
        tuple(command._replace(folder=folder) for command in field.commands(event)) for event in ("setup", "teardown")
    )
    return field.file("Superset", setup, teardown, aliases)._replace(go_on=True)


def _put_around(data: dict[str, Any], event: str, own: object) -> None:
    """`config.local.json`: a list takes the place of the shared one, `before` and `after` go around it."""
    if isinstance(own, list):
        data[event] = own
    elif isinstance(own, dict):
        data[event] = [*_listed(own.get("before")), *_listed(data.get(event)), *_listed(own.get("after"))]


def _emdash(source: str) -> SetupFile | None:
    path = f"{source}/.emdash.json"
    if not os.path.exists(path):
        return None
    field = _Fields(path, *_json(path))
    before = field.text("shellSetup")
    setup, teardown = (
        tuple(command._replace(run=f"{before}\n{command.run}" if before else command.run) for command in commands)
        for commands in (field.commands("scripts.setup"), field.commands("scripts.teardown"))
    )
    return field.file("Emdash", setup, teardown, {})


def _phantom(source: str) -> SetupFile | None:
    path = f"{source}/phantom.config.json"
    if not os.path.exists(path):
        return None
    field = _Fields(path, *_json(path))
    made = field.file(
        "phantom",
        field.commands("postCreate.commands"),
        field.commands("preDelete.commands"),
        {"PHANTOM_NAME": "GIT_WT_NAME", "PHANTOM_PATH": "GIT_WT_PATH"},
    )
    return made._replace(env={"PHANTOM": "1"})


class _Fields:
    """A parsed file, and what is wrong with the fields that were asked for so far."""

    def __init__(self, path: str, data: dict[str, Any], problems: list[Problem]) -> None:
        self.path, self.data, self.problems = path, data, problems

    def at(self, key: str) -> Any:
        value: Any = self.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def text(self, key: str) -> str:
        value = self.at(key)
        if value is not None and not isinstance(value, str):
            self.problems.append(Problem(self.path, f"'{key}' must be a string"))
        return value if isinstance(value, str) else ""

    def commands(self, key: str) -> tuple[Command, ...]:
        """A string or a list of strings, each for `sh -c`."""
        value = self.at(key)
        texts = [value] if isinstance(value, str) else value
        if texts is None:
            return ()
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            self.problems.append(Problem(self.path, f"'{key}' must be a string or a list of strings"))
            return ()
        return tuple(Command(text) for text in texts if text.strip())

    def file(
        self, tool: str, setup: Sequence[Command], teardown: Sequence[Command], aliases: Mapping[str, str]
    ) -> SetupFile:
        return SetupFile(tool, self.path, tuple(setup), tuple(teardown), aliases, {}, False, tuple(self.problems))


def _json(path: str) -> tuple[dict[str, Any], list[Problem]]:
    problems: list[Problem] = []
    return parse_json(path, problems)[0], problems


def _toml(path: str) -> tuple[dict[str, Any], list[Problem]]:
    problems: list[Problem] = []
    return parse_toml(path, problems)[0], problems


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [] if value is None else [value]
