"""Re-ranking: the methods against slow versions of their definitions, and runs from file to file."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe
from fairevals import AWRF, D_group, D_ind
from fairevals.cli.main import main, make_parser
from fairevals.collection.run import run_lines
from fairevals.measures.fa_ir import Binomial, adjusted_alpha
from fairevals.measures.representation import infeasible_count
from fairevals.policy.offsets import exposure_offsets
from fairevals.reranking.greedy import det_const_sort, fa_ir, fa_ir_counts, quota
from fairevals.reranking.topics import OFFSETS, RERANKERS

seeds = st.integers(0, 10**6)


@given(seeds, st.integers(1, 12), st.floats(0.05, 0.95), st.sampled_from([0.05, 0.1, 0.3]))
def test_fa_ir_is_the_best_ranking_that_passes(seed, n, share, alpha):
    """At each rank the best document is taken unless too few protected documents would be there."""
    from scipy.stats import binom

    protected = np.random.default_rng(seed).random(n) < 0.4
    level = adjusted_alpha(n, Binomial(share), alpha)
    order = fa_ir(protected, share, alpha).tolist()
    assert sorted(order) == list(range(n))
    for place, document in enumerate(order):
        left = sorted(set(range(n)) - set(order[:place]))
        taken = int(protected[order[:place]].sum())
        fails = binom.cdf(taken, place + 1, share) < level
        waiting = [d for d in left if protected[d]]
        # A better document that is protected anyway is never passed over for "the protected one that is needed".
        assert document == (waiting[0] if fails and waiting else left[0])


def test_fa_ir_beyond_the_cutoff_asks_for_nothing():
    protected = np.arange(12) >= 6
    assert fa_ir_counts(12, 0.5, 0.1, 4).tolist()[4:] == [0] * 8
    assert sorted(fa_ir(protected, 0.5, 0.1, 4).tolist()[4:]) == fa_ir(protected, 0.5, 0.1, 4).tolist()[4:]


def slow_det_const_sort(group, share):
    """Algorithm 3 of Geyik et al., step by step; documents are their own ranks, so smaller is better."""
    queues = {g: [d for d in range(len(group)) if group[d] == g] for g in range(len(share))}
    ranked, latest, counts = [], [], dict.fromkeys(queues, 0)
    k = 0
    while len(ranked) < sum(len(queue) for g, queue in queues.items() if share[g] > 0):
        k += 1
        changed = [
            g for g in queues if np.floor(share[g] * k + 1e-9) > counts[g] and counts[g] < len(queues[g])
        ]
        for g in sorted(changed, key=lambda g: queues[g][counts[g]]):
            ranked.append(queues[g][counts[g]])
            latest.append(k)
            counts[g] += 1
            at = len(ranked) - 1
            # The document before moves to the rank at + 1, counted from 1.
            while at > 0 and latest[at - 1] >= at + 1 and ranked[at - 1] > ranked[at]:
                for values in (ranked, latest):
                    values[at - 1], values[at] = values[at], values[at - 1]
                at -= 1
    return ranked


@given(seeds, st.integers(1, 15), st.integers(1, 4))
def test_det_const_sort_as_in_the_paper(seed, n, groups):
    rng = np.random.default_rng(seed)
    group, share = rng.integers(0, groups, n), rng.dirichlet(np.ones(groups))
    order = det_const_sort(group, share)
    assert order.tolist() == slow_det_const_sort(group, share)
    # Every prefix has enough of each group, as long as the group has any left.
    for k in range(1, n + 1):
        for g in range(groups):
            here = int(np.sum(group[order[:k]] == g))
            assert here >= min(np.floor(share[g] * k + 1e-9), np.sum(group == g))


def test_det_const_sort_of_documents_without_a_group():
    order = det_const_sort(np.array([-1, 0, -1, 0]), np.array([0.5]))
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    assert infeasible_count(np.eye(2)[[1, 0, 1, 0]][order][:, :1], np.array([0.5]), np.array(4)) == 0


def test_det_const_sort_does_not_depend_on_the_order_of_groups():
    """A document that is in all groups alike, as an unmapped one is by default, counts to none of them."""
    run = {"q": {f"d{i}": float(-i) for i in range(8)}}
    known = {f"d{i}": "y" if i % 4 else "x" for i in range(8) if i != 2}
    found = [
        fe.rerank(run, "detconstsort", attr="G", groups=fe.Attribute.of("G", known, names, target=[0.5, 0.5]))
        for names in (["x", "y"], ["y", "x"])
    ]
    first, second = (each.run.to_frame().doc.tolist() for each in found)
    assert first == second == ["d0", "d1", "d3", "d4", "d2", "d5", "d6", "d7"]
    assert [each.count("infeasible") for each in found] == [1, 1]


@given(seeds, st.integers(1, 8), st.floats(0, 1))
def test_quota_takes_the_best_mixture_at_each_rank(seed, n, strength):
    rng = np.random.default_rng(seed)
    scores, membership = np.sort(rng.random(n))[::-1], rng.dirichlet(np.ones(3), size=n)
    share = rng.dirichlet(np.ones(3))
    order = quota(scores, membership, share, strength).tolist()
    scaled = (scores - scores.min()) / ((scores.max() - scores.min()) or 1)
    for place, document in enumerate(order):
        above = sum((membership[d] for d in order[:place]), np.zeros(3))
        worth = {
            d: (1 - strength) * scaled[d] + strength * membership[d] @ (share * (place + 1) - above)
            for d in set(range(n)) - set(order[:place])
        }
        assert worth[document] >= max(worth.values()) - 1e-12


@pytest.fixture
def some_run():
    """Twelve documents for two topics, those of group `x` in front."""
    rng = np.random.default_rng(0)
    topics = {"q1": 12, "q2": 7}
    return {
        topic: {f"d{i}": 3.0 * (i % 3 == 0) + rng.random() for i in range(n)} for topic, n in topics.items()
    }


GROUPS = {"G": {f"d{i}": "x" if i % 3 == 0 else "y" for i in range(12)}}


def everything_judged(run, rng):
    return {topic: {doc: int(rng.integers(1, 4)) for doc in docs} for topic, docs in run.items()}


def frame_of(run, topic):
    frame = run.to_frame()
    return frame[frame.topic == topic]


def test_parity_has_d_group_0_whatever_the_grades(some_run):
    """The exact statement of the documentation, through the evaluator, for a cutoff and for the whole list."""
    for cutoff in (None, 5):
        fair = fe.rerank(some_run, "parity", attr="G", groups=GROUPS, cutoff=cutoff)
        assert {topic.note for topic in fair.topics} == {""}
        rng = np.random.default_rng(1)
        measure = D_group(attr="G") if cutoff is None else D_group(attr="G") @ cutoff
        before = []
        for _ in range(10):
            qrels = everything_judged(some_run, rng)
            runs = {"before": some_run, "after": fair.run}
            values = fe.evaluate(runs, qrels, measure, groups=GROUPS, policy="pl").pivot()[str(measure)]
            assert values["after"] < 1e-7
            before.append(values["before"])
        assert max(before) > 0.01


def test_target_makes_awrf_1(some_run):
    groups = {"G": fe.Attribute.of("G", GROUPS["G"], ["x", "y"], target=[0.4, 0.6])}
    fair = fe.rerank(some_run, "target", attr="G", groups=groups, cutoff=6)
    awrf = fe.evaluate(
        fair.run,
        everything_judged(some_run, np.random.default_rng(0)),
        AWRF(attr="G") @ 6,
        groups=groups,
        policy="pl",
    )
    assert awrf["run-target-1"].iloc[0] == pytest.approx(1, abs=1e-8)
    assert fair.mean("after") < 1e-8 < fair.mean("before")


def test_merit_shares_by_predicted_grades():
    run = {"q": {f"d{i}": 3.0 - i / 2 for i in range(6)}}
    fair = fe.rerank(run, "merit", attr="G", groups=GROUPS)
    assert fair.count("infeasible") == 0
    for topic, docs in run.items():
        scores = np.array(list(docs.values()))
        worth = dict(zip(docs, scores - scores.min(), strict=True))
        wanted = sum(v for d, v in worth.items() if GROUPS["G"][d] == "x") / sum(worth.values())
        new = frame_of(fair.run, topic)
        exposure = fe.PlackettLuce(new.score.to_numpy()).exposure().value
        got = exposure[[GROUPS["G"][d] == "x" for d in new.doc]].sum() / exposure.sum()
        assert got == pytest.approx(wanted, abs=1e-7)


def test_strengths_trace_a_curve_from_the_run(some_run):
    runs = [fe.rerank(some_run, attr="G", groups=GROUPS, strength=s) for s in (0, 0.5, 1)]
    frame = runs[0].run.to_frame()
    original = fe.Run.from_dict(some_run).to_frame()
    pd.testing.assert_frame_equal(frame, original)
    gaps = [new.mean("after") for new in runs]
    assert gaps[0] == runs[0].mean("before") > gaps[1] > gaps[2]
    scores = [new.run.to_frame().sort_values(["topic", "doc"]).score.to_numpy() for new in runs]
    np.testing.assert_allclose(scores[1], (scores[0] + scores[2]) / 2, atol=1e-12)


def test_a_temperature_is_that_of_the_new_run_too(some_run):
    run = {topic: {doc: 8 * score for doc, score in docs.items()} for topic, docs in some_run.items()}
    fair = fe.rerank(run, "parity", attr="G", groups=GROUPS, temperature=4.0)
    shares = fe.exposure(
        fair.run,
        everything_judged(some_run, np.random.default_rng(0)),
        groups=GROUPS,
        by="group",
        policy="pl",
        temperature=4.0,
    )
    shares = shares[shares.topic == "q1"].set_index("group").share
    assert shares["x"] == pytest.approx(4 / 12, abs=1e-8)


def test_infeasible_and_untouched_topics_are_reported():
    run = {"q1": {"a": 1.0, "b": 0.0}, "q2": {"a": 1.0, "c": 0.0}, "r1": {"a": 1.0, "b": 0.0}}
    table = pd.DataFrame({"doc": ["a", "b", "c"], "group": ["x", "y", "x"]})
    attribute = fe.Attribute.of("G", table, ["x", "y"], target=[0.5, 0.5], topics=["q*"])
    fair = fe.rerank(run, "target", attr="G", groups=attribute)
    notes = fair.frame().set_index("topic").note.to_dict()
    assert notes == {"q1": "", "q2": "infeasible", "r1": "untouched"}
    assert fair.frame().after[1] == 0.5  # `y` has no documents
    assert (fair.count("infeasible"), fair.count("untouched")) == (1, 1)
    short = fe.rerank(run, "detconstsort", attr="G", groups=attribute)
    assert short.frame().note.tolist() == ["", "infeasible", "untouched"]
    few = {"q1": {f"a{i}": float(-i) for i in range(12)}}
    groups = {"G": {f"a{i}": "x" if i == 11 else "y" for i in range(12)}}
    groups = {"G": fe.Attribute.of("G", groups["G"], ["x", "y"], target=[0.9, 0.1])}
    assert fe.rerank(few, "fa-ir", attr="G", groups=groups, protected="x").count("infeasible") == 1


@pytest.mark.parametrize("method", ["merit", "lp"])
def test_equal_scores_predict_no_merit_to_share_by(method):
    run = {"q": {"a": 2.0, "b": 2.0}}
    fair = fe.rerank(run, method, attr="G", groups={"G": {"a": "x", "b": "y"}})
    assert fair.count("untouched") == 1
    assert fair.run.to_frame().equals(fe.Run.from_dict(run).to_frame())


def test_topics_that_are_not_of_the_task_stay_as_they_are(tmp_path):
    (tmp_path / "g.csv").write_text("doc,group\na,x\nb,y\n")
    (tmp_path / "t.csv").write_text("topic,x,y\nq1,0.55,0.45\n")
    (tmp_path / "q.qrels").write_text("q1 0 a 1\n")
    (tmp_path / "t.toml").write_text(
        'qrels = "q.qrels"\n[attributes.G]\ngroups = ["x", "y"]\nmemberships = "g.csv"\ntarget = "t.csv"\n'
    )
    run = {"q0": {"a": 3.0, "b": 1.0}, "q1": {"a": 3.0, "b": 1.0}, "q2": {"b": 5.0, "a": 4.0}}
    fair = fe.rerank(run, "target", attr="G", task=tmp_path / "t.toml")
    assert fair.frame().set_index("topic").note.to_dict() == {"q0": "untouched", "q1": "", "q2": "untouched"}
    frame = fair.run.to_frame()
    assert {
        topic: dict(zip(rows.doc, rows.score, strict=True)) for topic, rows in frame.groupby("topic")
    } == {
        **run,
        "q1": dict(zip(*(frame_of(fair.run, "q1")[c] for c in ("doc", "score")), strict=True)),
    }


def test_soft_memberships_and_intersections():
    rng = np.random.default_rng(0)
    run = {"q": {f"d{i}": float(v) for i, v in enumerate(rng.normal(size=12))}}
    soft = pd.DataFrame(
        [(f"d{i}", g, w) for i in range(12) for g, w in (("x", (i + 1) / 14), ("y", 1 - (i + 1) / 14))],
        columns=["doc", "group", "weight"],
    )
    hard = {f"d{i}": "old" if i % 2 else "young" for i in range(12)}
    groups = [
        fe.Attribute.of("S", soft, ["x", "y"]),
        fe.Attribute.of("A", hard, ["young", "old"]),
        fe.Intersection.of("S_A", ["S", "A"]),
    ]
    fair = fe.rerank(run, "parity", attr="S_A", groups=groups)
    assert fair.topics[0].note == "" and fair.topics[0].after < 1e-8
    new = fair.run.to_frame()
    exposure = fe.PlackettLuce(new.score.to_numpy()).exposure().value
    weights = np.array([(int(d[1:]) + 1) / 14 for d in new.doc])
    old = np.array([hard[d] == "old" for d in new.doc])
    means = [
        exposure @ cell / cell.sum() for side in (weights, 1 - weights) for cell in (side * old, side * ~old)
    ]
    np.testing.assert_allclose(means, means[0], atol=1e-7)


def test_every_method_keeps_the_documents(some_run):
    for method in RERANKERS:
        protected = "y" if method == "fa-ir" else None
        fair = fe.rerank(some_run, method, attr="G", groups=GROUPS, protected=protected, samples=3)
        assert fair.run.tag.startswith(f"run-{method}-")
        for topic, docs in some_run.items():
            frame = frame_of(fair.run, topic)
            lists = frame.groupby("sample") if "sample" in frame else [("", frame)]
            assert all(set(rows.doc) == set(docs) and len(rows) == len(docs) for _, rows in lists)


def test_lp_of_a_run_is_the_programme_on_its_scores(some_run):
    """Two groups: no mixture of two rankings of three documents has a better objective."""
    run = {"q": {"a": 2.0, "b": 1.0, "c": 0.0}}
    groups = {"G": {"a": "x", "b": "y", "c": "y"}}
    fair = fe.rerank(run, "lp", attr="G", groups=groups, strength=2.0, qrels={"q": {"a": 2}}, samples=1000)
    frame = fair.run.to_frame()
    v = 1 / np.log2([2, 3, 4])
    exposure = frame.assign(v=v[frame["rank"] - 1]).groupby("doc").v.mean()
    gains, x = np.array([3, 1, 0]), np.array([1, 0, 0])

    def objective(exposure):
        merits = np.array([2.0, 1.0, 0.0])
        gap = exposure @ x / (merits @ x) - exposure @ (1 - x) / (merits @ (1 - x))
        return gains @ exposure - 2 * max(0, gap)

    best = max(
        objective(p * v[list(one)] + (1 - p) * v[list(other)])
        for one in permutations(range(3))
        for other in permutations(range(3))
        for p in np.linspace(0, 1, 101)
    )
    assert objective(exposure.loc[["a", "b", "c"]].to_numpy()) >= best - 0.01


def test_order_of_lines(tmp_path):
    """A task that ranks by the order of lines gets runs that it can read."""
    (tmp_path / "a.run").write_text("q 0 a 1 0 mine\nq 0 b 2 0 mine\nq 0 c 3 0 mine\n")
    (tmp_path / "g.csv").write_text("doc,group\na,x\nb,x\nc,y\n")
    (tmp_path / "q.qrels").write_text("q 0 a 1\nq 0 b 1\n")
    (tmp_path / "t.toml").write_text(
        'qrels = "q.qrels"\norder = "file"\nmeasures = ["AP"]\n'
        '[attributes.G]\ngroups = ["x", "y"]\nmemberships = "g.csv"\n'
    )
    fair = fe.rerank(tmp_path / "a.run", "detconstsort", attr="G", task=tmp_path / "t.toml")
    fair.run.to_file(tmp_path / "new.run")
    values = [
        fe.evaluate(run, task=tmp_path / "t.toml")["mine-detconstsort-1"].iloc[0]
        for run in (fair.run, tmp_path / "new.run")
    ]
    assert values[0] == values[1] and fair.run.to_frame().doc.tolist() == ["a", "c", "b"]


def test_ties_that_offsets_bring_about_are_ordered_as_in_a_file(tmp_path):
    """By symmetry the offsets make pairs equal; then the larger id is first, in memory and in the file."""
    groups = {"G": {"a": "m", "b": "m", "c": "f", "d": "f"}}
    fair = fe.rerank({"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0}}, attr="G", groups=groups)
    fair.run.to_file(tmp_path / "a.run")
    assert fe.read_run(tmp_path / "a.run").to_frame().equals(fair.run.to_frame())


def test_of_an_estimator_and_of_its_run():
    """Predictions are log-weights: a frame of them is a run."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    groups = np.where(X[:, 0] > 0, "x", "y")
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    policy = fe.PGRank(epochs=3).fit(X, y, qid=qid)
    docs = [f"d{i}" for i in range(60)]
    frame = pd.DataFrame({"topic": qid, "doc": docs, "score": policy.predict(X, qid=qid)})
    known = {"G": dict(zip(docs, groups, strict=True))}
    fair = fe.rerank(frame, attr="G", groups=known)
    qrels = pd.DataFrame({"topic": qid, "doc": docs, "grade": y})
    assert (
        fe.evaluate(fair.run, qrels, D_group(attr="G"), groups=known, policy="pl").pivot().iloc[0, 0] < 1e-7
    )


class TestWrongArguments:
    RUN: ClassVar = {"q": {"a": 1.0, "b": 0.0}}
    GROUPS: ClassVar = {"G": {"a": "x", "b": "y"}}

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"method": "magic"}, "unknown method 'magic'"),
            ({"attr": "H"}, "unknown attribute 'H'"),
            ({"method": "fa-ir"}, "needs the group to protect"),
            ({"method": "fa-ir", "protected": "z"}, "unknown group 'z'"),
            ({"protected": "x"}, "protects no single group"),
            ({"strength": -1}, "from 0 to 1e.09"),
            ({"method": "quota", "strength": 1.5}, "from 0 to 1"),
            ({"strength": float("nan")}, "from 0 to 1e.09"),
            (
                {"method": "lp", "strength": 1e300},
                "strength of lp is 1e.300; expected a number from 0 to 1e.09",
            ),
            ({"strength": "1"}, "strength of parity is '1'; expected a number from 0"),
            ({"method": "fa-ir", "protected": "x", "alpha": "x"}, "alpha is 'x'; expected a number between"),
            ({"method": "lp", "cutoff": 0}, "cutoff is 0; expected a whole number of at least 1"),
            ({"cutoff": 1.5}, "cutoff is 1.5; expected a whole number"),
            ({"method": "lp", "samples": 0}, "samples is 0; expected a whole number of at least 1"),
            ({"attention": "cascade"}, "depends on the grades"),
            ({"attention": [0.5, 1.0]}, "does not fall"),
            ({"run": {"q": {"a": 1e308}}}, "log-weights that stay below"),
            ({"run": [{"q": {"a": 1.0}}, {"q": {"a": 1.0}}]}, "there are 2 runs"),
        ],
    )
    def test_message(self, options, message):
        with pytest.raises(fe.FairevalsError, match=message):
            fe.rerank(options.pop("run", self.RUN), **{"attr": "G", "groups": self.GROUPS, **options})

    @pytest.mark.parametrize(
        ("method", "options"),
        [("parity", {"strength": Fraction(1, 2)}), ("fa-ir", {"protected": "x", "alpha": Fraction(1, 8)})],
    )
    def test_fractions_are_taken_as_their_floats(self, method, options):
        floats = {name: float(value) if name != "protected" else value for name, value in options.items()}
        exact, same = (
            fe.rerank(self.RUN, method, attr="G", groups=self.GROUPS, **each) for each in (options, floats)
        )
        assert list(run_lines(exact.run)) == list(run_lines(same.run))

    def test_several_rankings(self):
        frame = pd.DataFrame({"topic": ["q", "q"], "sample": [1, 2], "doc": ["a", "a"], "score": [1.0, 1.0]})
        with pytest.raises(fe.UsageError, match="several rankings"):
            fe.rerank(fe.Run.from_frame(frame), attr="G", groups=self.GROUPS)

    def test_too_long_for_a_programme_of_many_groups(self):
        run = {"q": {f"d{i}": float(i) for i in range(201)}}
        groups = {"G": {f"d{i}": "xyz"[i % 3] for i in range(201)}}
        with pytest.raises(fe.UsageError, match="lp takes at most 200"):
            fe.rerank(run, "lp", attr="G", groups=groups)


class TestCommand:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.run").write_text(
            "q1 Q0 a 1 2 ../x\nq1 Q0 b 2 1 ../x\nq1 Q0 c 3 0 ../x\nq2 Q0 a 1 1 ../x\n"
        )
        (tmp_path / "b.run").write_text("q1 Q0 a 1 2 ../x\nq1 Q0 c 2 1 ../x\n")
        (tmp_path / "g.csv").write_text("doc,group\na,x\nb,x\nc,y\n")
        (tmp_path / "t.toml").write_text(
            'qrels = "later.qrels"\n[attributes.G]\ngroups = ["x", "y"]\nmemberships = "g.csv"\n'
        )
        return tmp_path

    def test_a_run_for_each_strength(self, folder, capsys):
        words = (
            "rerank parity a.run b.run --task t.toml --attr G --strength 0.5 --strength 1 -o out --format csv"
        )
        assert main(words.split()) == 0
        out, err = capsys.readouterr()
        assert out.splitlines()[0] == "run,strength,topics,off before,off after,infeasible,untouched"
        assert [line.split(",")[:3] for line in out.splitlines()[1:]] == [
            ["../x-parity-0.5", "0.5", "2"],
            ["../x-parity-1", "1", "2"],
            ["../x-parity-0.5", "0.5", "1"],
            ["../x-parity-1", "1", "1"],
        ]
        files = sorted(path.name for path in (folder / "out").iterdir())
        assert len(files) == 4 and all("/" not in name and name.startswith("x-parity-") for name in files)
        assert not err and not (folder.parent / "x-parity-1.run").exists()
        for file in (folder / "out").iterdir():
            assert len(fe.read_run(file)) in (2, 4)
        assert main(words.split()) == 2 and "is not empty" in capsys.readouterr().err
        assert main([*words.split(), "--force"]) == 0

    def test_a_remark_on_the_run_is_given_once_for_all_strengths(self, folder, capsys):
        Path("flat.run").write_text("".join(f"q1 Q0 d{i} 1 {0.01 * i} flat\n" for i in range(12)))
        Path("g.csv").write_text("doc,group\n" + "".join(f"d{i},{'xy'[i % 2]}\n" for i in range(12)))
        words = "rerank parity flat.run --task t.toml --attr G --strength 0.5 --strength 1 -o out"
        assert main(words.split()) == 0
        assert capsys.readouterr().err.count("nearly a random order") == 1

    def test_topics_one_by_one_and_the_infeasible_named(self, folder, capsys):
        words = "rerank target a.run --task t.toml --attr G -o out -q --format csv"
        assert main(words.split()) == 0
        out, err = capsys.readouterr()
        rows = [line.split(",") for line in out.splitlines()]
        assert [row[2] for row in rows[1:]] == ["q1", "q2"] and rows[2][-1] == "infeasible"
        assert "the goal cannot be met on 2 topics, furthest where a share of 'q2' is off by 0.5000" in err

    def test_same_as_python(self, folder):
        words = "rerank merit a.run --task t.toml --attr G -k 2 --attention rbp(0.5) -o out"
        assert main(words.split(" ")) == 0
        (file,) = (folder / "out").iterdir()
        same = fe.rerank("a.run", "merit", attr="G", task="t.toml", cutoff=2, attention="rbp(0.5)")
        assert fe.read_run(file).to_frame().equals(same.run.to_frame())

    @pytest.mark.parametrize(
        ("words", "code", "message"),
        [
            ("magic a.run --task t.toml --attr G -o out", 2, "invalid choice: 'magic'"),
            ("parity a.run --attr G -o out", 2, "--task"),
            ("parity a.run --task t.toml --attr H -o out", 2, "unknown attribute 'H'"),
            ("parity a.run --task t.toml --attr G --strength x -o out", 2, "not a number"),
            ("quota a.run --task t.toml --attr G --strength 2 -o out", 2, "from 0 to 1"),
            ("parity none.run --task t.toml --attr G -o out", 1, "none.run: cannot be read"),
            ("fa-ir a.run --task t.toml --attr G -o out", 2, "needs the group to protect"),
        ],
    )
    def test_errors_leave_nothing(self, folder, capsys, words, code, message):
        try:
            assert main(["rerank", *words.split()]) == code
        except SystemExit as end:
            assert end.code == code
        assert message in capsys.readouterr().err
        assert not (folder / "out").exists()

    def test_help_lists_the_methods(self):
        (method,) = (a for a in make_parser("rerank")._actions if a.dest == "method")
        assert tuple(method.choices) == RERANKERS and set(OFFSETS) <= set(RERANKERS)


def test_scores_that_are_no_log_weights_get_a_remark():
    run = {"q": {f"d{i}": 0.01 * i for i in range(12)}}
    with pytest.warns(fe.FairevalsWarning, match="nearly a random order"):
        fe.rerank(run, attr="G", groups=GROUPS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fe.rerank(run, "detconstsort", attr="G", groups=GROUPS)


def test_other_disparities_stand_beside_d_group(some_run):
    """Parity is fair by D_group only."""
    fair = fe.rerank(some_run, attr="G", groups=GROUPS)
    qrels = everything_judged(some_run, np.random.default_rng(3))
    assert fe.evaluate(fair.run, qrels, D_ind, policy="pl").pivot().iloc[0, 0] > 0.01


def test_offsets_are_those_of_the_solver(some_run):
    fair = fe.rerank({"q2": some_run["q2"]}, attr="G", groups=GROUPS)
    docs, scores = list(some_run["q2"]), np.array(list(some_run["q2"].values()))
    membership = np.array([[GROUPS["G"][d] == g for g in "xy"] for d in docs], dtype=float)
    offsets = exposure_offsets(scores[None], membership[None], membership.sum(axis=0)[None])
    new = fair.run.to_frame().set_index("doc").score.loc[docs].to_numpy()
    np.testing.assert_allclose(new, scores + membership @ offsets.value[0], atol=1e-6)
