"""What every set-up step gets and gives back."""

from __future__ import annotations

from collections.abc import Mapping

from git_wt.config import Config
from git_wt.model import Json, Marker, Repository
from git_wt.value import NamedTuple

DONE, SKIPPED, WARNING, FAILED, NOT_TRUSTED = "done", "skipped", "warning", "failed", "not-trusted"


class Site(NamedTuple):
    """The worktree that is set up. `source` is the folder that files, links and configuration come from (the main
    checkout; in a bare repository the worktree of the default branch). `quiet`: no progress on the terminal."""

    repository: Repository
    path: str
    admin: str
    source: str
    config: Config
    marker: Marker | None
    name: str
    branch: str | None
    quiet: bool


class Report(NamedTuple):
    """What a step did. `copied` maps each copied path (relative) to the sha256 of its content in hex, `links` are the
    symbolic links that it made (relative): both go into the marker, so that they never count as work."""

    step: str
    status: str
    count: int = 0  # type: ignore[assignment]  # the field's word, as in the JSON
    detail: str = ""
    copied: Mapping[str, str] = {}
    links: tuple[str, ...] = ()

    def as_json(self) -> Json:
        """The report as `--json` shows it."""
        data: Json = {"step": self.step, "status": self.status, "count": self.count, "detail": self.detail}
        if self.copied:
            data["files"] = sorted(self.copied)
        return data
