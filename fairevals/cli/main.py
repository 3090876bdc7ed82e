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
from typing import Any, NoReturn

from fairevals import __version__
from fairevals.errors import FairevalsError, UsageError, escape, unknown

COMMANDS = (
    *("score", "compare", "report", "exposure", "validate", "pool", "annotate", "derive", "power", "export"),
    *("train", "predict", "rerank", "demo", "doctor", "completion"),
)
"""Every command; its module in this package has the same name."""

OPTIONS = {
    "policy 'samples'": "--policy samples",
    "policy 'pl'": "--policy pl",
    "method 'mc'": "--method mc",
    "more samples": "--samples",
    "fewer jobs": "--jobs",
    "a smaller learning rate": "--lr",
    "force": "--force",
}
"""Words in the library's messages, and the option that a person at the command line would use."""

STANDARD_OUTPUT = "standard output"


class _Parser(argparse.ArgumentParser):
    """Escapes control characters in the arguments that error messages quote, and reports errors of printing help."""

    def error(self, message: str) -> NoReturn:
        super().error(escape(message, 1000))

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file, flush=True)  # argparse's own ignores every error


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


def _print_message(message: str) -> None:
    with contextlib.suppress(OSError):  # where standard error cannot be written, only the exit code tells
        print(f"fairevals: {message}", file=sys.stderr, flush=True)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"fairevals: warning: {with_options(str(message))}", file=sys.stderr)


def _deliver_again(lost: "sys.UnraisableHookArgs") -> None:
    # Python only prints an interruption that comes while an object is deleted. Deliver it again, a moment later.
    if lost.exc_type is KeyboardInterrupt and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


class _StandardOutput(io.TextIOWrapper):
    """Standard output, whose errors name it as those of files name the file."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            error.filename = STANDARD_OUTPUT
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            error.filename = STANDARD_OUTPUT
            raise


def _prepare_streams() -> None:
    """Open what is closed of the standard streams, and name standard output in its errors.

    A file opened later would otherwise get the number of a closed one, and text meant for that would be written into
    it. Reading from a closed standard input and writing to a closed standard output still fail; messages for a closed
    standard error go nowhere.
    """
    for name, mode, access in (
        ("stdin", "r", os.O_WRONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    ):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, access)  # the first that is free
            os.set_inheritable(descriptor, True)
            setattr(sys, name, open(descriptor, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        encoding, line, through = out.encoding, out.line_buffering, out.write_through
        sys.stdout = _StandardOutput(out.detach(), encoding, line_buffering=line, write_through=through)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0 if it succeeded, 1 if the input is invalid, 2 for wrong usage."""
    if argv is None:
        _prepare_streams()
        sys.unraisablehook = _deliver_again
    if isinstance(sys.stdout, io.TextIOWrapper):  # escape what the terminal's encoding cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except FairevalsError as error:
        _print_message(f"error: {with_options(str(error))}")
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        _print_message("interrupted")
        return 130
    except BrokenPipeError:  # a reader such as `head` has closed the pipe
        return 0
    except OSError as error:
        file, reason = str(error.filename or "output"), escape(str(error.strerror or error), 200)
        shown = f"cannot be written ({reason})" if file == STANDARD_OUTPUT else reason
        _print_message(f"error: {escape(file, 300)}: {shown}")
        return 1
    except MemoryError:
        _print_message("error: there is not enough memory")
        return 1
    except ImportError as error:  # not installed, or no memory for it
        reason = escape(str(error), 200)
        _print_message(
            f"error: a module cannot be loaded ({reason}); fairevals doctor lists what is installed"
        )
        return 1
    finally:
        _discard_output()
    return code


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help(), file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    if words[0] == "--version":
        print(f"fairevals {__version__}")
        return 0
    if words[0] not in COMMANDS:
        raise unknown("command", words[0], COMMANDS)
    # Handle termination like an interrupt from the keyboard, so that half-written files are removed. Outside the main
    # thread the caller's handlers stay, and not every system has SIGALRM.
    with contextlib.suppress(ValueError, AttributeError):
        for name in ("SIGTERM", "SIGHUP"):  # not what nohup ignores; Windows has no SIGHUP
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)
        signal.signal(signal.SIGALRM, signal.default_int_handler)
    warnings.showwarning = _print_warning
    args = make_parser(words[0]).parse_args(words[1:])
    if "runs" in args and words[0] != "validate":  # `validate` reports each invalid folder itself
        from fairevals.io.archives import each_run

        args.runs = each_run(args.runs)
    from fairevals.io.screen import SCREEN, Screen

    to_file = "format" in args and args.output not in (None, "-")
    before = SCREEN.set(Screen() if to_file else Screen.of(sys.stdout))
    try:
        code: int = args.run(args)
    finally:
        SCREEN.reset(before)
    return code


def _discard_output() -> None:
    """Send what cannot be written to nowhere; otherwise Python would report the same failure again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
