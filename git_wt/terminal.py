"""What knows about terminals: whether there is one, how wide it is, colour, and questions to the person at it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence


def interactive() -> bool:
    """Whether a person can be asked: input and errors are both a terminal."""
    return _is_tty(0) and _is_tty(2)


def output_is_terminal() -> bool:
    """Whether the answer goes to a person's screen."""
    return _is_tty(1)


def errors_are_terminal() -> bool:
    """Whether narration and progress go to a person's screen."""
    return _is_tty(2)


def width() -> int:
    """Columns of the terminal that the answer goes to; 0 when it is none (no limit)."""
    if not output_is_terminal():
        return 0
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def colour(fd: int, env: Mapping[str, str]) -> bool:
    """Whether to colour: a terminal that can, and no NO_COLOR (no-color.org)."""
    return _is_tty(fd) and not env.get("NO_COLOR") and env.get("TERM", "dumb") != "dumb"


def choose(question: str, answers: Sequence[str], default: str) -> str | None:
    """Ask on the terminal and return one of `answers` (their first letters do), the default on Enter, None when the
    input ends. Raises KeyboardInterrupt or the handler's exception on Ctrl-C."""
    letters = "/".join(answer[0].upper() if answer == default else answer[0] for answer in answers)
    while True:
        sys.stderr.write(f"{question} [{letters}] ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return None
        word = line.strip().lower()
        if not word:
            return default
        for answer in answers:
            if answer.startswith(word):
                return answer
        sys.stderr.write("please answer " + ", ".join(answers[:-1]) + f" or {answers[-1]}\n")


def _is_tty(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False
