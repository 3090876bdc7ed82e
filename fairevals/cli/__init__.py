"""The command line: a file a command, thin: parse, call, print.

A command module has `SUMMARY` (one line), `EXAMPLE`, `configure(parser)` and `run(args)`, which returns the exit
code. Whatever is slow to import is imported inside `run`.
"""
