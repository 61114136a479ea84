"""The only package that starts processes (`run`) and looks at the process table (`table`)."""
