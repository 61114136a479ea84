"""argv -> one command module -> Result -> text or JSON -> exit code. The only place that catches WtError.

Only the module of the verb that was asked for is imported, and only its arguments are defined.
"""

from __future__ import annotations

import contextlib
import os
import signal
from argparse import ArgumentParser, HelpFormatter, Namespace
from types import FrameType, ModuleType

from git_wt import __version__, errors, render, sessions, terminal
from git_wt.commands import VERBS
from git_wt.errors import Interrupted, WtError
from git_wt.git.call import scrub
from git_wt.model import Caller, Result
from git_wt.naming import quoted
from git_wt.value import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
REPORT = "please report it with the lines above"


class _Parser(ArgumentParser):
    """argparse that raises `usage` instead of printing and leaving, so that `--json` holds for wrong usage too."""

    def error(self, message: str) -> NoReturn:
        raise WtError("usage", f"cannot understand the command line: {message}", hint=f"{self.prog} -h")


def run(argv: list[str]) -> int:
    """Run one command line; returns the exit code. Everything for stdout and stderr goes through here."""
    prefix, cd_file = os.environ.get("GIT_PREFIX"), os.environ.pop("GIT_WT_CD_FILE", None) or None
    os.environ.pop("GIT_WT_SHELL", None)
    git_dir = scrub()
    env = dict(os.environ)
    _handle_signals()
    argv, command = _cut(argv)
    as_json, tool = "--json" in argv, ""
    try:
        before, verb, rest = _split(argv)
        tool = verb or ""
        if verb == "help":
            verb, before = rest.pop(0) if rest else None, before._replace(help=True)
        if before.version:
            return _print(f"git-wt {__version__}\n")
        if verb is None:
            return _print(_overview())
        args = parser_for(verb).parse_args([*before.common, *(["-h"] if before.help else []), *rest])
        if "command" in args:
            args.command = command[1:]
        elif command:
            args = parser_for(verb).parse_args([*before.common, *rest, *command])
        as_json = args.json
        caller = _caller(args, env, prefix, cd_file)._replace(git_dir=git_dir)
        return _show(_module(verb).run(args, caller), verb, caller)
    except WtError as error:
        return _fail(error, as_json, tool, env)
    except BrokenPipeError:
        _discard_output()
        return errors.FAILED
    except OSError as error:  # no space, no permission, a broken disk: nothing that a traceback explains
        where = f" {quoted(os.fsdecode(error.filename))}" if isinstance(error.filename, str | bytes) else ""
        what = f"cannot go on with '{tool}':{where} {error.strerror or error}"
        return _fail(WtError("git", what, hint="git wt list   (mends what was begun)"), as_json, tool, env)
    except Interrupted as interrupted:
        return _fail(interrupted.error, as_json, tool, env)
    except Exception as error:
        return _bug(error, as_json, tool)


def parser_for(verb: str) -> ArgumentParser:
    """The parser of one command: what it takes, and the options that every command takes."""
    module = _module(verb)
    parser = _Parser(
        prog=f"git wt {verb}",
        description=VERBS[verb].capitalize() + ".",
        epilog="See also: git wt -h",
        formatter_class=lambda prog: HelpFormatter(prog, width=min(terminal.width() or 100, 100)),
        allow_abbrev=False,
    )
    module.arguments(parser)
    _common(parser)
    return parser


def _common(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="answer with one JSON document")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing on stderr but errors")
    parser.add_argument("-C", dest="folder", metavar="DIR", help="work from DIR")
    parser.add_argument("--session", metavar="ID", help="be the session ID")


def _cut(argv: list[str]) -> tuple[list[str], list[str]]:
    """The command line up to a `--`, and from there on: what follows is another program's and kept as it is."""
    at = argv.index("--") if "--" in argv else len(argv)
    return argv[:at], argv[at:]


class _Before(NamedTuple):
    """Our own options in front of the verb."""

    help: bool
    version: bool
    common: list[str]


def _split(argv: list[str]) -> tuple[_Before, str | None, list[str]]:
    """Our own options before the verb, the verb, and what follows it."""
    common: list[str] = []
    asked = {"-h": False, "--help": False, "--version": False}
    rest = list(argv)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word in asked:
            asked[word] = True
        elif word in ("-C", "--session") and rest:
            common += [word, rest.pop(0)]
        elif word in ("--json", "-q", "--quiet") or word.startswith("--session="):
            common.append(word)
        else:
            raise WtError("usage", f"cannot understand the option {quoted(word)} before a command", hint="git wt -h")
    return _Before(asked["-h"] or asked["--help"], asked["--version"], common), rest.pop(0) if rest else None, rest


def _module(verb: str) -> ModuleType:
    if verb not in VERBS:
        import difflib

        near = difflib.get_close_matches(verb, VERBS, 1)
        hint = f"did you mean 'git wt {near[0]}'?" if near else "git wt -h"
        raise WtError("usage", f"cannot understand {quoted(verb)}: there is no such command", hint=hint)
    import importlib

    return importlib.import_module(f"git_wt.commands.{verb}")


def _caller(args: Namespace, env: dict[str, str], prefix: str | None, cd_file: str | None) -> Caller:
    if prefix:  # an alias `!git wt` runs at the top level
        with contextlib.suppress(OSError):
            os.chdir(prefix)
    folder = _logical_folder(env, cd_file)
    if args.folder:
        try:
            os.chdir(args.folder)
        except OSError as error:
            raise WtError("usage", f"cannot go to {quoted(args.folder)}: {error.strerror}") from error
    try:
        cwd = os.getcwd()
    except FileNotFoundError:  # the folder was removed under our feet
        cwd = "/"
        os.chdir(cwd)
    return Caller(
        cwd=cwd,
        folder=folder or cwd,
        env=env,
        identity=sessions.identify(args.session, env),
        json=args.json,
        quiet=args.quiet,
        cd_file=cd_file,
    )


def _logical_folder(env: dict[str, str], cd_file: str | None) -> str | None:
    """Where the calling shell stands, in its own words (`$PWD`, symlinks kept), if that can be told: git may have been
    moved by `-C`, but the shell of the integration is where it says."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        cwd = None
    logical = env.get("PWD", "")
    if os.path.isabs(logical) and (cd_file or (cwd and os.path.realpath(logical) == cwd)):
        return logical
    return cwd


def _show(result: Result, verb: str, caller: Caller) -> int:
    if caller.cd_file and result.goto:
        _tell_wrapper(caller.cd_file, result.goto)
    moved, person = caller.moved_by_wrapper, terminal.output_is_terminal()
    told = moved or (verb in ("enter", "switch", "cd") and not person)
    if not caller.quiet:
        _write(2, render.sentences(result, moved=told and not caller.json))
    if caller.json:
        _print(render.as_json(result, verb))
    else:
        colour = terminal.colour(1, caller.env)
        _print(render.as_text(result, moved=moved, person=person, width=terminal.width(), colour=colour))
    return result.code


def _tell_wrapper(cd_file: str, folder: str) -> None:
    """Write where the shell goes: the raw path, no newline."""
    fd = os.open(cd_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.write(fd, os.fsencode(folder))
    os.close(fd)


def _fail(error: WtError, as_json: bool, tool: str, env: dict[str, str]) -> int:
    if as_json:
        _print(render.error_as_json(error, tool))
    else:
        _write(2, render.error_as_text(error, colour=terminal.colour(2, env)))
    return error.exit_code


def _bug(error: Exception, as_json: bool, tool: str) -> int:
    import traceback

    _write(2, "".join(traceback.format_exception(error)))
    bug = WtError("bug", f"cannot go on: a bug in git-wt {__version__} ({type(error).__name__})", hint=REPORT)
    return _fail(bug, as_json, tool, {})


def _overview() -> str:
    lines = ["usage: git wt COMMAND [options]", "", "A git worktree for every task, removed without losing work.", ""]
    lines += [f"  {verb:<10}{what}" for verb, what in VERBS.items()]
    lines += [
        "",
        "First: git wt enter NAME   ...work...   git wt exit",
        "In your shell's start-up file, so that the shell moves along:",
        '    eval "$(git wt init bash)"   (or zsh; in fish: git wt init fish | source)',
    ]
    lines += ["", "Every command takes --json, -q, -C DIR, --session ID and -h. git wt --version tells the version."]
    return "\n".join(lines) + "\n"


def _print(text: str) -> int:
    _write(1, text)
    return errors.DONE


def _write(fd: int, text: str) -> None:
    """Write text whose paths may hold undecodable bytes, whatever the locale."""
    data = text.encode("utf-8", "surrogateescape")
    while data:
        data = data[os.write(fd, data) :]


def _discard_output() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)


def _handle_signals() -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        del frame
        for other in _ENDING:  # git passes on what the terminal has sent already; what is taken back is so as a whole
            signal.signal(other, lambda *_: None)
        raise Interrupted(number)

    for number in _ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, handler)
