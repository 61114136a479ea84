"""Every test is sealed: own home, configuration, state, tmux server, git settings; nothing of the caller."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repos import make_repo
from tests.wt import Session, executable_folder

GITCONFIG = """\
[user]
	name = Test
	email = test@example.invalid
[init]
	defaultBranch = main
[protocol "file"]
	allow = always
[gc]
	autoDetach = false
[advice]
	detachedHead = false
"""
LEAKING_PREFIXES = ("GIT_", "TMUX", "XDG_", "LC_", "PYTHON", "CLAUDE")
LEAKING_NAMES = (
    "BASH_ENV", "CDPATH", "COLUMNS", "EDITOR", "ENV", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES", "NO_COLOR",
    "OLDPWD", "PAGER", "PROMPT_COMMAND", "SSH_ASKPASS", "VIRTUAL_ENV", "VISUAL", "ZDOTDIR",
)  # fmt: skip


@pytest.fixture(autouse=True)
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Seal the environment of one test; returns its home folder. Its tmux servers are ended afterwards.

    The test is given a session of its own (`GIT_WT_SESSION`): all tests of a process share one POSIX session.
    """
    for name in list(os.environ):
        if name.startswith(LEAKING_PREFIXES) or name in LEAKING_NAMES:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        folder = home / name.lower()
        folder.mkdir(parents=True)
        monkeypatch.setenv(name, str(folder))
    gitconfig = home / "gitconfig"
    gitconfig.write_text(GITCONFIG)
    sockets = tempfile.mkdtemp(dir="/tmp", prefix="wt-")  # a socket's path has at most 108 bytes
    for name, value in {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(gitconfig),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_WT_SESSION": f"test-{uuid.uuid4()}",
        "LC_ALL": "en_US.UTF-8" if sys.platform == "darwin" else "C.UTF-8",  # macOS has no C.UTF-8
        "TERM": "xterm-256color",
        "TMUX_TMPDIR": sockets,
        "PATH": executable_folder() + os.pathsep + os.environ.get("PATH", os.defpath),
    }.items():
        monkeypatch.setenv(name, value)
    try:
        yield home
    finally:
        _end_tmux_servers(sockets)
        shutil.rmtree(sockets, ignore_errors=True)


@pytest.fixture
def repo(tmp_path: Path) -> str:
    """A small repository without a remote."""
    return make_repo(str(tmp_path / "repo"))


@pytest.fixture
def cloned(tmp_path: Path) -> str:
    """A small clone of a bare `origin` that lies beside it (`tests.repos.origin_of`)."""
    return make_repo(str(tmp_path / "repo"), remote=True)


@pytest.fixture
def session(repo: str) -> Session:
    """A fresh session that stands in `repo`."""
    return Session(repo)


def _end_tmux_servers(sockets: str) -> None:
    for folder, _, names in os.walk(sockets):
        for name in names:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    ["tmux", "-S", os.path.join(folder, name), "kill-server"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=10,
                )
