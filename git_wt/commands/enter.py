"""`git wt enter`: make or resume a worktree and stay in it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt import terminal
from git_wt.commands import asking
from git_wt.errors import WtError
from git_wt.flows import enter, visit
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="its name; '#123', 'pr:123' or a pull request's address"
    )
    parser.add_argument("--path", metavar="P", help="enter a worktree that exists already; it can only be kept")
    parser.add_argument("--base", metavar="REF", help="start from REF instead of the default branch of origin")
    parser.add_argument("--branch", metavar="B", help="use branch B, existing or new")
    parser.add_argument(
        "--reuse-branch", action="store_true", help="use the branch that is left of an earlier worktree"
    )
    parser.add_argument(
        "--reset-branch", action="store_true", help="move that branch to the base; its commits are kept"
    )
    parser.add_argument(
        "--tmux",
        nargs="?",
        const="attach",
        metavar="=detached",
        help="with a tmux session, attached at once unless --tmux=detached",
    )
    parser.add_argument("--no-tmux", dest="tmux", action="store_const", const="no", help="without a tmux session")
    parser.set_defaults(command=[])
    parser.usage = "%(prog)s [NAME] [options] [-- CMD...]"
    parser.epilog = "With -- CMD, CMD runs in the worktree; then you are asked what becomes of it."


def run(args: Namespace, caller: Caller) -> Result:
    """Enter, then stay: in tmux, with a command, or in a subshell where no integration moves the shell."""
    if args.tmux not in (None, "attach", "detached", "no"):  # `--tmux NAME`: the word behind it is the name
        if args.name is not None:
            raise WtError("usage", f"cannot understand --tmux={args.tmux}", hint="--tmux or --tmux=detached")
        args.name, args.tmux = args.tmux, "attach"
    if args.path is not None and (args.name or args.base or args.branch):
        raise WtError("usage", "cannot enter: --path goes with neither NAME, --base nor --branch")
    if args.reuse_branch and args.reset_branch:
        raise WtError("usage", "cannot enter: --reuse-branch and --reset-branch exclude each other")
    request = enter.Request(
        args.name,
        args.path,
        args.base,
        args.branch,
        args.reuse_branch,
        args.reset_branch,
        None if args.tmux is None else args.tmux != "no",
        args.command,
    )
    return stay(enter.enter(request, caller), args.command, args.tmux != "detached", caller)


def stay(entered: enter.Entered, command: list[str], attach: bool, caller: Caller) -> Result:
    """What follows entering, as the caller's terminal and integration allow."""
    session, result = entered.session, entered.result
    on_person = terminal.interactive() and not caller.json
    if entered.tmux:
        if not (attach and on_person and terminal.output_is_terminal()):
            return result._replace(goto=None)
        asking.say(result)
        return visit.on_tmux(session, entered.tmux, caller, asking.keep_or_remove)
    if command:
        asking.say(result)
        code, after = visit.with_command(session, command, caller, asking.keep_or_remove if on_person else None)
        notes = (*after.notes, str(after.data["message"])) if after and not caller.json else ()
        return result._replace(kind="quiet", notes=tuple(filter(None, notes)), goto=None, code=code)
    if on_person and terminal.output_is_terminal() and not caller.moved_by_wrapper:
        asking.say(result)
        after_shell = visit.in_subshell(session, caller, asking.keep_or_remove)
        if isinstance(after_shell, int):
            return Result("quiet", {}, (), None, after_shell)
        return after_shell._replace(goto=None)
    return result
