"""The command line: one file per command; all but `dev`, `serve` and `demo` talk HTTP to a running host."""
