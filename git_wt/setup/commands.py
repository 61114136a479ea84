"""The user's commands: `[[setup]]` after creation, `[[teardown]]` before removal, or another tool's file instead.

What a file below the main root names runs only if exactly that was allowed (`trust`), from the bytes that were hashed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from git_wt import external, trust
from git_wt.config.commands import SETUP, TEARDOWN, Plan, plan_for
from git_wt.config.foreign import Command
from git_wt.files import read_text
from git_wt.model import Json, Repository
from git_wt.naming import plural, quoted, shown
from git_wt.setup.ports import port_of
from git_wt.setup.scripts import changed_script, named_scripts
from git_wt.setup.step import DONE, FAILED, NOT_TRUSTED, SKIPPED, Report, Site

HINT = "git wt trust"


def run(site: Site) -> Report:
    """Run the set-up commands in order in the worktree. The first that fails ends it (unless the tool whose file it is
    goes on). `count` is how many were done. A process group each, and up to two git processes."""
    return run_event(site, SETUP)


def teardown(site: Site) -> Report | None:
    """Run the commands that come before removal; None when there are none."""
    report = run_event(site, TEARDOWN)
    return None if report.status == SKIPPED else report


def run_event(site: Site, event: str) -> Report:
    """As `run` for one event. Interrupts pass through after the running command's process group has ended."""
    plan = plan_for(site.config, site.source, event)
    if plan.problems:
        return Report(event, FAILED, 0, f"cannot use the file of {plan.tool}: {plan.problems[0]}")
    if not plan.commands:
        return Report(event, SKIPPED, 0, "no commands")
    scripts: Mapping[str, str] = {}
    if plan.needs_trust:
        grant = grant_for(plan, site.repository, site.path, site.source)
        if not trust.allowed(grant, os.environ):
            return _not_trusted(plan, site)
        scripts = grant.scripts
    return _run_all(plan, site, scripts)


def grant_for(plan: Plan, repository: Repository, worktree: str, source: str) -> trust.Grant:
    """What has to be allowed for these commands to run in that worktree. Up to two git processes."""
    scripts = named_scripts(plan.commands, plan.aliases, worktree, source)
    commands = tuple(map(_as_json, plan.commands))
    return trust.Grant(repository.common_dir, plan.event, plan.file, commands, plan.env, scripts)


def _run_all(plan: Plan, site: Site, scripts: Mapping[str, str]) -> Report:
    env = _environment(plan, site)
    done, failed = 0, list[str]()
    for number, command in enumerate(plan.commands, 1):
        changed = changed_script(scripts, site.path, site.source)
        if changed is not None:
            return Report(plan.event, NOT_TRUSTED, done, f"{quoted(changed)} has changed meanwhile: {HINT}")
        if not site.quiet:
            sys.stderr.write(f"git-wt: {plan.event} {number}/{len(plan.commands)}: {_title(command)}\n")
            sys.stderr.flush()
        why = _run_one(command, site, env)
        if why is None:
            done += 1
            continue
        failed.append(f"{quoted(_title(command))} {why}")
        if not plan.go_on:
            break
    if not failed:
        return Report(plan.event, DONE, done, f"{plural(done, 'command')} from {_origin(plan, site)}")
    rest = len(plan.commands) - done - len(failed)
    detail = "; ".join(failed) + (f"; {plural(rest, 'command')} not run" if rest else "")
    return Report(plan.event, FAILED, done, detail)


def _run_one(command: Command, site: Site, env: Mapping[str, str]) -> str | None:
    """Why a command failed, or None. One process group."""
    argv = ["sh", "-c", command.run] if isinstance(command.run, str) else list(command.run)
    folder = os.path.normpath(os.path.join(site.path, command.folder))
    if not os.path.isdir(folder):
        return f"has no folder {quoted(command.folder)} to run in"
    real = os.path.realpath(folder)
    if real != os.path.realpath(site.path) and not real.startswith(os.path.realpath(site.path) + "/"):
        return f"would run outside of the worktree, in {quoted(command.folder)}"
    if not site.quiet:
        return external.run_limited(argv, cwd=folder, env=env, seconds=command.timeout)
    import tempfile

    with tempfile.TemporaryFile() as kept:  # with -q only what a failed command has said is shown
        why = external.run_limited(argv, cwd=folder, env=env, seconds=command.timeout, output=kept.fileno())
        if why is not None:
            kept.seek(0)
            sys.stderr.buffer.write(kept.read())
            sys.stderr.flush()
    return why


def _environment(plan: Plan, site: Site) -> dict[str, str]:
    """What the commands see: ours without GIT_..., what the file sets, GIT_WT_..., and the tool's names for those."""
    ours = {"GIT_WT_NAME": site.name, "GIT_WT_PATH": site.path, "GIT_WT_MAIN": site.source}
    ours["GIT_WT_BRANCH"] = site.branch or ""
    port = port_of(site.admin, os.environ)
    if port is not None:
        ours["GIT_WT_PORT"] = str(port)
    known = {**ours, "GIT_WT_DEFAULT_BRANCH": _default_branch(site)}
    aliases = {alias: known[name] for alias, name in plan.aliases.items() if name in known}
    return {**external.without_git(os.environ), **plan.env, **aliases, **ours}


def _default_branch(site: Site) -> str:
    """The default branch of origin as git has noted it, else the main checkout's branch."""
    head = read_text(site.repository.common_dir + "/refs/remotes/origin/HEAD") or ""
    main = next((tree.branch for tree in site.repository.worktrees if tree.is_main), None)
    return head.removeprefix("ref: refs/remotes/origin/") or main or "main"


def _not_trusted(plan: Plan, site: Site) -> Report:
    count = plural(len(plan.commands), "command")
    where = f"{count} from {_origin(plan, site)}"
    return Report(plan.event, NOT_TRUSTED, 0, f"{where} not run: not allowed yet, or changed since; in it: {HINT}")


def _origin(plan: Plan, site: Site) -> str:
    file = plan.file or "the environment"
    return quoted(os.path.relpath(file, site.source) if file.startswith(site.source + "/") else file)


def _title(command: Command) -> str:
    text = command.run if isinstance(command.run, str) else " ".join(command.run)
    line, *more = text.strip().splitlines()
    return command.name or shown(line[:60] + ("..." if more or len(line) > 60 else ""))


def _as_json(command: Command) -> Json:
    data: Json = {"run": command.run if isinstance(command.run, str) else list(command.run)}
    return {**data, "folder": command.folder} if command.folder else data
