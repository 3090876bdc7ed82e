"""Numbers, sizes and names as people read them on a page."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from fairevals.report.board import PLACES

if TYPE_CHECKING:
    from markupsafe import Markup


def number(value: float | None, places: int = PLACES) -> str:
    """A number for people: a real minus sign, a dash where there is none.

    >>> number(-0.25, 2), number(float("nan")), number(-0.00001)
    ('−0.25', '–', '0.0000')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:.{places}f}"
    return text.replace("-", "−") if float(text) else text.replace("-", "")


def signed(value: float | None, places: int = PLACES) -> str:
    """The same with a plus sign.

    >>> signed(0.25, 2), signed(-0.25, 2), signed(0.0, 2)
    ('+0.25', '−0.25', '0.00')
    """
    text = number(value, places)
    return text if value is None or math.isnan(value) or value <= 0 or not float(text) else f"+{text}"


def p_value(p: float) -> str:
    """A p-value, never printed as 0.

    >>> p_value(0.00001), p_value(0.0312), p_value(float("nan"))
    ('<0.001', '0.031', '–')
    """
    return "<0.001" if p < 0.001 else number(p, 3)


def size_of(count: int) -> str:
    """Bytes for people.

    >>> size_of(12), size_of(160272)
    ('12 B', '160 kB')
    """
    return (
        f"{count} B" if count < 1000 else f"{count / 1000:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"
    )


def breakable(name: str) -> Markup:
    """A measure's name that may be broken before its parameters and its cutoff.

    >>> breakable("GF(attr='<b>')@20")
    Markup('GF<wbr>(attr=&#39;&lt;b&gt;&#39;)<wbr>@20')
    """
    from markupsafe import Markup

    return Markup("<wbr>").join(part for part in re.split(r"(?=[(@])|(?<=,)", name) if part)
