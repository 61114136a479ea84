"""Mend what a killed command left: roll its journal entry forward or back. Every command calls this first, when the
journal has such an entry."""

from __future__ import annotations

import os
from collections.abc import Callable

from git_wt import journal
from git_wt.errors import WtError
from git_wt.git.worktree_config import turn_off_if_unused
from git_wt.model import Repository
from git_wt.naming import quoted
from git_wt.worktrees import create, removal, trash
from git_wt.worktrees.registry import clear_stale_locks


def finish_set_up(common: str, folder: str, entry: journal.Entry) -> None:  # noqa: ARG001 - as the others
    """Clear what a step left that was killed over git's configuration: it runs again with `git wt setup`."""
    clear_stale_locks(common, entry, f"worktrees/{os.path.basename(str(entry.data['admin']))}/config.worktree")
    turn_off_if_unused(common)
    entry.done()


_MEND: dict[str, Callable[[str, str, journal.Entry], object]] = {
    "create": create.undo_creation,
    "remove": removal.put_back,
    "set-up": finish_set_up,
    "undo": trash.finish_undo,
}


def recover(repository: Repository) -> tuple[str, ...]:
    """Roll every abandoned journal entry forward or back. Returns a sentence for each. Raises `busy`, `git`."""
    notes = []
    with journal.lock(repository.state_dir):
        for entry in journal.abandoned(repository.state_dir):
            mend = _MEND.get(str(entry.data.get("action")))
            what = f"'{entry.data.get('action')}' of {quoted(os.path.basename(str(entry.data.get('path', ''))))}"
            if mend is None:
                continue
            try:
                mend(repository.common_dir, repository.git_folder, entry)
            except (WtError, OSError) as error:  # never keep anyone from list, exit or undo
                notes.append(f"warning: could not mend what a killed {what} had left: {error}")
            else:
                notes.append(f"mended what a killed {what} had left")
    return tuple(notes)
