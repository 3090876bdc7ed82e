"""Intersections of attributes: against the product written out by hand, and against loops."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from exposure_cases import one_topic, rows

import fairevals as fe
from fairevals.cli.main import main
from fairevals.collection import AttributeView
from fairevals.collection.groups import Attribute
from fairevals.collection.intersections import Intersection, mix_backgrounds
from fairevals.collection.products import product_membership, product_spread, product_sums
from fairevals.errors import InputError, UsageError
from fairevals.evaluation import load_collection
from fairevals.measures import parse_measure

SEX, AGE, GEO = ("f", "m"), ("young", "mid", "old"), ("@UNKNOWN", "Africa", "Asia")
PRODUCT = [" × ".join(cell) for cell in itertools.product(SEX, AGE, GEO)]
TOPICS = ("T1", "T2", "T3")
DOCS = [f"d{n}" for n in range(14)]
MEASURES = [
    "AWRF(attr='X')",
    "AWRF(attr='X',base='e')@5",
    "M1(attr='X')@5",
    "EE_L(attr='X')",
    "EE_D(attr='X')@5",
    "EE_R(attr='X')@5",
    "EE_L(attr='X',target='task',relevant_only=True)@5",
    "UEXP(attr='X')@5",
    "UEXP(attr='X',total=True)",
    "D_group(attr='X')",
    "D_group(attr='X',pairs='max')@5",
    "DP(attr='X',protected='f × old × Asia')",
    "EUR(attr='X')",
    "RUR(attr='X',protected='m × young × Asia')",
    "GF(attr='X')@5",
    "GF(attr='X',div='NVD')@5",
    "NDKL(attr='X')@5",
    "Skew(attr='X')@5",
    "Infeasible(attr='X')@8",
    "ARP(attr='X')@8",
    "rND(attr='X',protected='f × old × Asia',step=2)",
    "FAIR(attr='X',protected='m × mid × Africa')@5",
    "FAIR(attr='X',protected='m × mid × Africa',null='hypergeometric')@5",
]


def membership(
    rng: np.random.Generator, groups: tuple[str, ...], lacking: float
) -> dict[str, dict[str, float]]:
    """Hard and soft memberships of some of the documents."""
    return {
        doc: dict(zip(groups, rng.dirichlet(np.full(len(groups), 0.3)), strict=True))
        if rng.random() < 0.5
        else {groups[rng.integers(len(groups))]: 1.0}
        for doc in DOCS
        if rng.random() >= lacking
    }


class Case:
    """A random task of three attributes, with their product written out document by document."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.qrels = {t: {d: int(rng.integers(0, 3)) for d in DOCS if rng.random() < 0.8} for t in TOPICS}
        self.runs = {
            f"run{r}": {t: {d: float(rng.normal()) for d in DOCS if rng.random() < 0.9} for t in TOPICS}
            for r in range(2)
        }
        self.parts = {
            "SEX": (SEX, membership(rng, SEX, 0.2), "uniform", [0.3, 0.7]),
            "AGE": (AGE, membership(rng, AGE, 0.2), "skip", "uniform"),
            "GEO": (GEO, membership(rng, GEO, 0.3), "@UNKNOWN", "relevant"),
        }

    def attributes(self, **targets) -> dict[str, Attribute]:
        return {
            name: Attribute.of(
                name, given, groups, target=targets.get(name, target), unmapped=unmapped,
                kind="ordinal" if name == "AGE" else "nominal",
            )
            for name, (groups, given, unmapped, target) in self.parts.items()
        }  # fmt: skip

    def of(self, part: str, doc: str) -> dict[str, float]:
        groups, given, unmapped, _ = self.parts[part]
        if doc in given:
            return given[doc]
        return {"uniform": {g: 1 / len(groups) for g in groups}, "skip": {}}.get(unmapped, {unmapped: 1.0})

    def product(self, doc: str) -> dict[str, float]:
        cells = itertools.product(*(self.of(part, doc).items() for part in self.parts))
        return {" × ".join(g for g, _ in cell): float(np.prod([w for _, w in cell])) for cell in cells}

    def relevant(self, topic: str, shares) -> dict[str, float]:
        """The mean of `shares` over the relevant documents that have any."""
        known = [shares(d) for d, grade in self.qrels[topic].items() if grade > 0 and shares(d)]
        names = {g for one in known for g in one}
        return {g: sum(one.get(g, 0.0) for one in known) / len(known) for g in names}

    def product_target(self, topic: str) -> dict[str, float]:
        geo = self.relevant(topic, lambda doc: self.of("GEO", doc))
        shares = {"f": 0.3, "m": 0.7}
        return {
            f"{sex} × {age} × {place}": shares[sex] / 3 * geo.get(place, 0.0)
            for sex, age, place in itertools.product(SEX, AGE, GEO)
        }

    def flat(self, by_topic) -> Attribute:
        """The product as one attribute: what it says of a document, and the target of every topic."""
        given = {doc: weights for doc in DOCS if (weights := self.product(doc))}
        target = {t: [by_topic(t).get(g, 0.0) for g in PRODUCT] for t in TOPICS}
        return Attribute.of("X", given, PRODUCT, target=target, unmapped="skip")


def values(case: Case, groups, policy: str = "ranking", measures=MEASURES) -> np.ndarray:
    return fe.evaluate(case.runs, case.qrels, measures, groups=groups, policy=policy).scores.values


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("policy", ["ranking", "pl"])
@pytest.mark.parametrize("target", ["product", "relevant", "uniform"])
def test_every_measure_has_the_value_of_the_product_written_out(seed, policy, target):
    case = Case(seed)
    by_topic = {
        "product": case.product_target,
        "relevant": lambda topic: case.relevant(topic, case.product),
        "uniform": lambda topic: dict.fromkeys(PRODUCT, 1 / len(PRODUCT)),
    }[target]
    crossed = {**case.attributes(), "X": Intersection.of("X", ["SEX", "AGE", "GEO"], target)}
    measures = (
        MEASURES if policy == "ranking" else MEASURES[:14]
    )  # the others are drawn, with other random numbers
    found = values(case, crossed, policy, measures)
    expected = values(case, {"X": case.flat(by_topic)}, policy, measures)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert np.isfinite(found).mean() > 0.4


@pytest.mark.parametrize("cells", [1 << 22, 1])
def test_measures_across_topics_have_the_value_of_the_product_written_out(cells, monkeypatch):
    monkeypatch.setattr("fairevals.collection.views.MEMBERSHIP_CELLS", cells)
    case, measures = Case(4), ["L2(attr='X')@5", "JME(level='IG',attr='X')@5", "JME(level='AG',attr='X')"]
    crossed = {**case.attributes(), "X": Intersection.of("X", ["SEX", "AGE", "GEO"])}
    found, expected = (
        fe.evaluate(case.runs, case.qrels, measures, groups=groups).pivot().to_numpy()
        for groups in (crossed, {"X": case.flat(case.product_target)})
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert (found > 0).all()


def test_measures_across_topics_are_undefined_where_no_topic_has_all_attributes():
    groups = {
        "SEX": Attribute.of("SEX", {"a": "f", "b": "m"}, topics=["R*"]),
        "AGE": Attribute.of("AGE", {"a": "old", "b": "young"}, topics=["M*"]),
        "X": Intersection.of("X", ["SEX", "AGE"]),
    }
    run, qrels = {t: {"a": 2.0, "b": 1.0} for t in ("R1", "M1")}, {t: {"a": 1, "b": 1} for t in ("R1", "M1")}
    with pytest.warns(fe.FairevalsWarning, match="undefined on up to 2 of 2 topics"):
        result = fe.evaluate(run, qrels, ["L2(attr='X')", "JME(level='IG',attr='X')"], groups=groups)
    assert result.pivot().isna().all(axis=None)


def test_a_list_and_a_file_are_targets_of_the_product_groups(tmp_path):
    case, share = Case(4), np.random.default_rng(1).dirichlet(np.ones(len(PRODUCT)))
    path = tmp_path / "t.csv"
    path.write_text(
        "group,share\n" + "".join(f"{g},{s!r}\n" for g, s in zip(PRODUCT, share.tolist(), strict=True))
    )
    expected = values(case, {"X": case.flat(lambda topic: dict(zip(PRODUCT, share, strict=True)))})
    for target in (share.tolist(), dict(zip(PRODUCT, share.tolist(), strict=True)), path):
        crossed = {**case.attributes(), "X": Intersection.of("X", ["SEX", "AGE", "GEO"], target)}
        np.testing.assert_allclose(values(case, crossed), expected, rtol=0, atol=1e-12)


# Backgrounds


def mixed_by_loop(
    target: np.ndarray, known: dict[int, list[bool]], background: dict[int, list[float]], own: float
):
    """The rule of TREC 2022 in words: one set of known attributes after the other, one cell after the other."""
    cells = list(itertools.product(*map(range, target.shape)))
    others = [axis for axis in range(target.ndim) if axis not in known]
    mixed = target.copy()
    for size in range(1, len(known) + 1):
        for chosen in itertools.combinations(known, size):
            subset = [c for c in cells if all(known[a][c[a]] == (a in chosen) for a in known)]
            mass = sum(target[c] for c in subset)
            for cell in subset:
                alike = [c for c in cells if all(c[a] == cell[a] for a in known)]
                if (total := sum(target[c] for c in alike)) > 0:
                    share = target[cell] / total
                else:
                    share = (
                        sum(target[c] for c in cells if all(c[a] == cell[a] for a in others)) / target.sum()
                    )
                product = np.prod([background[a][cell[a]] for a in chosen])
                mixed[cell] = own * target[cell] + (1 - own) * mass * product * share
    return mixed


@pytest.mark.parametrize("seed", range(8))
def test_backgrounds_are_mixed_as_the_loop_does(seed):
    rng = np.random.default_rng(seed)
    shape = (3, 2, 4, 2)[: 2 + seed % 3]
    target = rng.dirichlet(np.full(int(np.prod(shape)), 0.3)).reshape(shape)
    target[0] = 0  # cells without any mass
    target /= target.sum()
    axes = [axis for axis in range(len(shape)) if axis != seed % 4]
    known = {a: [True] * shape[a] if a == 1 else [g != seed % 2 for g in range(shape[a])] for a in axes}
    background = {}
    for axis in axes:
        shares = rng.random(shape[axis]) * np.array(known[axis])
        background[axis] = (shares / shares.sum()).tolist()
    found = mix_backgrounds(target, {a: (np.array(known[a]), np.array(background[a])) for a in axes}, 0.4)
    np.testing.assert_allclose(found, mixed_by_loop(target, known, background, 0.4), atol=1e-14)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 5])
def test_a_mixed_target_gives_the_awrf_of_the_product_written_out(seed):
    case = Case(seed)
    geo = {"mix": ["relevant", {"Africa": 0.25, "Asia": 0.75}], "unknown": "@UNKNOWN"}
    sex = {"mix": ["relevant", [0.495, 0.505]], "weights": [0.5, 0.5]}

    def mixed(topic):
        relevant = case.relevant(topic, case.product)
        target = np.array([relevant.get(g, 0.0) for g in PRODUCT]).reshape(2, 3, 3)
        known, background = (
            {0: [True, True], 2: [False, True, True]},
            {0: [0.495, 0.505], 2: [0.0, 0.25, 0.75]},
        )
        return dict(zip(PRODUCT, mixed_by_loop(target, known, background, 0.5).ravel(), strict=True))

    target = {"mix": ["relevant", "backgrounds"], "weights": [0.5, 0.5]}
    crossed = {**case.attributes(SEX=sex, GEO=geo), "X": Intersection.of("X", ["SEX", "AGE", "GEO"], target)}
    np.testing.assert_allclose(
        values(case, crossed), values(case, {"X": case.flat(mixed)}), rtol=0, atol=1e-12
    )


# Sums and gradients


@pytest.mark.parametrize("kind", ["hard", "soft", "mixed"])
def test_sums_and_their_transpose_are_those_of_the_product_whatever_the_padding(kind):
    rng = np.random.default_rng(7)
    factors = [np.stack([rows(rng, 150, count, kind) for _ in range(2)]) for count in (3, 4, 5)]
    exposure, by_group = rng.random((2, 150)), rng.normal(size=(2, 60))
    whole = product_membership(factors)
    sums = product_sums(exposure, factors)
    np.testing.assert_allclose(sums, np.einsum("td,tdg->tg", exposure, whole), atol=1e-12)
    np.testing.assert_allclose(
        product_spread(by_group, factors), np.einsum("tg,tdg->td", by_group, whole), atol=1e-12
    )
    padded = [np.pad(factor, [(0, 0), (0, 133), (0, 0)]) for factor in factors]
    np.testing.assert_array_equal(product_sums(np.pad(exposure, [(0, 0), (0, 133)]), padded), sums)
    np.testing.assert_array_equal(product_sums(exposure[1:], [factor[1:] for factor in factors]), sums[1:])


@pytest.mark.parametrize(
    "name",
    [
        "AWRF(attr='A')",
        "EE_L(attr='A')",
        "UEXP(attr='A')",
        "D_group(attr='A')",
        "DP(attr='A')",
        "EUR(attr='A')",
    ],
)
def test_gradients_are_those_of_the_product(name):
    topic, measure = one_topic(3, 12), parse_measure(name)
    rng = np.random.default_rng(5)
    factors = tuple(rows(rng, 12, count, "soft")[None] for count in (2, 3))
    target, applies = rng.dirichlet(np.ones(6))[None], np.ones(1, bool)
    groups = tuple("abcdef")
    views = (
        AttributeView(groups, False, factors, target, applies),
        AttributeView(groups, False, (product_membership(factors),), target, applies),
    )
    found, expected = (measure.value_and_gradient(replace(topic, attributes={"A": view})) for view in views)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert np.any(found[1] != 0)


@pytest.mark.parametrize("by_topic", [(), (0,), (1,), (0, 2), (0, 1, 2)])
def test_documents_are_found_in_every_attribute_whether_or_not_by_topic(by_topic):
    rng, parts = np.random.default_rng(len(by_topic)), {}
    for number, name in enumerate("ABC"):
        pairs = [(t, d) for t in rng.permutation(TOPICS) for d in rng.permutation(DOCS)[:9]]
        frame = pd.DataFrame(pairs, columns=["topic", "doc"])
        if number not in by_topic:
            frame = frame.drop(columns="topic").drop_duplicates()
        frame["group"] = rng.choice(["x", "y"], len(frame))
        parts[name] = Attribute.of(name, frame, ["x", "y"], unmapped="skip")
    qrels = {t: dict.fromkeys(DOCS, 1) for t in reversed(TOPICS)}
    collection = load_collection(None, qrels, {**parts, "X": Intersection.of("X", list("ABC"))})
    collection = collection.with_attributes(["X"])
    codes, docs = collection.qrels.topic_of, collection.qrels.docs
    found = collection.memberships("X", codes, docs)
    for name, memberships in zip("ABC", found, strict=True):
        np.testing.assert_array_equal(memberships, collection.attributes[name].memberships(codes, docs))
    assert any(0 < memberships.any(axis=1).mean() < 1 for memberships in found)


def test_the_cut_of_blocks_changes_nothing(monkeypatch):
    case = Case(2)
    crossed = {**case.attributes(), "X": Intersection.of("X", ["SEX", "AGE", "GEO"], "relevant")}
    whole = values(case, crossed)
    monkeypatch.setattr("fairevals.collection.blocks.GROUP_CELLS", 1)
    monkeypatch.setattr("fairevals.collection.targets.MEAN_CELLS", 1)
    np.testing.assert_array_equal(values(case, crossed), whole)


def test_workers_get_the_same_values():
    case = Case(3)
    crossed = {**case.attributes(), "X": Intersection.of("X", ["SEX", "GEO"])}
    measures = ["AWRF(attr='X')", "GF(attr='X')@5"]
    one, two = (
        fe.evaluate(case.runs, case.qrels, measures, groups=crossed, jobs=jobs).scores.values
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_thousands_of_product_groups_take_little_memory():
    rng, counts, depth = np.random.default_rng(0), (30, 30, 10), 1000
    topics = [f"T{t}" for t in range(10)]
    docs = [f"d{d}" for d in range(depth)]
    groups = {}
    for name, count in zip("ABC", counts, strict=True):
        labels = [f"{name}{g:02}" for g in range(count)]
        hard = {doc: labels[rng.integers(count)] for doc in docs[:900]}  # the others are in all groups
        groups[name] = Attribute.of(name, hard, labels)
    groups["X"] = Intersection.of("X", ["A", "B", "C"], "relevant")
    run = pd.DataFrame(
        [(t, d, -float(r)) for t in topics for r, d in enumerate(docs)], columns=["topic", "doc", "score"]
    )
    qrels = pd.DataFrame([(t, d, 1) for t in topics for d in docs[::3]], columns=["topic", "doc", "grade"])
    tracemalloc.start()
    measures = ["AWRF(attr='X')", "EE_L(attr='X')@100", "L2(attr='X')"]
    result = fe.evaluate(run, qrels, measures, groups=groups)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 128e6  # documents × groups of one topic would be 72 MB, of all 720 MB
    assert np.isfinite(result.pivot().to_numpy()).all()


def test_a_measure_of_ranks_is_refused_where_the_product_would_be_too_large(monkeypatch):
    case = Case(1)
    crossed = {**case.attributes(), "X": Intersection.of("X", ["SEX", "AGE", "GEO"])}
    monkeypatch.setenv("FAIREVALS_MAX_CELLS", "60")
    values(case, crossed, measures=["AWRF(attr='X')"])
    with pytest.raises(UsageError, match="in each of 18 groups; raise FAIREVALS_MAX_CELLS"):
        values(case, crossed, measures=["GF(attr='X')@5"])


# In a task, on the command line, and what is wrong

TASK = """qrels = "q.qrels"
measures = ["AWRF(attr='BOTH')", "GFR@5"]

[attributes.SEX]
groups = ["f", "m"]
memberships = "sex.csv"

[attributes.AGE]
kind = "ordinal"
groups = ["young", "mid", "old"]
memberships = "age.csv"
target = [0.5, 0.25, 0.25]

[intersections.BOTH]
of = ["SEX", "AGE"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.qrels").write_text("T1 0 a 1\nT1 0 b 2\nT1 0 c 0\nT2 0 a 1\nT2 0 c 1\n")
    (tmp_path / "sex.csv").write_text("doc,f,m\na,1,0\nb,0.5,0.5\nc,0,1\n")
    (tmp_path / "age.csv").write_text("doc,group\na,young\nb,old\nc,mid\n")
    (tmp_path / "r.run").write_text(
        "T1 Q0 b 1 3 r\nT1 Q0 a 2 2 r\nT1 Q0 c 3 1 r\nT2 Q0 c 1 2 r\nT2 Q0 a 2 1 r\n"
    )
    (tmp_path / "t.toml").write_text(TASK)
    return tmp_path


def test_a_task_file_the_command_and_python_agree(folder, capsys):
    assert main(["score", "--task", "t.toml", "r.run", "--format", "csv", "-p", "6"]) == 0
    printed = capsys.readouterr().out
    value = float(fe.evaluate("r.run", task="t.toml").scores.values[0, 0].mean())
    assert f"{value:.6f}" in printed
    task = fe.read_task("t.toml")
    task.save("again.toml")
    assert fe.read_task("again.toml") == task
    python = fe.Task(
        qrels="q.qrels",
        measures=task.measures,
        attributes={
            "SEX": {"groups": SEX, "memberships": "sex.csv"},
            "AGE": {"kind": "ordinal", "groups": AGE, "memberships": "age.csv", "target": [0.5, 0.25, 0.25]},
        },
        intersections={"BOTH": {"of": ["SEX", "AGE"]}},
    )
    assert python == task


def test_gfr_is_about_attributes_only(folder):
    alone = fe.evaluate("r.run", task="t.toml", measures=["GFR@5", "GFR(div='NMD')@5"]).scores.values[0]
    beside = fe.evaluate("r.run", task="t.toml", measures=["GFR@5", "GF(attr='BOTH')@5"]).scores.values[0]
    np.testing.assert_array_equal(alone[0], beside[0])
    parts = ["ERR@5", "GF(attr='SEX')@5", "GF(attr='AGE',div='NMD')@5", "GF(attr='SEX',div='NMD')@5"]
    err, sex, age, changed = fe.evaluate("r.run", task="t.toml", measures=parts).scores.values[0]
    np.testing.assert_allclose(alone[1], (err + sex + age) / 3, atol=1e-12)
    assert not np.allclose(sex, changed)  # so that the divergence of the nominal attribute would show


def test_exposure_by_group_lists_the_product_groups(folder, capsys):
    main(["exposure", "--task", "t.toml", "r.run", "--by", "group", "--attr", "BOTH", "--format", "csv"])
    printed = capsys.readouterr().out
    assert "f × old" in printed and "m × mid" in printed
    frame = fe.exposure("r.run", task="t.toml", by="group", attributes="BOTH")
    first = frame[(frame.topic == "T1") & (frame.group == "f × old")]
    assert first.exposure.item() == pytest.approx(0.5)  # half of b, at rank 1
    assert first.target.item() == pytest.approx(0.5 * 0.25)


def test_a_report_shows_it(folder):
    main(["report", "--task", "t.toml", "r.run", "-o", "report"])
    assert any("f × old" in path.read_text() for path in folder.glob("report/*.html"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'of = ["SEX", "AGE"]',
            'of = ["SEX", "RACE"]',
            "t.toml:14: an intersection BOTH of the missing attribute 'RA",
        ),
        (
            'of = ["SEX", "AGE"]',
            'of = ["SEX", "BOTH"]',
            "t.toml:14: an intersection BOTH of the missing attribute 'BO",
        ),
        (
            'of = ["SEX", "AGE"]',
            'of = ["SEX", "SEX"]',
            "t.toml:15: intersections.BOTH.of = ['SEX', 'SEX']; expect",
        ),
        ('of = ["SEX", "AGE"]', 'of = ["SEX"]', "expected two or more different attributes"),
        ('of = ["SEX", "AGE"]', "of = 3", "expected a list of texts"),
        ('of = ["SEX", "AGE"]', "", "expected two or more different attributes"),
        (
            "[intersections.BOTH]",
            "[intersections.SEX]",
            "t.toml:14: an intersection SEX with the name of an attribute",
        ),
        ('"AGE"]', '"AGE"]\nweight = 2', "the unknown key 'weight'"),
        ('"AGE"]', '"AGE"]\ntarget = "backgrounds"', "backgrounds are part of a mixture"),
        (
            '"AGE"]',
            '"AGE"]\ntarget = {mix = ["relevant", "backgrounds"]}',
            "no attribute of BOTH with a background",
        ),
        (
            '"AGE"]',
            '"AGE"]\ntarget = {mix = ["relevant", "backgrounds", "uniform"]}',
            "a mixture of relevant, backg",
        ),
        ('"AGE"]', '"AGE"]\ntarget = [0.5, 0.5]', "a target of 2 numbers; expected 6"),
        ('"AGE"]', '"AGE"]\ntarget = "gone"', "there is no such file"),
        ('groups = ["f", "m"]', 'groups = ["f", "m"]\nkind = "nom"', "attributes.SEX.kind"),
    ],
)
def test_what_is_refused_with_file_and_line(folder, old, new, message):
    (folder / "t.toml").write_text(TASK.replace(old, new))
    with pytest.raises(InputError) as caught:
        fe.evaluate("r.run", task="t.toml", measures=["AWRF(attr='BOTH')"])
    assert message in str(caught.value)


def test_what_is_refused_from_python():
    run, qrels, sex = {"q": {"a": 1.0}}, {"q": {"a": 1}}, {"a": "f"}
    for of, message in (
        (["SEX"], "two or more"),
        ("SEX", "names of attributes"),
        ([1, 2], "names of attributes"),
    ):
        with pytest.raises(UsageError, match=message):
            Intersection.of("X", of)
    with pytest.raises(
        InputError, match="an intersection X of the missing attribute 'AGE'; expected one of SEX"
    ):
        fe.evaluate(run, qrels, ["nDCG@1"], groups={"SEX": sex, "X": Intersection.of("X", ["SEX", "AGE"])})
    many = {name: Attribute.of(name, {"a": "g0"}, [f"g{n}" for n in range(300)]) for name in ("A", "B")}
    with pytest.raises(
        InputError, match="an intersection X of 90000 groups; expected at most 65536 with 1 topic"
    ):
        fe.evaluate(run, qrels, ["AWRF(attr='X')"], groups=[*many.values(), Intersection.of("X", ["A", "B"])])
    alike = {
        "A": Attribute.of("A", {"a": "x"}, ["x", "x × y"]),
        "B": Attribute.of("B", {"a": "z"}, ["z", "y × z"]),
    }
    with pytest.raises(InputError, match="two groups of one name"):
        fe.evaluate(run, qrels, ["AWRF(attr='X')"], groups={**alike, "X": Intersection.of("X", ["A", "B"])})
