"""How every figure looks, how it is saved, and how it is put into a page."""

import base64
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from fairevals.errors import UsageError, escape
from fairevals.io.streams import written_bytes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One shape per colour, for print in black and white."""
HATCHES = ("", "///", "\\\\\\", "---", "|||", "xxx", "+++", "//--")
"""Lines only: patterns of dots make large svg files."""

INK, PAPER = "#222222", "#ffffff"
"""Text and background. In a page only these two follow the reader's light or dark scheme."""

_SETTINGS: Any = {
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": "#888888",
    "hatch.linewidth": 0.4,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "figure.dpi": 100,
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "fairevals",  # the same figure gives the same file
    "svg.fonttype": "none",
    "axes.axisbelow": True,
    "text.parse_math": False,  # a $ in a run's name is just a $
}


def styled() -> AbstractContextManager[None]:
    """A context with the settings of all figures; the caller's matplotlib settings are not changed."""
    return mpl.rc_context(_SETTINGS)


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """A figure to draw on inside the context of `styled`; the size is in inches."""
    with styled():
        yield Figure(figsize=(width, height))


def figure_bytes(figure: Figure, kind: str = "svg") -> bytes:
    """The figure as the bytes of a file; the same figure always gives the same bytes."""
    out = io.BytesIO()
    metadata: Any = {"Date": None} if kind == "svg" else None
    with styled(), warnings.catch_warnings():
        # Text in an svg stays text, so a glyph that matplotlib's own font lacks does no harm.
        warnings.filterwarnings("ignore", message=r"(?s).*(Glyph|Matplotlib currently does not support)")
        if (engine := figure.get_layout_engine()) is not None and figure.axes:
            # savefig would draw the whole figure once more to lay it out.
            engine.execute(figure)
            with mpl.rc_context({"figure.constrained_layout.use": False}):
                figure.set_layout_engine()
        figure.savefig(out, format=kind, dpi=150, metadata=metadata)
    if kind != "svg":
        return out.getvalue()
    # Two decimals of a point are enough to see; more would be a third of the file.
    return re.sub(rb' d="[^"]*"', lambda path: re.sub(rb"(\.\d\d)\d+", rb"\1", path[0]), out.getvalue())


def band(
    axes: Axes, x: ArrayLike, mean: ArrayLike, deviation: ArrayLike, style: int, label: str, **line: Any
) -> None:
    """A line of means with a band of ± one deviation; a NaN deviation has no band, a NaN mean no line."""
    middle, around = np.asarray(mean), np.nan_to_num(np.asarray(deviation, dtype=np.float64))
    axes.plot(x, middle, label=label, **look(style), **line)
    fill: Any = {"color": look(style)["color"], "alpha": 0.18, "linewidth": 0}
    axes.fill_between(x, middle - around, middle + around, **fill)


def look(style: int) -> dict[str, Any]:
    """The colour and the marker of the series with a number."""
    return {"color": COLOURS[style % len(COLOURS)], "marker": MARKERS[style % len(MARKERS)]}


def filling(series: int) -> tuple[str, str]:
    """The colour and the hatch of the area with a number; the first 64 all differ.

    >>> filling(0), filling(8)
    (('#0072B2', ''), ('#0072B2', '///'))
    """
    turn = series // len(COLOURS)
    return COLOURS[series % len(COLOURS)], HATCHES[(series + turn) % len(HATCHES)]


def figure_legend(figure: Figure, where: str = "lower center", *, reverse: bool = False) -> None:
    """One legend outside all Axes of a figure, with each label once."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        handles, texts = axes.get_legend_handles_labels()
        entries |= zip(texts, handles, strict=True)
    columns = 1 if where.startswith("right") else int(max(1, figure.get_figwidth() // 2.4))
    place: Any = {"loc": f"outside {where}", "ncols": columns, "reverse": reverse}
    figure.legend(entries.values(), entries, frameon=False, **place)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as svg, png or pdf, by the file's suffix; a failure leaves no partial file."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("svg", "png", "pdf"):
        raise UsageError(f"{escape(str(path))}: a figure is written as .svg, .png or .pdf")
    with written_bytes(path) as file:
        file.write(figure_bytes(figure, kind))


_SCHEMES = (
    "<style>:root{--ink:#222222;--paper:#ffffff}"
    "@media (prefers-color-scheme:dark){:root{--ink:#d7dae0;--paper:#1b1e24}}</style>"
)


def data_uri(svg: bytes) -> str:
    """An svg of `figure_bytes` as a data: address, whose colours follow the reader's light or dark scheme."""
    text = svg.decode()
    text = text[text.index("<svg") :]
    for colour, name in ((INK, "ink"), ("#000000", "ink"), (PAPER, "paper")):
        for what in ("fill", "stroke"):
            text = text.replace(f"{what}: {colour}", f"{what}: var(--{name})")
    end = text.index(">") + 1
    data = (text[:end] + _SCHEMES + text[end:]).encode()
    return "data:image/svg+xml;base64," + base64.b64encode(data).decode("ascii")


def middle_cut(name: str, length: int) -> str:
    """A name, safe to show, without its middle if it is long: names of runs often differ at their ends only.

    >>> middle_cut("THUIR-QD-RG-1-baseline", 12)
    'THUIR-…eline'
    """
    if len(name) > 2 * length:  # what is dropped may be megabytes long
        name = name[:length] + name[-length:]
    text = str(escape(name, 12 * len(name) + 1))
    tail = (length - 1) // 2
    return text if len(text) <= length else f"{text[: length - 1 - tail]}…{text[len(text) - tail :]}"


def labels(names: Sequence[str], length: int = 24) -> list[str]:
    """Short texts for the names, safe to draw and all different.

    Where names would look the same without their middle, they are cut around the first place where they differ.

    >>> labels(["bm25", "a" * 30 + "1", "a" * 30 + "2", "a" * 31 + "2"], 8)
    ['bm25', 'aaaa…aa1', '…aa2', '…aaa2']
    >>> labels(["team-one-run-of-day", "team-two-run-of-day"], 8)
    ['…m-one-…', '…m-two-…']
    """
    texts = [middle_cut(name, length) for name in names]
    alike: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        alike.setdefault(text, []).append(place)
    for places in alike.values():
        if len({names[place] for place in places}) > 1:
            letters = zip(*(names[place] for place in places), strict=False)
            same = next(
                (at for at, some in enumerate(letters) if len({*some}) > 1),
                min(len(names[place]) for place in places),
            )
            start = max(0, same - (length - 2) // 3)
            for place in places:
                rest = names[place][start:]
                end = "…" if len(rest) > length - 1 else ""
                texts[place] = str(escape(f"…{rest[: length - 1 - len(end)]}{end}", 12 * length))
    seen = Counter[str]()
    for place, text in enumerate(texts):
        seen[text] += 1
        texts[place] = f"{text} ({seen[text]})" if seen[text] > 1 else text
    return texts
