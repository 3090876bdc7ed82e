"""Run the commands in the README and the docs.

    python docs/console.py README.md docs/*.md            list the pages whose outputs are out of date
    python docs/console.py --update README.md docs/*.md   update them

A block that begins with ```console has `$ command` lines, each followed by its output, standard error included. All
blocks of a page run one after the other in one folder, beside copies of `runs/` and `qrels/`, or in a copy of the
folder of `examples/` that has the page's name.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)


def commands(block: str) -> list[str]:
    """The commands of a block; a command continues after a backslash and until the end of a here-document."""
    lines: list[str] = []
    until = ""
    for line in block.splitlines():
        if until or (lines and lines[-1].endswith("\\")):
            lines[-1] += "\n" + line
            until = "" if line == until else until
        elif line.startswith("$ "):
            lines.append(line[2:])
            here = re.search(r"<<'?(\w+)'?", line)
            until = here[1] if here else ""
    return lines


def run(command: str, folder: Path) -> str:
    """The output of a command, standard error included."""
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def rerun(text: str, page: str) -> str:
    """The page with the output that its commands print now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("runs", "qrels"):
            shutil.copytree(TOP / part, folder / part)
        if (TOP / "examples" / page).is_dir():
            folder = folder / page
            shutil.copytree(TOP / "examples" / page, folder)

        def fresh(match: re.Match[str]) -> str:
            shown = [f"$ {command}\n{run(command, folder)}" for command in commands(match[1])]
            return (
                "```console\n"
                + "".join(part if part.endswith("\n") else part + "\n" for part in shown)
                + "```"
            )

        return BLOCK.sub(fresh, text)


def main(arguments: list[str]) -> int:
    """Check or update pages."""
    update = "--update" in arguments
    wrong = 0
    for name in arguments:
        if name == "--update":
            continue
        path = Path(name)
        old = path.read_text(encoding="utf-8")
        new = rerun(old, path.stem)
        if new != old:
            wrong += 1
            print(f"{'updated' if update else 'differs'}: {path}")
            if update:
                path.write_text(new, encoding="utf-8")
    return 0 if update else min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
