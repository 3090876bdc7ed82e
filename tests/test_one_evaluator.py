"""One evaluator: the same number at every door, and nobody gains by silence or padding.

Each of these fails on version 0.1.
"""

from __future__ import annotations

import csv
import io
import itertools
import math

import numpy as np
import pandas as pd
import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.errors import InputError, RemarkWarning, UsageError
from fairevals.evaluation import Plan, load_collection, score
from fairevals.evaluation.leaderboard import leaderboard, ranking_of_runs
from fairevals.io.task import Task

GROUPS = {"a": "x", "b": "y", "c": "x", "d": "y"}
QRELS = {"t1": {"a": 1, "b": 1, "c": 0, "d": 0}, "t2": {"a": 2, "b": 1, "c": 1, "d": 2}}


def attribute(**more):
    return fe.Attribute.of("G", GROUPS, **more)


def run_of(orders):
    return {topic: {doc: float(-rank) for rank, doc in enumerate(docs)} for topic, docs in orders.items()}


FULL = run_of({"t1": "abcd", "t2": "dbca"})
SILENT = run_of({"t2": "dbca"})
"""The same without its most unfair topic."""


def scores_of(runs, measures, **task):
    collection = load_collection(Task(**task), QRELS, {"G": attribute()})
    named = fe.collection.inputs.list_runs(runs)
    return score(named, collection, Plan.of(collection, measures))


# --- Missing topics ---


class TestSilence:
    def test_a_run_that_omits_its_unfair_topic_does_not_win(self):
        scores = scores_of({"full": FULL, "silent": SILENT}, ["D_group(attr='G')"])
        full, silent = (scores.mean(r, 0).value for r in (0, 1))
        assert silent < full  # the mean alone would favour it
        assert scores.incomplete.tolist() == [[False], [True]]
        assert [scores.runs[r] for r in ranking_of_runs(scores)] == ["full", "silent"]
        table = leaderboard(scores)
        assert table.marked == {(0, 1)}
        assert str(table.rows[1][1]).endswith("†")
        assert any("silent: incomplete for D_group" in note for note in scores.notes)

    def test_python_is_told_as_well(self):
        with pytest.warns(RemarkWarning, match="silent: incomplete for D_group"):
            fe.evaluate(
                {"full": FULL, "silent": SILENT}, QRELS, ["D_group(attr='G')"], groups={"G": GROUPS}
            ).frame()

    @pytest.mark.parametrize(
        ("measure", "options"),
        [
            ("rND(attr='G',protected='x',step=2)", {}),
            ("AWRF(attr='H')", {}),
            ("NDKL(attr='H')", {}),
            ("Skew(attr='H')@3", {}),
            ("Infeasible(attr='H')@3", {}),
            ("ARP(attr='G')", {}),
            ("UEXP(attr='G')", {}),
            ("EE_L(attr='G',target='task',relevant_only=True)@5", {}),
            ("FAIR(attr='G',protected='x',null='hypergeometric')", {"candidates": "retrieved"}),
            ("DP(attr='G')", {"candidates": "retrieved"}),
            ("M1(attr='G')", {"conventions": "trec_eval"}),
            ("nDCG", {"conventions": "trec_eval", "missing": "skip"}),
            ("DP(attr='G',protected='x')", {"candidates": "retrieved"}),
        ],
    )
    def test_silence_loses_where_the_judged_documents_alone_have_no_value(self, measure, options):
        """t1 has nothing relevant, one judged document, and that one has no group in H; the run knows more."""
        qrels = {"t1": {"a": 0}, "t2": {"a": 1, "b": 1, "c": 0, "d": 0}}
        groups = {"G": attribute(), "H": fe.Attribute.of("H", {"b": "x", "c": "y"}, unmapped="skip")}
        collection = load_collection(Task(**options), qrels, groups)
        honest, silent = run_of({"t1": "abcd", "t2": "bacd"}), run_of({"t2": "abcd"})
        runs = fe.collection.inputs.list_runs({"honest": honest, "silent": silent})
        scores = score(runs, collection, Plan.of(collection, [measure]))
        assert not np.isnan(scores.values[0, 0, 0])
        assert scores.incomplete.tolist() == [[False], [True]]
        assert leaderboard(scores).marked == {(0, 1)}

    def test_ranking_what_has_no_group_first_loses(self):
        """GF@1 is undefined where a document without group is first, as it is for the judged ones by grade."""
        qrels = {"t1": {"u": 2, "a": 1}, "t2": {"a": 2, "b": 1}}
        groups = {"G": fe.Attribute.of("G", {"a": "x", "b": "y"}, unmapped="skip")}
        collection = load_collection(None, qrels, groups)
        runs = {"honest": {"t1": "au", "t2": "ba"}, "dodging": {"t1": "ua", "t2": "ab"}}
        listed = fe.collection.inputs.list_runs({name: run_of(run) for name, run in runs.items()})
        scores = score(listed, collection, Plan.of(collection, ["GF(attr='G')@1", "GFR@1"]))
        assert scores.incomplete.tolist() == [[False, False], [True, True]]

    def test_a_run_that_could_have_a_value_is_complete_beside_one_that_leaves_the_topic_out(self):
        """Nobody who ranks documents of t2 has a value there; the silent run's 0 is no value."""
        qrels = {"t1": {"a": 2, "b": 1}, "t2": {"u": 2, "a": 1}}
        groups = {"G": fe.Attribute.of("G", {"a": "x", "b": "y"}, unmapped="skip")}
        collection = load_collection(None, qrels, groups)
        runs = {"honest": run_of({"t1": "ab", "t2": "u"}), "silent": run_of({"t1": "ab"})}
        listed = fe.collection.inputs.list_runs(runs)
        assert not score(listed, collection, Plan.of(collection, ["GF(attr='G')"])).incomplete[0].any()

    def test_utility_of_a_missing_topic_is_zero_and_complete(self):
        scores = scores_of({"full": FULL, "silent": SILENT}, ["nDCG", "D_group(attr='G')"])
        assert scores.values[1, 0, 0] == 0.0
        assert scores.incomplete.tolist() == [[False, False], [False, True]]

    def test_missing_topics_can_be_skipped_and_then_are_incomplete(self):
        scores = scores_of({"full": FULL, "silent": SILENT}, ["nDCG"], missing="skip")
        assert math.isnan(scores.values[1, 0, 0])
        assert scores.incomplete.tolist() == [[False], [True]]

    def test_an_undefined_value_that_no_run_has_makes_nobody_incomplete(self):
        qrels = {**QRELS, "t3": {"a": 0, "b": 0}}
        collection = load_collection(None, qrels, {"G": attribute()})
        runs = fe.collection.inputs.list_runs({"one": FULL, "two": run_of({"t1": "ba", "t2": "ab"})})
        scores = score(runs, collection, Plan.of(collection, ["D_group(attr='G')"]))
        assert np.isnan(scores.values[:, 0, 2]).all()
        assert not scores.incomplete.any()

    def test_hiding_a_group_makes_dp_undefined_but_wins_nothing(self):
        hidden = run_of({"t1": "ac", "t2": "dbca"})  # nothing of group y on t1: DP is undefined there
        scores = scores_of({"full": FULL, "hidden": hidden}, ["DP(attr='G',protected='y')"])
        assert math.isnan(scores.values[1, 0, 0])
        assert scores.incomplete.tolist() == [[False], [True]]


class TestCheating:
    """Ways to gain by silence or sabotage that an attacker found."""

    def test_a_missing_topic_makes_nobody_else_incomplete(self):
        """No document of t2 has a membership: GF is undefined there for all, whatever a silent run gets."""
        qrels = {"t1": {"a": 2, "b": 1}, "t2": {"u": 2, "v": 1}}
        groups = {"G": fe.Attribute.of("G", {"a": "x", "b": "y"}, unmapped="skip")}
        collection = load_collection(None, qrels, groups)
        honest, silent = run_of({"t1": "ab", "t2": "uv"}), run_of({"t1": "ba"})
        runs = fe.collection.inputs.list_runs({"honest": honest, "silent": silent})
        scores = score(runs, collection, Plan.of(collection, ["GF(attr='G')", "GFR"]))
        assert not scores.incomplete[0].any()
        assert scores.values[1, :, 1].tolist() == [0.0, 0.0]
        assert [scores.runs[r] for r in ranking_of_runs(scores)] == ["honest", "silent"]

    def test_a_value_that_the_judgements_do_not_allow_makes_nobody_incomplete(self):
        """`junk` is not judged, but has a membership: only the run that shows it has an AWRF on t2."""
        qrels = {"t1": {"a": 2, "b": 1}, "t2": {"u": 2, "v": 1}}
        groups = {"G": fe.Attribute.of("G", {"a": "x", "b": "y", "junk": "x"}, unmapped="skip")}
        collection = load_collection(None, qrels, groups)
        honest = run_of({"t1": "ab", "t2": "uv"})
        runs = fe.collection.inputs.list_runs({"honest": honest, "junk": {**honest, "t2": {"junk": 1.0}}})
        scores = score(runs, collection, Plan.of(collection, ["AWRF(attr='G')"]))
        assert scores.incomplete.tolist() == [[False], [False]]

    def test_a_topic_cut_short_is_silence_too(self):
        """rND needs more documents than are judged; whoever cuts a topic to ten has no value there."""
        docs = [f"d{n}" for n in range(40)]
        even, uneven = docs, docs[::2] + docs[1::2]
        groups = {"G": fe.Attribute.of("G", {doc: "xy"[n % 2] for n, doc in enumerate(docs)})}
        collection = load_collection(None, {"t1": {"d0": 1}, "t2": {"d0": 1}}, groups)
        full, cut = run_of({"t1": even, "t2": uneven}), run_of({"t1": even, "t2": uneven[:10]})
        measures = ["rND(attr='G',protected='x')"]
        for runs in ({"full": full, "cut": cut}, {"full": full, "too": full, "cut": cut, "more": cut}):
            scores = score(fe.collection.inputs.list_runs(runs), collection, Plan.of(collection, measures))
            incomplete = dict(zip(scores.runs, scores.incomplete[:, 0].tolist(), strict=True))
            assert incomplete == {name: run is cut for name, run in runs.items()}

    @pytest.mark.parametrize(
        ("measure", "candidates"), [("GFR@1", "judged"), ("DP(attr='G',protected='x')@1", "retrieved")]
    )
    def test_what_no_ranking_of_judged_documents_has_makes_nobody_incomplete(self, measure, candidates):
        """Each part has a value for some judged document at rank 1, but all parts for none: only for `u`."""
        groups = {
            "G": fe.Attribute.of("G", {"a": "x", "b": "y", "u": {"x": 0.5, "y": 0.5}}, unmapped="skip"),
            "H": fe.Attribute.of("H", {"b": "x", "u": "y"}, unmapped="skip"),
        }
        groups["G"] = (
            groups["G"] if "DP" in measure else fe.Attribute.of("G", {"a": "x", "u": "y"}, unmapped="skip")
        )
        collection = load_collection(Task(candidates=candidates), {"t": {"a": 1, "b": 1}}, groups)
        runs = {"junk": run_of({"t": "u"}), "one": run_of({"t": "ab"}), "two": run_of({"t": "ba"})}
        scores = score(fe.collection.inputs.list_runs(runs), collection, Plan.of(collection, [measure]))
        assert np.isnan(scores.values[:, 0, 0]).tolist() == [False, True, True]
        assert not scores.incomplete.any()

    def test_a_judged_document_without_membership_that_no_run_shows_is_no_error(self):
        groups = {"G": fe.Attribute.of("G", {"a": "x", "b": "y", "c": "x"}, unmapped="error")}
        collection = load_collection(None, {"t": dict.fromkeys("abcz", 1)}, groups)
        runs = {"long": run_of({"t": "abc"}), "short": run_of({"t": "aa"}), "other": run_of({"t": "ba"})}
        measures = ["rND(attr='G',protected='x',step=1)"]
        scores = score(fe.collection.inputs.list_runs(runs), collection, Plan.of(collection, measures))
        assert scores.incomplete[:, 0].tolist() == [False, True, False]

    @pytest.mark.parametrize("measure", ["D_group(attr='G')", "D_ind", "D_cross"])
    def test_to_show_nobody_is_not_fair(self, measure):
        junk = {topic: {"junk": 1.0} for topic in QRELS}
        scores = scores_of({"full": FULL, "junk": junk}, [measure])
        assert np.isnan(scores.values[1]).all()
        assert scores.incomplete.tolist() == [[False], [True]]
        assert any("junk: none of its documents is judged" in note for note in scores.notes)

    def test_opposite_extremes_do_not_cancel(self):
        """DP is +x on one topic and −x on the other: the mean is 0, the mean distance from 0 is x."""
        qrels = {t: dict.fromkeys("abcd", 1) for t in ("t1", "t2")}
        collection = load_collection(None, qrels, {"G": attribute()})
        extreme, mild = run_of({"t1": "acbd", "t2": "bdac"}), run_of({"t1": "abdc", "t2": "abdc"})
        runs = fe.collection.inputs.list_runs({"extreme": extreme, "mild": mild})
        scores = score(runs, collection, Plan.of(collection, ["DP(attr='G',protected='x')"]))
        assert abs(scores.mean(0, 0).value) < 1e-12 < abs(scores.mean(1, 0).value)
        assert scores.cost(0, 0) == pytest.approx(np.abs(scores.values[0, 0]).mean())
        assert [scores.runs[r] for r in ranking_of_runs(scores)] == ["mild", "extreme"]
        assert leaderboard(scores).marked == {(0, 1)}

    def test_padding_that_takes_attention_is_remarked_for_every_measure(self):
        padded = {t: docs | {f"junk{i}": -100.0 - i for i in range(50)} for t, docs in FULL.items()}
        for measure in ("AWRF(attr='G')", "EE_R", "M1(attr='G')", "nDCG", "AP", "GF(attr='G')"):
            notes = scores_of({"padded": padded, "full": FULL}, [measure]).notes
            (remark,) = (note for note in notes if "of the attention goes to unjudged documents" in note)
            assert remark.startswith("padded: 8")

    def test_one_remark_names_the_runs_that_give_most_attention_to_unjudged_documents(self):
        runs = {
            f"r{n}": {t: docs | {f"junk{i}": -100.0 - i for i in range(n)} for t, docs in FULL.items()}
            for n in range(1, 6)
        }
        (note,) = scores_of(runs, ["P@9"]).notes
        assert note.startswith("5 runs (r5, r4, r3 and 2 more): up to 56% of the attention goes to unjudged")

    def test_of_incomplete_runs_those_that_lack_more_come_later(self):
        qrels = {f"t{i}": {"a": 2, "b": 1} for i in range(4)}
        collection = load_collection(None, qrels, {"G": attribute()})
        unfair, fair = {"a": 9.0, "b": 1.0}, {"b": 2.0, "a": 1.0}
        runs = {
            "full": dict.fromkeys(qrels, unfair),
            "lacks1": dict.fromkeys(list(qrels)[1:], unfair),
            "lacks3": {"t3": fair},
        }
        listed = fe.collection.inputs.list_runs(runs)
        scores = score(listed, collection, Plan.of(collection, ["D_group(attr='G')"]))
        assert [scores.runs[r] for r in ranking_of_runs(scores)] == ["full", "lacks1", "lacks3"]


# --- Candidates ---


class TestPadding:
    def test_padding_does_not_move_the_target_of_groups(self):
        """A hundred unjudged documents of group x below the cutoff: the ranks that count are the same."""
        groups = {"r": "x", "n": "y"} | {f"u{i}": "x" for i in range(101)}
        plain, padded = ({"t": {"r": 1.0} | {f"u{i}": -float(i) for i in range(n)}} for n in (1, 101))
        measures = ["EE_L(attr='G')@2", "EE_R(attr='G')@2", "EE_L@2"]
        tables = [
            fe.evaluate(run, {"t": {"r": 1, "n": 0}}, measures, groups={"G": groups}).frame()
            for run in (plain, padded)
        ]
        assert tables[0].value.tolist() == tables[1].value.tolist()
        second = 1 / math.log2(3)  # ε is 1 for r and second for u0; ε* is 1 for r and second for n
        assert tables[0].value.tolist() == pytest.approx([2 * second**2, 1 + second, 2 * second**2])

    MEASURES = ("D_group(attr='G')@1", "DP(attr='G',protected='y')@2", "EUR(attr='G',protected='y')@2",
                "RUR(attr='G',protected='y')@2", "D_cross@2", "DP(attr='G')@2", "EUR(attr='G')@2",
                "RUR(attr='G')@2", "UEXP(attr='G')@2")  # fmt: skip

    @pytest.mark.parametrize("policy", ["ranking", "pl"])
    def test_padding_below_changes_nothing(self, policy):
        padding = {f"junk{i}": -1000.0 - i for i in range(9)}
        padded = {topic: docs | padding for topic, docs in FULL.items()}
        groups = {"G": fe.Attribute.of("G", GROUPS | dict.fromkeys(padding, "x"))}
        plain, more = (
            fe.evaluate({"r": r}, QRELS, self.MEASURES, groups=groups, policy=policy).frame(per_topic=True)
            for r in (FULL, padded)
        )
        np.testing.assert_allclose(more.value, plain.value, rtol=1e-12)

    def test_the_issue_example(self):
        """Rank 1 holds a man, one man and one woman are relevant; nine irrelevant men below must not help."""
        qrels = {"t": {"m": 1, "w": 1}}
        groups = {"m": "men", "w": "women"} | {f"junk{i}": "men" for i in range(9)}
        run = {"t": {"m": 2.0, "w": 1.0} | {f"junk{i}": -float(i) for i in range(9)}}
        short = {"t": {"m": 2.0, "w": 1.0}}
        for r in (short, run):
            table = fe.evaluate({"r": r}, qrels, ["D_group(attr='G')@1"], groups={"G": groups}).frame()
            assert table.value.tolist() == [1.0]

    def test_candidates_retrieved_is_the_old_way(self):
        qrels, groups = {"t": {"m": 1, "w": 1}}, {"m": "men", "w": "women", "junk": "men"}
        run = {"t": {"m": 2.0, "w": 1.0, "junk": 0.0}}
        task = Task(candidates="retrieved")
        table = fe.evaluate(
            {"r": run}, qrels, ["D_group(attr='G')@1"], groups={"G": groups}, task=task
        ).frame()
        # Men: mean exposure 1/2, mean merit 1/2; women: 0 and 1. The women have more merit, and no excess.
        assert table.value.tolist() == [0.0]

    def test_attention_to_unjudged_documents_is_reported(self):
        run = {"t1": {"junk": 9.0, "a": 2.0, "b": 1.0}, "t2": {"a": 2.0, "b": 1.0}}
        measures = ["D_group(attr='G')", "Unjudged"]
        scores = scores_of({"r": run}, measures)
        first, total = 1.0, 1 + 1 / math.log2(3) + 0.5
        assert scores.values[0, 1].tolist() == [pytest.approx(first / total), 0.0]
        assert any("of the attention goes to unjudged documents" in note for note in scores.notes)
        assert [str(m) for m in scores_of({"r": run}, measures[:1]).measures] == measures[:1]
        assert not any("unjudged" in note for note in scores_of({"r": FULL}, measures[:1]).notes)


# --- Definedness ---


def expected_gf(scores, grades, known, target, max_grade, cutoff=None):
    """GF under Plackett-Luce by enumeration, with NVD: users who stop before anything is known are left out."""
    total = judged = 0.0
    for order in itertools.permutations(scores):
        left, p = [math.exp(scores[d]) for d in order], 1.0
        for i, weight in enumerate(left):
            p *= weight / sum(left[i:])
        reached, seen = 1.0, []
        judged += p
        for doc in order[:cutoff]:
            stop = reached * (2 ** grades.get(doc, 0) - 1) / 2**max_grade
            reached -= stop
            seen += [known[doc]] if doc in known else []
            if seen:
                total += p * stop * (1 - abs(seen.count("x") / len(seen) - target))
            else:
                judged -= p * stop
    return total / judged


KNOWN = {"a": "x", "b": "y"}


def skipping(**options):
    return {"G": fe.Attribute.of("G", KNOWN, unmapped="skip", divergence="NVD", target=[0.5, 0.5], **options)}


@pytest.mark.parametrize("cutoff", ["", "@1", "@2"])
@pytest.mark.parametrize("samples", [200, 1000, 20_000])
def test_gf_of_a_policy_leaves_out_the_users_who_see_nothing_known(samples, cutoff):
    scores, grades = {"u": 2.0, "a": 1.0, "b": 0.5}, {"u": 2, "a": 1, "b": 2}
    table = fe.evaluate(
        {"r": {"t": scores}},
        {"t": grades},
        [f"GF(attr='G'){cutoff}", f"ERR{cutoff}", f"GFR{cutoff}"],
        groups=skipping(),
        policy="pl",
        samples=samples,
    ).frame()
    expected = expected_gf(scores, grades, KNOWN, 0.5, 2, int(cutoff[1:]) if cutoff else None)
    gf, err, gfr = table.value
    assert abs(gf - expected) < 4 * table.se[0]
    assert gfr == pytest.approx((gf + err) / 2, rel=1e-12)


def test_the_standard_error_of_gf_and_gfr_is_the_spread_over_seeds():
    """The two are correlated, and GF is a quotient of two means: its error is not that of a plain mean."""
    run, qrels = {"r": {"t": {"u": 2.0, "a": 1.0, "b": 0.5}}}, {"t": {"u": 2, "a": 1, "b": 2}}
    options = {"groups": skipping(), "policy": "pl", "samples": 100}
    tables = [
        fe.evaluate(run, qrels, ["GF(attr='G')@2", "GFR@2"], seed=s, **options).frame() for s in range(200)
    ]
    spread = np.std([table.value for table in tables], axis=0, ddof=1)
    np.testing.assert_allclose(np.mean([table.se for table in tables], axis=0), spread, rtol=0.2)


@pytest.mark.parametrize("samples", [2, 50, 200, 2000])
@pytest.mark.parametrize("measure", ["GF(attr='G')", "GFR", "FAIR(attr='G',protected='x')"])
@pytest.mark.parametrize("cutoff", [1, 2])
def test_whether_a_value_is_defined_does_not_depend_on_the_sample_count(samples, measure, cutoff):
    """`u` and `v` have no group and nearly always come first; the others have one and could."""
    run = {"r": {"t": {"u": 12.0, "v": 11.0, "a": 0.0, "b": -0.5}}}
    qrels = {"t": dict.fromkeys("uvab", 1)}
    options = {"groups": skipping(), "policy": "pl", "samples": samples}
    table = fe.evaluate(run, qrels, [f"{measure}@{cutoff}"], **options).frame()
    assert not table.value.isna().any()
    nothing_known = {"r": {"t": {"u": 12.0, "v": 11.0}}}
    assert fe.evaluate(nothing_known, qrels, [f"{measure}@{cutoff}"], **options).frame().value.isna().all()


def test_samples_that_show_nothing_relevant_count_in_gf_and_gfr(tmp_path):
    """Nine of ten samples show only `c`, which is not relevant and of no known group: GF is a tenth."""
    ranked = {"junk": [["a", "b"], *[["c"]] * 9], "one": [["a", "b"]]}
    for name, samples in ranked.items():
        lines = [f"t {s} {d} 1 {-k} {name}\n" for s, docs in enumerate(samples) for k, d in enumerate(docs)]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    runs, qrels = [tmp_path / "junk.run", tmp_path / "one.run"], {"t": {"a": 2, "b": 1, "c": 0}}
    measures = ["ERR", "GF(attr='G')", "GFR"]
    table = fe.evaluate(runs, qrels, measures, groups=skipping(), policy="samples").frame().value.to_numpy()
    np.testing.assert_allclose(table[:3], table[3:] / 10, rtol=1e-12)
    assert table[5] == pytest.approx(table[3:5].mean(), rel=1e-12)


# --- Doors ---


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.qrels").write_text(
        "".join(f"{t} 0 {d} {g}\n" for t, ds in QRELS.items() for d, g in ds.items())
    )
    (tmp_path / "g.csv").write_text("doc,group\n" + "".join(f"{d},{g}\n" for d, g in GROUPS.items()))
    (tmp_path / "t.toml").write_text(
        'qrels = "q.qrels"\n[attributes.G]\ngroups = ["x", "y"]\nmemberships = "g.csv"\n'
    )
    (tmp_path / "r.run").write_text("t1 Q0 a 1 2 r\nt1 Q0 b 2 1 r\nt2 Q0 d 1 0.5 r\nt2 Q0 c 2 0.25 r\n")
    return tmp_path


def run_cli(capsys, *words):
    code = main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_exposure_refuses_several_rankings_of_a_topic(files, capsys):
    """Read as one long ranking, each document would stand in it twice."""
    (files / "fair.tsv").write_text("id\tseq_no\tdoc\nt1\t1\ta\nt1\t1\tb\nt1\t2\tb\nt1\t2\ta\n")
    for words in (["exposure", "--task", "t.toml", "fair.tsv"], ["score", "--task", "t.toml", "fair.tsv"]):
        code, _, err = run_cli(capsys, *words)
        assert code != 0
        assert "several rankings of a topic" in err
    code, out, _ = run_cli(
        capsys, "exposure", "--task", "t.toml", "fair.tsv", "--policy", "samples", "--format", "csv"
    )
    assert code == 0
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["topic"] == "t1"]
    assert len({row["doc"] for row in rows}) == len(rows)


@pytest.mark.parametrize("run", [{}, {"t1": {}}, {"r": pd.DataFrame(columns=["topic", "doc", "score"])}])
def test_an_empty_run_is_an_error_in_python_too(run):
    with pytest.raises(UsageError, match="has no documents"):
        fe.evaluate(run, QRELS, ["nDCG"]).frame()


@pytest.mark.parametrize("command", ["score", "exposure", "compare"])
def test_a_run_without_a_judged_topic_is_an_error_with_both_ids(files, capsys, command):
    (files / "other.run").write_text("001 Q0 a 1 2 r\n")
    more = ["r.run", "--baseline", "r.run"] if command == "compare" else []
    code, _, err = run_cli(capsys, command, "--task", "t.toml", "other.run", *more)
    assert code == 1
    assert "other.run" in err
    assert "'001'" in err
    assert "'t1'" in err


def test_exposure_and_measures_agree(files, capsys):
    """`exposure` and `score` open a run through one function: EE_D is the sum of squared exposures."""
    _, out, _ = run_cli(capsys, "exposure", "--task", "t.toml", "r.run", "--policy", "pl", "--format", "csv")
    squares: dict[str, float] = {}
    for row in csv.DictReader(io.StringIO(out)):
        squares[row["topic"]] = squares.get(row["topic"], 0.0) + float(row["exposure"]) ** 2
    _, out, _ = run_cli(
        capsys, "score", "--task", "t.toml", "r.run", "--policy", "pl", "-m", "EE_D", "-q", "--format", "csv"
    )
    for row in csv.DictReader(io.StringIO(out)):
        if row["topic"] != "all":
            assert float(row["value"]) == pytest.approx(squares[row["topic"]], rel=1e-12)


# --- conventions = "trec_eval" ---


class TestTrecEvalConventions:
    def test_scores_are_compared_as_float32(self):
        run = {"t": {"a": 0.50000000001, "b": 0.5}}  # equal as float32: the higher id comes first
        for conventions, expected in (("fairevals", 0.0), ("trec_eval", 1.0)):
            table = fe.evaluate(
                {"r": run}, {"t": {"b": 1}}, ["P@1"], task=Task(conventions=conventions)
            ).frame()
            assert table.value.tolist() == [expected]

    def test_the_order_of_lines_is_kept(self, files):
        (files / "fair.tsv").write_text("t1\t1\ta\nt1\t1\tb\n")
        for conventions in ("fairevals", "trec_eval"):
            table = fe.evaluate(
                "fair.tsv", {"t1": {"a": 1}}, ["P@1"], task=Task(conventions=conventions)
            ).frame()
            assert table.value.tolist() == [1.0]

    def test_utility_is_zero_where_nothing_is_relevant(self):
        qrels = {"t1": {"a": 1}, "t2": {"a": 0}}
        run = {"r": {"t1": {"a": 1.0}, "t2": {"a": 1.0}}}
        table = fe.evaluate(
            run, qrels, ["nDCG", "Rprec", "D_ind"], task=Task(conventions="trec_eval")
        ).frame()
        assert table.value.tolist()[:2] == [0.5, 0.5]
        assert math.isnan(table.value[2])

    def test_huge_scores_stay_finite(self):
        table = fe.evaluate(
            {"r": {"t": {"a": 1e300, "b": 1e299}}},
            {"t": {"b": 1}},
            ["P@1"],
            task=Task(conventions="trec_eval"),
        ).frame()
        assert table.value.tolist() == [1.0]


def test_wrong_conventions_are_refused(tmp_path):
    for key, value in (("conventions", "trec"), ("candidates", "all"), ("missing", "none")):
        (tmp_path / "t.toml").write_text(f'qrels = "q"\n{key} = "{value}"\n')
        with pytest.raises((InputError, UsageError), match=rf"t\.toml:2: {key} = "):
            fe.read_task(tmp_path / "t.toml")


# --- Plackett-Luce on scores that are no log-weights ---


def test_a_nearly_uniform_policy_gets_a_remark(capsys, tmp_path):
    cosines = {"t1": {"a": 0.91, "b": 0.90, "c": 0.89, "d": 0.88}, "t2": {"a": 0.9, "b": 0.8}}
    weights = {topic: {doc: 20 * score for doc, score in docs.items()} for topic, docs in FULL.items()}
    collection = load_collection(None, QRELS)
    plan = Plan.of(collection, ["nDCG"], fe.io.specs.PolicySpec("pl"))
    runs = fe.collection.inputs.list_runs({"cosines": cosines, "weights": weights})
    notes = [note for note in score(runs, collection, plan).notes if "nearly a random order" in note]
    assert [note.split(":")[0] for note in notes] == ["cosines"]
    first = (math.exp(0.91) / sum(math.exp(s) for s in cosines["t1"].values()) + 1 / (1 + math.exp(-0.1))) / 2
    assert f"{first:.4f}" in notes[0]
    assert f"{(1 / 4 + 1 / 2) / 2:.4f}" in notes[0]
    ranking = Plan.of(collection, ["nDCG"], fe.io.specs.PolicySpec("ranking"))
    assert not any("random order" in note for note in score(runs, collection, ranking).notes)


@pytest.mark.filterwarnings("default::fairevals.errors.InputWarning")
def test_exposure_gives_the_same_remark(files, capsys):
    (files / "cos.run").write_text("t1 Q0 a 1 0.91 c\nt1 Q0 b 2 0.90 c\n")
    words = ("--task", "t.toml", "cos.run", "--policy", "pl")
    _, _, exposure = run_cli(capsys, "exposure", *words)
    _, _, scored = run_cli(capsys, "score", *words, "-m", "nDCG")
    (remark,) = [line for line in scored.splitlines() if "nearly a random order" in line]
    assert remark.removeprefix("fairevals: ") in exposure


# --- The runs table ---


def test_the_runs_table_gives_names_and_statuses(files):
    (files / "runs.csv").write_text("file,name,status\nr.run,Ranker One,baseline\nx.run,,reference\n")
    (files / "t.toml").write_text('runs = "runs.csv"\n' + (files / "t.toml").read_text())
    for name in ("x.run", "y.run"):
        (files / name).write_text((files / "r.run").read_text().replace(" r\n", f" {name[0]}\n"))
    collection = load_collection("t.toml")
    scores = score(["r.run", "x.run", "y.run"], collection, Plan.of(collection, ["nDCG"]))
    assert scores.runs == ("Ranker One", "x", "y")
    assert [scores.status(r) for r in range(3)] == ["baseline", "reference", "official"]


def test_a_run_elsewhere_cannot_take_the_name_of_a_listed_one(files):
    (files / "runs.csv").write_text("file,name,status\nr.run,Ranker One,reference\n")
    (files / "t.toml").write_text('runs = "runs.csv"\n' + (files / "t.toml").read_text())
    (files / "sub").mkdir()
    (files / "sub" / "r.run").write_text((files / "r.run").read_text().replace(" r\n", " evil\n"))
    collection = load_collection("t.toml")
    scores = score(["r.run", "sub/r.run"], collection, Plan.of(collection, ["nDCG"]))
    assert scores.runs == ("Ranker One", "evil")
    assert [scores.status(r) for r in range(2)] == ["reference", "official"]


# --- Targets by group ---


def test_a_target_names_its_groups(files):
    """`{group = share}`, in a task and from Python, is the list in the order of the groups."""
    measures = ["AWRF(attr='G')"]
    expected = fe.evaluate("r.run", QRELS, measures, groups={"G": attribute(target=[0.3, 0.7])}).frame()
    by_name = fe.evaluate(
        "r.run", QRELS, measures, groups={"G": attribute(target={"y": 0.7, "x": 0.3})}
    ).frame()
    (files / "t.toml").write_text((files / "t.toml").read_text() + "target = {y = 0.7, x = 0.3}\n")
    in_task = fe.evaluate("r.run", task="t.toml", measures=measures).frame()
    assert by_name.value.tolist() == in_task.value.tolist() == expected.value.tolist()
    with pytest.raises(InputError, match="a target for x; expected a share for x, y"):
        fe.evaluate("r.run", QRELS, measures, groups={"G": attribute(target={"x": 1.0})}).frame()
