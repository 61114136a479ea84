"""Set-up that writes git's configuration of one worktree: sparse checkout and hooks, proved by real checkouts and real
commits; what is shared stays as it was."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from git_wt import config
from git_wt.errors import WtError
from git_wt.git.repository import default_branch_folder, open_repository
from git_wt.git.worktree_config import NOTE
from git_wt.marker import load_marker
from git_wt.setup import hooks_path, sparse
from git_wt.setup.step import DONE, SKIPPED, WARNING, Report, Site
from tests.repos import (
    admin_dir,
    branches,
    commit,
    common_dir,
    git,
    leftovers,
    make_repo,
    read,
    require_sound,
    status,
    worktrees,
    write,
)
from tests.wt import Ran, executable, finish, start_wt, wt

EXTENSION = b"[extensions]\n\tworktreeConfig = true\n"
SPARSE = {"GIT_WT_CONFIG_SPARSE_PATHS": "services/api,libs"}
OFF = {"GIT_WT_CONFIG_GIT_HOOKS": "off"}
HOOK = '#!/bin/sh\necho "{who} $(pwd -P)" >>"$HOOK_LOG"\n'
# As husky 8.0.3 and 9.1.7 generate them, but for debug output.
HUSKY_8 = """\
#!/usr/bin/env sh
if [ -z "$husky_skip_init" ]; then
  readonly hook_name="$(basename -- "$0")"
  if [ "$HUSKY" = "0" ]; then exit 0; fi
  readonly husky_skip_init=1
  export husky_skip_init
  sh -e "$0" "$@"
  exitCode="$?"
  if [ $exitCode != 0 ]; then echo "husky - $hook_name hook exited with code $exitCode (error)"; fi
  exit $exitCode
fi
"""
HUSKY_9 = """\
#!/usr/bin/env sh
n=$(basename "$0")
s=$(dirname "$(dirname "$0")")/$n
[ ! -f "$s" ] && exit 0
[ "${HUSKY-}" = "0" ] && exit 0
export PATH="node_modules/.bin:$PATH"
sh -e "$s" "$@"
c=$?
[ $c != 0 ] && echo "husky - $n script failed (code $c)"
exit $c
"""


class World(NamedTuple):
    """A repository with hooks: where to commit in the main checkout, where git-wt is called, what the branch of a pull
    request is, and whether a worktree needs a setting of its own."""

    main: str
    cwd: str
    base: str
    needs: bool


def hook(folder: str, who: str, *, before: str = "") -> None:
    """A pre-commit hook that notes who it is and where it runs."""
    os.chmod(write(folder, "pre-commit", HOOK.format(who=who).replace("\n", f"\n{before}\n", 1)), 0o755)


def pull_request(repo: str, folder: str) -> str:
    """A branch that carries hooks of its own in `folder`; returns its name."""
    git(repo, "switch", "-q", "-c", "pr")
    hook(f"{repo}/{folder}", "branch")
    git(repo, "add", "-f", f"{folder}/pre-commit")
    git(repo, "commit", "-q", "--no-verify", "-m", "hooks of a stranger")
    git(repo, "switch", "-q", "main")
    return "pr"


def no_hooks(folder: str) -> World:
    repo = make_repo(folder)
    return World(repo, repo, "main", False)


def common_hooks(folder: str) -> World:
    repo = make_repo(folder)
    hook(f"{repo}/.git/hooks", "main")
    return World(repo, repo, "main", False)


def absolute(folder: str) -> World:
    repo = make_repo(folder)
    hook(f"{folder}-hooks", "main")
    git(repo, "config", "core.hooksPath", f"{folder}-hooks")
    return World(repo, repo, "main", False)


def relative_untracked(folder: str) -> World:
    repo = make_repo(folder)
    hook(f"{repo}/hooks", "main")
    write(repo, ".git/info/exclude", "hooks\n")
    git(repo, "config", "core.hooksPath", "hooks")
    return World(repo, repo, "main", True)


def relative_and_missing(folder: str) -> World:
    repo = make_repo(folder)
    base = pull_request(repo, ".githooks")
    git(repo, "config", "core.hooksPath", ".githooks")
    return World(repo, repo, base, True)


def husky_8(folder: str) -> World:
    repo = make_repo(folder)
    write(repo, ".husky/_/husky.sh", HUSKY_8)
    write(repo, ".husky/_/.gitignore", "*\n")
    hook(f"{repo}/.husky", "main", before='. "$(dirname -- "$0")/_/husky.sh"')
    git(repo, "add", ".husky")
    git(repo, "commit", "-q", "-m", "husky 8")
    base = pull_request(repo, ".husky")
    git(repo, "config", "core.hooksPath", ".husky")
    return World(repo, repo, base, True)


def husky_9(folder: str) -> World:
    repo = make_repo(folder)
    write(repo, ".husky/_/h", HUSKY_9)
    write(repo, ".husky/_/.gitignore", "*")
    os.chmod(write(repo, ".husky/_/pre-commit", '#!/usr/bin/env sh\n. "$(dirname "$0")/h"'), 0o755)
    write(repo, ".husky/pre-commit", HOOK.format(who="main"))
    git(repo, "add", ".husky")
    git(repo, "commit", "-q", "-m", "husky 9")
    base = pull_request(repo, ".husky")
    git(repo, "config", "core.hooksPath", ".husky/_")
    return World(repo, repo, base, True)


def global_absolute(folder: str) -> World:
    repo = make_repo(folder)
    hook(os.path.expanduser("~/all-hooks"), "main")
    git(repo, "config", "--global", "core.hooksPath", "~/all-hooks")
    return World(repo, repo, "main", False)


def global_relative(folder: str) -> World:
    repo = make_repo(folder)
    hook(f"{repo}/hooks", "main")
    git(repo, "add", "hooks")
    git(repo, "commit", "-q", "-m", "hooks")
    base = pull_request(repo, "hooks")
    git(repo, "config", "--global", "core.hooksPath", "hooks")
    return World(repo, repo, base, True)


def only_in_main(folder: str) -> World:
    """The user has turned the extension on and set the hooks for main alone; git copies that into new worktrees."""
    repo = make_repo(folder)
    base = pull_request(repo, "hooks")
    hook(f"{repo}/hooks", "main")
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "config", "--worktree", "core.hooksPath", "hooks")
    return World(repo, repo, base, True)


def conditional(folder: str) -> World:
    """The hooks path stands in a file that is included for main's branch only."""
    repo = make_repo(folder)
    hook(f"{folder}-hooks", "main")
    write(f"{folder}-more", "gitconfig", f"[core]\n\thooksPath = {folder}-hooks\n")
    git(repo, "config", "includeIf.onbranch:main.path", f"{folder}-more/gitconfig")
    return World(repo, repo, "main", True)


def bare(folder: str) -> World:
    git(".", "clone", "-q", "--bare", make_repo(f"{folder}-seed"), f"{folder}/repo.git")
    hook(f"{folder}/repo.git/hooks", "main")
    git(f"{folder}/repo.git", "worktree", "add", "-q", "../main", "main")
    return World(f"{folder}/main", f"{folder}/repo.git", "main", False)


def bare_with_husky(folder: str) -> World:
    """The worktree of the default branch stands for the main checkout."""
    world = bare(folder)
    hook(f"{folder}/repo.git/hooks", "wrong")
    hook(f"{world.main}/.husky", "main")
    git(world.main, "add", ".husky")
    git(world.main, "commit", "-q", "--no-verify", "-m", "husky")
    git(f"{folder}/repo.git", "config", "core.hooksPath", ".husky")
    return World(world.main, world.cwd, "main", True)


def submodule(folder: str, *, relative: bool = False) -> World:
    make_repo(f"{folder}-seed")
    over = make_repo(folder)
    git(over, "submodule", "add", "-q", f"{folder}-seed", "sub")
    git(over, "commit", "-q", "-m", "sub")
    sub = f"{over}/sub"
    base = "main"
    if relative:
        base = pull_request(sub, ".husky")
        hook(f"{sub}/.husky", "main")
        git(sub, "config", "core.hooksPath", ".husky")
    else:
        hook(f"{over}/.git/modules/sub/hooks", "main")
    return World(sub, sub, base, relative)


def submodule_with_husky(folder: str) -> World:
    return submodule(folder, relative=True)


WORLDS: list[Callable[[str], World]] = [
    no_hooks,
    common_hooks,
    absolute,
    relative_untracked,
    relative_and_missing,
    husky_8,
    husky_9,
    global_absolute,
    global_relative,
    only_in_main,
    conditional,
    bare,
    bare_with_husky,
    submodule,
    submodule_with_husky,
]


def site_at(path: str, env: dict[str, str] | None = None) -> Site:
    """What a step is given for the worktree at `path`."""
    repository = open_repository(path)
    tree = repository.here
    assert tree is not None
    source = default_branch_folder(repository)
    settings = config.load(source, {**os.environ, **(env or {})})
    name = os.path.basename(path)
    return Site(repository, tree.path, tree.admin, source, settings, load_marker(tree.admin), name, tree.branch, True)


def enter(cwd: str, name: str, *more: str, env: dict[str, str] | None = None) -> str:
    """Make a worktree in a session of its own; returns its path."""
    path: str = wt("enter", name, *more, "--json", cwd=cwd, session=f"s-{name}", env=env).ok().data["worktreePath"]
    return path


def remove(cwd: str, name: str) -> Ran:
    return wt("remove", name, "--discard-changes", "--force-occupied", "--json", cwd=cwd, session="remover").ok()


def hooks_for(path: str, env: dict[str, str] | None = None) -> Report:
    return hooks_path.run(site_at(path, env))


def shared(cwd: str) -> bytes:
    """The shared configuration, byte for byte."""
    return Path(common_dir(cwd), "config").read_bytes()


def noted_by_commit(path: str, log: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What hooks note when something is really committed in `path`, its own path as `.`."""
    monkeypatch.setenv("HOOK_LOG", str(log))
    log.unlink(missing_ok=True)
    git(path, "commit", "-q", "--allow-empty", "-m", "try the hooks")
    return log.read_text().replace(os.path.realpath(path), ".").splitlines() if log.exists() else []


@pytest.mark.parametrize("make", WORLDS)
def test_hooks_run_in_a_worktree_as_in_the_main_checkout(
    make: Callable[[str], World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(str(tmp_path / "repo"))
    expected = noted_by_commit(world.main, tmp_path / "log", monkeypatch)
    before = shared(world.cwd)
    path = enter(world.cwd, "feat", "--base", world.base)
    report = hooks_for(path)
    assert report.status == (DONE if world.needs else SKIPPED), report
    assert noted_by_commit(path, tmp_path / "log", monkeypatch) == expected
    assert noted_by_commit(world.main, tmp_path / "log", monkeypatch) == expected
    assert hooks_for(path) == report
    if not world.needs:
        assert shared(world.cwd) == before
    assert status(path) == []
    remove(world.cwd, "feat")
    assert shared(world.cwd) == before
    assert not os.path.exists(common_dir(world.cwd) + NOTE)
    assert noted_by_commit(world.main, tmp_path / "log", monkeypatch) == expected


def test_without_the_setting_husky_runs_the_strangers_hooks_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worlds above are worth something: plain git differs there."""
    for make, plain in ((husky_8, ["branch ."]), (husky_9, []), (submodule_with_husky, ["branch ."])):
        world = make(str(tmp_path / make.__name__))
        git(world.main, "worktree", "add", "-q", "-b", "plain", f"{tmp_path}/plain-{make.__name__}", world.base)
        assert noted_by_commit(f"{tmp_path}/plain-{make.__name__}", tmp_path / "log", monkeypatch) == plain


def test_hooks_that_are_off_run_in_the_worktree_only_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = common_hooks(str(tmp_path / "repo"))
    before = shared(world.cwd)
    path = enter(world.cwd, "feat", env=OFF)
    assert hooks_for(path, OFF).status == DONE
    assert noted_by_commit(path, tmp_path / "log", monkeypatch) == []
    assert noted_by_commit(world.main, tmp_path / "log", monkeypatch) == ["main ."]
    assert shared(world.cwd) == before + EXTENSION
    assert hooks_for(path).status == DONE  # on again
    assert noted_by_commit(path, tmp_path / "log", monkeypatch) == ["main ."]
    assert shared(world.cwd) == before


def test_hooks_that_the_user_set_for_the_worktree_are_left_alone(repo: str, tmp_path: Path) -> None:
    git(repo, "config", "core.hooksPath", "hooks")
    git(repo, "config", "extensions.worktreeConfig", "true")
    before = shared(repo)
    path = enter(repo, "feat")
    git(path, "config", "--worktree", "core.hooksPath", str(tmp_path))
    for env in (None, OFF):
        assert hooks_for(path, env).status == SKIPPED
    assert git(path, "config", "core.hooksPath") == str(tmp_path)
    remove(repo, "feat")
    assert shared(repo) == before  # the user's own extension stays


def test_hooks_of_a_bare_repository_without_a_main_checkout_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = make_repo(str(tmp_path / "seed"))
    base = pull_request(seed, ".husky")
    git(str(tmp_path), "clone", "-q", "--bare", seed, "repo.git")
    git(str(tmp_path / "repo.git"), "config", "core.hooksPath", ".husky")
    path = enter(str(tmp_path / "repo.git"), "feat", "--base", base)
    assert hooks_for(path).status == WARNING
    assert noted_by_commit(path, tmp_path / "log", monkeypatch) == []


def test_new_worktree_of_a_bare_repositorys_default_branch_is_its_own_main_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = make_repo(str(tmp_path / "seed"))
    hook(f"{seed}/.husky", "main")
    git(seed, "add", ".husky")
    git(seed, "commit", "-q", "-m", "husky")
    git(str(tmp_path), "clone", "-q", "--bare", seed, "repo.git")
    git(str(tmp_path / "repo.git"), "config", "core.hooksPath", ".husky")
    before = open_repository(str(tmp_path / "repo.git"))  # as `enter` has it: from before the creation
    path = str(tmp_path / "trunk")
    git(str(tmp_path / "repo.git"), "worktree", "add", "-q", path, "main")
    assert hooks_path.run(site_at(path)._replace(repository=before)).status == SKIPPED
    assert noted_by_commit(path, tmp_path / "log", monkeypatch) == ["main ."]


def test_hooks_step_with_nothing_to_do_asks_git_once(
    repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = enter(repo, "feat")
    site = site_at(path)
    traces = tmp_path / "traces"
    traces.mkdir()
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(traces))
    assert hooks_path.run(site).status == SKIPPED
    assert sparse.run(site).status == SKIPPED
    assert len(list(traces.iterdir())) == 1
    assert not os.path.exists(common_dir(repo) + NOTE)


def tree_of(folder: str) -> str:
    """A repository with folders to be sparse about; a filter notes every file that git writes."""
    repo = make_repo(folder)
    for name in ("services/api/a", "services/web/b", "services/all", "libs/c", "libs/deep/d", "docs/e"):
        write(repo, name, name)
    write(repo, ".gitattributes", "* filter=note\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "tree")
    smudge = f"f() {{ echo \"$1\" >>'{folder}-written'; cat; }}; f %f"
    git(repo, "config", "filter.note.smudge", smudge)
    git(repo, "config", "filter.note.clean", "cat")
    return repo


def files_in(path: str) -> set[str]:
    """Every file of a worktree, relative, without git's own."""
    found = {os.path.relpath(f"{folder}/{name}", path) for folder, _, names in os.walk(path) for name in names}
    return found - {".git"}


TOP = {".gitattributes", "README", "file0.txt", "file1.txt", "file2.txt"}
CONE = TOP | {"services/api/a", "services/all", "libs/c", "libs/deep/d"}
ALL = CONE | {"services/web/b", "docs/e"}


def test_sparse_worktree_never_has_a_file_outside_the_cone(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    before = shared(repo)
    path = enter(repo, "feat", env=SPARSE)
    assert files_in(path) == CONE
    assert set(Path(f"{tmp_path}/repo-written").read_text().split()) == CONE
    assert status(path) == status(repo) == []
    assert files_in(repo) - {name for name in files_in(repo) if name.startswith((".git/", ".claude/"))} == ALL
    assert shared(repo) == before + EXTENSION
    report = sparse.run(site_at(path, SPARSE))
    assert (report.status, report.count) == (DONE, 2), report
    assert files_in(path) == CONE
    remove(repo, "feat")
    assert shared(repo) == before
    assert not os.path.exists(common_dir(repo) + NOTE)


def test_sparse_paths_that_are_missing_or_lead_out_are_told(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    env = {"GIT_WT_CONFIG_SPARSE_PATHS": "libs/,/etc,../x,docs/../../y,.git/hooks,nowhere,README,./,:(bad)docs"}
    path = enter(repo, "feat", env=env)
    assert files_in(path) == TOP | {"libs/c", "libs/deep/d"}
    report = sparse.run(site_at(path, env))
    assert (report.status, report.count) == (WARNING, 1)
    for word in ("/etc", "../x", "docs/../../y", ".git/hooks", "nowhere", "README", "./", ":(bad)docs"):
        assert f"'{word}'" in report.detail, report.detail


def test_sparse_paths_that_are_all_refused_leave_a_whole_checkout(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    before = shared(repo)
    path = enter(repo, "feat", env={"GIT_WT_CONFIG_SPARSE_PATHS": "/etc"})
    assert files_in(path) == ALL
    assert shared(repo) == before


@pytest.mark.parametrize("name", ["a b", "*star", "!not", "-dash", '"quoted', "#hash", "caf\xe9", "back\\slash", "[x]"])
def test_sparse_folder_may_have_any_name(repo: str, name: str) -> None:
    commit(repo, f"{name}/in", "in")
    commit(repo, "other/out", "out")
    path = enter(repo, "feat", env={"GIT_WT_CONFIG_SPARSE_PATHS": name})
    assert files_in(path) == {"README", "file0.txt", "file1.txt", "file2.txt", f"{name}/in"}
    report = sparse.run(site_at(path, {"GIT_WT_CONFIG_SPARSE_PATHS": name}))
    assert (report.status, report.count) == (DONE, 1), report
    assert status(path) == []


def test_sparse_setting_that_has_grown_widens_and_never_narrows(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    path = enter(repo, "feat", env=SPARSE)
    write(path, "libs/ignored.o", "precious")
    report = sparse.run(site_at(path, {"GIT_WT_CONFIG_SPARSE_PATHS": "docs"}))
    assert (report.status, report.count) == (DONE, 1)
    assert files_in(path) == CONE | {"docs/e", "libs/ignored.o"}
    whole = enter(repo, "whole")
    assert sparse.run(site_at(whole, SPARSE)).status == SKIPPED
    assert files_in(whole) == ALL


@pytest.mark.parametrize("shared_setting", [False, True])
def test_worktree_inherits_nothing_from_a_sparse_main_checkout(tmp_path: Path, shared_setting: bool) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    git(repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))  # so that git uses the extension
    git(repo, "sparse-checkout", "set", "--cone", "docs")
    if shared_setting:  # as older git left it
        os.unlink(common_dir(repo) + "/config.worktree")
        git(repo, "config", "--unset", "extensions.worktreeConfig")
        git(repo, "config", "core.sparseCheckout", "true")
        git(repo, "config", "core.sparseCheckoutCone", "true")
    before = shared(repo)
    path = enter(repo, "feat")
    assert files_in(path) == ALL
    assert files_in(enter(repo, "narrow", env=SPARSE)) == CONE
    remove(repo, "feat")
    remove(repo, "narrow")
    assert shared(repo) == before
    assert not os.path.exists(f"{repo}/libs")
    assert status(repo) == []


def test_sparse_checkout_that_fails_leaves_nothing(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    git(repo, "config", "filter.note.required", "true")
    git(repo, "config", "filter.note.smudge", "false")
    before, names = shared(repo), branches(repo)
    ran = wt("enter", "feat", "--json", cwd=repo, env=SPARSE)
    assert (ran.code, ran.error["code"]) == (1, "git"), ran
    assert shared(repo) == before
    assert (branches(repo), worktrees(repo), leftovers(repo)) == (names, [repo], [])
    assert not os.path.exists(f"{repo}/.claude/worktrees/feat")
    assert not os.path.exists(common_dir(repo) + NOTE)


@pytest.mark.parametrize("words", ["sparse-checkout set", "worktreeConfig true", "core.sparseCheckout true"])
def test_sparse_checkout_killed_at_any_step_is_mended(tmp_path: Path, words: str) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    before, names = shared(repo), branches(repo)
    real = shutil.which("git")
    shim = f'#!/bin/sh\ncase " $* " in *"{words} "*) kill -9 $PPID; exit 1;; esac\nexec {real} "$@"\n'
    os.chmod(write(str(tmp_path / "shim"), "git", shim), 0o755)
    env = {**SPARSE, "PATH": f"{tmp_path}/shim:{os.environ['PATH']}"}
    ran = finish(start_wt("enter", "feat", cwd=repo, env=env))
    assert ran.code == -9, ran
    assert "mended" in wt("list", cwd=repo).ok().err
    assert shared(repo) == before
    assert (branches(repo), worktrees(repo), leftovers(repo)) == (names, [repo], [])
    assert not os.path.exists(common_dir(repo) + NOTE)
    assert files_in(enter(repo, "feat", env=SPARSE)) == CONE


def test_undo_of_a_sparse_worktree_brings_it_back_sparse(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    before = shared(repo)
    path = enter(repo, "feat", env=SPARSE)
    write(path, "libs/c", "edited")
    write(path, "libs/new", "new")
    remove(repo, "feat")
    assert shared(repo) == before
    wt("undo", cwd=repo).ok()
    assert files_in(path) == CONE | {"libs/new"}
    assert sorted(status(path)) == [" M libs/c", "?? libs/new"]
    assert shared(repo) == before + EXTENSION
    git(path, "sparse-checkout", "reapply")
    assert files_in(path) == CONE | {"libs/new"}
    remove(repo, "feat")
    assert shared(repo) == before


def test_extension_stays_until_its_last_user_is_gone(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    before = shared(repo)
    enter(repo, "one", env=SPARSE)
    two = enter(repo, "two", env=SPARSE)
    remove(repo, "one")
    assert shared(repo) == before + EXTENSION
    git(repo, "worktree", "add", "-q", "-b", "users", str(tmp_path / "users"))
    git(str(tmp_path / "users"), "config", "--worktree", "user.name", "Somebody")
    remove(repo, "two")
    assert shared(repo) == before + EXTENSION
    assert git(str(tmp_path / "users"), "config", "user.name") == "Somebody"
    git(repo, "worktree", "remove", str(tmp_path / "users"))
    enter(repo, "three")
    remove(repo, "three")
    assert shared(repo) == before
    assert not os.path.exists(two)


def test_what_others_wrote_meanwhile_stays_when_the_extension_goes(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    enter(repo, "feat", env=SPARSE)
    git(repo, "config", "core.abbrev", "12")  # before the extension
    git(repo, "remote", "add", "later", "https://example.invalid/later.git")  # behind it
    expected = shared(repo).replace(EXTENSION, b"")
    remove(repo, "feat")
    assert shared(repo) == expected


def test_what_another_git_writes_at_the_same_moment_is_not_lost(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    real, done = shutil.which("git"), tmp_path / "done"
    other = f"[ -e {done} ] || {{ : >{done}; {real} -C {repo} config user.name Other; }}"
    shim = f'#!/bin/sh\ncase "$*" in *worktree-config.new*) {other};; esac\nexec {real} "$@"\n'
    os.chmod(write(str(tmp_path / "shim"), "git", shim), 0o755)
    before = shared(repo)
    enter(repo, "feat", env={**SPARSE, "PATH": f"{tmp_path}/shim:{os.environ['PATH']}"})
    assert shared(repo) == before + b"[user]\n\tname = Other\n" + EXTENSION
    assert done.exists()
    remove(repo, "feat")
    assert shared(repo) == before + b"[user]\n\tname = Other\n"


def test_extension_that_the_user_turned_on_stays(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    git(repo, "config", "extensions.worktreeConfig", "true")
    assert files_in(enter(repo, "feat", env=SPARSE)) == CONE
    git(repo, "config", "user.name", "Later")
    before = shared(repo)
    remove(repo, "feat")
    assert shared(repo) == before


@pytest.mark.parametrize("changed_meanwhile", [False, True])
def test_bare_repository_goes_on_working_with_sparse_worktrees(tmp_path: Path, changed_meanwhile: bool) -> None:
    git(str(tmp_path), "clone", "-q", "--bare", tree_of(str(tmp_path / "seed")), "repo.git")
    bare_repo = str(tmp_path / "repo.git")
    git(bare_repo, "worktree", "add", "-q", "-b", "other", str(tmp_path / "other"))
    before = shared(bare_repo)
    path = enter(bare_repo, "feat", env=SPARSE)
    assert files_in(path) == CONE
    for folder in (path, str(tmp_path / "other")):
        assert git(folder, "rev-parse", "--is-bare-repository") == "false"
        assert status(folder) == []
        commit(folder, "libs/new", folder)
        listed = wt("list", "--no-status", "--json", cwd=folder).ok().data["worktrees"]
        assert [tree["path"] for tree in listed if tree["kind"] == "main" and "branch" not in tree] == [str(tmp_path)]
    assert git(bare_repo, "rev-parse", "--is-bare-repository") == "true"
    second = enter(path, "second")
    assert os.path.dirname(second) == os.path.dirname(path)
    if changed_meanwhile:
        git(bare_repo, "config", "user.name", "Later")
    remove(path, "second")
    remove(str(tmp_path / "other"), "feat")
    if changed_meanwhile:
        assert git(bare_repo, "config", "user.name") == "Later"
        git(bare_repo, "config", "--unset", "user.name")
        assert sorted(shared(bare_repo).splitlines()) == sorted(before.splitlines())
    else:
        assert shared(bare_repo) == before
    assert not os.path.exists(f"{bare_repo}/config.worktree")
    require_sound(bare_repo)


def test_submodule_as_main_root_goes_on_working_with_sparse_worktrees(tmp_path: Path) -> None:
    tree_of(str(tmp_path / "seed"))
    over = make_repo(str(tmp_path / "over"))
    git(over, "submodule", "add", "-q", f"{tmp_path}/seed", "sub")
    git(over, "commit", "-q", "-m", "sub")
    sub = f"{over}/sub"
    plain = str(tmp_path / "plain")
    git(sub, "worktree", "add", "-q", "-b", "plain", plain)
    before = shared(sub)
    path = enter(sub, "feat", env=SPARSE)
    assert files_in(path) == CONE
    for folder in (path, plain, sub):
        assert git(folder, "rev-parse", "--show-toplevel") == folder
        assert status(folder) == []
    git(over, "submodule", "update", "--init", "-q")
    assert status(over) == []
    again = enter(path, "again", env=SPARSE)  # called from a worktree of the submodule
    assert (os.path.dirname(again), files_in(again)) == (os.path.dirname(path), CONE)
    remove(sub, "again")
    remove(sub, "feat")
    assert shared(sub) == before
    for folder in (plain, sub):
        assert git(folder, "rev-parse", "--show-toplevel") == folder


def test_core_worktree_that_comes_back_is_moved_again(tmp_path: Path) -> None:
    """`git submodule update` writes it into the shared configuration whenever it makes the checkout anew."""
    world = submodule(str(tmp_path / "over"))
    enter(world.cwd, "one", env={"GIT_WT_CONFIG_SPARSE_PATHS": "libs"})
    common = common_dir(world.cwd)
    git("/", "config", "--file", f"{common}/config", "core.worktree", "../../../sub")
    two = enter(world.cwd, "two", env={"GIT_WT_CONFIG_SPARSE_PATHS": "libs"})
    assert git(two, "rev-parse", "--show-toplevel") == two
    assert "worktree" not in git("/", "config", "--file", f"{common}/config", "--get-regexp", r"^core\.")
    remove(world.cwd, "one")
    remove(world.cwd, "two")
    assert git("/", "config", "--file", f"{common}/config", "core.worktree") == "../../../sub"
    assert git(world.main, "rev-parse", "--show-toplevel") == world.main


def test_many_at_once_beside_other_gits_all_get_their_own(tmp_path: Path) -> None:
    repo = tree_of(str(tmp_path / "repo"))
    before = shared(repo)
    started = [start_wt("enter", f"w{n}", "--json", cwd=repo, session=f"s{n}", env=SPARSE) for n in range(6)]
    for n in range(40):
        git(repo, "config", "user.name", f"Somebody {n}", check=False)
    paths = [finish(one).ok().data["worktreePath"] for one in started]
    for path in paths:
        assert files_in(path) == CONE
        assert admin_dir(path).startswith(common_dir(repo))
    gone = [start_wt("remove", f"w{n}", "--force-occupied", cwd=repo, session="r") for n in range(6)]
    for one in gone:
        finish(one).ok()
    git(repo, "config", "--unset", "user.name")
    assert shared(repo) == before
    assert leftovers(repo) == []


def test_configuration_that_stays_locked_fails_the_step_and_says_why(
    repo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("git_wt.git.worktree_config._BUDGET", 0.2)
    before = shared(repo)
    path = enter(repo, "feat")
    site = site_at(path, OFF)
    lock = write(repo, ".git/config.lock", "")
    with pytest.raises(WtError, match="another git"):
        hooks_path.run(site)
    assert read(repo, ".git/config.lock") == ""
    os.unlink(lock)
    assert hooks_path.run(site).status == DONE
    assert shared(repo) == before + EXTENSION


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_killed_while_it_holds_gits_lock_it_is_mended(repo: str) -> None:
    """The one moment at which git-wt's own death would keep every git from changing the configuration."""
    before = shared(repo)
    path = enter(repo, "feat", env=OFF)
    hooks_for(path)
    assert shared(repo) == before
    lock = f"{repo}/.git/config.lock"
    traced = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", lock, "--inject=rename:signal=KILL:when=1"]
    subprocess.run([*traced, executable(), "setup", "feat"], cwd=repo, env={**os.environ, **OFF}, capture_output=True)
    assert os.path.exists(lock)
    assert "mended" in wt("list", cwd=repo).ok().err
    assert leftovers(repo) == []
    require_sound(repo)
    assert wt("setup", "feat", cwd=repo, env=OFF).ok()
    assert shared(repo) == before + EXTENSION
    remove(repo, "feat")
    assert shared(repo) == before
