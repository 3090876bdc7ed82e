"""Execute the notebooks in examples/.

    python docs/notebooks.py examples/*.ipynb            list the notebooks whose outputs are out of date
    python docs/notebooks.py --update examples/*.ipynb   execute them, and store the outputs

A notebook runs in a copy of examples/, beside copies of `runs/` and `qrels/`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

TOP = Path(__file__).resolve().parent.parent


def read(path: Path) -> Any:
    """A notebook, checked against the format."""
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def executed(path: Path) -> Any:
    """The notebook with the outputs that its cells have now."""
    notebook = read(path)
    with tempfile.TemporaryDirectory() as name:
        for part in ("runs", "qrels"):
            shutil.copytree(TOP / part, Path(name) / part)
        folder = Path(name) / "examples"
        folder.mkdir()
        NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
            record_timing=False,
        ).execute()
    # Which Python it was changes nothing.
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def texts(notebook: Any) -> list[str]:
    """The text outputs of all cells, in order."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs]


def figures(notebook: Any) -> list[int]:
    """The number of each cell that shows a figure."""
    cells = enumerate(notebook.cells)
    return [
        n for n, cell in cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]


def main(arguments: list[str]) -> int:
    """Check or update notebooks."""
    update = "--update" in arguments
    wrong = 0
    for path in (Path(name) for name in arguments if name != "--update"):
        old, new = read(path), executed(path)
        if texts(new) != texts(old) or figures(new) != figures(old):
            wrong += 1
            print(f"{'updated' if update else 'differs'}: {path}")
            if update:
                nbformat.write(new, path)
    return 0 if update else min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
