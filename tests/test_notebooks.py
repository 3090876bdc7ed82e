"""The notebooks in examples/ run, print what they show, and have their figures."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
# Figures, and by how much a number may differ: what is trained differs a little from processor to processor.
NOTEBOOKS = {"score-and-compare": (4, 1e-9), "train-and-compare": (3, 5e-3)}
NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def notebooks():
    for needed in ("nbclient", "ipykernel"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location("notebooks", TOP / "docs" / "notebooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_notebook_is_tested():
    assert sorted(NOTEBOOKS) == sorted(path.stem for path in (TOP / "examples").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_outputs_are_what_the_cells_give(notebooks, name, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    path = TOP / "examples" / f"{name}.ipynb"
    old, new = notebooks.read(path), notebooks.executed(path)
    hint = "run: python docs/notebooks.py --update examples/*.ipynb"
    many, tolerance = NOTEBOOKS[name]
    assert notebooks.figures(new) == notebooks.figures(old), hint
    assert len(notebooks.figures(old)) == many
    before, now = ("\n".join(notebooks.texts(notebook)) for notebook in (old, new))
    assert NUMBER.sub("#", now) == NUMBER.sub("#", before), hint
    for a, b in zip(NUMBER.findall(now), NUMBER.findall(before), strict=True):
        assert math.isclose(float(a), float(b), rel_tol=1e-6, abs_tol=tolerance), (a, b, hint)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_small_and_has_no_error(notebooks, name):
    path = TOP / "examples" / f"{name}.ipynb"
    assert path.stat().st_size < 300_000
    cells = [cell for cell in notebooks.read(path).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]
