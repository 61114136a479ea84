"""How many files are copied, shown on the terminal once it takes longer than a second. Starts no process."""

from __future__ import annotations

import time
from types import TracebackType

from git_wt import terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PATIENCE = 1.0  # seconds
_EVERY = 64  # files between two looks at the clock


class Progress:
    """Counts files (`count`); a bar on stderr appears after a second if that is a terminal and not `quiet`."""

    def __init__(self, *, quiet: bool) -> None:
        self.count = 0
        self._shown = not quiet and terminal.errors_are_terminal()
        self._started = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def file(self) -> None:
        """One more file is copied."""
        self.count += 1
        if self.count % _EVERY == 0:
            self.tick()

    def tick(self) -> None:
        """A while has passed."""
        if not self._shown or time.monotonic() - self._started < _PATIENCE:
            return
        if self._bar is None:
            from tqdm import tqdm

            tqdm.monitor_interval = 0  # no thread
            self._bar = tqdm(desc="git-wt: copying", unit=" files", leave=False, initial=self.count)
        self._bar.update(self.count - self._bar.n)
