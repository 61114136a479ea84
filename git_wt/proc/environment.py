"""Environments for programs that are not git's children any more: without what git added for `git wt`."""

from __future__ import annotations

import os
from collections.abc import Mapping


def without_exec_path(env: Mapping[str, str]) -> dict[str, str]:
    """`env` without GIT_EXEC_PATH and without git's own folder on PATH, which `git wt` puts
    there (measured with git 2.39). No process."""
    inner = env.get("GIT_EXEC_PATH")
    folders = [
        folder
        for folder in env.get("PATH", os.defpath).split(os.pathsep)
        if folder != inner and not folder.endswith("/git-core")
    ]
    kept = {name: value for name, value in env.items() if name != "GIT_EXEC_PATH"}
    return {**kept, "PATH": os.pathsep.join(folders)}
