"""`fairevals completion`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

SUMMARY = "A script that lets a shell complete commands, options and their values."
EXAMPLE = """  source <(fairevals completion bash)          in ~/.bashrc
  source <(fairevals completion zsh)           in ~/.zshrc, after compinit
  fairevals completion fish | source           in ~/.config/fish/config.fish"""


@dataclass(frozen=True)
class Option:
    """An option of a command: its spellings, what it is for, and what may follow it."""

    names: tuple[str, ...]
    help: str
    takes: bool
    choices: tuple[str, ...] = ()
    files: bool = False
    """Whether what follows may be a file."""
    repeats: bool = False


@dataclass(frozen=True)
class Command:
    """A command: its one line, its options, and words that may stand alone (files, where there are none)."""

    name: str
    summary: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to write it for")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    print(SHELLS[args.shell](commands()), end="")
    return 0


def commands() -> list[Command]:
    """All commands as their parsers declare them."""
    from fairevals.cli.main import COMMANDS, make_parser
    from fairevals.measures.index import INDEX

    found = []
    for name, summary in COMMANDS.items():
        options: list[Option] = []
        words: list[str] = []
        for action in make_parser(name)._actions:
            choices = tuple(map(str, action.choices or ()))
            if action.option_strings:
                if action.dest == "measures":
                    choices = tuple(INDEX)
                options.append(
                    Option(
                        names=tuple(action.option_strings),
                        help=action.help or "",
                        takes=action.nargs != 0,
                        choices=choices,
                        files=action.nargs != 0 and not choices and action.type is None,
                        repeats=isinstance(action, argparse._AppendAction),
                    )
                )
            else:
                words.extend(choices)
        found.append(Command(name, summary, tuple(options), tuple(words)))
    return found


def _quoted(text: str) -> str:
    r"""A text in single quotes, as all three shells read it but fish, which `_fish` sees to.

    >>> print(_quoted("the task's"))
    'the task'\''s'
    """
    return "'" + text.replace("'", "'\\''") + "'"


def _bash(found: list[Command]) -> str:
    cases = []
    for command in found:
        values = "".join(
            f"        {command.name},{name}) words={_quoted(' '.join(option.choices))};;\n"
            for option in command.options
            for name in option.names
            if option.choices
        )
        for files in (True, False):
            free = [o for o in command.options if o.takes and not o.choices and o.files == files]
            if taking := "|".join(f"{command.name},{name}" for option in free for name in option.names):
                values += f"        {taking}) {'files=1' if files else 'return'};;\n"
        cases.append(values)
    options = "".join(
        f"            {c.name}) words={_quoted(' '.join(n for o in c.options for n in o.names))};;\n"
        for c in found
    )
    alone = "".join(f"            {c.name}) words={_quoted(' '.join(c.words))};;\n" for c in found if c.words)
    return f"""\
_fairevals() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
    local words="" files=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W {_quoted(" ".join([*(c.name for c in found), "--help", "--version"]))} -- "$word"))
        return
    fi
    case "$command,$before" in
{"".join(cases)}    esac
    if [ -z "$words$files" ]; then
        case "$word" in
        -*) case "$command" in
{options}            esac;;
        *) case "$command" in
{alone}            *) files=1;;
            esac;;
        esac
    fi
    if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word")); fi
    if [ -n "$files" ]; then COMPREPLY=($(compgen -f -- "$word")); compopt -o filenames 2>/dev/null; fi
}}
complete -F _fairevals fairevals
"""


def _zsh(found: list[Command]) -> str:
    def plain(text: str) -> str:
        """Without what would end a description, or start a group, in zsh's little language."""
        return (
            text.replace("\\", "").replace("[", "(").replace("]", ")").replace(":", "\\:").replace("\n", " ")
        )

    def spec(option: Option, name: str) -> str:
        often = "*" if option.repeats else f"({' '.join(option.names)})"
        values = f"({' '.join(option.choices)})" if option.choices else "_files" if option.files else ""
        return _quoted(f"{often}{name}[{plain(option.help)}]" + (f":value:{values}" if option.takes else ""))

    cases = []
    for command in found:
        lines = [spec(option, name) for option in command.options for name in option.names]
        lines.append(_quoted(f"*:word:({' '.join(command.words)})" if command.words else "*:file:_files"))
        cases.append(f"    {command.name}) _arguments \\\n      " + " \\\n      ".join(lines) + ";;\n")
    names = "\n".join(f"    {_quoted(f'{c.name}:{plain(c.summary)}')}" for c in found)
    return f"""\
#compdef fairevals
_fairevals() {{
  local -a commands
  commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
{"".join(cases)}  esac
}}
if [ "$funcstack[1]" = "_fairevals" ]; then _fairevals "$@"; else compdef _fairevals fairevals; fi
"""


def _fish(found: list[Command]) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", " ") + "'"

    lines = ["complete -c fairevals -n __fish_use_subcommand -f"]
    for command in found:
        lines.append(
            f"complete -c fairevals -n __fish_use_subcommand -f -a {command.name} -d {quoted(command.summary)}"
        )
        here = f"complete -c fairevals -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            names = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option.names)
            values = " -r" if option.files else " -x" if option.takes else ""
            values += f" -a {quoted(' '.join(option.choices))}" if option.choices else ""
            lines.append(f"{here} {names}{values} -d {quoted(option.help)}")
        if command.words:
            lines.append(f"{here} -f -a {quoted(' '.join(command.words))}")
    return "\n".join(lines) + "\n"


SHELLS: dict[str, Callable[[list[Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
