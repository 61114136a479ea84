"""Sessions: which terminal or agent is in which worktree. One small file each.

Identity, first that is there: `--session ID`, `$GIT_WT_SESSION`, the POSIX session (its leader's process number and
start time). Files are named by the sha256 of the id, below `$XDG_STATE_HOME/git-wt/sessions/`.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping

from git_wt.files import read_json, read_text, write_json, write_whole
from git_wt.model import Identity, Json, Session
from git_wt.proc import table

KEPT_FOR = 30 * 86400.0
_RECENT = 86400.0  # an agent's session has no process that lives; it counts as live for a day after its last command


def identify(explicit: str | None, env: Mapping[str, str]) -> Identity | None:
    """Who is calling, or None when nothing tells (the leader cannot be read). No process on Linux."""
    given = explicit or env.get("GIT_WT_SESSION")
    if given:
        return Identity(given, None)
    pid = os.getsid(0)
    started = table.start_time(pid)
    if started is None or pid == 0:
        return None
    return Identity(f"{os.uname().nodename}-{pid}-{started}", f"{pid}:{started}")


def fresh_identity() -> Identity:
    """An id that nobody else has, for a caller that nothing identifies."""
    return Identity(f"s-{os.urandom(8).hex()}", None)


def load_session(identity: Identity | None, env: Mapping[str, str]) -> Session | None:
    """The session's file, or None: it is in no worktree. Notes that the session was used just now. No process."""
    if identity is None:
        return None
    path = _path(identity.id, env)
    session = _parse(read_json(path))
    if session and identity.leader is None:
        with contextlib.suppress(OSError):
            os.utime(path)
    return session


def save_session(session: Session, env: Mapping[str, str]) -> None:
    """Write the session's file, whole or not at all. No process."""
    path = _path(session.id, env)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    write_json(path, _as_json(session), durable=False)
    _drop_old(os.path.dirname(path))


def end_session(session_id: str, env: Mapping[str, str]) -> None:
    """Take the session's file away. No process."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_path(session_id, env))


def all_sessions(env: Mapping[str, str]) -> list[tuple[Session, float]]:
    """Every session with the time it was last used (seconds since the epoch). No process."""
    folder = _folder(env)
    found = []
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return []
    for name in names:
        path = f"{folder}/{name}"
        session = _parse(read_json(path))
        if session:
            try:
                found.append((session, os.stat(path).st_mtime))
            except OSError:
                continue
    return found


def live_sessions(env: Mapping[str, str], tmux_names: frozenset[str]) -> list[Session]:
    """The sessions that somebody is in: the leader lives, its tmux session is there (`tmux_names`), or it was named
    explicitly within a day. No process on Linux."""
    now = time.time()
    return [session for session, used in all_sessions(env) if _is_live(session, used, now, tmux_names)]


def remember(identity: Identity | None, folder: str, env: Mapping[str, str]) -> None:
    """Note the folder that this session leaves, for `git wt cd -`. No process."""
    if identity is None:
        return
    path = _path(identity.id, env).removesuffix(".json") + ".previous"
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    write_whole(path, os.fsencode(folder))


def previous(identity: Identity | None, env: Mapping[str, str]) -> str | None:
    """The folder that this session left last, or None. No process."""
    return read_text(_path(identity.id, env).removesuffix(".json") + ".previous") if identity else None


def subshell_outcome(session_id: str, env: Mapping[str, str], code: int | None = None) -> int | None:
    """Leave (`code`) or take the exit code that `exit` in a subshell has for the `enter` around it. No process."""
    path = _path(session_id, env).removesuffix(".json") + ".outcome"
    if code is not None:
        write_whole(path, str(code).encode())
        return code
    text = read_text(path)
    if text is not None:
        os.unlink(path)
    return int(text) if text and text.isdigit() else None


def _is_live(session: Session, used: float, now: float, tmux_names: frozenset[str]) -> bool:
    if session.tmux_session and session.tmux_session in tmux_names:
        return True
    if session.leader:  # a dead one's id may have been passed on since
        return _has_leader(session) or (used > session.entered_at + 1 and now - used < _RECENT)
    return now - used < _RECENT


def _folder(env: Mapping[str, str]) -> str:
    state = env.get("XDG_STATE_HOME") or (env.get("HOME") or os.path.expanduser("~")) + "/.local/state"
    return state + "/git-wt/sessions"


def _path(session_id: str, env: Mapping[str, str]) -> str:
    return f"{_folder(env)}/{_sha256(os.fsencode(session_id))}.json"


def _sha256(data: bytes) -> str:
    """The digest in hex, without OpenSSL, whose import alone costs 2 ms."""
    try:
        from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            from _sha256 import sha256  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            from hashlib import sha256  # type: ignore[no-redef,assignment,unused-ignore]
    return str(sha256(data).hexdigest())


def _drop_old(folder: str) -> None:
    limit = time.time() - KEPT_FOR
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):  # another command drops it, too
            if entry.stat(follow_symlinks=False).st_mtime < limit and not _has_leader(_parse(read_json(entry.path))):
                os.unlink(entry.path)


def _has_leader(session: Session | None) -> bool:
    """Whether the terminal that a session belongs to is still open."""
    pid, _, started = (session.leader or "").partition(":") if session else ("", "", "")
    return bool(pid) and table.alive(int(pid), started)


_KEYS = {
    "id": "id", "admin": "admin", "token": "token", "name": "name", "path": "worktreePath", "branch": "worktreeBranch",
    "main_root": "mainRoot", "original_cwd": "originalCwd", "own": "own", "named": "named", "leader": "leader",
    "tmux_session": "tmuxSession", "subshell": "subshell", "entered_at": "enteredAt",
}  # fmt: skip


def _as_json(session: Session) -> Json:
    return {key: getattr(session, field) for field, key in _KEYS.items()}


def _parse(data: Json | None) -> Session | None:
    if data is None:
        return None
    try:
        return Session(**{field: data[key] for field, key in _KEYS.items()})
    except KeyError:
        return None
