"""The program `fairevals`: finds the command, runs it, and turns errors into messages and exit codes."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from fairevals import __version__
from fairevals.errors import FairevalsError, UsageError, escape

COMMANDS = {
    "score": "score runs: utility, exposure and group fairness, a leaderboard or a table",
    "validate": "find what is wrong with a submission, by file and line",
    "pool": "the documents that runs have in their first ranks, for judging",
    "exposure": "expected exposure of documents or groups, with merit and target beside it",
    "compare": "compare runs with a baseline: differences, intervals, tests, effect sizes",
    "report": "one self-contained page, the scores, the figures, and all of it for programs",
    "train": "train reference policies: for utility, for fairness of exposure, and baselines",
    "predict": "apply a trained policy to data: a run of log-weights, or sampled rankings",
    "derive": "qrels and memberships from entity annotations",
    "doctor": "versions, optional parts and limits in force",
    "completion": "a completion script for bash, zsh or fish",
    "demo": "score the sample task and show the way to everything else",
}
"""Every command and its one line; the modules are imported only when they are called."""


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "usage: fairevals COMMAND …",
            "",
            "Scores ranked lists for usefulness, and for fairness to what is ranked.",
            "",
            "commands:",
            *lines,
            "",
            "fairevals COMMAND --help shows its options and an example; fairevals --version the version.",
        ]
    )


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the words of a command without the control characters that they may have."""

    def error(self, message: str) -> NoReturn:
        super().error(escape(message, 1000))


def make_parser(command: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    module = import_module(f"fairevals.cli.{command}")
    parser = _Parser(
        prog=f"fairevals {command}",
        description=module.SUMMARY,
        epilog=f"example:\n{module.EXAMPLE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    parser.set_defaults(run=module.run)
    return parser


def _say_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"fairevals: warning: {message}", file=sys.stderr)


def _stop(*_: object) -> NoReturn:
    # As if interrupted from the keyboard, so that half-written files are taken away.
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command: 0 done, 1 the input is invalid, 2 wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help(), file=sys.stderr if not words else sys.stdout)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"fairevals {__version__}")
        return 0
    if words[0] not in COMMANDS:
        print(
            f"fairevals: error: unknown command {words[0]!r}; known are {', '.join(COMMANDS)}",
            file=sys.stderr,
        )
        return 2
    with contextlib.suppress(
        ValueError
    ):  # not in the main thread: whoever calls us there has handlers of their own
        signal.signal(signal.SIGTERM, _stop)
    warnings.showwarning = _say_warning
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # a name that the terminal's encoding lacks is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        args = make_parser(words[0]).parse_args(words[1:])
        code: int = args.run(args)
        sys.stdout.flush()
    except FairevalsError as error:
        print(f"fairevals: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("fairevals: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _give_up_output()  # the reader (`head`, say) has seen enough
        return 0
    except OSError as error:
        what = escape(str(error.filename or "output"), 300)
        print(f"fairevals: error: {what}: {escape(str(error.strerror or error), 200)}", file=sys.stderr)
        _give_up_output()
        return 1
    except MemoryError:
        print("fairevals: error: there is not enough memory for this", file=sys.stderr)
        return 1
    return code


def _give_up_output() -> None:
    """Send what is left of standard output nowhere, or Python would fail and complain once more at the end."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
