"""Mend what a command left that was killed: roll its journal entry forward or back. Any command calls this first.

Costs the listing of one folder when there is nothing to mend.
"""

from __future__ import annotations

import os

from git_wt import journal
from git_wt.model import Repository
from git_wt.worktrees import create, trash

_MEND = {
    "create": create.undo_creation,
    "remove": trash.put_back,
    "undo": trash.finish_undo,
}


def recover(repository: Repository) -> tuple[str, ...]:
    """Roll every abandoned journal entry forward or back. Returns a sentence for each. Takes the lock only when there
    is something to do; raises `busy`, `git`."""
    if not journal.abandoned(repository.state_dir):
        return ()
    notes = []
    with journal.lock(repository.state_dir):
        for entry in journal.abandoned(repository.state_dir):
            mend = _MEND.get(str(entry.data.get("action")))
            if mend:
                mend(repository.common_dir, repository.git_folder, entry)
                what = os.path.basename(str(entry.data.get("path", "")))
                notes.append(f"mended what a killed '{entry.data['action']}' of '{what}' had left")
    return tuple(notes)
