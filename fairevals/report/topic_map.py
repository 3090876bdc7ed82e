"""The map of runs and topics as a picture: for paper, and for readers without a script.

It is written as svg by hand, because it is one small image with names around it, and matplotlib lays out every name.
"""

import base64
import struct
import zlib
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from fairevals.io.out import format_number
from fairevals.report.style import INK
from fairevals.typing import Array, Floats, Ints

MAP_ROWS, MAP_COLUMNS = 60, 200
"""The largest map that is drawn."""
SHADES = ((242, 247, 251), (156, 197, 227), (43, 115, 173), (8, 61, 107))
"""From the worst value to the best."""
UNDEFINED = (200, 200, 200)
ROW, WIDEST, LETTER = 18.0, 24.0, 6.4
"""In pixels: the height of a row, the largest width of a column, and how wide a letter may be."""


def hardest_first(costs: Floats) -> Ints:
    """The columns of (runs, topics), that with the largest median cost first, those without a value last.

    >>> hardest_first(np.array([[0.1, 0.9, np.nan], [0.3, 0.7, np.nan]]))
    array([1, 0, 2])
    """
    known = ~np.isnan(costs).all(axis=0)
    medians = np.full(costs.shape[1], -np.inf)
    medians[known] = np.nanmedian(costs[:, known], axis=0)
    return np.argsort(-medians, kind="stable")


def shaded(values: Floats, *, lower: bool = False) -> Array:
    """The colours (…, 3) of values, the best the darkest; with `lower`, small values are better."""
    known = values[~np.isnan(values)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
    share = (values - low) / (high - low or 1.0)
    at, steps = 1 - share if lower else share, np.linspace(0, 1, len(SHADES))
    colours = np.stack([np.interp(at, steps, channel) for channel in zip(*SHADES, strict=True)], axis=-1)
    colours[np.isnan(values)] = UNDEFINED
    return np.asarray(np.rint(colours), dtype=np.uint8)


def png(colours: Array) -> bytes:
    """An image of (rows, columns, 3) bytes."""
    rows, columns = colours.shape[:2]
    lines = np.concatenate(
        [np.zeros((rows, 1), np.uint8), colours.reshape(rows, -1)], axis=1
    )  # 0: not filtered
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    chunks = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def map_svg(
    values: Floats, runs: Sequence[str], topics: Sequence[str], label: str, *, lower: bool = False
) -> bytes:
    """Values (runs, topics) as shades, darker is better; with `lower`, small values are. Undefined ones are grey."""
    rows, columns = values.shape
    wide = min(WIDEST, max(5.0, 900.0 / columns))
    left, below = (LETTER * max(map(len, names)) + 12 for names in (runs, topics))
    width, height = max(left + columns * wide + 8, left + 420), rows * ROW + below + 40
    every = int(np.ceil(12 / wide))  # only every second, third, … topic is named where names would overlap
    ends = [format_number(float(end(values)), 2) for end in (np.nanmin, np.nanmax)]
    scale = np.linspace(0, 1, 32)[None]

    def parts() -> Iterator[str]:
        yield _image(shaded(values, lower=lower), left, 4, columns * wide, rows * ROW)
        for r, run in enumerate(runs):
            yield _text(run, left - 6, 4 + (r + 0.5) * ROW + 4, "end")
        for t in range(0, columns, every):
            yield _text(topics[t], left + (t + 0.5) * wide + 4, rows * ROW + 10, "end", turned=True)
        y = height - 14
        yield _text(ends[0], left + 34, y, "end")
        yield _image(shaded(scale, lower=lower), left + 40, y - 10, 160, 12)
        yield _text(f"{ends[1]}  {label}", left + 206, y, "start")

    box = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts())}</svg>\n'.encode()


def _image(colours: Array, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" preserveAspectRatio="none"'
    data = base64.b64encode(png(colours)).decode("ascii")
    return f'<image {place} style="image-rendering: pixelated" href="data:image/png;base64,{data}"/>'


def _text(text: str, x: float, y: float, anchor: str, *, turned: bool = False) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    look = f'style="fill: {INK}; font: 11px sans-serif" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {look}{turn}>{escape(text)}</text>'
