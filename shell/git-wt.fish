# git-wt in fish: put   git wt init fish | source   in ~/.config/fish/config.fish
#
# Owns how `git wt` moves the shell that it is typed in: the program writes the folder to go to into the file that
# $GIT_WT_CD_FILE names, and the shell goes there. It knows no command of git-wt, and starts no process for other git
# commands. Written for fish 3.1 and later.

# Run a command as it is, then go to the folder that it asks for; returns its exit code, or 1 when only the cd failed.
# An interrupt would end this function before the file is removed: `sh` outlives it, and it is passed on afterwards.
function __git_wt_run
    set -l dir /tmp
    for dir in $XDG_RUNTIME_DIR $TMPDIR /tmp
        if string match -q -- '/*' $dir; and test -w $dir
            break
        end
    end
    set -l file (command mktemp -- $dir/git-wt.XXXXXXXXXX | string collect)
    set -l here $PWD
    # git, like the shims of pyenv, dies in a folder that has been deleted. fish has no subshell that could step out of
    # it alone, so the shell does, for good if the program does not move it.
    builtin realpath . >/dev/null 2>&1; or builtin cd -- $here 2>/dev/null; or builtin cd /
    GIT_WT_CD_FILE=$file GIT_WT_SHELL=fish command sh -c 'trap : INT; "$@"' sh $argv
    set -l rc $status
    if test -s "$file"
        # the raw path up to the end of the file
        builtin read -lz target <$file
        if builtin cd -- $target
            # what `cd` of fish does for `cd -`
            set -q dirprev; or set -g dirprev
            set -a dirprev $here
            set -q dirprev[26]; and set -e dirprev[1]
            set -e dirnext
            set -g __fish_cd_direction prev
        else if test $rc -eq 0
            set rc 1
        end
    end
    command rm -f -- "$file"
    test $rc -eq 130; and command kill -INT $fish_pid
    return $rc
end

# Whether git would run `wt`: the first word behind git's own options, as handle_options() of git.c reads them.
function __git_wt_named
    set -l value 0
    for word in $argv
        if test $value -eq 1
            set value 0
            continue
        end
        switch $word
            case wt
                return 0
            case -h --help -v --version
                return 1
            case -C -c --attr-source --config-env --git-dir --namespace --shallow-file --super-prefix --work-tree
                set value 1
            case '-*'
            case '*'
                return 1
        end
    end
    return 1
end

function git
    if __git_wt_named $argv
        __git_wt_run git $argv
    else
        command git $argv
    end
end

function git-wt
    __git_wt_run git-wt $argv
end
