"""Measures as objects: written, compared, printed, computed on arrays, and accepted wherever a name is."""

from __future__ import annotations

import ast
import inspect
import math
import pickle
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe
from fairevals import AWRF, ERR, GF, GFR, M1, P, UsageError, nDCG
from fairevals.collection.collection import load_collection
from fairevals.errors import InputWarning
from fairevals.evaluation import Plan
from fairevals.io.letor import read_letor
from fairevals.measures import INDEX, Measure, measure_class, parse_measure, parse_measures
from fairevals.training.objectives import Objective

NEEDED = {"attr": "A", "protected": "x"}
NAMES = {name: measure_class(name) for name in INDEX}


def instance(name: str) -> Measure:
    cls = measure_class(name)
    return cls(**{f.name: NEEDED[f.name] for f in cls.parameters() if f.name in NEEDED}) @ 3


# As objects


def test_every_measure_can_be_imported_by_its_name():
    for name in INDEX:
        assert getattr(fe, name) is measure_class(name)
        assert name in dir(fe)
    assert not set(INDEX) & set(fe.__all__)  # `from fairevals import *` must not bring a P


def test_type_checkers_are_told_the_same_names():
    tree = ast.parse(inspect.getsource(fe))
    block = next(
        node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    )
    told = {a.targets[0].id: ast.unparse(a.value) for a in block.body if isinstance(a, ast.Assign)}
    assert told == {name: home.replace(":", ".") for name, home in INDEX.items()}
    homes = {a.name: n.module for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    modules = {home.partition(":")[0] for home in INDEX.values()}
    exported = {name: home.removeprefix("fairevals.") for name, home in homes.items() if name not in modules}
    assert exported == fe._HOMES
    assert {*fe.__all__} == {*exported, "__version__"}


def test_a_cutoff_by_matrix_multiplication_as_in_ir_measures():
    assert nDCG @ 10 == nDCG(cutoff=10) == nDCG() @ 5 @ 10 == parse_measure("nDCG@10")
    assert nDCG @ np.int64(10) == nDCG @ 10
    assert GF(attr="A", div="NMD") @ 20 == parse_measure("GF(attr='A',div='NMD')@20")
    assert parse_measure("Rprec") != parse_measure("R@5") == parse_measure("R@10") @ 5
    assert str(parse_measure("IPrec@0.1") @ 0.2) == "IPrec@0.2"
    for wrong in (0, 2.5, "ten", True, None.__class__):
        with pytest.raises(UsageError, match=r"the cutoff is .*; expected a whole number above 0"):
            nDCG @ wrong


def test_what_is_required_is_asked_for():
    for make in (lambda: GF @ 20, lambda: GF(), lambda: parse_measure(GF), lambda: parse_measure("GF@20")):
        with pytest.raises(UsageError, match=r"^GF requires attr='…' \(the attribute's name\)$"):
            make()
    with pytest.raises(UsageError, match=r"^GF has no parameter 'atr' \(it takes attr, div\)$"):
        GF(atr="A")


def test_equal_measures_are_one_key():
    spellings = [nDCG @ 10, nDCG(cutoff=10), parse_measure(" nDCG( dcg='log2' )@ 10"), ir_measures.nDCG @ 10]
    assert len({parse_measure(measure) for measure in spellings}) == 1
    assert len({nDCG @ 10, nDCG @ 5, ERR @ 10, nDCG(dcg="exp-log2") @ 10}) == 4
    assert len({parse_measure(name) for name in ("Recall@10", "R(rel=1)@10", "R(cutoff=10)")}) == 1
    weights = [nDCG(attention=[1, 0.5]), nDCG(attention=(1, 0.5)), nDCG(attention=np.array([1, 0.5]))]
    assert len(set(weights)) == 1


@pytest.mark.parametrize("name", INDEX)
def test_what_is_printed_reads_back(name):
    measure = instance(name)
    assert repr(measure) == str(measure)
    assert parse_measure(repr(measure)) == measure == eval(repr(measure), dict(NAMES))
    assert repr(NAMES[name]) == str(NAMES[name]) == name
    assert pickle.loads(pickle.dumps(measure)) == measure
    assert pickle.loads(pickle.dumps(NAMES[name])) is NAMES[name]


@given(st.text(min_size=1), st.floats(0, 1), st.lists(st.floats(0, 1e300), min_size=1, max_size=3))
def test_any_parameter_reads_back(text, phi, weights):
    for measure in (GF(attr=text) @ 7, fe.iRBU(phi=phi), AWRF(attr=text, attention=weights) @ 2):
        assert parse_measure(repr(measure)) == measure == eval(repr(measure), dict(NAMES))


def test_a_list_of_measures_from_anything():
    alone = ["nDCG@10", nDCG @ 10, ir_measures.nDCG @ 10]
    assert {parse_measures(given) for given in alone} == {(nDCG @ 10,)}
    assert parse_measures(nDCG) == (nDCG(),)
    mixed = parse_measures(iter(["nDCG", ERR, P @ 5, ir_measures.AP, ir_measures.Rprec]))
    assert [str(measure) for measure in mixed] == ["nDCG", "ERR", "P@5", "AP", "Rprec"]
    for wrong, message in [
        (
            3,
            "cannot take 3 as a measure; expected a name such as 'nDCG@10', a measure such as fairevals.nDCG",
        ),
        (["nDCG", None], "cannot take None as a measure"),
        (int, "cannot take <class 'int'> as a measure"),
        (fe.measures.RankingMeasure, "cannot take <class .*RankingMeasure.*> as a measure"),
        ([], "there is no measure to compute; expected one or more"),
        (np.array(["nDCG"]).reshape(1, 1), "cannot take array"),
    ]:
        with pytest.raises(UsageError, match=message):
            parse_measures(wrong)


RUN = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"c": 2.0, "a": 1.0}}
QRELS = {"q": {"a": 0, "b": 2, "d": 1}, "r": {"a": 1}}
GROUPS = {"A": {"a": "x", "b": "y", "c": "x", "d": "y"}}


def test_objects_wherever_a_name_is_taken():
    by_name = fe.evaluate(RUN, QRELS, ["GFR(util='ERR')@2", "nDCG@2"], groups=GROUPS).frame()
    pd.testing.assert_frame_equal(
        fe.evaluate(RUN, QRELS, [GFR(util="ERR") @ 2, nDCG @ 2], groups=GROUPS).frame(), by_name
    )
    one = by_name[by_name.measure == "nDCG@2"].reset_index(drop=True)
    for alone in ("nDCG@2", nDCG @ 2, ir_measures.nDCG @ 2):
        pd.testing.assert_frame_equal(fe.evaluate(RUN, QRELS, alone).frame(), one)
        pd.testing.assert_frame_equal(fe.evaluate(RUN, QRELS, task=fe.Task(measures=alone)).frame(), one)
    plan = Plan.of(load_collection(None, QRELS), nDCG)
    assert plan.measures == (nDCG(),)
    with pytest.raises(UsageError, match="no measure"):
        fe.evaluate(RUN, QRELS, [])
    group = "D_group(attr='group')"
    assert Objective.of(nDCG, 1.0, parse_measure(group)) == Objective.of("nDCG", 1.0, group)
    with pytest.raises(UsageError, match="D_group requires attr"):
        Objective.of("nDCG", 1.0, fe.D_group)


def test_measures_of_ir_measures_have_the_values_of_ir_measures():
    theirs = [
        ir_measures.Rprec,
        ir_measures.R @ 2,
        ir_measures.nDCG(judged_only=True) @ 2,
        ir_measures.P(rel=2) @ 2,
    ]
    table = fe.evaluate(RUN, QRELS, theirs).frame(per_topic=True)
    ours = {(row.measure, row.topic): row.value for row in table[table.topic != "all"].itertuples()}
    values = {(str(m.measure), m.query_id): m.value for m in ir_measures.iter_calc(theirs, QRELS, RUN)}
    assert ours == pytest.approx(values)
    assert parse_measure(ir_measures.GF(attr="A") @ 3) == GF(attr="A") @ 3
    mine = ir_measures.define_byquery(lambda qrels, run: 1.0, name="MINE")
    with pytest.raises(UsageError, match=r"cannot compute MINE.*: a measure defined by ir_measures.define"):
        parse_measure(mine)


def test_help_shows_the_parameters():
    for cls in NAMES.values():
        shown = inspect.signature(cls).parameters
        assert {"cutoff"} | {f.name for f in cls.parameters()} == set(shown)
    assert inspect.signature(nDCG).parameters["cutoff"].default is None


# On arrays


def evaluated(measure, grades, unranked, labels, **attribute):
    """What `evaluate` gives: documents r0, r1, … are ranked, NaN is unjudged, u0, u1, … are judged only."""
    run = {"q": {f"r{rank}": -float(rank) for rank in range(len(grades))}}
    judged = {f"r{rank}": grade for rank, grade in enumerate(grades) if grade == grade}
    judged |= {f"u{number}": grade for number, grade in enumerate(unranked)}
    groups = {
        "A": fe.Attribute.of("A", {f"r{r}": g for r, g in enumerate(labels)}, unmapped="skip", **attribute)
    }
    return fe.evaluate(run, {"q": judged}, measure, groups=groups).frame().value[0]


CASES = [
    ([2, 0, 1], []),
    ([2, 0, 1], [2, 1, 0]),
    ([0, math.nan, 3, 1, math.nan, 0, 1], [3, 0, 0]),
    ([0, 0, 0, 0], [1]),
    ([1] * 12, []),
    ([0.5, 0, 0.25, -1], [0.5]),
]


@pytest.mark.parametrize("name", [name for name in INDEX if not instance(name).across_topics])
@pytest.mark.parametrize("case", [2, 5, *(pytest.param(n, marks=pytest.mark.thorough) for n in (0, 1, 3, 4))])
def test_arrays_have_the_values_of_evaluate(name, case):
    grades, unranked = CASES[case]
    labels = ["x" if rank % 3 else "y" for rank in range(len(grades))]
    ideal = [grade for grade in grades if grade == grade] + unranked
    for measure in (instance(name), instance(name) @ 11):
        for attribute in ({}, {"target": {"y": 0.25, "x": 0.75}, "kind": "ordinal"}, {"target": "relevant"}):
            expected = evaluated(measure, grades, unranked, labels, **attribute)
            value = measure(grades, ideal=ideal, groups=labels, **attribute)
            assert isinstance(value, float)
            np.testing.assert_array_equal(value, expected)
    # Several at once, each of a topic of its own.
    rows = [list(grades), list(grades)[::-1]]
    both = instance(name)(rows, ideal=ideal, groups=[labels, labels[::-1]])
    alone = [
        instance(name)(row, ideal=ideal, groups=g)
        for row, g in zip(rows, [labels, labels[::-1]], strict=True)
    ]
    if name not in ("ERR", "iRBU", "GF", "GFR", "RBP"):  # which know the largest grade of all topics
        np.testing.assert_array_equal(both, alone)
    assert both.shape == (2,)


def test_worked_examples_on_arrays():
    """nDCG by hand; ERR of NTCIR-17 FairWeb-1's example, and its GF with the memberships of three pages."""
    by_hand = (2 + 1 / 2) / (2 + 1 / math.log2(3))
    assert (nDCG @ 10)([2, 0, 1], ideal=[2, 1]) == pytest.approx(by_hand)
    assert (nDCG @ 2)([0, 1], ideal=[3, 1]) == pytest.approx((1 / math.log2(3)) / (3 + 1 / math.log2(3)))
    assert ERR()([2, 0, 1]) == pytest.approx(0.7708, abs=5e-5)
    assert ERR()([1, 0, 1], max_grade=2) < ERR()([1, 0, 1])
    pages = [[2 / 3, 1 / 3, 0, 0], [0.25] * 4, [0, 0, 0, 1]]
    nmd = GF(attr="HINDEX", div="NMD")
    assert nmd([2, 0, 1], groups=pages, kind="ordinal") == pytest.approx(0.5162, abs=5e-5)
    assert AWRF(attr="S")([1, 1], groups=["f", "f"], target={"f": 1.0, "m": 0.0}) == 1
    assert AWRF(attr="S")([1, 1], groups=["f", None], target={"f": 0.5, "m": 0.5}) < 1
    ordered = pd.Categorical(["lo", "hi"], categories=["lo", "mid", "hi"])
    assert GF(attr="S")([1, 1], groups=ordered, kind="ordinal") > 0
    assert math.isnan(nDCG()([0, 0]))
    assert M1(attr="S")([1, 0], groups=["f", "m"]) == AWRF(attr="S")([1, 0], groups=["f", "m"])
    assert parse_measure("Rprec")([1, 0, 1]) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nDCG()([]), r"grades has the shape \(0,\); expected \(n,\)"),
        (lambda: nDCG()(3), r"grades has the shape \(\)"),
        (lambda: nDCG()("high"), "grades is 'high'; expected numbers"),
        (lambda: nDCG()([[1], [1, 2]]), "rows of one length"),
        (lambda: nDCG()([math.inf]), r"grades has the number inf; expected numbers of at most 1e\+15"),
        (lambda: nDCG()([2, 2], ideal=[2]), "ideal lacks a grade 2 that the ranking has"),
        (
            lambda: nDCG()([[1], [1]], ideal=[[1]] * 3),
            r"ideal has the shape \(3, 1\); expected \(m,\), or \(2, m\)",
        ),
        (lambda: ERR()([3], max_grade=2), "max_grade is 2, but there is a grade of 3"),
        (lambda: GF(attr="S")([1]), r"GF\(attr='S'\) needs groups="),
        (lambda: GF(attr="S")([1], groups=["a", "b"]), r"groups is \['a', 'b'\]; expected the shape \(1,\)"),
        (lambda: GF(attr="S")([1, 1], groups=[["a"], ["a", "b"]]), "groups is .*; expected the shape"),
        (
            lambda: GF(attr="S")([1], groups=["a"], kind="ordinal"),
            "ordinal groups without an order; expected target=",
        ),
        (
            lambda: GF(attr="S")([1], groups=["a"], target={"b": 1.0}),
            "a target for b; expected a share for a",
        ),
        (lambda: GF(attr="S")([1], groups=["a"], target=[0.5, 0.5]), "a target of 2 numbers; expected 1"),
        (
            lambda: GF(attr="S")([1], groups=[[1, 0]], target={"a": 1.0}),
            "shares in 2 groups, and target has 1",
        ),
        (lambda: P()([1]), "P needs a cutoff"),
        (lambda: (ERR @ 10)([2, 0], max_grade="x"), "max_grade is 'x'; expected a number"),
        (lambda: nDCG(1, 2, 3, 4), r"nDCG of \(1, 2, 3, 4\): too many positional arguments; expected \(dcg"),
    ],
)
def test_wrong_arrays(call, message):
    with pytest.raises(fe.FairevalsError, match=message):
        call()


def test_a_frame_of_shares_names_the_groups():
    """The order of the target's groups does not decide which column is whose."""
    frame, target = pd.DataFrame({"x": [1, 0.0], "y": [0, 1.0]}), {"y": 0.1, "x": 0.9}
    measure = AWRF(attr="A")
    labels = measure([1, 0], groups=["x", "y"], target=target)
    assert measure([1, 0], groups=frame, target=target) == labels == pytest.approx(0.9152, abs=5e-5)
    assert measure([1, 0], groups=frame, target=pd.Series(target)) == labels
    assert measure([1, 0], groups=frame, target=[0.9, 0.1]) == labels
    parity = fe.DP(attr="A", protected="x")
    assert parity([1, 0], groups=frame) == parity([1, 0], groups=["x", "y"])
    with pytest.raises(fe.FairevalsError, match="a target for x, z; expected a share for x, y"):
        measure([1, 0], groups=frame, target={"x": 0.5, "z": 0.5})


def test_an_ordered_categorical_is_ordinal_on_arrays_too():
    labels = pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"], ordered=True)
    series = pd.Series(labels, index=["r0", "r1", "r2"])
    run = {"q": {"r0": 3.0, "r1": 2.0, "r2": 1.0}}
    attribute = fe.Attribute.of("A", series, unmapped="skip")
    result = fe.evaluate(run, {"q": {"r0": 2, "r1": 0, "r2": 1}}, GF(attr="A"), groups={"A": attribute})
    value = GF(attr="A")([2, 0, 1], groups=labels)
    assert value == result.frame().value[0] == GF(attr="A")([2, 0, 1], groups=labels, kind="ordinal")
    assert value != GF(attr="A")([2, 0, 1], groups=labels, kind="nominal")


def test_shares_that_do_not_sum_to_1_are_normalised_with_a_warning():
    measure = AWRF(attr="A")
    with pytest.warns(
        InputWarning, match="the memberships of 1 document do not sum to 1 and were normalised"
    ):
        value = measure([1, 0], groups=[[2, 6], [0, 1]])
    assert value == measure([1, 0], groups=[[0.25, 0.75], [0, 1]])


def test_whole_numbers_name_the_same_group_with_and_without_a_decimal_point():
    parity = fe.DP(attr="A", protected="1")
    assert parity([1, 0, 1], groups=np.array([1, 2, np.nan])) == parity([1, 0, 1], groups=[1, 2, None])


# Conventions


def test_errors_are_value_errors_and_warnings_have_one_category():
    assert issubclass(fe.FairevalsError, ValueError)
    assert issubclass(fe.UsageError, fe.FairevalsError) and issubclass(fe.InputError, fe.FairevalsError)
    categories = [fe.errors.InputWarning, fe.errors.RemarkWarning]
    assert all(issubclass(category, fe.FairevalsWarning) for category in categories)
    with pytest.warns(fe.FairevalsWarning, match="two: has nothing for 1 judged topic"):
        fe.evaluate({"one": RUN, "two": {"q": RUN["q"]}}, QRELS, "D_ind")


def test_an_error_about_input_stays_what_it_is(tmp_path, monkeypatch):
    """Readers catch the ValueErrors of numpy and others; an input error is one, too."""
    (tmp_path / "x.letor").write_text("1 qid:q 1000:0.5\n")
    monkeypatch.setenv("FAIREVALS_MAX_BYTES", "500")
    with pytest.raises(fe.InputError, match=r"1 rows of 1000 features, .* raise FAIREVALS_MAX_BYTES"):
        read_letor(tmp_path / "x.letor")


def test_everything_public_is_documented():
    page = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")
    for name in set(fe.__all__) - {"__version__"}:
        assert f"fe.{name}" in page or f"`{name}`" in page, name
        assert inspect.getdoc(getattr(fe, name)), name
