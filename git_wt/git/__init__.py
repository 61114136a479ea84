"""Every git command line, and the parser of its answer. One small function a question; nothing is decided here."""
