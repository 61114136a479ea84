"""The executable `git-wt`. Makes the start safe, then hands over to `cli`."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from git_wt import __version__


def main() -> int:
    """Run the command line. Returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is begun yet: an interrupt just ends the program
    # A repository with a `json.py` at its root must never be imported.
    sys.path[:] = [entry for entry in sys.path if os.path.isabs(entry)]
    for fd in (0, 1, 2):  # a closed descriptor would be reused for a pipe
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.argv[1:] == ["--version"]:
        os.write(1, f"git-wt {__version__}\n".encode())
        return 0
    from git_wt.cli import run

    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # it is when the descriptor was closed at the start
            with contextlib.suppress(OSError):
                stream.flush()
    os._exit(code)  # taking the interpreter apart costs as much as git itself, and nothing is left to do


if __name__ == "__main__":
    sys.exit(main())
