"""What git-wt asks of remotes: never for long, never with a question to the user, and plain about failure."""

from __future__ import annotations

import os
import re

from git_wt.git.call import WRITING, environment
from git_wt.naming import shown
from git_wt.proc.run import run


def fetch(folder: str, refspec: str, *, seconds: float) -> str | None:
    """Fetch one refspec from `origin`. Returns the reason when it did not work, else None. One process group, ended
    after `seconds`; it has no terminal, so nothing in it can ask for a password."""
    flags = [
        "--quiet",
        "--no-tags",
        "--no-prune",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
    ]
    answer = run([*WRITING, "-C", folder, "fetch", *flags, "origin", refspec], env=_silent(), seconds=seconds)
    return None if answer.code == 0 else _why(answer.code, answer.err, seconds)


def remote_oid(folder: str, ref: str, *, seconds: float) -> str | None:
    """The commit that `ref` has at `origin` now, or None when that cannot be told in time. One process group."""
    answer = run([*WRITING, "-C", folder, "ls-remote", "--quiet", "origin", ref], env=_silent(), seconds=seconds)
    return os.fsdecode(answer.out).split("\t")[0] or None if answer.code == 0 else None


def pull_request_refs(url: str, number: int) -> tuple[str, ...]:
    """The refs at `origin` where a pull request's head may be, likeliest first. No process."""
    host = re.sub(r"^[a-z+]+://|^[^/@]*@|^.*@", "", url).split("/")[0].split(":")[0].lower()
    github, gitlab = f"refs/pull/{number}/head", f"refs/merge-requests/{number}/head"
    if host == "github.com":
        return (github,)
    return (gitlab,) if host == "gitlab.com" else (github, gitlab)


def _silent() -> dict[str, str]:
    quiet = {
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
    }
    return {**environment(), **quiet}


def _why(code: int, err: bytes, seconds: float) -> str:
    if code < 0:
        return f"no answer within {seconds:g} s"
    lines = [line for line in os.fsdecode(err).splitlines() if line.startswith(("fatal: ", "error: "))]
    return shown(re.sub(r"^(fatal|error): ", "", lines[0])) if lines else f"git fetch ended with code {code}"
