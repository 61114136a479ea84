# Sourced by demo.sh and check.sh: find a Python, make .venv, install the project in it.
# Wants `root`, the top folder of the checkout; sets `python` and `venv`.
# shellcheck shell=sh

venv=${root:?}/.venv

say() {
    printf '%s\n' "$*" >&2
}

fail() {
    say "${0##*/}: $*"
    exit 1
}

find_python() {
    for python in "${PYTHON-}" python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do
        if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 &&
            "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            return 0
        fi
    done
    fail 'no Python 3.10 or later on PATH ; name one with PYTHON=…'
}

has_pip() {
    "$venv/bin/python" -c 'import pip' 2>/dev/null
}

# Whether `git-wt` in .venv runs this very checkout.
is_installed() {
    [ -x "$venv/bin/git-wt" ] && [ "$(cd / && "$venv/bin/python" -c '
import os, git_wt
print(os.path.dirname(os.path.dirname(os.path.realpath(git_wt.__file__))))
' 2>/dev/null)" = "$root" ]
}

# Without ensurepip (plain Debian keeps it in the package python3-venv) the result has no pip.
make_venv() {
    if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null; then
        return 0
    fi
    find_python
    if "$python" -c 'import ensurepip' 2>/dev/null; then
        "$python" -m venv --clear "$venv"
    else
        "$python" -m venv --clear --without-pip "$venv"
    fi
}
