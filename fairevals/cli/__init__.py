"""The command line. Each command is a module that parses its options, calls the library and prints the result.

A command module has `SUMMARY` (one sentence), `EXAMPLE`, `configure(parser)`, which declares the options, and
`run(args)`, which returns the exit code. Slow imports stay inside `run`, so that `--help` answers at once. `common`
has the options that commands share.
"""
