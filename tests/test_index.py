"""Every measure in the index declares itself in full."""

from __future__ import annotations

import math

import pytest

from fairevals.errors import UsageError
from fairevals.measures import INDEX, measure_class, parse_measure

NEEDED = {"attr": "A", "protected": "g"}


def instance(name):
    cls = measure_class(name)
    return cls(**{f.name: NEEDED[f.name] for f in cls.parameters() if f.name in NEEDED}, cutoff=10)


@pytest.mark.parametrize("name", INDEX)
def test_declaration_is_complete(name):
    cls = measure_class(name)
    assert cls.name == name
    assert cls.formula and cls.source and cls.__doc__
    assert any(c.isdigit() for c in cls.source), "a source has a year"
    assert cls.direction.arrow
    assert all(f.metadata["meaning"] for f in cls.parameters())


@pytest.mark.parametrize("name", INDEX)
def test_its_name_reads_back(name):
    measure = instance(name)
    assert parse_measure(str(measure)) == measure


def test_only_utility_and_group_fairness_are_0_on_missing_topics():
    zero = {name for name in INDEX if measure_class(name).missing == 0.0}
    assert zero == {"nDCG", "ERR", "iRBU", "P", "AP", "RR", "RBP", "GF", "GFR"}
    assert all(math.isnan(measure_class(name).missing) for name in INDEX if name not in zero)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nDCG(dcg='foo')@10", "one of 'log2', 'exp-log2'"),
        ("iRBU(phi=2)", "phi=2"),
        ("iRBU(nonsense=2)", "no parameter 'nonsense'"),
        ("nDCG@0", "above 0"),
        ("nDCG@ten", "cannot read"),
        ("GF@10", "attr="),
        ("Wombat@3", "unknown measure 'Wombat@3'"),
        ("nDCG(__import__('os'))", "cannot read the parameters"),
        ("nDCG(dcg=open('x'))", "cannot read the parameters"),
        ("nDCG(dcg='log2', dcg='log2')", "cannot read the parameters"),
        ("nDCG(dcg='log2')(dcg='log2')", "cannot read"),
        ("P", "needs a cutoff"),
        ("AP(rel=0)", "rel=0"),
        ("RR(rel='x')@10", "rel="),
        ("", "cannot read"),
    ],
)
def test_wrong_measures_are_usage_errors(text, says):
    with pytest.raises(UsageError) as error:
        measure = parse_measure(text)
        measure.depth  # noqa: B018 -- P says that it needs a cutoff when it is asked how deep it looks
    assert says in str(error.value)


def test_names_of_ir_measures_work_and_aliases_mean_ours():
    assert str(parse_measure("AP(rel=2)@100")) == "AP(rel=2)@100"
    assert str(parse_measure("nDCG(judged_only=True)@10")) == "nDCG(judged_only=True)@10"
    assert parse_measure("NDCG@10") == parse_measure("nDCG@10")


@pytest.mark.parametrize(
    "text",
    [
        "nDCG(dcg='exp-log2')@10",
        "GF(attr='HINDEX',div='NMD')@20",
        "GFR(util='iRBU')@20",
        "D_group(attr='SEX',pairs='max')",
        "IAA(attention='rbp(0.8)')@10",
        "FAIR(attr='SEX',protected='f',alpha=0.1)@20",
    ],
)
def test_a_name_is_printed_as_it_was_given_without_defaults(text):
    assert str(parse_measure(text)) == text
    assert str(parse_measure(text.replace("GFR(", "GFR(phi=0.99,"))) == text
