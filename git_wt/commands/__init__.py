"""One file a verb: `arguments(parser)` says what it takes, `run(args, caller)` returns a Result. No policy, no
formatting. `VERBS` is the list that help and completion show."""

VERBS = {
    "enter": "make a worktree, or go back to one, and move this session into it",
    "exit": "leave it: keep worktree and branch, or remove both",
    "switch": "leave this worktree and enter another",
    "list": "show every worktree: state, age, tmux session, what blocks removal",
    "cd": "go to a worktree's folder without starting a session",
    "path": "print a worktree's folder",
    "attach": "attach to the tmux session of a worktree",
    "remove": "remove worktrees, if nothing would be lost",
    "undo": "bring back what was removed last",
    "setup": "bring a worktree what it needs to work in, again",
    "trash": "show or empty what can be brought back",
    "trust": "allow this repository's set-up commands, after showing them",
    "config": "show the settings in force and where each comes from",
    "init": "print the shell integration for bash, zsh or fish",
}
