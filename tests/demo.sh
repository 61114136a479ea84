#!/bin/sh
# Installs git-wt into .venv of this checkout and shows its main job in a throw-away repository.
# Needs git and Python 3.10 or later, nothing else. Fails loudly when a step does not do what it should.
# usage: sh tests/demo.sh
set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck source=tests/install.sh
. "$root/tests/install.sh"

# What pip would do, for a Python without it: one line that names the checkout, and a launcher.
install_by_hand() {
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    printf '%s\n' "$root" >"$site/git-wt.pth"
    cat >"$venv/bin/git-wt" <<LAUNCHER
#!/bin/sh
'''exec' '$venv/bin/python' "\$0" "\$@"
' '''
import sys
from git_wt.__main__ import main
sys.exit(main())
LAUNCHER
    chmod +x "$venv/bin/git-wt"
}

install() {
    make_venv
    if is_installed; then
        return 0
    fi
    if ! has_pip; then
        say 'This Python has no pip (Debian: apt install python3-venv), so git-wt is put into .venv by hand.'
        say 'It works without other packages as long as no configuration file in TOML has to be read.'
        install_by_hand
    elif ! "$venv/bin/python" -m pip install --quiet --editable "$root" >"$scratch/pip.log" 2>&1; then
        say 'pip could not install git-wt, so it is put into .venv by hand, without other packages. pip said:'
        tail -n 3 "$scratch/pip.log" >&2
        install_by_hand
    fi
    is_installed || fail "git-wt does not run from $venv"
}

# show CODE COMMAND-LINE: prints the command, runs it here, and insists on its exit code.
show() {
    printf '\n$ %s\n' "$2"
    code=0
    eval "$2" || code=$?
    [ "$code" -eq 0 ] || printf '(exit code %s)\n' "$code"
    [ "$code" -eq "$1" ] || fail "'$2' ended with exit code $code, not with $1"
}

# expect WHAT TEST…: insists that a test holds.
expect() {
    what=$1
    shift
    "$@" || fail "it is not so that $what"
}

# What the shell integration does for bash, zsh and fish: git-wt writes the folder to go to into a file.
git() {
    if [ "${1-}" != wt ]; then
        command git "$@"
        return
    fi
    : >"$scratch/cd"
    status=0
    env "GIT_WT_CD_FILE=$scratch/cd" git "$@" || status=$?
    if [ -s "$scratch/cd" ]; then
        cd "$(cat "$scratch/cd")"
    fi
    return "$status"
}

is_here() {
    [ "$(pwd -P)" = "$1" ]
}

has_branch() {
    command git -C "$repo" rev-parse --quiet --verify "refs/heads/$1" >/dev/null
}

command -v git >/dev/null 2>&1 || fail 'git is not on PATH'
scratch=$(cd "$(mktemp -d)" && pwd -P)
trap 'cd /; rm -rf "$scratch" || :' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
install

# Nothing of the person who runs this: own home, own session, no tmux, no terminal to ask on.
for name in $(env | sed -n 's/^\([A-Z_0-9]*\)=.*/\1/p' | grep -E '^(GIT|XDG|TMUX)'); do
    unset "$name"
done
export HOME="$scratch/home" GIT_CONFIG_NOSYSTEM=1 GIT_WT_SESSION=demo PATH="$venv/bin:$PATH"
exec </dev/null
mkdir "$HOME"
command git config --global user.name Demo
command git config --global user.email demo@example.invalid
command git config --global init.defaultBranch main

repo=$scratch/shop
worktree=$repo/.claude/worktrees/fix-login
command git init --quiet "$repo"
cd "$repo"
echo 'print("hello")' >app.py
command git add app.py
command git commit --quiet --message 'first version'

printf 'A throw-away repository: %s\n' "$repo"
show 0 'git wt --version'

printf '\n# A worktree and a branch of their own for one task; the shell goes there.\n'
show 0 'git wt enter fix-login'
show 0 'pwd'
expect 'the shell is in the worktree' is_here "$worktree"
expect 'the branch worktree-fix-login is there' has_branch worktree-fix-login

printf '\n# Some work that is nowhere else: removal is refused.\n'
show 0 "echo 'print(\"welcome\")' >>app.py"
show 0 "echo 'ask Kim about passwords' >notes.txt"
show 3 'git wt exit remove'
expect 'the worktree is still there' test -f "$worktree/notes.txt"
expect 'the shell is still in the worktree' is_here "$worktree"

printf '\n# Leave it for later, and come back to it.\n'
show 0 'git wt exit keep'
show 0 'pwd'
expect 'the shell is back' is_here "$repo"
expect 'the work is still there' test -f "$worktree/notes.txt"
show 0 'git wt list'
show 0 'git wt enter fix-login'
expect 'the shell is in the worktree again' is_here "$worktree"
show 0 'git status --short'

printf '\n# Throw it away on purpose.\n'
show 0 'git wt exit remove --discard-changes'
expect 'the shell is back' is_here "$repo"
expect 'the worktree is gone' test ! -e "$worktree"
if has_branch worktree-fix-login; then fail 'the branch is still there'; fi

printf '\n# Or not: every removal can be taken back.\n'
show 0 'git wt undo'
show 0 'git -C .claude/worktrees/fix-login status --short'
show 0 'cat .claude/worktrees/fix-login/notes.txt'
expect 'the new file is back' grep -q Kim "$worktree/notes.txt"
expect 'the change is back' grep -q welcome "$worktree/app.py"
expect 'the branch is back' has_branch worktree-fix-login

printf '\ndemo: everything did what it should\n'
