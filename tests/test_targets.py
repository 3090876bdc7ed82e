"""Targets from tables and mixtures of targets with backgrounds."""

from __future__ import annotations

import numpy as np
import pytest

import fairevals as fe
from fairevals.collection.groups import Attribute
from fairevals.collection.inputs import load_qrels
from fairevals.errors import InputError, UsageError
from fairevals.io.task import Task, read_task

GROUPS = ("@UNKNOWN", "Africa", "Asia", "Europe")
QRELS = load_qrels({"T1": {"a": 1, "b": 2, "c": 1, "d": 0}, "T2": {"a": 1}, "T3": {"d": 0}})
MEMBERSHIPS = {
    "a": {"@UNKNOWN": 1},
    "b": {"Africa": 0.5, "Asia": 0.5},
    "c": {"Europe": 1},
    "d": {"Asia": 1},
}
TRUE = {"T1": np.array([1, 0.5, 0.5, 1]) / 3, "T2": np.array([1, 0, 0, 0])}
"""The mean membership of the relevant documents; T3 has none."""


def bound(target, **options) -> Attribute:
    return Attribute.of("GEO", MEMBERSHIPS, groups=GROUPS, target=target, **options).bound(QRELS)


def file(tmp_path, text: str, name: str = "t.csv") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_a_table_by_topic(tmp_path):
    text = "Asia,topic,@UNKNOWN,Europe,Africa\n0.5,T1,0.5,0,0\n\n0,T2,0,1,0\n0.25,*,0.25,0.25,0.25\n"
    for written in (text, text.replace(",", "\t")):
        target = bound(file(tmp_path, written)).target
        np.testing.assert_array_equal(target, [[0.5, 0, 0.5, 0], [0, 0, 0, 1], [0.25] * 4])


def test_a_table_by_group_equals_the_list(tmp_path):
    table = file(tmp_path, "group,share\nEurope,0.4\n@UNKNOWN,0\nAfrica,0.1\nAsia,0.5\n")
    np.testing.assert_array_equal(bound(table).target, bound([0, 0.1, 0.5, 0.4]).target)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "topic,Africa,Asia\nT1,0.5,0.5\n",
            1,
            "columns topic, Africa, Asia; expected topic and one for each of @UNK",
        ),
        (
            "topic,@UNKNOWN,Africa,Asia,Europe,Mars\nT1,1,0,0,0,0\n",
            1,
            "columns topic, @UNKNOWN, Africa, Asia, Eu",
        ),
        ("topic,@UNKNOWN,Africa,Asia,Europe\nT1,1,0,0,0.5\n", 2, "a target that sums to 1.5; expected 1"),
        (
            "topic,@UNKNOWN,Africa,Asia,Europe\nT1,1,0,0,0\nT2,1,0,-1,1\n",
            3,
            "share '-1'; expected a number of at",
        ),
        ("topic,@UNKNOWN,Africa,Asia,Europe\nT1,1,0,0,0\nT1,1,0,0,0\n", 3, "the topic 'T1' a second time"),
        ("topic,@UNKNOWN,Africa,Asia,Europe\n,1,0,0,0\n", 2, "an empty topic"),
        ("topic,@UNKNOWN,Africa,Asia,Europe\nT1,1,0,0,0\nT3,1,0,0,0\n", 0, "no target of GEO for topic 'T2'"),
        (
            "group,share\nAfrica,0.5\nMars,0.5\n",
            3,
            "a share for the unknown group 'Mars'; expected one of @UNKNOWN, A",
        ),
        ("group,share\nAfrica,0.5\nAfrica,0.5\n", 3, "the group 'Africa' a second time"),
        ("group,share\nAfrica,0.5\nAsia,0.5\n", 3, "no share for the group '@UNKNOWN'"),
        ("group,share\n@UNKNOWN,0.5\nAfrica,0.5\nAsia,0.5\nEurope,0\n", 5, "a target that sums to 1.5"),
        ("group,share\nAfrica,x\n", 2, "share 'x'"),
        (
            "group,share,year\nAfrica,1,2\n",
            1,
            "columns group, share, year; expected group and the column of its share",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_file_and_line(tmp_path, text, line, message):
    path = file(tmp_path, text)
    with pytest.raises(InputError) as caught:
        bound(path)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert message in str(caught.value)


def test_a_mixture_as_trec_fair_has_it(tmp_path):
    world = {"Africa": 0.2, "Asia": 0.6, "Europe": 0.2}
    path = file(tmp_path, "group,population\n" + "".join(f"{g},{s}\n" for g, s in world.items()))
    target = bound({"mix": ["relevant", path], "weights": [0.5, 0.5], "unknown": "@UNKNOWN"}).target
    # Two thirds of T1 are known; T2 has only the unknown group, and keeps it; T3 has no relevant document.
    np.testing.assert_allclose(
        target[0], [1 / 3, 1 / 12 + 0.2 / 3, 1 / 12 + 0.6 / 3, 1 / 6 + 0.2 / 3], atol=1e-15
    )
    np.testing.assert_array_equal(target[1], [1, 0, 0, 0])
    assert np.isnan(target[2]).all()
    for same in ([0.2, 0.6, 0.2], world):
        again = bound({"mix": ["relevant", same], "unknown": "@UNKNOWN"}).target
        np.testing.assert_allclose(again, target, atol=1e-15)


def test_a_mixture_of_several_without_an_unknown_group():
    shares = (0.1, 0.2, 0.3, 0.4)
    target = bound({"mix": ["relevant", "uniform", shares], "weights": [0.5, 0.2, 0.3]}).target
    expected = 0.5 * TRUE["T1"] + 0.2 * 0.25 + 0.3 * np.array(shares)
    np.testing.assert_allclose(target[0], expected, atol=1e-15)
    np.testing.assert_allclose(target[:2].sum(axis=1), 1, atol=1e-15)


def test_uniform_as_background_is_uniform_over_the_known_groups():
    target = bound({"mix": ["relevant", "uniform"], "unknown": "@UNKNOWN"}).target
    np.testing.assert_allclose(target[0], [1 / 3, *(0.5 * TRUE["T1"][1:] + 0.5 * 2 / 3 / 3)], atol=1e-15)


@pytest.mark.parametrize(
    ("mixture", "error", "message"),
    [
        ({"mix": ["relevant"]}, UsageError, "two or more targets"),
        ({"mix": "relevant"}, UsageError, "two or more targets"),
        ({"mix": ["relevant", {"mix": ["relevant", "uniform"]}]}, UsageError, "two or more targets"),
        ({"mix": ["relevant", "uniform"], "weights": [1]}, UsageError, "2 numbers above 0 that sum to 1"),
        (
            {"mix": ["relevant", "uniform"], "weights": [0.5, 0.6]},
            UsageError,
            "2 numbers above 0 that sum to 1",
        ),
        ({"mix": ["relevant", "uniform"], "weights": [-1, 2]}, UsageError, "2 numbers above 0 that sum to 1"),
        ({"mix": ["relevant", "uniform"], "unknown": 3}, UsageError, "unknown: the name of a group"),
        ({"mix": ["relevant", "uniform"], "known": "x"}, UsageError, "mix, and perhaps weights and unknown"),
        (
            {"mix": ["relevant", "uniform"], "unknown": "Mars"},
            InputError,
            "unknown = 'Mars'; expected one of @UNK",
        ),
        (
            {"mix": ["relevant", dict.fromkeys(GROUPS, 0.25)], "unknown": "@UNKNOWN"},
            InputError,
            "a target for @UNKNOWN, Africa, Asia, Europe; expected a share for Africa, Asia, Europe",
        ),
        (
            {"mix": ["relevant", {"Africa": 0.5, "Asia": 0.4, "Europe": 0.2}], "unknown": "@UNKNOWN"},
            InputError,
            "a target that sums to 1.1; expected 1",
        ),
        ({"mix": ["relevant", "gone.csv"]}, InputError, "target 'gone.csv': there is no such file"),
    ],
)
def test_a_wrong_mixture_is_refused(mixture, error, message):
    with pytest.raises(error) as caught:
        bound(mixture)
    assert message in str(caught.value)


def test_a_mixture_in_a_task_file_is_read_and_written_back(tmp_path):
    file(tmp_path, "group,share\nAfrica,0.2\nAsia,0.6\nEurope,0.2\n", "world.csv")
    file(tmp_path, "doc,group\na,Asia\n", "geo.csv")
    path = tmp_path / "task.toml"
    path.write_text(
        'qrels = "q"\n\n[attributes.GEO]\ngroups = ["@UNKNOWN", "Africa", "Asia", "Europe"]\nmemberships = "geo.csv"\n'
        'target = {mix = ["relevant", "world.csv"], weights = [0.5, 0.5], unknown = "@UNKNOWN"}\n'
    )
    task = read_task(path)
    assert tmp_path / "world.csv" in task.files
    task.save(tmp_path / "again.toml")
    assert read_task(tmp_path / "again.toml") == task
    attribute = Attribute.of("GEO", tmp_path / "geo.csv", GROUPS, target=task.attributes["GEO"].target)
    assert attribute.spec.target == task.attributes["GEO"].target
    path.write_text(path.read_text().replace("[0.5, 0.5]", "[0.5, 0.7]"))
    with pytest.raises(InputError, match=rf"{path}:6: .*2 numbers above 0 that sum to 1"):
        read_task(path)
    with pytest.raises(UsageError, match="two or more targets"):
        Task(attributes={"GEO": {"groups": ["a"], "target": {"mix": []}}})


def test_a_mixed_target_is_what_awrf_compares_with():
    target = {"mix": ["relevant", [0.2, 0.6, 0.2]], "unknown": "@UNKNOWN"}
    groups = {"MIXED": Attribute.of("MIXED", MEMBERSHIPS, groups=GROUPS, target=target)}
    mixed = [1 / 3, 1 / 12 + 0.2 / 3, 1 / 12 + 0.6 / 3, 1 / 6 + 0.2 / 3]
    groups["GIVEN"] = Attribute.of("GIVEN", MEMBERSHIPS, groups=GROUPS, target={"*": mixed})
    run, judged = {"T1": {"a": 3.0, "b": 2.0, "d": 1.0}}, {"T1": {"a": 1, "b": 2, "c": 1, "d": 0}}
    result = fe.evaluate(run, judged, ["AWRF(attr='MIXED')", "AWRF(attr='GIVEN')"], groups=groups)
    mixed_value, given_value = result.scores.values[0, :, 0]
    assert mixed_value == pytest.approx(given_value, abs=1e-12)
