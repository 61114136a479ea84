"""A block of ten ports for each worktree, stable as long as it lives, that no other live worktree of this user has.

A block is a file below `$XDG_STATE_HOME/git-wt/ports/`, named by its first port, that holds the worktree's admin
folder; it goes to another worktree once that folder is gone. Nothing looks whether a program listens there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from git_wt.files import read_text, write_whole
from git_wt.git.repository import worktree_of

FIRST, SIZE, BLOCKS = 20000, 10, 1276  # below 32768, where Linux takes ports for outgoing connections from


def port_of(admin: str, env: Mapping[str, str]) -> int | None:
    """The first port of a worktree's block, taken now if it has none; None when all are taken. No process."""
    import fcntl
    from hashlib import sha256

    folder = _folder(env)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # held for a few small files
        holders = {int(name): read_text(f"{folder}/{name}") for name in os.listdir(folder) if name.isdigit()}
        for port, holder in sorted(holders.items()):
            if holder == admin:
                return port
        start = int.from_bytes(sha256(os.fsencode(admin)).digest()[:4], "big")
        for step in range(BLOCKS):
            port = FIRST + SIZE * ((start + step) % BLOCKS)
            if not _is_live(holders.get(port)):
                write_whole(f"{folder}/{port}", os.fsencode(admin))
                return port
        return None
    finally:
        os.close(lock)


def _is_live(admin: str | None) -> bool:
    path = worktree_of(admin) if admin else None
    return path is not None and os.path.isdir(path)


def _folder(env: Mapping[str, str]) -> str:
    state = env.get("XDG_STATE_HOME") or (env.get("HOME") or os.path.expanduser("~")) + "/.local/state"
    return state + "/git-wt/ports"
