# git-wt in bash: put   eval "$(git wt init bash)"   in ~/.bashrc
#
# Owns how `git wt` moves the shell that it is typed in: the program writes the folder to go to into the file that
# $GIT_WT_CD_FILE names, and the shell goes there. It knows no command of git-wt, and starts no process for other git
# commands. Written for bash 3.2 and later.

# Run a command as it is, then go to the folder that it asks for; returns its exit code, or 1 when only the cd failed.
# The subshell outlives an interrupt, so that the file is always removed; the interrupt is then passed on.
function __git_wt_run() {
    \builtin local dir file target='' rc=0
    for dir in "${XDG_RUNTIME_DIR-}" "${TMPDIR-}" /tmp; do
        if [[ ${dir} == /* && -w ${dir} ]]; then break; fi
    done
    file=$(\command mktemp -- "${dir}/git-wt.XXXXXXXXXX") || file=''
    (
        \builtin trap : INT
        # git, like the shims of pyenv, dies in a folder that has been deleted; after a mere move `cd -P .` finds it
        [[ . -ef ${PWD} ]] || \builtin cd -Pe . 2>/dev/null || \builtin cd /
        GIT_WT_CD_FILE=${file} GIT_WT_SHELL=bash \command "$@"
    ) || rc=$?
    if [[ -s ${file} ]]; then
        # the raw path up to the end of the file: read says 1, as there is no NUL
        IFS='' \builtin read -r -d '' target <"${file}" || \builtin true
        \builtin cd -- "${target}" || ((rc)) || rc=1
    fi
    \command rm -f -- "${file}" || \builtin true
    ((rc != 130)) || \builtin kill -INT "${BASHPID:-$$}"
    return "${rc}"
}

# Whether git would run `wt`: the first word behind git's own options, as handle_options() of git.c reads them.
function __git_wt_named() {
    \builtin local word value=0
    for word in "$@"; do
        if ((value)); then
            value=0
            continue
        fi
        case ${word} in
        wt) return 0 ;;
        -h | --help | -v | --version) return 1 ;;
        -C | -c | --attr-source | --config-env | --git-dir | --namespace | --shallow-file | --super-prefix | \
            --work-tree)
            value=1
            ;;
        -*) ;;
        *) return 1 ;;
        esac
    done
    return 1
}

function git() {
    if __git_wt_named "$@"; then
        __git_wt_run git "$@"
    else
        \command git "$@"
    fi
}

# POSIX mode allows no hyphen in the name of a function.
if [[ ! -o posix ]]; then
    function git-wt() {
        __git_wt_run git-wt "$@"
    }
fi
