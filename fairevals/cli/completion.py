"""`fairevals completion`."""

import argparse

from fairevals.errors import UsageError

SUMMARY = "Print a script with which a shell completes commands, options and their values (needs shtab)."
EXAMPLE = """  eval "$(fairevals completion bash)"          in ~/.bashrc
  eval "$(fairevals completion zsh)"           in ~/.zshrc, after compinit
  fairevals completion fish | source           in ~/.config/fish/config.fish"""


def configure(parser: argparse.ArgumentParser) -> None:
    shells = ("bash", "zsh", "tcsh", "fish")
    parser.add_argument("shell", choices=shells, help="the shell that will run the script")


def run(args: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise UsageError("completion needs shtab: pip install 'fairevals[completion]'") from None
    print(shtab.complete(whole_parser(shtab.FILE), args.shell))
    return 0


def whole_parser(file: object) -> argparse.ArgumentParser:
    """One parser of all commands, in which the options that take a file carry the completion `file`."""
    from fairevals import __version__
    from fairevals.cli.main import COMMANDS
    from fairevals.cli.main import configure as configure_command
    from fairevals.measures.index import INDEX

    whole = argparse.ArgumentParser(prog="fairevals")
    whole.add_argument("--version", action="version", version=__version__)
    commands = whole.add_subparsers()
    for name in COMMANDS:
        # shtab skips commands without a help text
        parser = configure_command(commands.add_parser(name, help=name), name)
        for action in parser._actions:
            if action.choices or action.dest == "measures":
                action.choices = list(action.choices or INDEX)  # shtab takes a dict for subcommands
            elif action.nargs != 0 and action.type is None:
                action.complete = file  # type: ignore[attr-defined]
    return whole
