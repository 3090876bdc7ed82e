"""How every figure looks, and how it is saved."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairevals.errors import UsageError, shown
from fairevals.io.streams import written_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's palette, which the colour-blind can tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Shapes that go with the colours, for print in black and white."""
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++", "ooo", "---")

_SETTINGS: Any = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "fairevals",  # the same figure gives the same file
    "svg.fonttype": "none",
    "axes.axisbelow": True,
    "text.parse_math": False,  # a $ in a run's name is a dollar
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw inside this; nothing of the caller's matplotlib settings is changed."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def save(figure: Figure, path: Path) -> None:
    """Write a figure as svg, png or pdf, by the file's ending, whole or not at all."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png", "pdf"):
        raise UsageError(f"{shown(str(path))}: a figure is written as .svg, .png or .pdf")
    out = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else None
    with styled():
        figure.savefig(out, format=kind, dpi=150, metadata=metadata)
    with written_bytes(path) as file:
        file.write(out.getvalue())
