"""The picture of runs and topics: what its colours and names say, read back by another library."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser

import matplotlib.image
import numpy as np

from fairevals.report.topic_map import SHADES, UNDEFINED, hardest_first, map_svg


class Texts(HTMLParser):
    def __init__(self, svg: bytes) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(svg.decode())

    def handle_data(self, data):
        self.found.append(data)


def image(svg: bytes):
    """The colours of the cells, (runs, topics, 3)."""
    data = re.findall(r"data:image/png;base64,([^\"]+)", svg.decode())[0]
    return np.rint(255 * matplotlib.image.imread(io.BytesIO(base64.b64decode(data)), format="png")[..., :3])


def test_the_best_is_darkest_and_undefined_is_grey():
    values = np.array([[0.0, 0.5, np.nan], [1.0, 0.25, 0.75]])
    cells = image(map_svg(values, ["a", "b"], ["t1", "t2", "t3"], "nDCG"))
    assert cells.shape == (2, 3, 3)
    assert cells[0, 0].tolist() == list(SHADES[0]) and cells[1, 0].tolist() == list(SHADES[-1])
    assert cells[0, 2].tolist() == list(UNDEFINED)
    dark = -cells.sum(axis=2)
    assert dark[0, 0] < dark[1, 1] < dark[0, 1] < dark[1, 2] < dark[1, 0]
    lower = image(map_svg(values, ["a", "b"], ["t1", "t2", "t3"], "D_group", lower=True))
    assert lower[0, 0].tolist() == list(SHADES[-1]) and lower[1, 0].tolist() == list(SHADES[0])


def test_names_are_text():
    names = ["<script>alert(1)</script>", "a&b\"'"]
    texts = Texts(map_svg(np.array([[0.1], [0.2]]), names, ["</svg>"], "x")).found
    assert texts[:3] == [*names, "</svg>"] and texts[-2].endswith("0.20  x")


def test_of_many_topics_some_are_named():
    values = np.random.default_rng(0).random((2, 200))
    texts = Texts(map_svg(values, ["a", "b"], [f"t{i}" for i in range(200)], "x")).found
    named = [int(text[1:]) for text in texts if re.fullmatch(r"t\d+", text)]
    assert named == list(range(0, 200, named[1])) and 30 < len(named) < 90


def test_equal_values_and_the_order_of_topics():
    assert len(map_svg(np.full((1, 3), 0.5), ["a"], ["x", "y", "z"], "m")) > 100
    costs = np.array([[0.2, np.nan, 0.9], [0.4, np.nan, 0.1], [0.6, np.nan, 0.9]])
    assert hardest_first(costs).tolist() == [2, 0, 1]
