#!/bin/sh
# Installs what the checks need and runs them all: format, lint, types, shell scripts, tests.
# usage: sh tests/check.sh [--fast] [arguments of pytest]      --fast leaves out the tests that are marked slow
set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
cd "$root"
# shellcheck source=tests/install.sh
. "$root/tests/install.sh"

PROGRAMS='git tmux zsh fish shellcheck shfmt' # as commands and as packages of Debian and Homebrew

fast=
if [ "${1-}" = --fast ]; then
    fast=yes
    shift
fi

# Programs that are not on PATH, and `python3-venv` where Python cannot make a venv with pip.
missing_packages() {
    for program in $PROGRAMS; do
        command -v "$program" >/dev/null 2>&1 || printf ' %s' "$program"
    done
    if ! has_pip && ! "$python" -c 'import ensurepip' 2>/dev/null; then
        printf ' python3-venv'
    fi
}

install_packages() {
    missing=$(missing_packages)
    if [ -z "$missing" ]; then
        return 0
    fi
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing$missing"
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        # shellcheck disable=SC2086 # one word a package
        apt-get install -y -qq --no-install-recommends $missing >/dev/null
        missing=$(missing_packages)
    fi
    if [ -n "$missing" ]; then
        say "missing:$missing"
        say "  Debian, Ubuntu: sudo apt-get install$missing"
        say "  macOS:          brew install$missing"
        exit 1
    fi
}

install_python_packages() {
    wanted=$(cksum pyproject.toml tests/check.sh)
    if is_installed && has_pip && [ "$(cat "$venv/checked" 2>/dev/null)" = "$wanted" ]; then
        return 0
    fi
    make_venv
    has_pip || "$venv/bin/python" -m ensurepip --upgrade >/dev/null
    "$venv/bin/python" -m pip install --quiet --upgrade 'pip>=25.1' # the first that knows --group
    "$venv/bin/python" -m pip install --quiet --group dev --editable .
    is_installed || fail "git-wt does not run from $venv"
    printf '%s\n' "$wanted" >"$venv/checked"
}

# check NAME COMMAND…: runs one check and remembers whether it failed.
failed=
check() {
    name=$1
    shift
    say "== $name"
    "$@" || failed="$failed $name"
}

check_shell_scripts() {
    result=0
    shellcheck -x tests/*.sh .ci/run || result=1
    shfmt -d -i 4 tests/*.sh .ci/run || result=1
    for script in shell/*.bash; do
        if [ -e "$script" ]; then shellcheck -x -s bash "$script" || result=1; fi
    done
    for script in shell/*.zsh; do
        if [ -e "$script" ]; then zsh -n "$script" || result=1; fi
    done
    for script in shell/*.fish; do
        if [ -e "$script" ]; then fish --no-execute "$script" || result=1; fi
    done
    return "$result"
}

run_tests() {
    cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
    if [ -n "$fast" ]; then
        set -- -m 'not slow' "$@"
    fi
    python -m pytest -n "$cores" "$@"
}

make_venv
find_python
install_packages
install_python_packages
PATH=$venv/bin:$PATH
check 'ruff check' ruff check .
check 'ruff format' ruff format --check .
check mypy mypy
check 'shell scripts' check_shell_scripts
check pytest run_tests "$@"
[ -z "$failed" ] || fail "failed:$failed"
