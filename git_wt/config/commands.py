"""Which commands set a worktree up and clean up before it goes, and which file they come from: ours, else another
tool's. Reading only; what may run is for `trust` to say. No process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from git_wt.config import Config, foreign
from git_wt.config.foreign import Command, SetupFile
from git_wt.config.schema import Problem
from git_wt.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETUP, TEARDOWN = "setup", "teardown"
OURS = "git-wt"


class Plan(NamedTuple):
    """The commands of one event. `file` is where they come from ("" for a variable); `needs_trust` says that it lies
    below the main root; `aliases` maps the variables that another tool promises to ours, `env` is what its file sets;
    with `go_on` a failure does not stop the commands behind it."""

    event: str
    tool: str
    file: str
    commands: tuple[Command, ...]
    needs_trust: bool
    aliases: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    go_on: bool = False
    problems: tuple[Problem, ...] = ()


def plan_for(config: Config, source: str, event: str) -> Plan:
    """The commands of `event` (`setup`, `teardown`). Ours wins as soon as a setting of ours names either event (also
    `setup = []`), else the first file of another tool in `source`."""
    if is_ours(config):
        file = config.files.get(event, "")
        commands = tuple(_command(entry) for entry in config.values[event])
        return Plan(event, OURS, file, commands, bool(file) and _is_below(file, source))
    used = next(iter(foreign.find(source)), None)
    if used is None:
        return Plan(event, OURS, "", (), False)
    return Plan(
        event, used.tool, used.path, used.setup if event == SETUP else used.teardown, True,
        used.aliases, used.env, used.go_on, used.problems,
    )  # fmt: skip


def is_ours(config: Config) -> bool:
    """Whether a setting of ours names commands."""
    return any(config.origins[event] != "default" for event in (SETUP, TEARDOWN))


def setup_files(config: Config, source: str) -> tuple[SetupFile | None, tuple[SetupFile, ...]]:
    """The file of another tool that is in use, and those that are there and are not."""
    found = foreign.find(source)
    return (None, found) if is_ours(config) or not found else (found[0], found[1:])


def _command(entry: Mapping[str, Any]) -> Command:
    run = entry["run"]
    return Command(
        run if isinstance(run, str) else tuple(run), entry.get("name", ""), float(entry.get("timeout", foreign.TIMEOUT))
    )


def _is_below(file: str, source: str) -> bool:
    """Whether a file lies below a folder, by its name or in truth: either makes it the repository's."""
    inside = os.path.realpath(source) + "/"
    return os.path.realpath(file).startswith(inside) or os.path.abspath(file).startswith(source.rstrip("/") + "/")
