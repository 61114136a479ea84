"""Small files, read and written whole or not at all. Knows nothing of git. Starts no process."""

from __future__ import annotations

import json
import os

from git_wt.model import Json


def read_text(path: str) -> str | None:
    """A small file without its trailing newline, as a file-system string, or None if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read()).removesuffix("\n")
    except OSError:
        return None


def read_json(path: str) -> Json | None:
    """A small JSON file's object, or None if it is not there or not whole."""
    try:
        with open(path, "rb") as file:
            data = json.loads(file.read())
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def write_json(path: str, data: Json, *, durable: bool = True) -> None:
    """Write a small JSON file whole or not at all; with `durable` also across a power cut. Mode 0600."""
    write_whole(path, json.dumps(data, indent=1).encode("ascii"), durable=durable)


def write_whole(path: str, content: bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all: a new file beside it, then rename. Mode 0600."""
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, content)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(temporary, path)


def add_line(path: str, line: str) -> None:
    """Append `line` to a text file unless it is there already; the folder is made when it is missing."""
    content = read_text(path) or ""
    if line in content.splitlines():
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab", buffering=0) as file:
        file.write(os.fsencode(f"\n{line}\n" if content and not _ends_in_newline(path) else f"{line}\n"))


def _ends_in_newline(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read().endswith(b"\n")
