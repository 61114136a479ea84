"""Every way in which a command can fail, as one exception with a stable code and an exit code.

Owns the error codes and exit codes that scripts rely on. Knows nothing of git, tmux or output.
"""

from __future__ import annotations

DONE = 0
FAILED = 1
USAGE = 2
REFUSED = 3
NOT_TRUSTED = 4
BUSY = 5
SETUP_FAILED = 6
BUG = 70
HUNG_UP = 129
INTERRUPTED = 130
TERMINATED = 143

EXIT_CODES = {
    "usage": USAGE,
    "invalid-name": USAGE,
    "has-changes": REFUSED,
    "branch-has-commits": REFUSED,
    "not-trusted": NOT_TRUSTED,
    "busy": BUSY,
    "setup-failed": SETUP_FAILED,
    "bug": BUG,
}


class WtError(Exception):
    """A failure that the user is told in one line, with what to do next.

    `code` is the word in `--json` (README: error codes), `message` says what could not be done, the subject in
    quotes and why; `hint` is a command to paste or advice. `extra` holds further JSON members (`blockers`).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        exit_code: int | None = None,
        extra: dict[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.exit_code = EXIT_CODES.get(code, FAILED) if exit_code is None else exit_code
        self.extra = extra or {}


class Interrupted(BaseException):
    """A signal that ends the program: hang-up, interrupt or terminate; raised by the handlers of `cli`. No WtError:
    nobody who can go on without an answer may go on after it. `error` is what the user is told."""

    def __init__(self, signal_number: int) -> None:
        name = {1: "hung up", 2: "interrupted", 15: "terminated"}.get(signal_number, "ended by a signal")
        super().__init__(name)
        self.error = WtError("interrupted", name, exit_code=128 + signal_number)
