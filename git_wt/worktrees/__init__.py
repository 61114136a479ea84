"""Worktrees: `survey` knows them all, `facts` asks about one, `verdict` judges, `create` makes, `trash` takes away and
brings back, `recover` mends what a killed command left."""
