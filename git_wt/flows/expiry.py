"""What becomes of the trash with time: deleted in the background, at low priority, holding nothing of ours."""

from __future__ import annotations

import contextlib
import os
import sys
import time

from git_wt.files import write_whole
from git_wt.flows.context import Context
from git_wt.proc.run import detach
from git_wt.worktrees import trash

_EVERY = 3600.0  # seconds


def expire_later(context: Context) -> None:
    """Start the deletion of what is past its time: when there is something, else once an hour (the size of it all is
    measured then). One process that outlives this one, or none."""
    limit = time.time() - context.config.number("trash.days") * 86400
    overdue = any(entry.removed_at < limit for entry in trash.entries(context.repository.common_dir))
    stamp = context.repository.state_dir + "/expired"
    with contextlib.suppress(OSError):
        if not overdue and os.path.exists(stamp) and time.time() - os.stat(stamp).st_mtime < _EVERY:
            return
        write_whole(stamp, b"")
        program = os.path.realpath(sys.argv[0])
        detach([program, "-C", context.repository.git_folder, "-q", "trash", "empty", "--expired"], nice=19)
