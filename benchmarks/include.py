"""What step 5 of set-up (`.worktreeinclude`) takes, as ratios: copying 50,000 small files against `cp -a`, finding 3
files among 500,000 ignored ones against `git status --ignored`. Run it with the Python that git-wt is installed for:

    python benchmarks/include.py [FOLDER]      (a folder on the file system to measure; default: the temporary one)
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time

ROUNDS = 3
COPIED, IGNORED = 50_000, 500_000


def main() -> None:
    """Measure and print; deletes all that it made."""
    base = tempfile.mkdtemp(prefix="git-wt-benchmark-", dir=sys.argv[1] if len(sys.argv) > 1 else None)
    os.environ.update(XDG_STATE_HOME=f"{base}/state", GIT_WT_SESSION="benchmark", GIT_CONFIG_GLOBAL="/dev/null")
    try:
        copy_many(f"{base}/many")
        find_few(f"{base}/few")
    finally:
        shutil.rmtree(base)


def copy_many(repo: str) -> None:
    """Whole folders of small files, in turns with `cp -a`."""
    make(repo, "/data/\n", "data/\n")
    fill(f"{repo}/data", COPIED, 400)
    ours, theirs = [], []
    for number in range(ROUNDS):
        worktree(repo, f"n{number}")
        ours.append(set_up(repo, f"n{number}"))
        theirs.append(seconds("cp", "-a", f"{repo}/data", f"{repo}/../copy{number}", cwd=repo))
    report(f"copying {COPIED} files", ours, "cp -a", theirs)


def find_few(repo: str) -> None:
    """Three of half a million ignored files are listed."""
    make(repo, "node_modules/\n", ".env\n")
    fill(f"{repo}/node_modules", IGNORED, 0)
    for folder in ("0", "7", "99"):
        with open(f"{repo}/node_modules/{folder}/.env", "w", encoding="ascii") as file:
            file.write("x\n")
    ours, theirs = [], []
    for number in range(ROUNDS):
        worktree(repo, f"n{number}")
        ours.append(set_up(repo, f"n{number}"))
        theirs.append(seconds("git", "status", "--ignored", cwd=repo))
    report(f"3 of {IGNORED} files", ours, "git status --ignored", theirs)


def make(repo: str, ignored: str, listed: str) -> None:
    """A repository with one commit."""
    os.makedirs(repo)
    for name, content in ((".gitignore", ignored), (".worktreeinclude", listed)):
        with open(f"{repo}/{name}", "w", encoding="ascii") as file:
            file.write(content)
    git = ("git", "-c", "user.name=b", "-c", "user.email=b@example.invalid")
    for args in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        seconds(*git, *args, cwd=repo)


def fill(folder: str, files: int, size: int) -> None:
    """Files of `size` bytes, 500 in a folder."""
    content = b"x" * size
    for number in range(files):
        if number % 500 == 0:
            os.makedirs(f"{folder}/{number // 500}")
        with open(f"{folder}/{number // 500}/{number}", "wb") as file:
            file.write(content)


def worktree(repo: str, name: str) -> None:
    """An empty worktree, not made by git-wt."""
    seconds("git", "worktree", "add", "-q", f"{repo}.trees/{name}", cwd=repo)


def set_up(repo: str, name: str) -> float:
    """Seconds of `git wt setup`, the start of Python and all other steps included."""
    return seconds(os.path.join(os.path.dirname(sys.executable), "git-wt"), "setup", name, "-q", cwd=repo)


def seconds(*argv: str, cwd: str) -> float:
    """How long a program takes; raises CalledProcessError."""
    start = time.perf_counter()
    subprocess.run(argv, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def report(what: str, ours: list[float], other: str, theirs: list[float]) -> None:
    """The least of each and their ratio."""
    print(f"{what}: {min(ours):.2f} s, {other}: {min(theirs):.2f} s, ratio {min(ours) / min(theirs):.2f}")


if __name__ == "__main__":
    main()
