"""Utility measures agree with trec_eval: as wrapped by pytrec_eval on random topics, and on trec_eval's own vectors.

By design, a judged topic that a run leaves out has value 0, and nDCG and AP are undefined on a topic without a relevant
document (0 with the conventions of trec_eval).
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe
from fairevals.io.task import Task

CONVENTIONS = ("fairevals", "trec_eval")
CUTOFFS = (1, 3, 5, 10)
NAMES = {"nDCG": "ndcg", "AP": "map", "RR": "recip_rank"}
NAMES |= {f"nDCG@{k}": f"ndcg_cut_{k}" for k in CUTOFFS}
NAMES |= {f"P@{k}": f"P_{k}" for k in CUTOFFS}
NAMES |= {f"AP@{k}": f"map_cut_{k}" for k in CUTOFFS}
MEASURES = [
    f"ndcg_cut.{','.join(map(str, CUTOFFS))}",
    f"P.{','.join(map(str, CUTOFFS))}",
    f"map_cut.{','.join(map(str, CUTOFFS))}",
    "ndcg",
    "map",
    "recip_rank",
]

docs = st.sampled_from([f"{prefix}{number}" for prefix in ("d", "d-", "D", "é") for number in range(5)])
# Exact in float32, as which trec_eval compares scores: few different ones, so that many documents tie.
scores = st.sampled_from([3.0, 2.5, 2.0, 1.0, 0.5, 0.0, -0.0, -1.0, -2.5])
topics = st.sampled_from([f"q{number}" for number in range(1, 25)])
runs = st.dictionaries(
    topics, st.dictionaries(docs, scores, min_size=1, max_size=16), min_size=8, max_size=24
)
grades = st.sampled_from([-2, -1, 0, 0, 1, 1, 2, 3])
judgements = st.dictionaries(
    topics, st.dictionaries(docs, grades, min_size=1, max_size=12), min_size=8, max_size=24
)


def values(run, qrels, measures, task=None):
    frame = fe.evaluate(run, qrels, list(measures), task=task).frame(per_topic=True)
    return {(row.topic, row.measure): row.value for row in frame.itertuples()}


@pytest.mark.slow
@pytest.mark.parametrize("conventions", CONVENTIONS)
@given(run=runs, qrels=judgements)
def test_every_topic_agrees(run, qrels, conventions):
    ours = values(run, qrels, NAMES, Task(conventions=conventions))
    # Negative grades can make trec_eval's C code write outside its arrays; to these measures they are as good as 0.
    tame = {topic: {doc: max(grade, 0) for doc, grade in judged.items()} for topic, judged in qrels.items()}
    theirs = pytrec_eval.RelevanceEvaluator(tame, MEASURES).evaluate(run)
    assert {topic for topic, _ in ours} == {*qrels, "all"}
    for topic, judged in qrels.items():
        has_relevant = any(grade > 0 for grade in judged.values())
        for name, theirs_name in NAMES.items():
            value = ours[topic, name]
            if not has_relevant and name.startswith(("nDCG", "AP")):
                assert value == 0 if conventions == "trec_eval" else math.isnan(value)
                assert topic not in theirs or theirs[topic][theirs_name] == 0
            elif topic not in run:
                assert value == 0
            else:
                assert value == pytest.approx(theirs[topic][theirs_name], abs=1e-9), (topic, name)
    for name in NAMES:
        defined = [ours[topic, name] for topic in qrels if not math.isnan(ours[topic, name])]
        mean = math.fsum(defined) / len(defined) if defined else math.nan
        assert ours["all", name] == pytest.approx(mean, abs=1e-12, nan_ok=True)


def _ndcg_slowly(run, qrels, cutoff):
    """As the paper has it, with gain 2^g−1, one document after the other."""
    order = sorted(run, key=lambda doc: (run[doc], doc.encode()), reverse=True)[:cutoff]
    gains = [2 ** max(qrels.get(doc, 0), 0) - 1 for doc in order]
    ideal = sorted((2 ** max(grade, 0) - 1 for grade in qrels.values()), reverse=True)[:cutoff]

    def discounted(worth):
        return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(worth, 1))

    return discounted(gains) / discounted(ideal) if discounted(ideal) else math.nan


@given(runs, judgements, st.sampled_from([None, 1, 4, 10]))
def test_exponential_gain(run, qrels, cutoff):
    name = "nDCG(dcg='exp-log2')" + (f"@{cutoff}" if cutoff else "")
    ours = values(run, qrels, [name])
    for topic, judged in qrels.items():
        expected = _ndcg_slowly(run.get(topic, {}), judged, cutoff)
        assert ours[topic, name] == pytest.approx(expected, abs=1e-12, nan_ok=True)


WEIGHTS = {"rbp(0.6)": lambda k: 0.6 ** (k - 1), "trecfair": lambda k: 1 / math.log2(max(k, 2))}


@pytest.mark.parametrize("attention", WEIGHTS)
@given(run=runs, qrels=judgements, cutoff=st.sampled_from([1, 3, 10]))
def test_any_attention_discounts_the_ideal_too(attention, run, qrels, cutoff):
    name = f"nDCG(attention={attention!r})@{cutoff}"
    ours = values(run, qrels, [name])
    for topic, judged in qrels.items():
        scored = run.get(topic, {})
        order = sorted(scored, key=lambda doc: (scored[doc], doc.encode()), reverse=True)
        lists = [judged.get(doc, 0) for doc in order], sorted(judged.values(), reverse=True)
        weigh = WEIGHTS[attention]
        dcg, ideal = (sum(max(g, 0) * weigh(k) for k, g in enumerate(grades[:cutoff], 1)) for grades in lists)
        expected = dcg / ideal if ideal else math.nan
        assert ours[topic, name] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_text_after_the_tag_is_ignored_with_the_conventions_of_trec_eval_only(tmp_path):
    (tmp_path / "a.run").write_text("1 Q0 a 1 2.0 tag and more\n1 Q0 b 2 1.0 tag\n")
    table = fe.evaluate(
        tmp_path / "a.run", {"1": {"b": 1}}, ["RR"], task=Task(conventions="trec_eval")
    ).frame()
    assert table[["run", "value"]].to_numpy().tolist() == [["tag", 0.5]]
    with pytest.raises(fe.InputError, match=r"8 columns.*expected 6 columns"):
        fe.evaluate(tmp_path / "a.run", {"1": {"b": 1}}, ["RR"]).frame()


def test_one_topic_by_hand():
    """Ties go to the higher id; the judged document that was not found still counts in the ideal."""
    run = {"q": {"a": 1.0, "b": 1.0, "c": 2.0, "d": 0.5}}
    qrels = {"q": {"a": 2, "b": 1, "c": -1, "e": 3}}
    ours = values(run, qrels, ["nDCG@2", "nDCG", "P@2", "AP", "RR"])
    ranked = [0, 1, 2, 0]  # c (negative), b, a, d (unjudged)
    dcg = [sum(g / math.log2(k + 1) for k, g in enumerate(ranked[:n], 1)) for n in (2, 4)]
    ideal = [sum(g / math.log2(k + 1) for k, g in enumerate([3, 2, 1][:n], 1)) for n in (2, 3)]
    assert ours["q", "nDCG@2"] == pytest.approx(dcg[0] / ideal[0], abs=1e-15)
    assert ours["q", "nDCG"] == pytest.approx(dcg[1] / ideal[1], abs=1e-15)
    assert ours["q", "P@2"] == 0.5
    assert ours["q", "AP"] == pytest.approx((1 / 2 + 2 / 3) / 3)
    assert ours["q", "RR"] == 0.5


def test_very_negative_grades_do_no_harm():
    """TREC's web tracks judge spam -2. Handed on as it is, it crashes pytrec_eval sooner or later."""
    qrels = {str(topic): {"a": -2, "b": 1, "c": -30} for topic in range(50)}
    qrels |= {f"spam{topic}": {"a": -1, "c": -2} for topic in range(50)}
    run = {topic: {"a": 3.0, "b": 2.0, "c": 1.0} for topic in qrels}
    for _ in range(40):
        frame = fe.evaluate(run, qrels, ["AP", "RR", "Bpref"]).frame()
        assert frame.value.tolist() == [0.5, 0.25, 1.0]


VECTORS = Path(__file__).parent / "data" / "trec_eval"
EXACT = {
    "map": "AP",
    "recip_rank": "RR",
    "ndcg": "nDCG",
    "Rprec": "Rprec",
    "bpref": "Bpref",
    "infAP": "infAP",
}
EXACT |= {"set_P": "SetP", "set_relative_P": "SetP(relative=True)", "set_recall": "SetR", "set_map": "SetAP"}
EXACT |= {"set_F": "SetF", "rbp": "RBP(p=0.9,rel=1)"}
EXACT |= {"num_q": "NumQ", "num_ret": "NumRet", "num_rel": "NumRel", "num_rel_ret": "NumRet(rel=1)"}
FAMILIES = {"P": "P", "recall": "R", "map_cut": "AP", "ndcg_cut": "nDCG", "success": "Success"}
FAMILIES |= {"iprec_at_recall": "IPrec"}
COUNTS = {"NumQ", "NumRet", "NumRel", "NumRet(rel=1)"}
NOT_HERE = {
    "runid",
    "gm_map",
    "gm_bpref",
    "relstring",
    "utility",
    "11pt_avg",
    "binG",
    "G",
    "ndcg_rel",
    "Rndcg",
}
NOT_HERE |= {"rbp_resid", "num_nonrel_judged_ret", "Rprec_mult", "relative_P", "unj"}
"""Names of trec_eval for which this package has no measure."""


def our_name(theirs):
    """Our name of a measure of trec_eval, or None."""
    family, _, parameter = theirs.rpartition("_")
    if theirs in NOT_HERE or family in NOT_HERE:
        return None
    return EXACT[theirs] if theirs in EXACT else f"{FAMILIES[family]}@{float(parameter):g}"


def vectors(results, output, conventions):
    """(topic, measure): (our value as trec_eval prints it, what trec_eval printed)."""
    run: dict[str, dict[str, float]] | Path = VECTORS / results
    if conventions == "fairevals":  # trec_eval ignores text after the tag, which is an error here
        lines, run = run.read_text().splitlines(), {}
        for topic, _, doc, _, score in (line.split()[:5] for line in lines):
            run.setdefault(topic, {})[doc] = float(score)
    printed = {}
    for line in (VECTORS / output).read_text().splitlines():
        theirs, topic, value = line.split(None, 2)
        name = our_name(theirs)
        if name is not None:
            printed[topic, str(fe.measures.parse_measure(name))] = value
    task = Task(conventions=conventions)
    scores = values(run, VECTORS / "qrels.test", sorted({name for _, name in printed}), task=task)
    return {
        key: (f"{scores[key]:.0f}" if key[1] in COUNTS else f"{scores[key]:.4f}", value)
        for key, value in printed.items()
    }


# Recall levels as numbers of documents: trec_eval 10 rounds them to the nearest; trec_eval 9, in pytrec_eval and so the
# value of ir-measures, rounds them up: 47.4 relevant documents are 47 or 48, and 46.2 are 46 or 47.
ROUNDING = {("301", "IPrec@0.1"): ("0.2096", "0.2098"), ("302", "IPrec@0.6"): ("0.1420", "0.1528")}
ROUNDING |= {("all", "IPrec@0.1"): ("0.3884", "0.3885"), ("all", "IPrec@0.6"): ("0.0822", "0.0858")}
# trec_eval -c counts the topic that the run leaves out, and its relevant documents. ir-measures does not, and so by
# default neither do we.
MISSING = {("302", "NumRel"): ("0", "77"), ("all", "NumRel"): ("484", "561"), ("all", "NumQ"): ("2", "3")}


@pytest.mark.parametrize("conventions", CONVENTIONS)
@pytest.mark.parametrize(
    ("results", "output", "measures", "differing"),
    [
        ("results.test", "out.test", 28, {key: pair for key, pair in ROUNDING.items() if key[0] == "all"}),
        ("results.test", "out.test.aq", 66, ROUNDING),
        (
            "results.trunc",
            "out.test.aqc",
            66,
            {key: ROUNDING[key] for key in [("301", "IPrec@0.1")]} | MISSING,
        ),
    ],
)
def test_the_vectors_of_trec_eval(results, output, measures, differing, conventions):
    """All printed digits agree, except where two versions of trec_eval, or trec_eval and ir-measures, disagree.

    Every topic has relevant documents, and a topic that the run leaves out counts as with -c.
    """
    if conventions == "trec_eval":
        differing = {key: pair for key, pair in differing.items() if key not in MISSING}
    compared = vectors(results, output, conventions)
    assert len({measure for _, measure in compared}) == measures
    assert {key: pair for key, pair in compared.items() if pair[0] != pair[1]} == differing
