"""What a person has allowed to run: one file for each allowed thing, named by the hash of what it allows (as direnv).

The hash covers the repository (real path of the common dir: a copy elsewhere is another one), the event, the exact
commands and what they are given, and the content of the repository's scripts that they name. Files lie below
`$XDG_STATE_HOME/git-wt/trust/`, outside of every repository, for the person alone. Asks nobody, runs nothing.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping

from git_wt.files import read_json, write_json
from git_wt.model import Json
from git_wt.value import NamedTuple


class Grant(NamedTuple):
    """What is allowed, or would be. `place` is the file that it comes from. A command is `run` (a text or a list) and
    perhaps `folder`; `scripts` maps the paths of scripts to the sha256 of their content in hex."""

    repository: str
    event: str
    place: str
    commands: tuple[Json, ...]
    env: Mapping[str, str] = {}
    scripts: Mapping[str, str] = {}

    @property
    def digest(self) -> str:
        """The sha256 of all that is allowed, in hex."""
        import json
        from hashlib import sha256

        whole = [self.repository, self.event, list(self.commands), dict(self.env), dict(self.scripts)]
        return sha256(json.dumps(whole, sort_keys=True).encode("ascii")).hexdigest()

    def as_json(self) -> Json:
        """The grant as `--json` and the store show it."""
        data: Json = {"repository": self.repository, "event": self.event, "place": self.place}
        data["commands"] = list(self.commands)
        return {**data, "env": dict(self.env), "scripts": dict(self.scripts)}


def allowed(grant: Grant, env: Mapping[str, str]) -> bool:
    """Whether exactly this was allowed. A file of another user, one that others may write, and one whose content has
    another hash than its name allow nothing."""
    return _load(f"{_folder(env)}/{grant.digest}.json") is not None


def allow(grant: Grant, env: Mapping[str, str]) -> None:
    """Allow it from now on: a file of mode 0600, whole or not at all."""
    folder = _folder(env)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    write_json(f"{folder}/{grant.digest}.json", {**grant.as_json(), "allowedAt": round(time.time())})


def grants(env: Mapping[str, str]) -> list[tuple[Grant, float]]:
    """Everything that is allowed, with the time (seconds since the epoch), by repository, the newest last."""
    found = [(grant, when) for _, grant, when in _stored(env)]
    return sorted(found, key=lambda item: (item[0].repository, item[1], item[0].event))


def revoke(repository: str, env: Mapping[str, str]) -> list[Grant]:
    """Forbid all that was allowed for a repository (real path of its common dir); returns what that was."""
    gone = []
    for path, grant, _ in _stored(env):
        if grant.repository == repository:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            gone.append(grant)
    return sorted(gone, key=lambda grant: grant.event)


def _stored(env: Mapping[str, str]) -> Iterator[tuple[str, Grant, float]]:
    folder = _folder(env)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        found = _load(f"{folder}/{name}") if name.endswith(".json") else None
        if found:
            yield f"{folder}/{name}", *found


def _load(path: str) -> tuple[Grant, float] | None:
    try:
        entry = os.lstat(path)
    except OSError:
        return None
    if not stat.S_ISREG(entry.st_mode) or entry.st_uid != os.geteuid() or entry.st_mode & 0o022:
        return None
    data = read_json(path)
    try:
        assert data is not None
        grant = Grant(
            str(data["repository"]), str(data["event"]), str(data["place"]), tuple(map(dict, data["commands"])),
            dict(data["env"]), dict(data["scripts"]),
        )  # fmt: skip
        when = float(data["allowedAt"])
    except (AssertionError, KeyError, TypeError, ValueError):
        return None
    return (grant, when) if f"{grant.digest}.json" == os.path.basename(path) else None


def _folder(env: Mapping[str, str]) -> str:
    state = env.get("XDG_STATE_HOME") or (env.get("HOME") or os.path.expanduser("~")) + "/.local/state"
    return state + "/git-wt/trust"
