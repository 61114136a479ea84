"""tmux: the survey of its sessions, making one for a worktree, moving clients, killing. Always by session id.

`tmux -u` always (else a TAB comes out as `_`), `#` doubled in whatever tmux expands, a session id as target, since
names are prefix-matched (measured with tmux 3.3a). Every value from git is data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from git_wt.errors import WtError
from git_wt.model import TmuxSession
from git_wt.naming import shown
from git_wt.proc.environment import without_exec_path
from git_wt.proc.run import Completed, detach, foreground, run
from git_wt.value import NamedTuple

_FIELDS = ("#{session_id}", "#{session_name}", "#{@git_wt_root}", "#{@git_wt_token}", "#{session_attached}")
_CLIENT = ("#{client_name}", "#{client_session}", "#{client_last_session}", "#{session_id}")


class Client(NamedTuple):
    """A terminal that shows a tmux session; `last` is the name of the session that it showed before."""

    name: str
    session_id: str
    last: str


class Survey(NamedTuple):
    """All tmux sessions and clients of the user's server, from one process."""

    sessions: tuple[TmuxSession, ...] = ()
    clients: tuple[Client, ...] = ()
    panes: tuple[tuple[str, int], ...] = ()  # session id, process that the pane started with

    def processes(self, session: TmuxSession | None) -> tuple[int, ...]:
        """The process that each pane of a tmux session started with."""
        return tuple(pid for owner, pid in self.panes if session and owner == session.id)

    def watching(self, session: TmuxSession) -> tuple[Client, ...]:
        """The clients that show a tmux session."""
        return tuple(client for client in self.clients if client.session_id == session.id)

    def came_from(self, clients: Sequence[Client]) -> dict[str, str]:
        """Client name -> id of the session that it showed before, where that is still there."""
        ids = {session.name: session.id for session in self.sessions}
        return {client.name: ids[client.last] for client in clients if client.last in ids}

    def of(self, path: str, token: str) -> TmuxSession | None:
        """The tmux session that was made for the worktree with this token, else for this path."""
        for session in self.sessions:
            if session.root and (session.token or "") == token and (token or session.root == path):
                return session
        return None


def survey() -> Survey:
    """Every tmux session. No tmux, or no server: nothing. Raises `tmux` when it could not be asked: "none" and
    "unknown" differ when something is to be removed. One process."""
    if not _server_may_run():
        return Survey()
    listing = "\t".join(("S", *_FIELDS))
    clients = "\t".join(("C", *_CLIENT))
    panes = "P\t#{session_id}\t#{pane_pid}"
    questions = (
        "list-sessions",
        "-F",
        listing,
        ";",
        "list-clients",
        "-F",
        clients,
        ";",
        "list-panes",
        "-a",
        "-F",
        panes,
    )
    try:
        answer = _tmux(*questions)
    except WtError:  # not on PATH
        return Survey()
    if answer.code and not _no_server(answer):
        raise WtError("tmux", f"cannot read the tmux sessions: {_reason(answer)}")
    rows = [line.split("\t") for line in os.fsdecode(answer.out).split("\n")]
    sessions = [
        TmuxSession(row[1], row[2], _unescape(row[3]), row[4] or None, int(row[5] or 0))
        for row in rows
        if row[0] == "S" and len(row) == 6
    ]
    found = [Client(row[1], row[4], row[3]) for row in rows if row[0] == "C" and len(row) == 5]
    processes = [(row[1], int(row[2])) for row in rows if row[0] == "P" and len(row) == 3]
    return Survey(tuple(sessions), tuple(found), tuple(processes))


def survey_or_note() -> tuple[Survey, tuple[str, ...]]:
    """As `survey`, for what can go on without: a sentence instead of an error."""
    try:
        return survey(), ()
    except WtError as error:
        return Survey(), (f"warning: {error.message}",)


def make_session(
    name: str, folder: str, *, marks: Mapping[str, str], env: Mapping[str, str], command: Sequence[str] = ()
) -> TmuxSession:
    """Make a detached tmux session in `folder`, marked as ours, with `env` in it. Raises `tmux`; `exists` when the
    name is taken. One process; the server, when this starts it, stands in the home folder."""
    settings = [word for key, value in env.items() for word in ("-e", _word(f"{key}={value}"))]
    argv = [
        "new-session",
        "-d",
        "-P",
        "-F",
        "#{session_id}",
        "-s",
        name,
        "-c",
        _word(escape(folder)),
        *settings,
    ]
    argv += ["--", *_program(command)] if command else []
    for key, value in marks.items():
        argv += [";", "set-option", "-t", f"={name}:", f"@git_wt_{key}", _word(_escape_newlines(value))]
    answer = _tmux(*argv)
    if answer.code:
        code = "exists" if b"duplicate session" in answer.err else "tmux"
        raise WtError(code, f"cannot make the tmux session '{name}': {_reason(answer)}")
    session_id = os.fsdecode(answer.out).split("\n")[0]
    return TmuxSession(session_id, name, folder, marks.get("token"), 0)


def kill(session: TmuxSession, clients: Sequence[Client], *, elsewhere: Mapping[str, str]) -> bool:
    """Kill one tmux session by its id, after moving `clients` (name -> session id in `elsewhere`). Returns whether
    it is gone. One process, a second one if a client went away meanwhile."""
    argv: list[str] = []
    for client in clients:
        if client.name in elsewhere:
            argv += ["switch-client", "-c", client.name, "-t", elsewhere[client.name], ";"]
    answer = _tmux(*argv, "kill-session", "-t", session.id)
    if answer.code and argv:
        answer = _tmux("kill-session", "-t", session.id)
    return answer.code == 0 or _no_server(answer) or b"can't find session" in answer.err


def kill_later(session: TmuxSession, clients: Sequence[Client], *, elsewhere: Mapping[str, str]) -> None:
    """As `kill`, half a second from now and by a process that survives it: for a caller inside that tmux session."""
    moves = [
        word
        for client in clients
        if client.name in elsewhere
        for word in ("switch-client", "-c", client.name, "-t", elsewhere[client.name], ";")
    ]
    script = 'sleep 0.5; n=$1; id=$2; shift 2; [ "$n" = 0 ] || tmux -u "$@"; exec tmux -u kill-session -t "$id"'
    detach(["sh", "-c", script, "git-wt", str(len(moves)), session.id, *moves[:-1]])


def leave(clients: Sequence[Client], *, elsewhere: Mapping[str, str]) -> None:
    """Move each client to its session in `elsewhere`, or detach it. One process."""
    argv: list[str] = []
    for client in clients:
        target = elsewhere.get(client.name)
        argv += ["switch-client", "-c", client.name, "-t", target] if target else ["detach-client", "-t", client.name]
        argv.append(";")
    if argv:
        _tmux(*argv[:-1])


def show(session: TmuxSession) -> bool:
    """Show a tmux session on this terminal: inside tmux by switching the client, which returns at once, else by
    attaching until it ends or is detached. Returns whether it is still there. One or two processes."""
    if inside():
        answer = _tmux("switch-client", "-t", session.id)
        if answer.code:
            raise WtError("tmux", f"cannot switch to the tmux session '{session.name}': {_reason(answer)}")
        return True
    argv = ["tmux", "-u", "attach-session", "-t", session.id]
    foreground(argv, cwd="/", env=clean_environment())
    return _tmux("has-session", "-t", session.id).code == 0


def run_in(session: TmuxSession, folder: str, command: Sequence[str], env: Mapping[str, str]) -> None:
    """Run a command in a new window of a tmux session that is there already. Raises `tmux`. One process."""
    settings = [word for key, value in env.items() for word in ("-e", _word(f"{key}={value}"))]
    argv = ["new-window", "-t", f"{session.id}:", "-c", _word(escape(folder)), *settings, "--", *_program(command)]
    answer = _tmux(*argv)
    if answer.code:
        raise WtError("tmux", f"cannot run the command in '{session.name}': {_reason(answer)}")


def hand_over(session: TmuxSession, env: Mapping[str, str]) -> None:
    """Set variables for the panes that a tmux session will open from now on. One process."""
    argv = [
        word for key, value in env.items() for word in ("set-environment", "-t", session.id, key, _word(value), ";")
    ]
    _tmux(*argv[:-1])


def inside() -> bool:
    """Whether this process runs in a pane of a tmux server that is there. No process."""
    return bool(_socket())


def _socket() -> str:
    path = os.environ.get("TMUX", "").split(",")[0]
    return path if path and os.path.exists(path) else ""


def current_session_id() -> str | None:
    """The id of the tmux session that this process runs in, by `$TMUX`. No process."""
    words = os.environ.get("TMUX", "").rsplit(",", 2) if inside() else []
    return f"${words[2]}" if len(words) == 3 and words[2].isdigit() else None


def clean_environment() -> dict[str, str]:
    """Our environment without git's variables, git-wt's, and git's own folder on PATH: what a tmux server and its
    panes may inherit."""
    env = {name: value for name, value in without_exec_path(os.environ).items() if not name.startswith("GIT_")}
    if not inside():
        env.pop("TMUX", None)  # stale: tmux would start a second server at that path
    return env


def escape(text: str) -> str:
    """`text` where tmux expands formats: `#` doubled, so that `#(…)` is data."""
    return text.replace("#", "##")


def _word(text: str) -> str:
    """`text` as one argument: tmux takes a `;` at its end for the end of the command."""
    return text[:-1] + "\\;" if text.endswith(";") else text


def _program(command: Sequence[str]) -> list[str]:
    """A command as tmux runs it without a shell: it gives a single word to one."""
    return ["sh", "-c", 'exec "$0"', _word(command[0])] if len(command) == 1 else [_word(word) for word in command]


def _escape_newlines(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def _unescape(text: str) -> str | None:
    marks = {"n": "\n", "t": "\t", "\\": "\\"}
    parts = text.split("\\\\")
    return "\\".join(part.replace("\\n", marks["n"]).replace("\\t", marks["t"]) for part in parts) or None


def _server_may_run() -> bool:
    """Whether a tmux server's socket is there: saves a process for everybody who does not use tmux."""
    parent = os.environ.get("TMUX_TMPDIR") or "/tmp"
    default = f"{parent if os.path.isdir(parent) else '/tmp'}/tmux-{os.getuid()}/default"
    return inside() or os.path.exists(default)


def _tmux(*arguments: str) -> Completed:
    # The server keeps the folder of the command that starts it; a worktree would then never be free again.
    home = os.path.expanduser("~")
    folder = (home if os.path.isdir(home) else "/") if "new-session" in arguments else None
    return run(["tmux", "-u", *arguments], env=clean_environment(), cwd=folder)


def _no_server(answer: Completed) -> bool:
    return b"no server running" in answer.err or b"error connecting to" in answer.err


def _reason(answer: Completed) -> str:
    return shown(os.fsdecode(answer.err).strip().split("\n")[0]) or f"tmux ended with code {answer.code}"
