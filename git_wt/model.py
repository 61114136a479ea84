"""The values that rooms hand to each other. Plain data: no behaviour beyond derived properties, no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from git_wt.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
else:
    Json = dict


class Worktree(NamedTuple):
    """One worktree as git registers it. `admin` is its admin folder (`<common dir>/worktrees/<id>`), the
    identity that survives `git worktree move`; the main worktree's is the common dir itself."""

    path: str
    admin: str
    head: str | None = None
    branch: str | None = None
    locked: str | None = None
    prunable: str | None = None
    is_main: bool = False


class Repository(NamedTuple):
    """A repository as one `git worktree list` shows it. `main_root` is the folder of the main checkout; for a bare
    one the folder that holds it. `here` is the worktree that the caller stands in."""

    common_dir: str
    main_root: str
    bare: bool
    worktrees: tuple[Worktree, ...]
    here: Worktree | None
    cwd: str

    @property
    def name(self) -> str:
        """The last part of the main root, as people call the repository."""
        return self.main_root.rstrip("/").rpartition("/")[2] or "root"

    @property
    def state_dir(self) -> str:
        """Where git-wt keeps lock, journal and trash of this repository."""
        return self.common_dir + "/git-wt"

    @property
    def git_folder(self) -> str:
        """The folder to run git in for the repository as a whole."""
        return self.common_dir if self.bare else self.main_root

    @property
    def linked(self) -> tuple[Worktree, ...]:
        """Every worktree but main."""
        return tuple(tree for tree in self.worktrees if not tree.is_main)


class Marker(NamedTuple):
    """What git-wt noted about a worktree that it made. `token` is random and tells two worktrees apart that had the
    same admin id one after the other. Times are seconds since the epoch."""

    token: str
    kind: str
    name: str
    branch: str | None
    made_branch: bool
    base: str
    base_commit: str
    created_at: float
    tmux_session: str | None = None
    copied: Mapping[str, str] | None = None
    links: tuple[str, ...] = ()
    setup_unfinished: bool = False


class Session(NamedTuple):
    """One terminal's or agent's run, in one worktree. `admin` and `token` say which worktree; `own` is false for one
    that was entered by `--path` or made by hand. `leader` is `<pid>:<start time>` or None for an explicit id."""

    id: str
    admin: str
    token: str
    name: str
    path: str
    branch: str | None
    main_root: str
    original_cwd: str
    own: bool
    named: bool
    leader: str | None
    tmux_session: str | None = None
    subshell: str | None = None
    entered_at: float = 0.0


class Identity(NamedTuple):
    """Who is calling. `leader` is `<pid>:<start time>` when the id is that of a POSIX session."""

    id: str
    leader: str | None


class Caller(NamedTuple):
    """Who calls from where, and how to answer. `cwd` is the working folder (or `-C`), `folder` where the calling shell
    stands in its own words; `cd_file` is where the shell integration reads the folder to go to; `git_dir` the GIT_DIR
    that was set and is ignored."""

    cwd: str
    folder: str
    env: Mapping[str, str]
    identity: Identity | None
    json: bool = False
    quiet: bool = False
    cd_file: str | None = None
    git_dir: str | None = None

    @property
    def moved_by_wrapper(self) -> bool:
        """Whether the shell integration moves the calling shell."""
        return self.cd_file is not None


class TmuxSession(NamedTuple):
    """A tmux session of the user's server; `root` is our mark on it (`@git_wt_root`), None for the user's own."""

    id: str
    name: str
    root: str | None
    token: str | None
    attached: int


class Workspace(NamedTuple):
    """A worktree with all that git-wt knows about it. `name` is what people type."""

    worktree: Worktree
    name: str
    marker: Marker | None
    tmux: TmuxSession | None = None
    sessions: tuple[Session, ...] = ()

    @property
    def kind(self) -> str:
        """`main`, `other` (made by hand or another tool), or the kind that the marker names."""
        if self.worktree.is_main:
            return "main"
        return self.marker.kind if self.marker else "other"


class Blocker(NamedTuple):
    """One reason why removal would lose work: a stable code, how many, up to ten examples, and a sentence part."""

    code: str
    count: int  # type: ignore[assignment]  # the field's word, as in the JSON
    examples: tuple[str, ...] = ()
    what: str = ""

    def as_json(self) -> Json:
        """The blocker as `--json` shows it."""
        return {"code": self.code, "count": self.count, "examples": list(self.examples), "message": self.what}


class Verdict(NamedTuple):
    """What stands in the way of removal, and what would go but can be brought back."""

    blockers: tuple[Blocker, ...]
    warnings: tuple[Blocker, ...] = ()


class Changes(NamedTuple):
    """Numbers of changed paths in a worktree, by how they changed."""

    staged: int = 0
    modified: int = 0
    untracked: int = 0
    conflicted: int = 0


class Result(NamedTuple):
    """What a command hands to `render`. `kind` picks the text form; `notes` are sentences for stderr; `goto` is the
    folder where the calling shell should go; `code` is the exit code."""

    kind: str
    data: Json
    notes: tuple[str, ...] = ()
    goto: str | None = None
    code: int = 0
