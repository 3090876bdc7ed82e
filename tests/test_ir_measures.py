"""ir-measures knows the native measures once both are imported, and treats what is undefined as undefined."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import ir_measures
import pandas as pd
import pytest

import fairevals
from fairevals import UsageError
from fairevals.measures import INDEX, measure_class

# ir-measures parses names with parts of `ast` that Python 3.12 deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:.*ast:DeprecationWarning")

ROOT = Path(__file__).parents[1]
TASK = ROOT / "qrels" / "task.toml"
QRELS = list(ir_measures.read_trec_qrels(str(ROOT / "qrels" / "sample.qrels")))
RUN = list(ir_measures.read_trec_run(str(ROOT / "runs" / "bm25.run")))
THEIRS = {"nDCG", "ERR", "P", "AP", "RR", "RBP"}
PARAMETERS = {"attr": "'ORIGIN'", "protected": "'group'"}


def example(name: str, task: fairevals.Task) -> str:
    """The measure with whatever parameters it cannot do without."""
    group = next(iter(task.attributes["ORIGIN"].groups))
    needed = [f.name for f in measure_class(name).parameters() if f.name in PARAMETERS]
    given = ",".join(f"{p}={PARAMETERS[p]}".replace("'group'", repr(group)) for p in needed)
    return f"{name}({given})@20" if given else f"{name}@20"


ACROSS = {"Gini", "Coverage", "MMF", "L2", "JME"}
"""Measures with one value for all topics, which ir-measures cannot have."""
NATIVE = [example(name, fairevals.read_task(TASK)) for name in INDEX if name not in THEIRS | ACROSS]


@pytest.fixture
def task():
    with fairevals.task(TASK):
        yield


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def printed(code: str) -> str:
    """What a new interpreter prints, where anything on standard error is a failure."""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert process.stderr == ""
    return process.stdout


@pytest.mark.parametrize("first", ["fairevals", "ir_measures", "fairevals.ecosystem.provider"])
def test_either_may_be_imported_first(first):
    """And `import fairevals` loads nothing large, and leaves Python's import system alone."""
    code = f"""
import sys
before = list(sys.meta_path)
import {first}, fairevals, ir_measures
assert not {{"numpy", "pandas", "scipy", "matplotlib", "dataclasses"}} & set(sys.modules)
assert sys.meta_path == before
print(ir_measures.GF)
print(ir_measures.parse_measure("GF(attr='HINDEX',div='RNOD')@20"), ir_measures.GF(attr="A") @ 5)
print(ir_measures.fairevals.NAME)
"""
    assert printed(code) == "GF\nGF(attr='HINDEX',div='RNOD')@20 GF(attr='A')@5\nfairevals\n"


def test_without_ir_measures_the_rest_works(tmp_path):
    """And with a version of it that works differently, which is reported."""
    code = f"""
import sys, warnings
sys.path.insert(0, {str(tmp_path)!r})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import fairevals
print(fairevals.evaluate({{"q": {{"a": 1.0}}}}, {{"q": {{"a": 1}}}}, "nDCG").frame().value.tolist())
for warning in caught:
    print(warning.category.__name__, str(warning.message))
"""
    (tmp_path / "ir_measures.py").write_text("raise ModuleNotFoundError(name='ir_measures')")
    assert printed(code) == "[1.0]\n"
    (tmp_path / "ir_measures.py").write_text("def parse_measure(): pass")
    value, warning = printed(code).splitlines()
    assert value == "[1.0]"
    assert warning.startswith("FairevalsWarning fairevals could not add its measures to ir-measures (")


@pytest.mark.parametrize("name", NATIVE)
def test_every_native_measure_has_the_same_values_as_here(name, task):
    measure = ir_measures.parse_measure(name)
    assert str(measure) == str(fairevals.parse_measure(name))
    table = fairevals.evaluate(ROOT / "runs" / "bm25.run", measures=[name], task=TASK).frame(per_topic=True)
    expected = dict(zip(table.topic, table.value, strict=True))
    values = {m.query_id: m.value for m in ir_measures.iter_calc([measure], QRELS, RUN)}
    assert values.keys() == expected.keys() - {"all"}
    assert all(same(values[topic], expected[topic]) for topic in values)
    assert same(ir_measures.calc_aggregate([measure], QRELS, RUN)[measure], expected["all"])
    aggregated, by_topic = ir_measures.calc([measure], QRELS, RUN)
    assert same(aggregated[measure], expected["all"])
    assert len(by_topic) == len(values)


def test_one_call_with_theirs_and_ours(task):
    measures = [
        ir_measures.nDCG @ 10,
        ir_measures.AP,
        ir_measures.iRBU @ 20,
        ir_measures.GF(attr="HINDEX") @ 20,
    ]
    together = ir_measures.calc_aggregate(measures, iter(QRELS), iter(RUN))
    evaluator = ir_measures.evaluator(measures, QRELS)
    assert evaluator.calc_aggregate(RUN) == together == evaluator.calc_aggregate(iter(RUN))
    for measure in measures:
        assert measure.calc_aggregate(QRELS, RUN) == together[measure]


class Judged(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    quality: int = 0


class Scored:
    """Not even a tuple."""

    def __init__(self, query_id, doc_id, score):
        self.query_id, self.doc_id, self.score = query_id, doc_id, score


def forms():
    frame = pd.DataFrame(RUN)
    qrels = pd.DataFrame(QRELS)
    nested: dict[str, dict[str, float]] = {}
    judged: dict[str, dict[str, int]] = {}
    for item in RUN:
        nested.setdefault(item.query_id, {})[item.doc_id] = item.score
    for item in QRELS:
        judged.setdefault(item.query_id, {})[item.doc_id] = item.relevance
    # Columns that mean something else here must not be taken for the ones that are meant.
    wide = frame.assign(topic="x", doc="text", query="words", rank=0)
    return {
        "tuples": (QRELS, RUN),
        "iterators": (iter(QRELS), iter(RUN)),
        "frames": (qrels, frame),
        "frames with other columns": (qrels.assign(grade=9), wide),
        "dicts": (judged, nested),
    }


@pytest.mark.parametrize("form", forms())
def test_whatever_ir_measures_accepts(form, task):
    measures = [ir_measures.iRBU @ 20, ir_measures.GF(attr="HINDEX") @ 20]
    assert ir_measures.calc_aggregate(measures, *forms()[form]) == ir_measures.calc_aggregate(
        measures, QRELS, RUN
    )


def test_objects_of_other_libraries_in_evaluate():
    names = ["nDCG@10", "iRBU@20"]
    expected = fairevals.evaluate(
        str(ROOT / "runs" / "bm25.run"), str(ROOT / "qrels" / "sample.qrels"), names
    ).frame()
    frame = pd.DataFrame(RUN)
    terrier = frame.rename(columns={"query_id": "qid", "doc_id": "docno"}).assign(
        query="words of the topic", rank=0
    )
    runs = {
        "tuples": RUN,
        "generic": [Scored(*item) for item in RUN],
        "iterator": (item for item in RUN),
        "ir-measures": frame,
        "PyTerrier": terrier,
    }
    qrels = [Judged(item.query_id, item.doc_id, item.relevance) for item in QRELS]
    judged = pd.DataFrame(QRELS).rename(columns={"query_id": "qid", "doc_id": "docno", "relevance": "label"})
    for form, run in runs.items():
        table = fairevals.evaluate(run, judged if form == "PyTerrier" else qrels, names).frame()
        assert table.value.tolist() == expected.value.tolist(), form
        assert set(table.run) == {"run"}
    several = fairevals.evaluate({"a": iter(RUN), "b": frame}, iter(qrels), names).frame()
    assert several.value.tolist() == expected.value.tolist() * 2
    assert (
        fairevals.evaluate([iter(RUN), frame], qrels, names, jobs=2).frame().value.tolist()
        == several.value.tolist()
    )
    with pytest.raises(UsageError, match="cannot take an int as qrels"):
        fairevals.evaluate(frame, 3, names).frame()
    with pytest.raises(UsageError, match=r"cannot take a list as a run.*query_id, doc_id and score"):
        fairevals.evaluate([[("q", "d", 1.0)]], qrels, names).frame()


@pytest.mark.parametrize("column", ["doc", "doc_id", "docno", "docid"])
def test_groups_with_other_names_of_columns(column):
    groups = pd.DataFrame({column: ["a", "b"], "group": ["x", "y"], "qid": ["q", "q"]})
    table = fairevals.evaluate(
        {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1}}, ["AWRF(attr='A')@1"], groups={"A": groups}
    ).frame()
    assert table.value.tolist() == pytest.approx([0.6887], abs=1e-4)


@pytest.mark.slow  # ranx compiles its functions
def test_ranx_objects():
    ranx = pytest.importorskip("ranx", reason="ranx is not installed (it needs numba)")
    judged, nested = forms()["dicts"]
    run, qrels = ranx.Run(nested, name="mine"), ranx.Qrels(judged)
    names = ["nDCG@10", "iRBU@20"]
    expected = fairevals.evaluate({"mine": nested}, judged, names).frame()
    pd.testing.assert_frame_equal(fairevals.evaluate(run, qrels, names).frame(), expected)
    pd.testing.assert_frame_equal(fairevals.evaluate([run], qrels, names).frame(), expected)


def test_ir_datasets_objects():
    formats = pytest.importorskip("ir_datasets.formats", reason="ir_datasets is not installed")
    run = [formats.GenericScoredDoc(*item) for item in RUN]
    qrels = [formats.TrecQrel(item.query_id, item.doc_id, item.relevance, "0") for item in QRELS]
    judged, nested = forms()["dicts"]
    pd.testing.assert_frame_equal(
        fairevals.evaluate(run, iter(qrels), "nDCG@10").frame(),
        fairevals.evaluate({"run": nested}, judged, "nDCG@10").frame(),
    )


QRELS_OF_THREE = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1, "c": 1}, "q3": {"c": 0}}
RUN_OF_ONE = {"q1": {"a": 2.0, "b": 1.0, "x": 0.0}}
GROUPS = {"SEX": {"a": "she", "b": "he", "c": "he"}}


def test_what_is_missing_or_undefined_is_no_zero():
    """q2 is left out by the run, q3 has nothing relevant."""
    disparity, utility, fairness = ir_measures.D_ind, ir_measures.iRBU @ 5, ir_measures.GF(attr="SEX") @ 5
    with fairevals.task(groups=GROUPS):
        aggregated, by_topic = ir_measures.calc([disparity, utility, fairness], QRELS_OF_THREE, RUN_OF_ONE)
    values = {(m.query_id, str(m.measure)): m.value for m in by_topic}
    assert values["q1", "D_ind"] > 0
    assert math.isnan(values["q2", "D_ind"]) and math.isnan(values["q3", "D_ind"])
    assert aggregated[disparity] == values["q1", "D_ind"]  # a third of it if 0 stood in for the others
    assert (values["q2", "iRBU@5"], values["q2", "GF(attr='SEX')@5"]) == (0, 0)
    assert aggregated[utility] == values["q1", "iRBU@5"] / 3
    with fairevals.task(groups=GROUPS):
        assert math.isnan(ir_measures.calc_aggregate([disparity], QRELS_OF_THREE, {})[disparity])
        assert ir_measures.calc_aggregate([utility], QRELS_OF_THREE, [])[utility] == 0
        assert math.isnan(ir_measures.calc_aggregate([utility], [], RUN_OF_ONE)[utility])
    assert math.isnan(disparity.DEFAULT) and utility.DEFAULT == 0


def test_direction_is_said():
    assert (ir_measures.D_ind.direction, ir_measures.GF.direction) == ("lower", "higher")
    assert ir_measures.DP.direction == "nearer to 0"
    assert "lower is better" in ir_measures.D_ind.SHORT_DESC


@pytest.mark.parametrize(
    "name", ["GF(attr='HINDEX')@20", "GFR@20", "AWRF(attr='ORIGIN')", "M1(attr='ORIGIN')"]
)
def test_without_a_task_there_are_no_groups(name):
    with pytest.raises(UsageError, match=r"needs groups: .*with fairevals\.task\('task\.toml'\)"):
        ir_measures.calc_aggregate([ir_measures.parse_measure(name)], QRELS, RUN)


def test_contexts_nest_and_end():
    measure = ir_measures.AWRF(attr="SEX") @ 1
    with fairevals.task(groups=GROUPS):
        outer = ir_measures.calc_aggregate([measure], QRELS_OF_THREE, RUN_OF_ONE)
        evaluator = ir_measures.evaluator([measure], QRELS_OF_THREE)
        with fairevals.task(groups={"SEX": {"a": "x", "b": "x", "c": "x"}}):
            assert ir_measures.calc_aggregate([measure], QRELS_OF_THREE, RUN_OF_ONE)[measure] == 1
        with fairevals.task(TASK), pytest.raises(UsageError, match="unknown attribute 'SEX'"):
            ir_measures.calc_aggregate([measure], QRELS_OF_THREE, RUN_OF_ONE)
        assert ir_measures.calc_aggregate([measure], QRELS_OF_THREE, RUN_OF_ONE) == outer
    assert evaluator.calc_aggregate(RUN_OF_ONE) == outer  # it was made under the task
    with pytest.raises(UsageError, match="needs groups"):
        ir_measures.calc_aggregate([measure], QRELS_OF_THREE, RUN_OF_ONE)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("GF(atr='SEX')", "GF has no parameter 'atr' .it takes cutoff, attr, div"),
        ("GF@20", "GF requires attr="),
        ("iRBU(phi=2)", "phi=2 is not a possible value"),
    ],
)
def test_wrong_parameters(wrong, message):
    with pytest.raises(UsageError, match=message):
        ir_measures.calc_aggregate([ir_measures.parse_measure(wrong)], QRELS, RUN)


def test_ours_of_theirs(task):
    """nDCG, ERR and P stay ir-measures' own unless this package's provider is asked."""
    err, ndcg = ir_measures.ERR @ 20, ir_measures.nDCG(dcg="exp-log2") @ 20
    ours = ir_measures.fairevals.calc_aggregate([err, ndcg], QRELS, RUN)
    table = fairevals.evaluate(ROOT / "runs" / "bm25.run", measures=[str(err), str(ndcg)], task=TASK).frame()
    assert [ours[err], ours[ndcg]] == table.value.tolist()
    # A topic without anything relevant: undefined here, and left out of the mean, where trec_eval says 0.
    first = {"q1": {"a": 2.0, "b": 1.0, "x": 0.0}, "q3": {"c": 1.0}}
    assert ir_measures.calc_aggregate([ir_measures.nDCG], QRELS_OF_THREE, first)[ir_measures.nDCG] == 1 / 3
    assert (
        ir_measures.fairevals.calc_aggregate([ir_measures.nDCG], QRELS_OF_THREE, first)[ir_measures.nDCG]
        == 0.5
    )
    assert ir_measures.fairevals.calc([ir_measures.nDCG], QRELS_OF_THREE, first).aggregated == {
        ir_measures.nDCG: 0.5
    }
    pipeline = [p for p in ir_measures.DefaultPipeline.providers if p.NAME == "fairevals"]
    assert len(pipeline) == 1
    assert not any(pipeline[0].supports(m) for m in (err, ndcg, ir_measures.P @ 5, ir_measures.AP))


def test_a_policy_for_all_runs():
    measure = ir_measures.D_ind @ 2
    run, qrels = {"q": {"a": 0.0, "b": 0.0}}, {"q": {"a": 1, "b": 1}}
    assert ir_measures.calc_aggregate([measure], qrels, run)[measure] > 0.1
    with fairevals.task(policy="pl"):
        assert ir_measures.calc_aggregate([measure], qrels, run)[measure] == pytest.approx(0, abs=1e-9)


def test_the_calls_that_pyterrier_makes(task):
    """All systems with the same qrels, in batches of topics too; the largest grade is the task's in all of them."""
    measures = [ir_measures.nDCG @ 10, ir_measures.GF(attr="HINDEX") @ 20, ir_measures.D_ind @ 20]
    assert set(ir_measures.run_inputs(measures)) == {"query_id", "doc_id", "score"}
    assert set(ir_measures.qrel_inputs(measures)) == {"query_id", "doc_id", "relevance"}
    for measure in ir_measures.measures.registry.values():
        measure.__doc__, measure.__module__ = measure.__doc__, measure.__module__  # PyTerrier sets both
    qrels, run = pd.DataFrame(QRELS), pd.DataFrame(RUN)
    whole = {(m.query_id, m.measure): m.value for m in ir_measures.iter_calc(measures, qrels, run)}
    batches = {}
    for topic in sorted(set(qrels.query_id)):
        for m in ir_measures.iter_calc(measures, qrels[qrels.query_id == topic], run[run.query_id == topic]):
            batches[m.query_id, m.measure] = m.value
    assert whole.keys() == batches.keys()
    assert all(same(whole[key], batches[key]) for key in whole)
    nothing = pd.DataFrame([], columns=["query_id", "doc_id", "score"])
    values = {m.measure: m.value for m in ir_measures.iter_calc(measures, qrels[:1], nothing)}
    assert (values[measures[0]], values[measures[1]]) == (0, 0) and math.isnan(values[measures[2]])


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_an_experiment_of_pyterrier(task):
    """PyTerrier imports, and runs this, without Java.

    Its averages are plain sums over all topics: a measure that is undefined on one has no average there (NaN),
    where a 0 in its place would have read as fair. Means of `perquery=True` leave those topics out.
    """
    pt = pytest.importorskip("pyterrier", reason="PyTerrier is not installed")
    names = {"query_id": "qid", "doc_id": "docno", "relevance": "label"}
    qrels = pd.DataFrame(QRELS).rename(columns=names)
    topics = pd.DataFrame({"qid": sorted(set(qrels.qid)), "query": "words"})
    systems = []
    for system in ("bm25", "fair-rerank"):
        items = ir_measures.read_trec_run(str(ROOT / "runs" / f"{system}.run"))
        frame = pd.DataFrame(items).rename(columns=names)
        systems.append(
            frame.assign(rank=frame.groupby("qid").score.rank(ascending=False, method="first") - 1)
        )
    fairness = ir_measures.parse_measure("GFR(util='iRBU')@20")
    measures = [ir_measures.nDCG @ 10, fairness, ir_measures.D_ind @ 20]
    values = pt.Experiment(systems, topics, qrels, measures)
    expected = fairevals.evaluate(
        [ROOT / "runs" / "bm25.run", ROOT / "runs" / "fair-rerank.run"],
        task=TASK,
        measures=["nDCG@10", str(fairness), "D_ind@20"],
    ).frame()
    always = expected[expected.measure != "D_ind@20"].value.to_numpy()
    assert values[["nDCG@10", str(fairness)]].to_numpy().ravel() == pytest.approx(always, abs=1e-12)
    assert values["D_ind@20"].isna().all()
    by_topic = pt.Experiment(systems, topics, qrels, measures, perquery=True, names=["bm25", "fair"])
    means = by_topic.groupby(["name", "measure"], sort=False).value.mean()
    assert sorted(means) == pytest.approx(sorted(expected.value), abs=1e-12)
