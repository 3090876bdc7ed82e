"""The Python interface in the lines with which it was designed."""

from __future__ import annotations

import fnmatch

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import fairevals as fe
from fairevals import ERR, GFR, D_group, nDCG

TOPICS = [f"R{number}" for number in range(1, 7)] + [f"M{number}" for number in range(1, 7)]
DOCS = [f"d{number}" for number in range(12)]


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    lines = [f"{topic} 0 {doc} {grade}\n" for topic in TOPICS for doc, grade in _grades(rng).items()]
    (tmp_path / "q.qrels").write_text("".join(lines))
    runs = {name: {topic: _scores(rng) for topic in TOPICS} for name in ("bm25", "dense", "fair")}
    return runs, {"SEX": {doc: "f" if number % 3 else "m" for number, doc in enumerate(DOCS)}}


def _grades(rng):
    return dict(zip(DOCS, [2, 1, *rng.integers(0, 3, len(DOCS) - 2).tolist()], strict=True))


def _scores(rng):
    return dict(zip(DOCS, rng.normal(size=len(DOCS)).tolist(), strict=True))


@pytest.fixture
def without_windows():
    from matplotlib import pyplot

    before = mpl.get_backend()
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.mark.usefixtures("without_windows")
def test_results(data):
    runs, groups = data
    result = fe.evaluate(
        runs,
        qrels="q.qrels",
        measures=[nDCG @ 10, GFR(util="ERR") @ 20, D_group(attr="SEX")],
        groups=groups,
        policy="pl",
    )
    assert all(mark in result._repr_html_() for mark in ("↑", "↓", "<b>", "undefined"))
    long = result.frame(per_topic=True)
    assert list(long.columns) == ["run", "topic", "measure", "value", "se"]
    assert len(long) == 3 * 3 * (len(TOPICS) + 1)
    wide = result.pivot()
    assert wide.shape == (3, 3)

    # What the result does not know, the groups of topics and another measure, is given first.
    types = {"R": ["R*"], "M": ["M*"]}
    task = fe.Task(topic_groups={"TYPE": types})
    measures = [nDCG @ 10, ERR @ 20, "AWRF(attr='SEX')@20"]
    result = fe.evaluate(runs, qrels="q.qrels", measures=measures, groups=groups, task=task)
    by_type = result.by("TYPE")
    values = result.pivot(per_topic=True)["nDCG@10"].loc["bm25"]
    of_r = values[[topic for topic in TOPICS if fnmatch.fnmatch(topic, "R*")]]
    assert by_type.loc[("bm25", "nDCG@10"), "R"] == pytest.approx(of_r.mean())
    compared = result.compare(baseline="bm25", test="ttest", correct="holm").frame()
    assert set(compared.run) == {"dense", "fair"}
    assert result.report("report/").read_text(encoding="utf-8").startswith("<!doctype html>")
    axes = result.plot.tradeoff("nDCG@10", "AWRF(attr='SEX')@20")
    assert isinstance(axes, Axes)
    for draw in (result.plot.groups, result.plot.topics, result.plot.exposure):
        assert isinstance(draw(), Axes)


def test_estimators(data):
    rng = np.random.default_rng(2)
    X, qid = rng.uniform(0, 3, (60, 2)), np.repeat(np.arange(6), 10)
    y, groups = X.sum(axis=1).clip(0, 5), rng.choice(["f", "m"], 60)
    policy = fe.FairPGRank(disparity=D_group(attr="SEX")).fit(X, y, qid=qid, groups=groups)
    assert policy.predict(X).shape == (60,)
    rankings = policy.sample(X, qid=qid, n=100)
    assert set(rankings) == set(range(6)) and rankings[0].shape == (100, 10)
    policy.save("dir")
    np.testing.assert_array_equal(fe.load_policy("dir").predict(X), policy.predict(X))


@pytest.mark.parametrize("scores", [[2.0, 1.0, 0.5, -1.0], [[2.0, 1.0, 0.5], [1.0, 0.0, -np.inf]]])
def test_plackett_luce(scores):
    pl = fe.PlackettLuce(scores)
    rankings = pl.sample(1000, k=10, rng=0)
    np.testing.assert_array_equal(rankings, pl.sample(1000, k=10, rng=0))
    assert pl.log_prob(rankings).max() <= 0
    exposure = pl.exposure(attention="log2", k=None, method="exact")
    assert exposure.value.shape == np.shape(scores)
    probabilities = pl.rank_probabilities(k=10)
    np.testing.assert_allclose(probabilities.sum(axis=-2), np.where(probabilities.sum(axis=-2) > 0, 1.0, 0.0))


def test_one_measure_or_its_name_where_a_list_is():
    run, qrels = {"q": {"a": 1.0}}, {"q": {"a": 1}}
    for alone in ("nDCG@10", nDCG @ 10, [nDCG @ 10]):
        pd.testing.assert_frame_equal(
            fe.evaluate(run, qrels, alone).frame(), fe.evaluate(run, qrels, ["nDCG@10"]).frame()
        )
    with pytest.raises(ValueError, match="unknown measure"):
        fe.evaluate(run, qrels, "nDGC@10")
