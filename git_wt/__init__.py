"""git-wt: a git worktree for every task, ready to work in, removed without ever losing work."""

__version__ = "0.1.0"
