"""Every measure that ir-measures computes has the same value here, topic by topic and overall.

The cases come from ir-measures' own registry, so that a measure it adds is tested without a change here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pytest
from report_cases import make, write_task

import fairevals as fe
from fairevals.cli.main import main
from fairevals.errors import UsageError
from fairevals.evaluation.leaderboard import best_of, leaderboard
from fairevals.evaluation.scores import Scores
from fairevals.measures import INDEX, parse_measure
from fairevals.measures.base import NEUTRAL
from fairevals.measures.delegated import Delegated
from fairevals.statistics.compare import compare_with_baseline
from fairevals.statistics.inference import mean_interval
from fairevals.statistics.pairing import pair
from fairevals.statistics.tukey import significance_groups

# Values to try for each parameter besides its default; a required one has no default.
TRIED = {
    "cutoff": (1, 4, 15),
    "recall": (0.0, 0.1, 0.35, 1.0),
    "rel": (2,),
    "judged_only": (True,),
    "p": (0.9,),
    "normalize": (False,),
    "beta": (2.0, 0.5),
    "relative": (True,),
    "gains": ({0: 1, 1: 3, 2: 7},),
    "dcg": ("exp-log2",),
    "alpha": (0.3,),
    "T": (2.0,),
    "min_rel": (1,),
    "max_rel": (3,),
}
UNDEFINED_WITHOUT_RELEVANT = {"AP", "R", "Rprec", "Bpref", "infAP", "SetR", "SetF", "SetAP", "IPrec", "nDCG"}
DIVERSITY = {"ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"}
THEIRS = {
    name: measure
    for name, measure in ir_measures.measures.registry.items()
    if type(measure).__module__.startswith("ir_measures.")  # not those that this package registers there
}


def variants(measure):
    """The measure with every combination of the values above."""
    options = []
    for name, info in measure.SUPPORTED_PARAMS.items():
        default = () if info.required else (None,)
        allowed = [value for value in TRIED[name] if name != "dcg" or value in info.choices]
        options.append([(name, value) for value in (*default, *allowed)])
    for chosen in itertools.product(*options):
        yield measure(**{name: value for name, value in chosen if value is not None})


def supported(measure):
    return ir_measures.DefaultPipeline.supports(measure) and measure.NAME not in DIVERSITY


def draw(seed, grades, topics=8, missing=()):
    """Random judgements and a run without ties: some documents unjudged, some judged ones not retrieved.

    Every topic has a document of grade 2 and one of grade 3.
    """
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for topic in range(topics):
        name = str(topic)  # gdeval wants numbers
        documents = [f"d{rng.integers(1 << 30)}" for _ in range(45)]
        qrels[name] = {doc: int(rng.choice(grades)) for doc in documents[:25]} | {
            documents[0]: 2,
            documents[1]: 3,
        }
        retrieved = rng.permutation(documents)[: int(rng.integers(8, 40))]
        # Exact in float32, above and below 0: ir-measures' Compat takes 0 as the score of what was not retrieved.
        if name not in missing:
            run[name] = dict(
                zip(retrieved.tolist(), rng.permutation(100)[: len(retrieved)] - 49.5, strict=True)
            )
    return qrels, run


def ours(run, qrels, measures, **options):
    frame = fe.evaluate(run, qrels, measures, **options).frame(per_topic=True)
    return {(row.topic, row.measure): row.value for row in frame.itertuples()}


def theirs(run, qrels, measure):
    """ir-measures' values by topic; nothing for a topic where it fails."""
    values = {}
    for topic in qrels:
        with contextlib.suppress(ZeroDivisionError):  # Accuracy, where all retrieved documents are relevant
            part = {topic: run[topic]} if topic in run else {}
            metrics = ir_measures.iter_calc([measure], {topic: qrels[topic]}, part)
            values |= {metric.query_id: metric.value for metric in metrics}
    return values


def has_relevant(judged, measure):
    gains = measure.params.get("gains", {})
    return any(gains.get(grade, grade) >= measure.params.get("rel", 1) for grade in judged.values())


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_every_measure_of_the_registry(name):
    """Either an installed provider computes it and the value is the provider's, or it is refused with a reason."""
    computed = [measure for measure in variants(THEIRS[name]) if supported(measure)]
    for measure in variants(THEIRS[name]):
        if measure not in computed and measure.NAME not in INDEX:
            reason = "subtopics" if measure.NAME in DIVERSITY else "no installed package computes it"
            with pytest.raises(UsageError, match=reason):
                parse_measure(str(measure))
    for seed, grades in ((1, [0, 0, 1, 2, 3]), (2, [-1, 0, 0, 1, 2, 3])):
        qrels, run = draw(seed, grades)
        for measure in computed:
            if measure.NAME == "ERR" or (
                measure.NAME == "nDCG" and -1 in grades and measure["dcg"] != "log2"
            ):
                continue  # see test_err_has_the_max_grade_of_the_task; gdeval takes negative grades as negative gains
            try:
                expected = theirs(run, qrels, measure)
            except AssertionError as error:  # ranx, which ir-measures prefers if it is there, and pandas 3
                assert "dtype must be" in str(error)
                continue
            mine = ours(run, qrels, [str(measure)])
            native = not isinstance(parse_measure(str(measure)), Delegated)
            tolerance = (
                6e-6 if measure.NAME == "nDCG" and measure["dcg"] == "exp-log2" else 1e-12
            )  # five digits
            key = str(parse_measure(str(measure)))
            for topic in qrels:
                if native:
                    assert mine[topic, key] == pytest.approx(expected[topic], abs=tolerance), (topic, measure)
                else:
                    assert np.array_equal(mine[topic, key], expected.get(topic, math.nan), equal_nan=True), (
                        topic,
                        measure,
                    )
            if measure.NAME != "Accuracy" or len(expected) == len(qrels):
                total = ir_measures.calc_aggregate([measure], qrels, run)[measure]
                assert mine["all", key] == pytest.approx(total, abs=tolerance), measure


def test_what_no_installed_provider_computes():
    """A change of this list is fine, if it is meant: it says which names of ir-measures do not work here."""
    refused = {m.NAME for m in THEIRS.values() if not any(map(supported, variants(m)))}
    cwl_eval = {"BPM", "SDCG", "INST", "INSQ", "NERR8", "NERR9", "NERR10", "NERR11", "RBP"}
    installed = cwl_eval if ir_measures.cwl_eval.is_available() else set()
    assert refused == (DIVERSITY | cwl_eval) - installed


@pytest.mark.parametrize("name", sorted(THEIRS))
def test_topics_without_relevant_documents_and_missing_topics(name):
    qrels, run = draw(3, [0, 0, 1, 2, 3], missing=("6", "7"))
    qrels["1"] = dict.fromkeys(qrels["1"], 0)
    qrels["2"] = {doc: min(grade, 1) for doc, grade in qrels["2"].items()}
    qrels["7"] = dict.fromkeys(qrels["7"], 0)
    for measure in variants(THEIRS[name]):
        parsed = parse_measure(str(measure)) if supported(measure) else None
        if not isinstance(parsed, Delegated):
            continue
        mine, expected = ours(run, qrels, [measure]), theirs(run, qrels, measure)
        for topic, judged in qrels.items():
            undefined = measure.NAME in UNDEFINED_WITHOUT_RELEVANT and not has_relevant(judged, measure)
            value = math.nan if undefined else expected.get(topic, math.nan)
            assert np.array_equal(mine[topic, str(parsed)], value, equal_nan=True), (topic, measure)


def test_condensed_lists_reach_below_the_cutoff():
    """Issue: `P(judged_only=True)@10` was plain P@10, since only ten documents were handed over."""
    run = {
        "q": {f"u{rank}": 100.0 - rank for rank in range(10)}
        | {f"r{rank}": 50.0 - rank for rank in range(10)}
    }
    qrels = {"q": {f"r{rank}": 1 + rank % 2 for rank in range(10)}}
    names = ["P@10", "P(judged_only=True)@10", "nDCG(judged_only=True)@10", "AP(judged_only=True)@10"]
    assert [ours(run, qrels, [name])["q", name] for name in names[:2]] == [0.0, 1.0]
    together = ours(run, qrels, names)
    assert [together["q", name] for name in names] == pytest.approx([0.0, 1.0, together["q", names[2]], 1.0])
    gains = [1 + rank % 2 for rank in range(10)]
    dcg, ideal = (
        sum(gain / math.log2(k + 1) for k, gain in enumerate(order, 1))
        for order in (gains, sorted(gains, reverse=True))
    )
    assert together["q", names[2]] == pytest.approx(dcg / ideal)


def test_compat_ranks_retrieved_documents_first_in_the_ideal():
    """By hand: of three documents of one grade, the retrieved one is first in the ideal ranking."""
    run, qrels = {"q": {"b": 3.0, "a": 2.0, "c": 1.0}}, {"q": {"y": 1, "z": 1, "a": 1}}
    # The overlap of b, a, c with the ideal a, y, z is 0, 1/2, 1/3 at depths 1, 2, 3; the ideal's with itself is 1.
    expected = (0.5 * 1 / 2 + 0.25 * 1 / 3) / (1 + 0.5 + 0.25)
    assert ours(run, qrels, ["Compat(p=0.5)"])["q", "Compat(p=0.5)"] == pytest.approx(expected)


def test_negative_scores():
    """Only the order of a run matters, except to ir-measures' Compat: there, what was not retrieved has score 0."""
    qrels, run = draw(4, [0, 1, 2])
    run = {topic: {doc: score + 50 for doc, score in scores.items()} for topic, scores in run.items()}
    shifted = {topic: {doc: score - 1000 for doc, score in scores.items()} for topic, scores in run.items()}
    names = ["Judged@5", "infAP", "Bpref", "P(judged_only=True)@5", "Accuracy"]
    assert ours(run, qrels, names) == ours(shifted, qrels, names)
    compat = ir_measures.parse_measure("Compat")
    for each in (run, shifted):
        aggregate = ir_measures.calc_aggregate([compat], qrels, each)[compat]
        assert ours(each, qrels, ["Compat"])["all", "Compat"] == pytest.approx(aggregate, rel=1e-12)
    assert ours(run, qrels, ["Compat"]) != ours(shifted, qrels, ["Compat"])


def test_counts_are_summed_and_have_no_direction():
    qrels, run = draw(5, [0, 1], topics=4)
    measures = ["NumRet", "NumRel", "NumQ", "NumRet(rel=1)"]
    mine = ours(run, qrels, measures)
    assert mine["all", "NumRet"] == sum(map(len, run.values()))
    assert mine["all", "NumRel"] == sum(grade > 0 for judged in qrels.values() for grade in judged.values())
    assert mine["all", "NumQ"] == 4
    for name in measures:
        assert parse_measure(name).direction == NEUTRAL
        assert parse_measure(name).aggregation == "sum"
    assert parse_measure("Judged@10").aggregation == parse_measure("nDCG").aggregation == "mean"


COUNTS = Scores(
    runs=("a", "b"),
    measures=(parse_measure("NumRet"), parse_measure("RR")),
    topics=("1", "2", "3"),
    values=np.array([[[1.0, 2.0, np.nan], [1.0, 0.5, 0.25]], [[7.0, 9.0, 8.0], [0.5, 0.5, 0.2]]]),
    se=np.array([[[0.3, 0.4, np.nan], [np.nan] * 3], [[np.nan] * 3, [np.nan] * 3]]),
)


def test_a_sum_has_the_standard_error_of_a_sum():
    total = COUNTS.mean(0, 0)
    assert (total.value, total.se, total.topics, total.undefined) == (3.0, pytest.approx(0.5), 2, 1)
    assert COUNTS.mean(1, 0).value == 24.0
    interval, _ = mean_interval(COUNTS, 1, 0)
    half = 4.302652729911275  # t quantile with 2 degrees of freedom, times 3 topics, times 1/√3
    assert (interval.low, interval.high) == pytest.approx((24 - half * 3**0.5, 24 + half * 3**0.5))


def test_nothing_is_best_without_a_direction():
    assert best_of([COUNTS.cost(r, 0) for r in range(2)], 4) == [False, False]
    table = leaderboard(COUNTS)
    assert table.columns == ("run", "NumRet", "RR ↑")
    assert {column for _, column in table.marked} == {2}
    assert NEUTRAL.arrow == ""
    assert NEUTRAL.words == "no direction"


def test_tests_of_counts_name_no_winner():
    pairs = pair(COUNTS, 0, 1, 0)
    assert pairs.differences.tolist() == [6.0, 7.0]
    assert (pairs.wins, pairs.losses) == (0, 0)
    rows = compare_with_baseline(COUNTS, "a").of("NumRet")
    assert [row.verdict for row in rows] == [""]
    assert len(significance_groups(COUNTS, 0).letters) == 2


@pytest.mark.skipif(not ir_measures.gdeval.is_available(), reason="gdeval needs perl")
def test_err_has_the_max_grade_of_the_task():
    """The documented difference: gdeval fixes the highest grade at 4, here it is the task's."""
    qrels, run = draw(6, [0, 0, 1, 2, 3, 4])
    for name in ("ERR@1", "ERR@4", "ERR@15"):
        expected = theirs(run, qrels, ir_measures.parse_measure(name))
        mine = ours(run, qrels, [name])
        assert [mine[topic, name] for topic in qrels] == pytest.approx([expected[t] for t in qrels], abs=6e-6)
    lower = {topic: {doc: min(grade, 3) for doc, grade in judged.items()} for topic, judged in qrels.items()}
    theirs_lower = theirs(run, lower, ir_measures.ERR @ 15)
    assert all(ours(run, lower, ["ERR@15"])[t, "ERR@15"] > 1.2 * theirs_lower[t] for t in qrels)


def test_rbp_by_its_formula():
    """ir-measures leaves RBP to cwl_eval, which need not be installed; the formula is short."""
    qrels, run = draw(7, [0, 0, 1, 2, 3])
    mine = ours(run, qrels, ["RBP(p=0.9,rel=2)"])
    for topic, scores in run.items():
        order = sorted(scores, key=scores.get, reverse=True)
        hits = [qrels[topic].get(doc, 0) >= 2 for doc in order]
        expected = 0.1 * sum(0.9**k for k, hit in enumerate(hits) if hit)
        assert mine[topic, "RBP(p=0.9,rel=2)"] == pytest.approx(expected, abs=1e-12)


def test_accuracy_is_undefined_where_the_provider_has_no_value():
    """Accuracy divides by the retrieved documents that are not relevant, and leaves out topics without a hit."""
    qrels = {"all": {"a": 1, "b": 1}, "half": {"a": 1, "b": 0}, "no": {"a": 1}}
    run = {"all": {"a": 2.0, "b": 1.0}, "half": {"b": 2.0, "a": 1.0, "c": 0.5}, "no": {"x": 1.0}}
    with pytest.raises(ZeroDivisionError):
        list(ir_measures.iter_calc([ir_measures.Accuracy], qrels, run))
    mine = ours(run, qrels, ["Accuracy"])
    assert mine["half", "Accuracy"] == mine["all", "Accuracy"] == 0.5
    assert math.isnan(mine["no", "Accuracy"])


def test_sampled_rankings_each_go_to_the_provider():
    rng = np.random.default_rng(8)
    qrels, run = draw(8, [0, 1, 2], topics=3)
    lists = [
        {
            topic: dict(zip(rng.permutation(list(docs)).tolist(), range(len(docs), 0, -1), strict=True))
            for topic, docs in run.items()
        }
        for _ in range(4)
    ]
    rows = [
        {"topic": topic, "doc": doc, "score": score, "sample": number}
        for number, sample in enumerate(lists)
        for topic, docs in sample.items()
        for doc, score in docs.items()
    ]
    for name in ("infAP", "P(judged_only=True)@4", "R@4", "Compat"):
        mine = ours(pd.DataFrame(rows), qrels, [name], policy="samples")
        each = [theirs(sample, qrels, ir_measures.parse_measure(name)) for sample in lists]
        for topic in qrels:
            assert mine[topic, name] == pytest.approx(np.mean([values[topic] for values in each]), abs=1e-12)


def test_negative_grades_never_become_relevant():
    """With rel=0, a document judged −2 is not relevant, also where its topic has no other grades."""
    qrels = {"spam": {"a": -1, "b": -2}, "mixed": {"a": -1, "b": 0}}
    run = {topic: {"a": 2.0, "b": 1.0} for topic in qrels}
    mine = ours(run, qrels, ["Accuracy(rel=0)", "NumRel", "NumRet(rel=1)", "SetP", "Judged"])
    assert math.isnan(mine["spam", "Accuracy(rel=0)"])
    assert mine["mixed", "Accuracy(rel=0)"] == 0.0
    for topic in qrels:
        assert [mine[topic, name] for name in ("NumRel", "NumRet(rel=1)", "SetP", "Judged")] == [0, 0, 0, 1]
    with pytest.raises(UsageError, match=r"cannot compute SetP\(rel=0\): .* should be positive"):
        fe.evaluate(run, qrels, ["SetP(rel=0)"]).frame()


def test_gains_may_raise_grades_below_minus_one():
    qrels, run = {"q": {"a": -2, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    name = "nDCG(gains={-2:3})"
    assert ours(run, qrels, [name])["q", str(parse_measure(name))] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Nothing", "unknown measure 'Nothing'"),
        ("Bpref@5", "unsupported params found: .'cutoff'."),
        ("R(rel='x')@5", "invalid param rel='x'"),
        ("R(rel=-1)@5", "rel must be between 0 and 1,000,000"),
        ("R@0", "expected a whole number above 0"),
        ("IPrec", r"IPrec requires the parameter recall \(recall threshold\)"),
        ("nDCG(gains={1:'x'})@5", "gains must be given as"),
        ("alpha_nDCG@10", "alpha_nDCG@10 needs judgements of subtopics, which are not supported"),
    ],
)
def test_refusals_give_the_reason(text, reason):
    with pytest.raises(UsageError, match=reason):
        Delegated(text)


def test_other_names_of_native_measures():
    for alias, name in (
        ("MAP(rel=2)@5", "AP(rel=2)@5"),
        ("MRR", "RR"),
        ("Precision@3", "P@3"),
        ("NDCG@3", "nDCG@3"),
    ):
        assert parse_measure(alias) == parse_measure(name)
    assert isinstance(parse_measure("MAP(judged_only=True)"), Delegated)


def test_a_required_cutoff_may_come_from_the_task():
    assert str(parse_measure("R").with_cutoff(20)) == "R@20"
    assert str(parse_measure("R@5").with_cutoff(20)) == "R@5"
    assert str(parse_measure("IPrec@1").with_cutoff(20)) == "IPrec@1.0"
    with pytest.raises(UsageError, match="R needs a cutoff, such as R@10"):
        fe.evaluate({"q": {"a": 1.0}}, {"q": {"a": 1}}, ["R"]).frame()


@pytest.mark.parametrize("name", ["R@5", "Success@5", "Judged@5", "Accuracy@5", "nDCG(gains={1:4})@5"])
def test_reading_stops_at_the_cutoff_where_that_is_certain(name):
    assert parse_measure(name).depth == 5


@pytest.mark.parametrize("name", ["R(judged_only=True)@5", "NumRet", "IPrec@0.1", "Compat", "Judged", "SetP"])
def test_reading_does_not_stop_elsewhere(name):
    assert parse_measure(name).depth is None


@pytest.mark.parametrize("measures", [["NumRet"], ["NumRet", "NumQ", "AWRF(attr='G')", "nDCG@5"]])
def test_a_report_on_counts_names_no_best_run(tmp_path, measures):
    task, files = write_task(tmp_path / "task", ["a", "b"], ["q1", "q2", "q3"])
    Path(files[0]).write_text("".join(Path(files[0]).read_text().splitlines(keepends=True)[:-5]))
    assert make(task, files, tmp_path / "out", *(word for m in measures for word in ("-m", m))) == 0
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    answers = text[text.index('<dl class="answers">') : text.index("</dl>")]
    assert "NumRet" not in answers
    assert "NumRet: no direction" in text
    assert "none is better" not in text
    assert ("nDCG@5" in answers) == ("nDCG@5" in measures)
    record = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert "NaN" not in json.dumps(record)


def test_the_command_prints_sums_and_refuses_with_a_message(tmp_path, capsys):
    (tmp_path / "q").write_text("q1 0 a 1\nq2 0 b 1\n")
    (tmp_path / "r").write_text("q1 Q0 a 1 2 run\nq1 Q0 b 2 1 run\nq2 Q0 b 1 1 run\n")
    score = ["score", "--qrels", str(tmp_path / "q"), str(tmp_path / "r")]
    assert main([*score, "-m", "NumRet", "-m", "Accuracy", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["run,all,NumRet,3.0,", "run,all,Accuracy,1.0,"]
    assert main([*score, "-m", "alpha_nDCG@5"]) == 2
    assert "alpha_nDCG@5 needs judgements of subtopics" in capsys.readouterr().err
