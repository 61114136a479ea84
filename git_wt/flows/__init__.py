"""What a command does, from the rooms below, in an order that is safe to interrupt."""
