"""Qrels and memberships from entity annotations: the worked example, every error, and agreement by slow loops."""

from __future__ import annotations

import argparse
import gzip
import random
from collections import defaultdict
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals.cli import derive as command
from fairevals.collection.groups import load_attribute
from fairevals.derive import derive, describe_derived, read_annotations, write_derived
from fairevals.derive.agreement import AnnotationTally, cohen_kappa, krippendorff_alpha
from fairevals.derive.pages import Annotation, Annotations, Derived
from fairevals.errors import InputError, InputWarning, Place, UsageError
from fairevals.io.qrels import read_qrels_columns
from fairevals.io.specs import AttributeSpec
from fairevals.io.streams import Source
from fairevals.io.task import Task, read_task

TASK = """
name = "Small"
qrels = "judged/small.qrels"
max_grade = 2

[attributes.HINDEX]
kind = "ordinal"
groups = ["<10", "10-29", "30-49", ">=50"]
bins = [10, 30, 50]
memberships = "small.HINDEX.gmemb.gz"
topics = ["R*"]

[attributes.ORIGIN]
groups = ["Africa", "Asia", "Europe"]
topics = ["M*"]
"""

# The example of the FairWeb-1 proposal: X, Y, Z named by 2, 1, 2 annotators, nothing, W by one.
EXAMPLE = """topic,doc,entity,annotator,HINDEX
R1,first,X,ann,5
R1,first,X,bob,5
R1,first,Y,ann,6
R1,first,Z,ann,20
R1,first,Z,bob,20
R1,second,,,
R1,third,W,bob,90
"""
# The same, with the lines that say who looked at a page and found nothing there.
SEEN_BY_BOTH = EXAMPLE.replace("R1,second,,,\n", "R1,second,,ann,\nR1,second,,bob,\nR1,third,,ann,\n")


def task_of(tmp_path: Path, text: str = TASK) -> Task:
    path = tmp_path / "task.toml"
    path.write_text(text)
    return read_task(path)


def derived_of(tmp_path: Path, table: str, task: Task | None = None) -> Derived:
    path = tmp_path / "annotations.csv"
    path.write_text(table)
    return derive(task or task_of(tmp_path), read_annotations(path))


def weights_of(derived: Derived, attribute: str) -> dict[tuple[str, str], list[float]]:
    memberships = derived.memberships[attribute]
    return {
        (page.topic, page.doc): weights
        for page, weights in zip(memberships.pages, memberships.weights.tolist(), strict=True)
    }


def grades_of(derived: Derived) -> dict[tuple[str, str], int]:
    return {(page.topic, page.doc): page.grade for page in derived.pages}


# The worked example


@pytest.mark.parametrize("table", [EXAMPLE, SEEN_BY_BOTH])
def test_the_worked_example(tmp_path, table):
    derived = derived_of(tmp_path, table)
    assert grades_of(derived) == {("R1", "first"): 2, ("R1", "second"): 0, ("R1", "third"): 1}
    assert weights_of(derived, "HINDEX") == {
        ("R1", "first"): [2 / 3, 1 / 3, 0, 0],
        ("R1", "second"): [0.25] * 4,
        ("R1", "third"): [0, 0, 0, 1],
    }
    assert list(derived.memberships) == ["HINDEX"]  # no topic of films, no file for ORIGIN


def test_the_worked_example_through_files_gives_the_published_values(tmp_path):
    task = task_of(tmp_path)
    out = tmp_path / "out"
    files = write_derived(derived_of(tmp_path, EXAMPLE, task), out)
    assert files == [out / "small.qrels", out / "small.HINDEX.gmemb"]
    assert sorted(out.iterdir()) == sorted(files)
    assert files[0].read_text() == "R1 0 first 2\nR1 0 second 0\nR1 0 third 1\n"
    qrels = read_qrels_columns(Source.of(files[0]))
    spec = task.attributes["HINDEX"]
    attribute = load_attribute(AttributeSpec("HINDEX", spec.groups, memberships=files[1]), qrels)
    rows = attribute.memberships(qrels.topic_of, qrels.docs)
    assert rows.tolist() == [[2 / 3, 1 / 3, 0, 0], [0.25] * 4, [0, 0, 0, 1]]
    # ERR, iRBU, GF-NMD by hand, as the proposal prints them.
    err = irbu = fairness = 0.0
    left, seen = 1.0, np.zeros(4)
    for rank, (grade, row) in enumerate(zip(qrels.grades, rows, strict=True), 1):
        stop, seen = left * (2**grade - 1) / 4, seen + row
        distance = np.abs(np.cumsum(seen / rank) - np.cumsum(attribute.target[0])).sum() / 3
        err, irbu, fairness = err + stop / rank, irbu + stop * 0.99**rank, fairness + stop * (1 - distance)
        left -= stop
    assert (round(err, 4), round(irbu, 4), round(fairness, 4)) == (0.7708, 0.8031, 0.5162)


def test_compressed_annotations_and_tabs(tmp_path):
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(EXAMPLE.replace(",", "\t").encode()))
    derived = derive(task_of(tmp_path), read_annotations(tmp_path / "a.tsv.gz"))
    expected = derived_of(tmp_path, EXAMPLE)
    assert weights_of(derived, "HINDEX") == weights_of(expected, "HINDEX")
    assert grades_of(derived) == grades_of(expected)


# Entities, values, groups


def test_annotators_that_differ_in_spelling_only_get_a_remark(tmp_path):
    table = EXAMPLE.replace("R1,first,X,bob,5", "R1,first,X,Ann,5")
    with pytest.warns(
        InputWarning, match="annotators 'Ann' and 'ann' differ in spelling only; they count as two"
    ):
        assert grades_of(derived_of(tmp_path, table))["R1", "first"] == 2


def test_bins_include_their_lower_end(tmp_path):
    values = ["0", "9.999", "10", "29", "30", "49.5", "50", "1e9", "-3"]
    lines = [f"R1,d{n},e,ann,{value}" for n, value in enumerate(values)]
    derived = derived_of(tmp_path, "topic,doc,entity,annotator,HINDEX\n" + "\n".join(lines))
    groups = [row.index(1.0) for row in weights_of(derived, "HINDEX").values()]
    assert groups == [0, 0, 1, 1, 2, 2, 3, 3, 0]


def test_several_groups_unknown_values_and_differing_annotators(tmp_path):
    derived = derived_of(
        tmp_path,
        """entity,annotator,ORIGIN,topic,doc,remark
        film,ann,Africa|Asia,M1,shared,
        lost,ann,NA,M1,unknown,nobody knows
        lost,bob,,M1,unknown,
        lost,ann,NA,M1,half,
        film,bob,Europe,M1,half,
        film,ann,Africa,M1,differ,
        film,bob,Africa | Asia,M1,differ,
        film,cyd,NA,M1,differ,
        """,
        Task(attributes={"ORIGIN": AttributeSpec("ORIGIN", ("Africa", "Asia", "Europe"))}),
    )
    assert weights_of(derived, "ORIGIN") == {
        ("M1", "shared"): [0.5, 0.5, 0],
        ("M1", "unknown"): [1 / 3] * 3,
        ("M1", "half"): [0, 0, 1],
        ("M1", "differ"): [0.75, 0.25, 0],
    }
    assert list(grades_of(derived).values()) == [1, 2, 1, 3]  # an unknown value does not change the grade
    memberships = derived.memberships["ORIGIN"]
    assert (memberships.valueless, memberships.unknown) == (1, 2)
    (conflict,) = memberships.conflicts
    assert (conflict[0].topic, conflict[0].doc, conflict[0].entity) == ("M1", "differ", "film")
    assert [one.line for one in conflict] == [7, 8]


def test_different_numbers_in_one_group_are_no_conflict(tmp_path):
    table = "topic,doc,entity,annotator,HINDEX\nR1,d,e,ann,11\nR1,d,e,bob,12\n"
    assert derived_of(tmp_path, table).memberships["HINDEX"].conflicts == ()


def test_an_attribute_counts_only_for_its_topics(tmp_path):
    table = """topic,doc,entity,annotator,HINDEX,ORIGIN
    R1,d,e,ann,11,anything
    M1,d,f,ann,anything,Asia
    """
    derived = derived_of(tmp_path, table)
    assert weights_of(derived, "HINDEX") == {("R1", "d"): [0, 1, 0, 0]}
    assert weights_of(derived, "ORIGIN") == {("M1", "d"): [0, 1, 0]}


def test_an_ordinal_attribute_without_bins_takes_names(tmp_path):
    spec = AttributeSpec("SIZE", ("small", "a|b", "big"), kind="ordinal")
    table = "topic,doc,entity,annotator,SIZE\nT,d,e,ann,big\nT,f,e,ann,a|b\n"
    derived = derived_of(tmp_path, table, Task(attributes={"SIZE": spec}))
    assert weights_of(derived, "SIZE") == {("T", "d"): [0, 0, 1], ("T", "f"): [0, 1, 0]}


def test_a_grade_above_the_task_s_maximum_gives_a_warning(tmp_path):
    table = "topic,doc,entity,annotator,HINDEX\n" + "".join(f"R1,d,e,{who},11\n" for who in ("a", "b", "c"))
    with pytest.warns(InputWarning, match="named by 3 annotators, above the task's max_grade of 2"):
        assert grades_of(derived_of(tmp_path, table)) == {("R1", "d"): 3}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ada Lovelace", "ADA LOVELACE"),
        ("Ada Lovelace", "ada  lovelace"),
        ("Ada Lovelace", "Ada\u00a0Lovelace"),
        ("Ada Lovelace", "Ａｄａ　Ｌｏｖｅｌａｃｅ"),
        ("Straße", "STRASSE"),
        ("Jos\u00e9", "JOSE\u0301"),
        ("Ada Lovelace", "\ufeffAda Love\u00adlace\u200b"),  # as copied from a page
        ("\u0390", "\u03aa\u0301"),  # folding the first undoes its normalisation
    ],
)
def test_names_that_differ_in_case_spacing_or_width_are_one_entity(tmp_path, first, second):
    table = (
        f"topic,doc,entity,annotator,HINDEX\nR1,d,{first},ann,5\nR1,d,{second},bob,6\nR1,f,{second},ann,7\n"
    )
    derived = derived_of(tmp_path, table)
    assert grades_of(derived) == {("R1", "d"): 2, ("R1", "f"): 1}
    assert [list(page.entities) for page in derived.pages] == [[first], [first]]  # in the first spelling
    # One entity on the one page that both saw.
    assert AnnotationTally.of(derived.pages).summary().entities.units == 1


def test_different_names_stay_different_entities(tmp_path):
    table = "topic,doc,entity,annotator,HINDEX\nR1,d,Jose,ann,5\nR1,d,José,bob,6\n"
    table += "R1,d,AdaLovelace,ann,\nR1,d,Ada Lovelace,bob,\n"
    assert grades_of(derived_of(tmp_path, table)) == {("R1", "d"): 1}


def test_a_grade_counts_distinct_annotators():
    lines = tuple(
        Annotation(number, "T", "d", "e", who, {}) for number, who in enumerate(("ann", "ann", "bob"), 2)
    )
    assert grades_of(derive(Task(), Annotations("built by hand", (), lines))) == {("T", "d"): 2}


def test_columns_that_are_no_attributes_are_carried_along(tmp_path):
    table = (
        "topic,url,doc,entity,annotator,HINDEX,note\n"
        'R1,"https://x.org/?q=a,b|c",d,e,ann,11,NA\n'
        "R1,,d,e,bob,12,five\n"
        "R1,https://x.org,f,,ann,,a page without entity may have a note\n"
    )
    derived = derived_of(tmp_path, table)
    assert weights_of(derived, "HINDEX")["R1", "d"] == [0, 1, 0, 0]
    lines = derived.pages[0].entities["e"]
    assert [one.values["url"] for one in lines] == ["https://x.org/?q=a,b|c", ""]
    assert [one.values["note"] for one in lines] == ["NA", "five"]


# Properties

LINES = st.lists(
    st.tuples(
        st.sampled_from(["M1", "M2"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["e", "f", "g", "h"]),
        st.sampled_from(["ann", "bob", "cyd"]),
        st.lists(st.sampled_from(["Africa", "Asia", "Europe"]), max_size=3, unique=True),
    ),
    min_size=1,
    max_size=25,
    unique_by=lambda line: line[:4],
)
ORIGIN = Task(attributes={"ORIGIN": AttributeSpec("ORIGIN", ("Africa", "Asia", "Europe"))})


def table_of(lines) -> str:
    rows = [[*line[:4], "|".join(line[4]) or "NA"] for line in lines]
    return "topic,doc,entity,annotator,ORIGIN\n" + "".join(",".join(row) + "\n" for row in rows)


@given(lines=LINES)
def test_grades_and_memberships_against_slow_loops(tmp_path_factory, lines):
    derived = derived_of(tmp_path_factory.mktemp("d"), table_of(lines), ORIGIN)
    weights, grades = weights_of(derived, "ORIGIN"), grades_of(derived)
    pages = {line[:2] for line in lines}
    assert weights.keys() == grades.keys() == pages
    for topic, doc in pages:
        here = [line for line in lines if line[:2] == (topic, doc)]
        votes: dict[str, set[str]] = defaultdict(set)
        for _, _, entity, annotator, _ in here:
            votes[entity].add(annotator)
        assert grades[topic, doc] == max(len(who) for who in votes.values())
        total = np.zeros(3)
        for entity in votes:
            known = [line[4] for line in here if line[2] == entity and line[4]]
            for groups in known:
                for number, group in enumerate(("Africa", "Asia", "Europe")):
                    total[number] += (group in groups) / len(groups) / len(known)
        expected = total / total.sum() if total.sum() else np.full(3, 1 / 3)
        np.testing.assert_allclose(weights[topic, doc], expected, rtol=1e-12)


@given(lines=LINES, copies=st.integers(2, 4), seed=st.integers(0, 99))
def test_annotators_who_agree_count_once_in_memberships_and_order_does_not_matter(
    tmp_path_factory, lines, copies, seed
):
    folder = tmp_path_factory.mktemp("d")
    once = derived_of(folder, table_of(lines), ORIGIN)
    many = [(*line[:3], f"{line[3]}{n}", line[4]) for line in lines for n in range(copies)]
    random.Random(seed).shuffle(many)
    again = derived_of(folder, table_of(many), ORIGIN)
    assert weights_of(again, "ORIGIN") == weights_of(once, "ORIGIN")  # to the last bit
    assert grades_of(again) == {page: copies * grade for page, grade in grades_of(once).items()}


@given(lines=LINES)
def test_what_is_written_is_read_back_to_the_last_bit(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("d")
    derived = derived_of(folder, table_of(lines), ORIGIN)
    qrels_file, file = write_derived(derived, folder / "out")
    assert (qrels_file.name, file.name) == ("derived.qrels", "derived.ORIGIN.gmemb")
    qrels = read_qrels_columns(Source.of(qrels_file))
    spec = AttributeSpec("ORIGIN", ("Africa", "Asia", "Europe"), memberships=file, unmapped="error")
    rows = load_attribute(spec, qrels).memberships(qrels.topic_of, qrels.docs)
    assert rows.tolist() == derived.memberships["ORIGIN"].weights.tolist()
    assert qrels.grades.tolist() == [page.grade for page in derived.pages]


# Errors, with file and line

HEAD = "topic,doc,entity,annotator,HINDEX,ORIGIN\n"


@pytest.mark.parametrize(
    ("table", "line", "message"),
    [
        ("topic,doc,entity,HINDEX\nR1,d,e,5\n", 1, "expected a header with topic, doc, entity, annotator"),
        (
            "\ntopic,doc,entity,annotator\nR1,d,e,ann\n",
            2,
            "no column 'HINDEX' (besides the first four: none)",
        ),
        ("topic,doc,entity,annotator,HINDEX\nM1,d,e,ann,5\n", 1, "no column 'ORIGIN'"),
        ("topic,doc,entity,annotator,doc\nR1,d,e,ann,d\n", 1, "the column 'doc' twice"),
        ("", 0, "no line"),
        (HEAD, 0, "no annotation"),
        (HEAD + "R1,d,e,ann,5,\n\nR1,d,e,bob,five,\n", 4, "HINDEX 'five'; expected a number"),
        (HEAD + "R1,d,e,ann,nan,\n", 2, "HINDEX 'nan'"),
        (HEAD + "R1,d,e,ann,1e999,\n", 2, "HINDEX '1e999'"),
        (HEAD + "R1,d,e,ann,5|6,\n", 2, "HINDEX '5|6'"),
        (
            HEAD + "M1,d,e,ann,,Asia\nM1,d,e,bob,,Asia|Mars\n",
            3,
            "the unknown group 'Mars' of ORIGIN; expected one",
        ),
        (HEAD + "M1,d,e,ann,,Asia|\n", 2, "the unknown group '' of ORIGIN"),
        (
            HEAD + "M1,d,e,ann,,Asia\nM1,d,e,ann,,Europe\n",
            3,
            "the same topic, doc, entity and annotator as line 2",
        ),
        (HEAD + "R1,d,,,,\nR1,d,,,,\n", 3, "the same topic, doc, entity and annotator as line 2"),
        (
            HEAD + "R1,d,e,ann,5,\nR1,d,,ann,,\n",
            3,
            "annotator 'ann' names 'e' on this page, but no entity on another line (2 and 3)",
        ),
        (
            HEAD + "R1,d,,ann,,\nR1,d,e,ann,5,\n",
            3,
            "annotator 'ann' names 'e' on this page, but no entity on another line (2 and 3)",
        ),
        (
            HEAD + "R1,d,Ada Lovelace,ann,5,\nR1,d,ADA  lovelace,ann,5,\n",
            3,
            "the same topic, doc, entity and annotator as line 2",
        ),
        (HEAD + "R1,d,e,,5,\n", 2, "entity 'e' without annotator"),
        (HEAD + "R1,d,\u200b,ann,5,\n", 2, "expected a name with visible letters"),
        (HEAD + "R1,,e,ann,5,\n", 2, "an empty doc"),
        (HEAD + " ,d,e,ann,5,\n", 2, "an empty topic"),
        (HEAD + "R1,my page,e,ann,5,\n", 2, "doc 'my page'; expected a name without white space"),
        (HEAD + "R1,d,,ann,5,\n", 2, "HINDEX '5' without entity"),
        (HEAD + "R1,d,e,ann,5\n", 2, "5 columns"),
        (HEAD + 'R1,d,"e,ann,5,\n', 2, "a line that is not csv"),
        (HEAD + "R1,d,e\x1b,ann,5,\n", 2, "a control character"),
    ],
)
def test_wrong_annotations_are_refused_with_file_and_line(tmp_path, table, line, message):
    with pytest.raises(InputError) as caught:
        derived_of(tmp_path, table)
    assert caught.value.place == Place(str(tmp_path / "annotations.csv"), line)
    assert message in str(caught.value)


def test_a_group_named_like_the_unknown_is_an_error_of_the_task(tmp_path):
    spec = AttributeSpec("COUNTRY", ("NA", "ZA"), place=Place("t.toml", 3))
    with pytest.raises(InputError, match=r"^t\.toml:3: the group 'NA' of COUNTRY"):
        derived_of(
            tmp_path, "topic,doc,entity,annotator,COUNTRY\nT,d,e,ann,NA\n", Task(attributes={"COUNTRY": spec})
        )


# Agreement


def slow_alpha(units: list[list[object]]) -> float:
    """Krippendorff's alpha as the mean disagreement of pairs within units over that of pairs of all values."""
    units = [unit for unit in units if len(unit) >= 2]
    values = [value for unit in units for value in unit]
    within = sum(sum(a != b for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units) / len(
        values
    )
    across = sum(a != b for a, b in permutations(values, 2)) / (len(values) * (len(values) - 1))
    return 1 - within / across if across else float("nan")


def counts_of(units: list[list[object]], values) -> np.ndarray:
    return np.array([[unit.count(value) for value in values] for unit in units]).reshape(
        len(units), len(values)
    )


def test_alpha_of_krippendorffs_own_example():
    # "Computing Krippendorff's alpha-reliability" (2011), section C: four observers, twelve units, 0.743.
    observers = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    units = [[o[u] for o in observers if o[u] != "."] for u in range(12)]
    assert round(krippendorff_alpha(counts_of(units, "12345")), 3) == 0.743
    assert slow_alpha(units) == pytest.approx(krippendorff_alpha(counts_of(units, "12345")))


@given(st.lists(st.lists(st.sampled_from("xyz"), max_size=4), max_size=8))
def test_alpha_against_pairs_counted_one_by_one(units):
    expected = slow_alpha(units) if any(len(unit) > 1 for unit in units) else np.nan
    np.testing.assert_allclose(krippendorff_alpha(counts_of(units, "xyz")), expected, atol=1e-12)


def test_alpha_with_repeated_units_is_alpha_of_them_all():
    counts, times = np.array([[2, 0], [1, 1], [0, 2]]), np.array([5, 2, 3])
    assert krippendorff_alpha(counts, times) == pytest.approx(
        krippendorff_alpha(np.repeat(counts, times, axis=0))
    )


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ([[20, 5], [10, 15]], 0.4),
        ([[45, 15], [25, 15]], 0.1304),
        ([[25, 35], [5, 35]], 0.2593),
        ([[3, 0], [0, 4]], 1.0),
        ([[0, 5], [5, 0]], -1.0),
        ([[7, 0], [0, 0]], np.nan),
        ([[0, 0], [0, 0]], np.nan),
    ],
)
def test_kappa_of_known_tables(table, kappa):
    np.testing.assert_allclose(cohen_kappa(np.array(table)), kappa, atol=5e-5)


def test_three_annotators_with_two_per_page_in_perfect_agreement(tmp_path):
    # Version 0.1 counted every annotator of a topic for every page, and gave alpha 0.028.
    table = "topic,doc,entity,annotator,HINDEX\n"
    for number, (doc, entity) in enumerate(
        [("a", "X"), ("b", "Y"), ("c", ""), ("d", "X"), ("e", "Z"), ("f", "")]
    ):
        for who in [("ann", "bob"), ("bob", "cyd"), ("ann", "cyd")][number % 3]:
            table += f"R1,{doc},{entity},{who},\n"
    derived = derived_of(tmp_path, table)
    summary = AnnotationTally.of(derived.pages).summary()
    assert summary.annotators == ("ann", "bob", "cyd")
    assert (summary.entities.alpha, summary.relevance.alpha, summary.positive) == (1.0, 1.0, 1.0)
    assert (summary.entities.units, summary.relevance.units) == (6 * 3, 6)
    assert list(grades_of(derived).values()) == [2, 2, 0, 2, 2, 0]


def test_kappa_is_computed_over_shared_pages_only(tmp_path):
    # Both saw a, b, c, d and name e on a, b / a, c: kappa over these is 0. The pages of one annotator add nothing.
    table = "topic,doc,entity,annotator,HINDEX\n"
    table += "".join(f"R1,{doc},{'e' if doc in 'ab' else ''},ann,\n" for doc in "abcd")
    table += "".join(f"R1,{doc},{'e' if doc in 'ac' else ''},bob,\n" for doc in "abcd")
    shared = AnnotationTally.of(derived_of(tmp_path, table).pages).summary()
    table += "".join(f"R1,only{n},e,{'ann' if n % 2 else 'bob'},\n" for n in range(7))
    more = AnnotationTally.of(derived_of(tmp_path, table).pages).summary()
    for summary in (shared, more):
        assert (summary.relevance.units, summary.relevance.kappa, summary.positive) == (4, 0.0, 0.5)
        assert summary.relevance.alpha == pytest.approx(1 - 7 * 4 / 32)  # 2 of 4 pairs differ, 4 yes and 4 no
        assert summary.entities == summary.relevance  # there is one entity


# Each annotator saw some of the pages and named some of the entities there.
SEEN = st.lists(
    st.tuples(
        st.sampled_from(["M1", "M2"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["ann", "bob", "cyd"]),
        st.sets(st.sampled_from(["e", "f", "g", "h"]), max_size=3),
    ),
    min_size=1,
    unique_by=lambda seen: seen[:3],
)


@given(seen=SEEN)
def test_agreement_against_all_units_written_out(tmp_path_factory, seen):
    table = "topic,doc,entity,annotator,ORIGIN\n"
    for topic, doc, who, entities in seen:
        table += "".join(f"{topic},{doc},{entity},{who},\n" for entity in sorted(entities) or [""])
    summary = AnnotationTally.of(derived_of(tmp_path_factory.mktemp("d"), table, ORIGIN).pages).summary()
    everyone = sorted({who for _, _, who, _ in seen})
    named = {(topic, doc, who): entities for topic, doc, who, entities in seen}
    entity_units, page_units, same, asked = [], [], 0, 0
    for topic, doc in {one[:2] for one in seen}:
        pool = set().union(*(one[3] for one in seen if one[0] == topic))
        who = [a for a in everyone if (topic, doc, a) in named]
        page_units.append([bool(named[topic, doc, a]) for a in who])
        entity_units += [[entity in named[topic, doc, a] for a in who] for entity in pool]
        for a, b in permutations(who, 2):
            same += len(named[topic, doc, a] & named[topic, doc, b])
            asked += len(named[topic, doc, a])
    assert summary.annotators == tuple(everyone)
    for units, agreement in ((entity_units, summary.entities), (page_units, summary.relevance)):
        shared = [unit for unit in units if len(unit) > 1]
        assert agreement.units == len(shared)
        np.testing.assert_allclose(agreement.alpha, slow_alpha(units) if shared else np.nan, atol=1e-12)
        if len(everyone) == 2:
            table = np.array([[shared.count([x, y]) for y in (False, True)] for x in (False, True)])
            np.testing.assert_allclose(agreement.kappa, cohen_kappa(table), atol=1e-12)
        else:
            assert agreement.kappa is None
    np.testing.assert_allclose(summary.positive, same / asked if asked else np.nan)


def test_summary_of_the_worked_example_by_hand(tmp_path):
    summary = AnnotationTally.of(derived_of(tmp_path, SEEN_BY_BOTH).pages).summary()
    assert summary.annotators == ("ann", "bob")
    assert summary.named_by == {1: 2, 2: 2}
    assert summary.positive == 2 * 2 / (3 + 3)
    # 3 pages × 4 entities: both name 2, one names Y, the other W, neither the other 8.
    assert summary.entities.units == 12
    assert summary.entities.kappa == pytest.approx((10 / 12 - 90 / 144) / (1 - 90 / 144))
    # Pages: both say yes to the first, no to the second, and differ on the third.
    assert summary.relevance.kappa == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))


def test_undefined_agreement_is_called_undefined(tmp_path):
    table = "topic,doc,entity,annotator,HINDEX\nR1,d,e,ann,5\nR1,f,,,\n"
    text = describe_derived(derived_of(tmp_path, table))
    assert text.count("undefined (nothing to disagree on)") == 3
    assert "Cohen" not in text


# Files and command


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    command.configure(parser)
    return command.run(parser.parse_args(words))


def test_command_prints_summary_and_files(tmp_path, capsys):
    task_of(tmp_path)
    (tmp_path / "a.csv").write_text(SEEN_BY_BOTH.replace("bob,20", "bob,50"))
    words = ["--task", str(tmp_path / "task.toml"), "--annotations", str(tmp_path / "a.csv")]
    assert run(*words, "--out", str(tmp_path / "new" / "out")) == 0
    printed = capsys.readouterr().out
    assert "pages                                       3, 1 of them without entity\n" in printed
    assert "Cohen's kappa, entity on page               0.556 (12 units)\n" in printed
    assert "1 with conflicting values\n  R1 first Z: ann 20 (line 5), bob 50 (line 6)\n" in printed
    assert printed.count("wrote ") == 2


def test_files_that_are_there_are_kept_unless_forced(tmp_path):
    derived = derived_of(tmp_path, EXAMPLE)
    out = tmp_path / "out"
    out.mkdir()
    (out / "small.HINDEX.gmemb").write_text("precious")
    with pytest.raises(UsageError, match="already exists; use force to overwrite"):
        write_derived(derived, out)
    assert [path.name for path in out.iterdir()] == ["small.HINDEX.gmemb"]  # not even the qrels
    assert (out / "small.HINDEX.gmemb").read_text() == "precious"
    write_derived(derived, out, force=True)
    assert (out / "small.HINDEX.gmemb").read_text().startswith("R1 first 0.66666")
    with pytest.raises(UsageError, match="not a folder"):
        write_derived(derived, out / "small.qrels")


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", "x y\n", "..hidden"])
def test_no_name_of_an_attribute_leaves_the_folder(tmp_path, name):
    task = Task(attributes={name: AttributeSpec(name, ("g",))})
    path = tmp_path / "deep" / "annotations.csv"
    path.parent.mkdir()
    column = f'"{name.strip()}"'
    path.write_text(f"topic,doc,entity,annotator,{column}\nT,d,e,ann,g\n")
    if name != name.strip():  # such a name cannot be a column
        with pytest.raises(InputError, match="no column"):
            derive(task, read_annotations(path))
        return
    files = write_derived(derive(task, read_annotations(path)), tmp_path / "deep" / "out")
    assert all(file.resolve().parent == tmp_path / "deep" / "out" for file in files)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == sorted(
        ["annotations.csv", *(f.name for f in files)]
    )


@pytest.mark.parametrize(
    ("first", "second"), [(Path("a/x"), Path("b/x")), (Path("a/x"), Path("x.xz")), (Path("X.gz"), Path("x"))]
)
def test_two_attributes_never_share_a_file(tmp_path, first, second):
    task = Task(
        attributes={n: AttributeSpec(n, ("g",), memberships=p) for n, p in (("A", first), ("B", second))}
    )
    derived = derived_of(tmp_path, "topic,doc,entity,annotator,A,B\nT,d,e,ann,g,g\n", task)
    with pytest.raises(UsageError, match="B and A would both be written to"):
        write_derived(derived, tmp_path / "out")
    assert not (tmp_path / "out").exists()
