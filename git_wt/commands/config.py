"""`git wt config`: the settings in force, and where each comes from."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from git_wt.flows.settings import settings
from git_wt.model import Caller, Result


def arguments(parser: ArgumentParser) -> None:
    """What the command takes: nothing."""
    del parser


def run(args: Namespace, caller: Caller) -> Result:
    """Every setting with its origin."""
    del args
    return settings(caller)
