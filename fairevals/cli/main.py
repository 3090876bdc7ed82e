"""The program `fairevals`: runs a command, and turns errors into messages and exit codes."""

import argparse
import contextlib
import io
import os
import re
import signal
import sys
import textwrap
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from fairevals import __version__
from fairevals.errors import FairevalsError, UsageError, escape, unknown

COMMANDS = (
    *("score", "compare", "report", "exposure", "validate", "pool", "derive", "train", "predict"),
    *("demo", "doctor", "completion"),
)
"""Every command; its module in this package has the same name."""

OPTIONS = {
    "policy 'samples'": "--policy samples",
    "policy 'pl'": "--policy pl",
    "method 'mc'": "--method mc",
    "more samples": "--samples",
    "fewer jobs": "--jobs",
    "force": "--force",
}
"""Words in the library's messages, and the option that a person at the command line would use."""


class _Parser(argparse.ArgumentParser):
    """Escapes control characters in the arguments that its error messages quote."""

    def error(self, message: str) -> NoReturn:
        super().error(escape(message, 1000))


def configure(parser: argparse.ArgumentParser, command: str) -> argparse.ArgumentParser:
    """Declare the options of a command."""
    module = import_module(f"fairevals.cli.{command}")
    parser.description, parser.epilog = module.SUMMARY, f"example:\n{module.EXAMPLE}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    module.configure(parser)
    parser.set_defaults(run=module.run)
    return parser


def make_parser(command: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    return configure(_Parser(prog=f"fairevals {command}", allow_abbrev=False), command)


def _help() -> str:
    lines = ["usage: fairevals COMMAND …\n\nScore ranked lists for usefulness and for fairness.\n\ncommands:"]
    for name in COMMANDS:
        text = f"{name:<12}{import_module(f'fairevals.cli.{name}').SUMMARY}"
        lines.append(textwrap.fill(text, 100, initial_indent="  ", subsequent_indent=" " * 14))
    hint = "`fairevals COMMAND --help` shows the options of a command and an example"
    return "\n".join([*lines, "", f"{hint}, `fairevals --version` the version."])


def with_options(message: str) -> str:
    """A message of the library, followed by the options that it corresponds to.

    >>> with_options("a.run has several rankings of a topic; expected one, or policy 'samples'")
    "a.run has several rankings of a topic; expected one, or policy 'samples' (option --policy samples)"
    """
    options = [
        option
        for words, option in OPTIONS.items()
        if option not in message and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", message)
    ]
    return message + (f" (option {', '.join(options)})" if options else "")


def _print_error(message: str) -> None:
    print(f"fairevals: error: {message}", file=sys.stderr)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"fairevals: warning: {with_options(str(message))}", file=sys.stderr)


def _stop(*_: object) -> NoReturn:
    # Handle termination like an interrupt from the keyboard, so that half-written files are removed.
    raise KeyboardInterrupt


def _deliver_again(lost: "sys.UnraisableHookArgs") -> None:
    # Python only prints an interruption that comes while an object is deleted. Deliver it again, a moment later.
    if lost.exc_type is KeyboardInterrupt and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0 if it succeeded, 1 if the input is invalid, 2 for wrong usage."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help(), file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"fairevals {__version__}")
        return 0
    if words[0] not in COMMANDS:
        _print_error(str(unknown("command", words[0], COMMANDS)))
        return 2
    # Outside the main thread the caller's handlers stay, and not every system has SIGALRM.
    with contextlib.suppress(ValueError, AttributeError):
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGALRM, _stop)
    if argv is None:
        sys.unraisablehook = _deliver_again
    warnings.showwarning = _print_warning
    if isinstance(sys.stdout, io.TextIOWrapper):  # escape what the terminal's encoding cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        args = make_parser(words[0]).parse_args(words[1:])
        code: int = args.run(args)
        sys.stdout.flush()
    except FairevalsError as error:
        _print_error(with_options(str(error)))
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print("fairevals: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # a reader such as `head` has closed the pipe
        _discard_output()
        return 0
    except OSError as error:
        file, reason = str(error.filename or "output"), str(error.strerror or error)
        _print_error(f"{escape(file, 300)}: {escape(reason, 200)}")
        _discard_output()
        return 1
    except MemoryError:
        _print_error("there is not enough memory")
        return 1
    return code


def _discard_output() -> None:
    """Send the rest of standard output to nowhere; otherwise Python would report the same failure again at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
