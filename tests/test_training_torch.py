"""The adapter of the documentation, where PyTorch is installed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from fairevals.training import Dataset, Objective, PolicyGradient, fit

PAGE = Path(__file__).parents[1] / "docs" / "training.md"


def adapter_source():
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    (source,) = [block for block in blocks if "TorchScorer" in block]
    return source


def test_the_documented_adapter_has_about_twenty_lines():
    lines = [line for line in adapter_source().splitlines() if line.strip()]
    assert len(lines) <= 22
    compile(adapter_source(), "adapter", "exec")


def test_the_documented_adapter_learns():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    space: dict = {}
    exec(adapter_source(), space)
    rng = np.random.default_rng(0)
    features = [rng.normal(size=(5, 3)) for _ in range(20)]
    data = Dataset.of(features, [(x[:, 0] > 0).astype(int) for x in features])
    fitted = fit(space["TorchScorer"](3), PolicyGradient(Objective.of()), data, data, epochs=8)
    assert fitted.curve[-1][2] > fitted.curve[0][2] + 0.1
