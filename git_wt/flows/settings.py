"""The settings in force and where each comes from: `git wt config`."""

from __future__ import annotations

import os

from git_wt import config
from git_wt.config.commands import SETUP, TEARDOWN, plan_for, setup_files
from git_wt.config.foreign import SetupFile
from git_wt.flows.context import open_here
from git_wt.git.repository import default_branch_folder
from git_wt.model import Caller, Json, Result


def settings(caller: Caller) -> Result:
    """Every setting with value and origin, the files that were read, the set-up file in use, and what is wrong. One git
    process."""
    context = open_here(caller)
    source = default_branch_folder(context.repository)
    found = context.config
    used, others = setup_files(found, source)
    problems = [*found.problems, *(problem for file in (used, *others) if file for problem in file.problems)]
    data: Json = {
        "settings": {key: {"value": found.values[key], **_origin(found, key)} for key in sorted(found.values)},
        "files": [path for path in config.places(source, caller.env) if os.path.exists(path)],
        "setupFile": _used(found, source, used),
        "otherSetupFiles": [{"tool": file.tool, "path": file.path} for file in others],
        "problems": [{"place": problem.place, "message": problem.what} for problem in problems],
    }
    notes = (*context.notes, *(f"warning: {problem}" for problem in problems))
    return Result("config", data, notes)


def _origin(found: config.Config, key: str) -> Json:
    """`origin` as people read it; `file` and `line` where there are such."""
    origin = found.origins[key]
    file = found.files.get(key)
    if file is None:
        return {"origin": origin}
    line = origin[len(file) + 1 :].partition(":")[0]
    return {"origin": origin, "file": file, **({"line": int(line)} if line.isdigit() else {})}


def _used(found: config.Config, source: str, used: SetupFile | None) -> Json | None:
    """Where the commands come from: a file of ours, another tool's, or nowhere."""
    if used is not None:
        return {"tool": used.tool, "path": used.path, "setup": len(used.setup), "teardown": len(used.teardown)}
    plans = [plan_for(found, source, event) for event in (SETUP, TEARDOWN)]
    file = next((plan.file for plan in plans if plan.file), None)
    if file is None:
        return None
    return {"tool": plans[0].tool, "path": file, **{plan.event: len(plan.commands) for plan in plans}}
