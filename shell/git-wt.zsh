# git-wt in zsh: put   eval "$(git wt init zsh)"   in ~/.zshrc
#
# Owns how `git wt` moves the shell that it is typed in: the program writes the folder to go to into the file that
# $GIT_WT_CD_FILE names, and the shell goes there. It knows no command of git-wt, and starts no process for other git
# commands. It stands under any options without `emulate`, so that chpwd hooks run under the user's own.

# Run a command as it is, then go to the folder that it asks for; returns its exit code, or 1 when only the cd failed.
function __git_wt_run() {
    \builtin local dir file target rc
    for dir in "${XDG_RUNTIME_DIR-}" "${TMPDIR-}" /tmp; do
        if [[ "$dir" == /* && -w "$dir" ]]; then break; fi
    done
    file="$(\command mktemp -- "$dir/git-wt.XXXXXXXXXX")" || file=''
    {
        if (
            # git, like the shims of pyenv, dies in a folder that has been deleted; after a mere move `cd -P .` finds it
            [[ . -ef "$PWD" ]] || \builtin cd -qP . 2>/dev/null && [[ . -ef "$PWD" ]] || \builtin cd -q /
            GIT_WT_CD_FILE="$file" GIT_WT_SHELL=zsh \command "$@"
        ); then rc=0; else rc=$?; fi
        if [[ -s "$file" ]]; then
            # the raw path, newlines at its end included; `read` drops half a character there (zsh 5.9)
            target="$(\command cat -- "$file" && \builtin print -n x)"
            \builtin cd -- "${target%x}" || (( rc )) || rc=1
        fi
    } always {
        \command rm -f -- "$file" || \builtin true
    }
    return "$rc"
}

# Whether git would run `wt`: the first word behind git's own options, as handle_options() of git.c reads them.
function __git_wt_named() {
    \builtin local word value=0
    for word in "$@"; do
        if (( value )); then
            value=0
            continue
        fi
        case "$word" in
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

function git-wt() {
    __git_wt_run git-wt "$@"
}
