"""Interactive shells in a pty: type a line, press keys, ask where the shell stands. Nothing here knows git-wt."""

import os
import re
import shutil
import uuid
from pathlib import Path
from typing import NamedTuple

import pexpect

TIME_LIMIT = 60  # seconds for one line
ESCAPES = re.compile(r"\x1b(\[[0-9;?>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[()].|[=>])")

# Where each shell reads its set-up from, and how it prints {token}<exit code>. once before every prompt.
RC_FILES = {
    "bash": (
        ".bashrc",
        """
PS1='$ '
PROMPT_COMMAND='printf "{token}%d.\\n" "$?"'
unset HISTFILE
""",
    ),
    "zsh": (
        ".zshrc",
        """
PS1='$ '
unsetopt prompt_sp prompt_cr
precmd() { printf '{token}%d.\\n' "$?" }
""",
    ),
    "fish": (
        ".config/fish/config.fish",
        """
set -g fish_greeting
set -g fish_autosuggestion_enabled 0
function fish_prompt; echo '$ '; end
function after --on-event fish_prompt; printf '{token}%d.\\n' $status; end
""",
    ),
}


class Ran(NamedTuple):
    """What came of one line: what was on the screen, its echo included, and the exit code."""

    output: str
    code: int


class Shell:
    """One interactive bash, zsh or fish, the leader of a POSIX session of its own; a context manager.

    `home` is its home folder (the set-up is written there), `setup` is added to the set-up, `env` to the environment.
    """

    def __init__(self, kind: str, cwd: str, home: Path, *, setup: str = "", env: dict[str, str] | None = None) -> None:
        self.kind = kind
        self.home = home
        self._token = f"prompt-{uuid.uuid4().hex}:"
        name, content = RC_FILES[kind]
        rc = home / name
        rc.parent.mkdir(parents=True, exist_ok=True)
        rc.write_text(content.replace("{token}", self._token) + setup + "\n")
        # else the first fish of a home reads all man pages in the background, standing where it was started
        (home / ".local/share/fish/generated_completions").mkdir(parents=True, exist_ok=True)
        self._child = pexpect.spawn(
            require_shell(kind),
            ["-i"],
            cwd=cwd,
            env=self._environment(env or {}),
            timeout=TIME_LIMIT,
            dimensions=(50, 500),
            encoding="utf-8",
            codec_errors="surrogateescape",
        )
        self.finish()

    def run(self, line: str) -> Ran:
        """Type a line and wait for the next prompt."""
        self.start(line)
        return self.finish()

    def start(self, line: str) -> None:
        """Type a line; go on with `see`, `press` and `finish`."""
        self._child.sendline(line)

    def see(self, text: str) -> str:
        """Wait until `text` is on the screen; returns what came before it. It must not be part of the typed line."""
        self._child.expect_exact(text)
        return plain(self._child.before)

    def press(self, keys: str) -> None:
        """Press keys: "\\r" is Enter, "\\x03" Ctrl-C, "\\x04" Ctrl-D."""
        self._child.send(keys)

    def finish(self) -> Ran:
        """Wait for the next prompt, of this shell or of one that was started in it."""
        self._child.expect(re.escape(self._token) + r"(\d+)\.\r*\n[^$]*[$] ")
        assert self._child.match
        return Ran(plain(self._child.before), int(self._child.match.group(1)))

    def wait_for_end(self) -> int:
        """Wait until the shell itself has ended; returns its exit code."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        return int(self._child.exitstatus if self._child.exitstatus is not None else -1)

    def variable(self, name: str) -> str:
        """The exact value of a variable, empty if it is not set."""
        answer = self.home / f"answer-{uuid.uuid4().hex}"
        value = f'"${name}"' if self.kind == "fish" else f'"${{{name}-}}"'
        assert self.run(f"printf %s {value} >'{answer}'").code == 0
        return os.fsdecode(answer.read_bytes())

    def pwd(self) -> str:
        """Where the shell thinks that it stands, exactly."""
        return self.variable("PWD")

    def close(self) -> None:
        """End the shell, if it still runs."""
        self._child.close(force=True)

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _environment(self, added: dict[str, str]) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if name != "GIT_WT_SESSION"}
        own = {"HOME": str(self.home), "SHELL": require_shell(self.kind), "TERM": "dumb"}
        own["XDG_CONFIG_HOME"] = str(self.home / ".config")
        own["XDG_DATA_HOME"] = str(self.home / ".local/share")
        own["fish_features"] = "no-query-term"  # fish 4 waits for answers that a pty does not give
        return {**env, **own, **added}


def require_shell(kind: str) -> str:
    """The path of a shell; AssertionError if it is not installed."""
    path = shutil.which(kind)
    assert path, f"{kind} is not installed"
    return path


def plain(screen: str) -> str:
    """What was on the screen, without escape sequences and carriage returns."""
    return re.sub("⏎ +⏎ ", "", ESCAPES.sub("", screen).replace("\r", ""))
