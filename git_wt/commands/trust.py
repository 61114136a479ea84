"""`git wt trust`: allow this repository's commands, after they have been shown."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from git_wt import terminal
from git_wt.errors import WtError
from git_wt.flows import permission
from git_wt.model import Caller, Result
from git_wt.render import permissions


def arguments(parser: ArgumentParser) -> None:
    """What the command takes."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--yes", action="store_true", help="allow without asking, and name what was allowed")
    which.add_argument("--list", action="store_true", help="show what you have allowed, in all repositories")
    which.add_argument("--revoke", action="store_true", help="forbid what you have allowed in this repository")


def run(args: Namespace, caller: Caller) -> Result:
    """Show, ask, allow. Without a terminal nothing is allowed but by `--yes`."""
    if args.list:
        return permission.listing(caller)
    if args.revoke:
        return permission.revoke(caller)
    want = permission.wanted(caller)
    if args.yes or not want.grants:
        return permission.allow(want, caller)
    shown = permission.as_json(want)
    if caller.json or not terminal.interactive():
        if not caller.json:
            sys.stderr.write(permissions(shown))
            sys.stderr.flush()
        raise WtError(
            "not-trusted",
            "cannot allow these commands: there is nobody to ask",
            hint="git wt trust   (on a terminal; in a script of yours: git wt trust --yes)",
            extra={"commands": shown},
        )
    sys.stderr.write(permissions(shown))
    sys.stderr.flush()
    if terminal.choose("allow this to run in worktrees of this repository?", ("no", "yes"), "no") != "yes":
        return permission.decline(want)
    return permission.allow(want, caller)
