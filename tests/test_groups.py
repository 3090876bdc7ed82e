"""Memberships, targets and attributes: both formats, every refusal with its line, and a slow second opinion."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairevals.collection.groups import Attribute, load_attribute
from fairevals.collection.inputs import Named, load_qrels, load_run
from fairevals.collection.qrels import Qrels
from fairevals.errors import InputError, InputWarning, Place, UsageError
from fairevals.evaluation import Plan, load_collection, score
from fairevals.ids import Ids
from fairevals.io.memberships import normalise_rows, read_memberships
from fairevals.io.qrels import QrelsColumns, qrels_from_frame, read_qrels_columns
from fairevals.io.specs import AttributeSpec
from fairevals.io.streams import Source
from fairevals.io.targets import checked_target, read_target_file
from fairevals.io.task import read_task

GROUPS = ("low", "mid", "high")


def spec_of(path: Path | None, groups: tuple[str, ...] = GROUPS, **more) -> AttributeSpec:
    return AttributeSpec("LEVEL", groups, memberships=path, place=Place("t.toml", 7), **more)


def read(tmp_path: Path, text: str | bytes, name: str = "m.gmemb", groups: tuple[str, ...] = GROUPS):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_memberships(spec_of(path, groups))


def as_dict(columns) -> dict[tuple[str | None, str], list[float]]:
    topics = columns.topics
    return {
        (None if topics is None else topics[topic], doc): weights
        for topic, doc, weights in zip(
            columns.topic_of.tolist(), columns.docs.texts(), columns.weights.tolist(), strict=True
        )
    }


def qrels_of(*rows: tuple[str, str, float]) -> QrelsColumns:
    return qrels_from_frame(pd.DataFrame(list(rows), columns=["topic", "doc", "grade"]), "q")


# The two formats


def test_ntcir_rows_are_read_and_normalised(tmp_path):
    text = "T1 a 1 0 0\n\nT2\ta  0.3333 0.3333 0.3333\r\nT1 b 2 1 1"
    with pytest.warns(InputWarning, match=r"of 1 document do not sum to 1 .*\(line 4 has a sum of 4\)"):
        found = read(tmp_path, text)
    assert found.topics == ["T1", "T2"]
    assert as_dict(found) == {
        ("T1", "a"): [1, 0, 0],
        ("T2", "a"): [1 / 3, 1 / 3, 1 / 3],
        ("T1", "b"): [0.5, 0.25, 0.25],
    }


@pytest.mark.parametrize("separator", [",", "\t"])
def test_long_table_with_topics_and_weights(tmp_path, separator):
    lines = ["group,weight,doc,topic", "low,1,a,T1", "high,3,a,T1", "", "mid,0.5,a,T2"]
    with pytest.warns(InputWarning, match=r"of 2 documents do not sum to 1 .*\(line 2 has a sum of 4\)"):
        found = read(tmp_path, "\n".join(lines).replace(",", separator))
    assert found.topics == ["T1", "T2"]
    assert as_dict(found) == {("T1", "a"): [0.25, 0, 0.75], ("T2", "a"): [0, 1, 0]}


def test_long_table_without_topics_counts_for_all_and_weighs_equally(tmp_path):
    found = read(tmp_path, 'doc,group\n"a, b",low\nc,low\nc,high\n')
    assert found.topics is None
    assert found.topic_of.tolist() == [0, 0]
    assert as_dict(found) == {(None, "a, b"): [1, 0, 0], (None, "c"): [0.5, 0, 0.5]}


@pytest.mark.parametrize(
    ("header", "start", "topic"),
    [
        ("doc,high,low,mid", "", None),
        ("page_id,high,low,mid", "", None),
        ("mid,topic,low,doc,high", "T1", "T1"),
    ],
)
@pytest.mark.parametrize("separator", [",", "\t"])
def test_wide_table_equals_the_long_one(tmp_path, header, start, topic, separator):
    rows = [{"low": "0.25", "mid": "0", "high": "0.75"}, {"low": "0.0", "mid": "2", "high": "2"}]
    cells = [{**row, "doc": d, "page_id": d, "topic": start} for row, d in zip(rows, "ab", strict=True)]
    lines = [header, *(",".join(row[name] for name in header.split(",")) for row in cells)]
    with pytest.warns(InputWarning, match=r"of 1 document do not sum to 1 .*\(line 3 has a sum of 4\)"):
        found = read(tmp_path, "\n".join(lines).replace(",", separator))
    assert as_dict(found) == {(topic, "a"): [0.25, 0, 0.75], (topic, "b"): [0, 0.5, 0.5]}


def test_groups_with_numbers_for_names_tell_wide_from_ntcir(tmp_path):
    wide = read(tmp_path, "doc,0,1\na,1,0\n", groups=("0", "1"))
    ntcir = read(tmp_path, "T1\ta\t1\t0\n", groups=("0", "1"))
    assert as_dict(wide) == {(None, "a"): [1, 0]}
    assert as_dict(ntcir) == {("T1", "a"): [1, 0]}


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
@pytest.mark.parametrize("text", [b"T1 a 0.5 0 0.5\n", b"\xef\xbb\xbftopic,doc,group\nT1,a,low\nT1,a,high\n"])
def test_compressed_files_of_both_formats(tmp_path, suffix, pack, text):
    found = read(tmp_path, pack.compress(text), "m" + suffix)
    assert as_dict(found) == {("T1", "a"): [0.5, 0, 0.5]}


def test_hard_membership_equals_soft_with_weights_0_and_1(tmp_path):
    hard = read(tmp_path, "topic,doc,group\nT1,a,mid\nT1,b,low\n", "hard.csv")
    soft = read(
        tmp_path, "topic,doc,group,weight\nT1,a,low,0\nT1,a,mid,1\nT1,b,low,1\nT1,b,high,0\n", "s.csv"
    )
    ntcir = read(tmp_path, "T1 a 0 1 0\nT1 b 1 0 0\n")
    assert as_dict(hard) == as_dict(soft) == as_dict(ntcir)


def test_huge_and_tiny_weights_neither_overflow_nor_vanish(tmp_path):
    with pytest.warns(InputWarning, match="2 documents do not sum to 1"):
        found = read(tmp_path, "T1 a 1e308 1e308 0\nT1 b 5e-324 0 5e-324\nT1 c -0 1 0\n")
    assert as_dict(found) == {
        ("T1", "a"): [0.5, 0.5, 0],
        ("T1", "b"): [0.5, 0, 0.5],
        ("T1", "c"): [0, 1, 0],
    }
    assert not np.signbit(found.weights).any()


@given(st.lists(st.integers(0, 12), min_size=1, max_size=9).filter(any))
def test_shares_written_with_all_digits_come_back_to_the_last_bit(counts):
    row = np.zeros(len(counts), dtype=np.int64)
    once = normalise_rows(np.array(counts, dtype=float), row, len(counts))
    again = normalise_rows(np.array([float(repr(x)) for x in once.tolist()]), row, len(counts))
    assert again.tolist() == once.tolist()
    assert abs(once.sum() - 1) < 1e-15 * len(counts)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["T1", "T2", "Ü3"]),
        st.sampled_from(["a", "b", "a-very-long-document-id", "é"]),
        st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0, 1e-3]), min_size=3, max_size=3).filter(any),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row[:2],
)


@pytest.mark.filterwarnings("ignore::fairevals.errors.InputWarning")
@given(rows=ROWS, seed=st.integers(0, 99))
def test_both_formats_and_the_frame_agree_with_a_slow_reading(tmp_path_factory, rows, seed):
    folder = tmp_path_factory.mktemp("m")
    expected = {(topic, doc): [w / sum(weights) for w in weights] for topic, doc, weights in rows}
    ntcir = "".join(f"{topic} {doc} {' '.join(map(str, weights))}\n" for topic, doc, weights in rows)
    cells = [
        (topic, doc, group, weight)
        for topic, doc, weights in rows
        for group, weight in zip(GROUPS, weights, strict=True)
    ]
    np.random.default_rng(seed).shuffle(cells)  # the lines of a document need not stand together
    long = "topic\tdoc\tgroup\tweight\n" + "".join("\t".join(map(str, cell)) + "\n" for cell in cells)
    frame = pd.DataFrame(cells, columns=["topic", "doc", "group", "weight"])
    frame["weight"] = frame["weight"].astype(float)
    attribute = Attribute.of("LEVEL", frame, groups=GROUPS)
    for found in (read(folder, ntcir), read(folder, long, "m.tsv"), attribute.columns):
        got = as_dict(found)
        assert got.keys() == expected.keys()
        for key, weights in expected.items():
            assert got[key] == pytest.approx(weights, rel=1e-14)


# Sums that are not 1


def warnings_of(tmp_path, text):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(tmp_path, text)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "T1 a 1 0 0\n# x\nT1 b 5 0 0\nT1 c 1 1 1\n",
            "2 documents do not sum to 1 and were normalised (line 3 has a sum of 5)",
        ),
        ("T1 a 0.2 0.2 0.2\n", "1 document do not sum to 1 and were normalised (line 1 has a sum of 0.6)"),
        (
            "doc,group,weight\na,low,2\n\nb,mid,0.5\na,mid,3\n",
            "2 documents do not sum to 1 and were normalised (line 2 has",
        ),
        (
            "topic,doc,group,weight\nT,a,low,1\nU,a,low,0.9\n",
            "1 document do not sum to 1 and were normalised (line 3 has",
        ),
    ],
)
def test_sums_that_are_not_1_are_reported_once_a_file(tmp_path, text, message):
    (warning,) = warnings_of(tmp_path, text)
    assert warning.startswith(f"{tmp_path / 'm.gmemb'}: the memberships of {message}")


@pytest.mark.parametrize(
    "text",
    [
        "T1 a 0.333 0.333 0.333\nT1 b 0.33 0.33 0.33\nT1 c 0.1 0.2 0.7\n",
        "doc,group\na,low\na,mid\nb,low\n",
        "doc,group,weight\na,low,0.3333\na,mid,0.6666\n",
    ],
)
def test_rounded_and_hard_memberships_are_not_reported(tmp_path, text):
    assert warnings_of(tmp_path, text) == []


# What is refused, and where

NTCIR_ERRORS = [
    ("T1 a 1 0 0\nT1 b 0 -0.5 1\n", 2, "membership '-0.5'; expected a number of at least 0"),
    ("T1 a 1 0 0\n\nT1 b 0 x 1\n", 3, "membership 'x'"),
    ("T1 a 1 0 nan\n", 1, "membership 'nan'"),
    ("T1 a 1 0 1e999\n", 1, "membership '1e999'"),
    ("T1 a 1 0 1_0\n", 1, "membership '1_0'"),
    ("T1 a 1 0 0\nT1 b 0 0.0 0\n", 2, "memberships of document 'b' that are all 0; expected one above 0"),
    (
        "T1 a 1 0 0\nT1 b 1 0\n",
        2,
        "4 columns: 'T1 b 1 0'; expected 5 columns (topic doc and one number for each of 3 groups)",
    ),
    ("T1 a 1 0 0 0\n", 1, "6 columns"),
    ("T1 a 1 0 0\n\nT1 b 1 0 0\n\n\nT1 a 0 1 0\n", 6, "document 'a' twice in topic 'T1'"),
    (b"T1 a 1 0 0\nT1 \xff 1 0 0\n", 2, "a byte that is not UTF-8"),
    (b"T1 a 1 0 0\nT1 b\x07 1 0 0\n", 2, "a control character"),
    ("document,group\na,low\n", 1, "or a table with columns doc and group, perhaps topic and weight"),
    ("", 0, "no line"),
    ("\n \n", 0, "no line"),
]

LONG_ERRORS = [
    ("doc,group\na,low\nb,huge\n", 3, "the unknown group 'huge'; expected one of low, mid, high"),
    ("doc,group,weight\na,low,1\n\na,mid,-1\n", 4, "weight '-1'; expected a number of at least 0"),
    ("doc,group,weight\na,low,inf\n", 2, "weight 'inf'"),
    ("doc,group,weight\na,low,\n", 2, "weight ''"),
    ("doc,group,weight\na,low,one\n", 2, "weight 'one'"),
    ("doc,group,weight\nb,low,1\na,low,0\na,mid,0\n", 3, "memberships of document 'a' that are all 0"),
    ("doc,group\na,low\n ,mid\n", 3, "an empty doc"),
    ("topic,doc,group\n,a,mid\n", 2, "an empty topic"),
    ("doc,group\na,low\nb\n", 3, "1 columns: 'b'; expected 2 (doc, group)"),
    ("doc,group\na,low,1\n", 2, "3 columns"),
    ("doc,group\na,low\na,low\n", 3, "document 'a' twice in group 'low'"),
    ("topic,doc,group\nT,a,low\nU,a,low\nT,a,low\n", 4, "document 'a' in topic 'T' twice in group 'low'"),
    ("doc,group,weights\na,low,1\n", 1, "the unknown column 'weights'"),
    ("doc,group,doc\na,low,b\n", 1, "the column 'doc' twice"),
    ('doc,group\na,low\n"b,mid\nc,mid\n', 3, "a line that is not csv"),
    (b"doc,group\na,low\n\xff,low\n", 3, "a byte that is not UTF-8"),
    (b"doc,group\na\x00b,low\n", 2, "a control character"),
    ("doc,group\n", 0, "no membership"),
]

WIDE_ERRORS = [
    (
        "doc,low,mid\na,1,0\n",
        1,
        "no column for the group 'high'; expected columns doc, perhaps topic, and one",
    ),
    ("doc,low,mid,high,huge\na,1,0,0,0\n", 1, "columns doc, low, mid, high, huge; expected columns doc,"),
    ("topic,low,mid,high\nT,1,0,0\n", 1, "columns topic, low, mid, high; expected columns doc,"),
    (
        "doc,low,mid,high\na,1,0,0\n\na,0,1,0\n",
        4,
        "document 'a' a second time; expected one line per document",
    ),
    ("doc,low,mid,high\na,1,0,0\nb,0,0.0,0\n", 3, "memberships of document 'b' that are all 0"),
    ("doc,low,mid,high\na,1,,0\n", 2, "weight ''; expected a number of at least 0"),
    ("doc,low,mid,high\na,1,-1,0\n", 2, "weight '-1'"),
    ("doc,low,mid,high\n,1,0,0\n", 2, "an empty doc"),
    ("doc,low,mid,high\n", 0, "no membership"),
]


@pytest.mark.parametrize(("text", "line", "message"), NTCIR_ERRORS + LONG_ERRORS + WIDE_ERRORS)
def test_a_wrong_row_is_refused_with_file_and_line(tmp_path, text, line, message):
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert caught.value.place == Place(str(tmp_path / "m.gmemb"), line)
    assert message in str(caught.value)


def test_a_wrong_row_in_a_later_chunk_of_a_compressed_file(tmp_path, monkeypatch):
    chunks = Source.chunks
    monkeypatch.setattr(Source, "chunks", lambda self, size=0: chunks(self, 32))
    text = "".join(f"T{n % 2} d{n} 1 0 0\n" for n in range(50))
    assert len(read(tmp_path, text).docs) == 50
    with pytest.raises(InputError, match="document 'd7' twice in topic 'T1'") as caught:
        read(tmp_path, gzip.compress((text + "T1 d7 1 0 0\n").encode()), "m.gz")
    assert caught.value.place == Place(str(tmp_path / "m.gz"), 51)


def test_no_memberships_file_and_a_missing_one(tmp_path):
    with pytest.raises(
        InputError, match=r"^t\.toml:7: attribute LEVEL without memberships; expected memberships"
    ):
        read_memberships(spec_of(None))
    with pytest.raises(InputError, match=r"cannot be read \(No such file") as caught:
        read_memberships(spec_of(tmp_path / "gone.gmemb"))
    assert caught.value.place == Place(str(tmp_path / "gone.gmemb"))


# Targets


@pytest.mark.parametrize("text", ["0.5\n0.25\n0.25\n", "0.5 0.25\t0.25", "\n0.5\r\n\n.25\r\n25e-2\r\n"])
def test_target_files(tmp_path, text):
    (tmp_path / "x.golddistr").write_text(text)
    assert read_target_file(tmp_path / "x.golddistr", GROUPS) == (0.5, 0.25, 0.25)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("0.5\n\n0.5\n", 3, "a target of 2 numbers; expected 3, one for each group"),
        ("0.5\n0.25\n0.25\n\n0.1\n", 5, "more than 3 numbers"),
        ("1.5\n-0.25\n-0.25\n", 2, "probability '-0.25'"),
        ("1\nnan\n0\n", 2, "probability 'nan'"),
        ("1\n0\ninf\n", 3, "probability 'inf'"),
        ("0.5\n0.25\n0.24\n", 3, "a target that sums to 0.99; expected 1 (within 0.0001)"),
        ("0.5 0.25 0.2502\n", 1, "a target that sums to 1.0002"),
        (b"0.5\n\xff\n", 2, "a byte that is not UTF-8"),
        ("", 0, "a target of 0 numbers"),
    ],
)
def test_a_wrong_target_file_is_refused_with_file_and_line(tmp_path, text, line, message):
    path = tmp_path / "x.golddistr"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        read_target_file(path, GROUPS)
    assert caught.value.place == Place(str(path), line)
    assert message in str(caught.value)


def test_a_target_that_is_a_little_off_is_normalised_and_said_so(tmp_path):
    (tmp_path / "x").write_text("0.3333\n0.3333\n0.3333\n")
    with pytest.warns(InputWarning, match=r":3: the target sums to 0\.9999; it was divided by that"):
        found = read_target_file(tmp_path / "x", GROUPS)
    assert found == (1 / 3, 1 / 3, 1 / 3)


def test_a_target_off_by_rounding_only_is_not_worth_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = checked_target([1 / 49] * 49, [str(n) for n in range(49)], Place("t"))  # sums to 1 − 2^-53
    assert same == (1 / 49,) * 49


# Attributes

QRELS = [("R1", "a", 2), ("R1", "b", 0), ("R1", "c", 1), ("R1", "x", 1), ("R2", "a", 0), ("M1", "a", 1)]


@pytest.fixture
def long_file(tmp_path) -> Path:
    path = tmp_path / "level.csv"
    path.write_text("doc,group,weight\na,low,1\nb,mid,1\nc,mid,0.25\nc,high,0.75\n")
    return path


def test_uniform_target_and_topics_that_it_applies_to(long_file):
    attribute = load_attribute(spec_of(long_file, topics=("R*",)), qrels_of(*QRELS))
    assert attribute.topics == ("R1", "R2", "M1")
    assert attribute.applies.tolist() == [True, True, False]
    np.testing.assert_array_equal(attribute.target, [[1 / 3] * 3, [1 / 3] * 3, [np.nan] * 3])


@pytest.mark.parametrize("form", ["list", "file", "table", "fallback"])
def test_targets_given_in_each_form(long_file, form):
    target: object = (0.5, 0.25, 0.25)
    if form == "file":
        target = long_file.parent / "x.golddistr"
        target.write_text("0.5\n0.25\n0.25\n")
    elif form == "table":
        target = {"R1": target, "R2": (0.0, 0.0, 1.0), "R9": target}
    elif form == "fallback":
        target = {"*": target, "R2": (0.0, 0.0, 1.0)}
    attribute = load_attribute(spec_of(long_file, topics=("R*",), target=target), qrels_of(*QRELS))
    second = [0.5, 0.25, 0.25] if form in ("list", "file") else [0, 0, 1]
    np.testing.assert_array_equal(attribute.target, [[0.5, 0.25, 0.25], second, [np.nan] * 3])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"R1": (1.0, 0.0, 0.0)}, "no target of LEVEL for topic 'R2'"),
        ({"R1": (1.0, 0.0, 0.0), "R2": (1.0, 0.0)}, "a target of 2 numbers; expected 3"),
        ((0.5, 0.5), "a target of 2 numbers; expected 3"),
        ((0.5, 0.6, -0.1), "-0.1 in a target"),
        ((0.5, 0.6, 0.1), "a target that sums to 1.2"),
        ((float("nan"), 0.5, 0.5), "nan in a target"),
    ],
)
def test_a_wrong_target_names_the_line_of_the_task(long_file, target, message):
    with pytest.raises(InputError) as caught:
        load_attribute(spec_of(long_file, topics=("R*",), target=target), qrels_of(*QRELS))
    assert caught.value.place == Place("t.toml", 7)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("unmapped", "row", "target"),
    [
        ("uniform", [1 / 3] * 3, [(1 + 0 + 1 / 3) / 3, (0.25 + 1 / 3) / 3, (0.75 + 1 / 3) / 3]),
        ("skip", [0, 0, 0], [1 / 2, 0.25 / 2, 0.75 / 2]),
        ("high", [0, 0, 1], [1 / 3, 0.25 / 3, 1.75 / 3]),
    ],
)
def test_unmapped_documents_and_the_target_of_the_relevant(long_file, unmapped, row, target):
    attribute = load_attribute(
        spec_of(long_file, topics=("R*",), target="relevant", unmapped=unmapped), qrels_of(*QRELS)
    )
    # R1: a and c and the unmapped x are relevant, b is not; R2 has nothing relevant; M1 is not concerned.
    np.testing.assert_allclose(attribute.target, [target, [np.nan] * 3, [np.nan] * 3], rtol=1e-15)
    found = attribute.memberships(np.array([0, 1, 0, 2]), Ids.of(["c", "a", "unheard-of", "a"]))
    np.testing.assert_array_equal(found, [[0, 0.25, 0.75], [1, 0, 0], row, [0, 0, 0]])


def test_a_topic_whose_relevant_documents_are_all_skipped_has_no_target(long_file):
    attribute = load_attribute(
        spec_of(long_file, target="relevant", unmapped="skip"), qrels_of(("R1", "x", 1), ("R2", "a", 1))
    )
    np.testing.assert_array_equal(attribute.target, [[np.nan] * 3, [1, 0, 0]])


def test_unmapped_error_names_topic_document_and_file(long_file):
    attribute = load_attribute(spec_of(long_file, topics=("R*",), unmapped="error"), qrels_of(*QRELS))
    assert attribute.memberships(np.array([0, 2]), Ids.of(["a", "x"])).tolist() == [[1, 0, 0], [0, 0, 0]]
    with pytest.raises(InputError, match="no membership of document 'x' of topic 'R2' in LEVEL") as caught:
        attribute.memberships(np.array([0, 1]), Ids.of(["a", "x"]))
    assert caught.value.place == Place(str(long_file))
    with pytest.raises(InputError, match="no membership of document 'x' of topic 'R1'"):
        load_attribute(replace(attribute.spec, target="relevant"), qrels_of(*QRELS))


def test_memberships_by_topic_are_not_mixed_up_whatever_the_order_of_topics(tmp_path):
    path = tmp_path / "m"
    path.write_text("R2 a 0 0 1\nM9 a 0 1 0\nR1 a 1 0 0\n")
    attribute = load_attribute(spec_of(path, unmapped="skip"), qrels_of(*QRELS))
    docs = Ids.of(["a", "a", "a"])
    expected = [[1, 0, 0], [0, 0, 1], [0, 0, 0]]  # M1 has no line in the file
    assert attribute.memberships(np.arange(3), docs).tolist() == expected
    other = attribute.bound(qrels_of(("R2", "a", 1), ("unjudged", "a", 1), ("R1", "a", 1)))
    assert other.memberships(np.arange(3), docs).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_an_attribute_crosses_to_another_process(long_file):
    attribute = load_attribute(spec_of(long_file, target="relevant"), qrels_of(*QRELS))
    copy = pickle.loads(pickle.dumps(attribute))
    np.testing.assert_array_equal(copy.target, attribute.target)
    codes, docs = np.array([0, 1]), Ids.of(["c", "x"])
    np.testing.assert_array_equal(copy.memberships(codes, docs), attribute.memberships(codes, docs))


def test_the_sample_task_loads_in_all_its_formats():
    task = read_task(Path(__file__).parent.parent / "qrels" / "task.toml")
    qrels = read_qrels_columns(*map(Source.of, task.qrels))
    for name, spec in task.attributes.items():
        attribute = load_attribute(spec, qrels)
        found = attribute.memberships(qrels.topic_of, qrels.docs)
        applies = attribute.applies[qrels.topic_of]
        assert attribute.applies.tolist() == [
            topic.startswith("M" if name == "ORIGIN" else "R") for topic in qrels.topics
        ]
        np.testing.assert_allclose(found.sum(axis=1), applies, atol=1e-12)
        np.testing.assert_allclose(attribute.target[attribute.applies].sum(axis=1), 1, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*do not sum to 1:fairevals.FairevalsWarning")
@given(
    rows=ROWS,
    judged=st.lists(
        st.tuples(
            st.sampled_from(["T1", "T2", "V4"]), st.sampled_from(["a", "b", "é", "z"]), st.integers(-1, 2)
        ),
        min_size=1,
        unique_by=lambda row: row[:2],
    ),
    unmapped=st.sampled_from(["uniform", "skip", "mid"]),
    by_topic=st.booleans(),
)
def test_memberships_and_relevant_target_against_a_slow_loop(rows, judged, unmapped, by_topic):
    known = {}
    for topic, doc, weights in rows:
        known[topic if by_topic else "", doc] = weights
    applicable = [(topic if by_topic else "", doc) for topic, doc, _ in judged if topic.startswith("T")]
    assume(not applicable or not known.keys().isdisjoint(applicable))  # else it is refused
    frame = pd.DataFrame(
        [(t, d, g, w) for (t, d), weights in known.items() for g, w in zip(GROUPS, weights, strict=True)],
        columns=["topic", "doc", "group", "weight"],
    )
    frame = frame if by_topic else frame.drop(columns="topic")
    qrels = qrels_of(*judged)
    attribute = Attribute.of(
        "LEVEL", frame, groups=GROUPS, kind="ordinal", target="relevant", unmapped=unmapped, topics=["T*"]
    ).bound(qrels)

    def slow(topic: str, doc: str) -> list[float]:
        weights = known.get((topic if by_topic else "", doc))
        if weights is not None:
            return [w / sum(weights) for w in weights]
        return {"uniform": [1 / 3] * 3, "skip": [0.0] * 3, "mid": [0.0, 1.0, 0.0]}[unmapped]

    found = attribute.memberships(qrels.topic_of, qrels.docs)
    expected = [slow(t, d) if t.startswith("T") else [0.0] * 3 for t, d, _ in judged]
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    for code, topic in enumerate(qrels.topics):
        relevant = [slow(t, d) for t, d, grade in judged if t == topic and grade > 0]
        relevant = [row for row in relevant if any(row)]
        mean = (
            [sum(column) / len(relevant) for column in zip(*relevant, strict=True)]
            if relevant
            else [np.nan] * 3
        )
        np.testing.assert_allclose(
            attribute.target[code], mean if topic.startswith("T") else [np.nan] * 3, rtol=1e-13
        )


def test_a_table_of_a_hundred_thousand_groups_takes_little_memory(tmp_path):
    """A number for each document and group would be 80 GB; a run of three documents needs three rows."""
    groups = tuple(f"g{i}" for i in range(100_000))
    text = "doc,group\n" + "".join(f"d{i},g{i}\nd{i},g{i // 2}\n" for i in range(1, 100_000))
    found = read(tmp_path, text, "m.csv", groups)
    assert found.shares.size == 2 * 99_999
    rows = found.dense(np.array([2, -1, 99_998]))  # d3, none, d99999
    assert rows.shape == (3, 100_000)
    assert [np.flatnonzero(row).tolist() for row in rows] == [[1, 3], [], [49_999, 99_999]]
    assert set(rows[rows > 0].tolist()) == {0.5}


# From Python


@pytest.mark.filterwarnings("ignore:.*do not sum to 1:fairevals.FairevalsWarning")
def test_attribute_of_dicts_frames_and_files(long_file):
    by_dict = Attribute.of("LEVEL", {"a": "low", "b": "mid", "c": {"mid": 1, "high": 3}}, groups=GROUPS)
    by_frame = Attribute.of("LEVEL", pd.read_csv(long_file), groups=GROUPS)
    by_file = Attribute.of("LEVEL", long_file, groups=GROUPS)
    assert as_dict(by_dict.columns) == as_dict(by_frame.columns) == as_dict(by_file.columns)
    found = Attribute.of("LEVEL", str(long_file))
    assert found.spec.groups == ("high", "low", "mid")
    assert as_dict(found.columns)[None, "c"] == [0.75, 0, 0.25]
    assert found.spec.divergence == "JSD"
    (long_file.parent / "wide.csv").write_text("doc,low,mid,high\na,1,0,0\nb,0,1,0\nc,0,0.25,0.75\n")
    wide = Attribute.of("LEVEL", long_file.parent / "wide.csv")
    assert wide.spec.groups == GROUPS
    assert as_dict(wide.columns) == as_dict(by_file.columns)
    assert Attribute.of("L", {"a": "low"}, GROUPS, "ordinal").spec.divergence == "RNOD"


def test_attribute_of_takes_targets_in_all_forms(tmp_path):
    (tmp_path / "t").write_text("1\n0\n")
    qrels = qrels_of(("T", "a", 1))
    for target in ([1, 0], tmp_path / "t", str(tmp_path / "t"), {"T": [1, 0]}, "relevant"):
        attribute = Attribute.of("X", {"a": "g", "b": "h"}, target=target).bound(qrels)
        assert attribute.target.tolist() == [[1, 0]]


def test_numbers_as_names_are_names():
    frame = pd.DataFrame({"topic": [7], "doc": [12], "group": [1], "weight": [np.float32(1)]})
    assert as_dict(Attribute.of("X", frame).columns) == {("7", "12"): [1]}


@pytest.mark.parametrize(
    ("memberships", "place", "message"),
    [
        (pd.DataFrame({"doc": ["a", None], "group": ["g", "g"]}), Place("X", 2), "an empty doc"),
        (pd.DataFrame({"doc": ["a"], "group": ["g"], "weight": [-1]}), Place("X", 1), "weight '-1'"),
        (pd.DataFrame({"doc": ["a"], "group": ["g"], "weight": [None]}), Place("X", 1), "weight 'None'"),
        (pd.DataFrame({"doc": ["a"], "group": ["g"], "weight": [True]}), Place("X", 1), "weight 'True'"),
        (pd.DataFrame({"name": ["a"], "group": ["g"]}), Place("X"), "columns name, group"),
        ({"a": {"g": 0}}, Place("X", 1), "memberships of document 'a' that are all 0"),
        ({}, Place("X"), "no membership"),
    ],
)
def test_wrong_memberships_from_python(memberships, place, message):
    with pytest.raises(InputError) as caught:
        Attribute.of("X", memberships)
    assert caught.value.place == place
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "cardinal"}, "kind='cardinal'; expected one of nominal, ordinal"),
        ({"kind": "ordinal"}, "ordinal groups need groups="),
        ({"divergence": "KL"}, "divergence='KL'"),
        ({"unmapped": "x"}, "unmapped='x'"),
        ({"groups": ["g", "g"]}, r"groups=\['g', 'g'\]; expected no group twice"),
        ({"weight": -1}, "weight=-1"),
    ],
)
def test_wrong_options_from_python(options, message):
    with pytest.raises(UsageError, match=message):
        Attribute.of("X", {"a": "g"}, **options)


@pytest.mark.parametrize("target", [[1e308, 1e308], {"*": [1e308, 1e308]}, {"x": 1e308, "y": 1e308}])
def test_a_target_whose_sum_overflows(target):
    qrels = load_qrels({"q": {"a": 1}})
    with pytest.raises(InputError, match=r"A: a target that sums to inf; expected 1"):
        Attribute.of("A", {"a": "x", "b": "y"}, target=target).bound(qrels)


@pytest.mark.parametrize("target", ["uniform", "relevant"])
def test_more_documents_in_groups_of_one_topic_than_fit(monkeypatch, target):
    """An error before the array is made; topics that together have as many are computed one after the other."""
    qrels = {"q": {"d0": 1}, "p": {f"d{n}": 1 for n in range(6)}, "r": {"d0": 1, "d1": 0}}
    groups = Attribute.of("A", {f"d{n}": f"g{n}" for n in range(10)}, target=target)
    run = load_run({topic: {f"d{n}": 1.0 - n for n in range(6)} for topic in qrels})

    def values() -> np.ndarray:
        collection = load_collection(None, qrels, {"A": groups})
        return score([run], collection, Plan.of(collection, ["AWRF(attr='A')", "D_group(attr='A')"])).values

    expected = values()
    monkeypatch.setenv("FAIREVALS_MAX_CELLS", "60")
    np.testing.assert_array_equal(values(), expected)
    monkeypatch.setenv("FAIREVALS_MAX_CELLS", "59")
    message = r"A: 6 documents of topic 'p' in 10 groups of A; raise FAIREVALS_MAX_CELLS to allow it"
    with pytest.raises(InputError, match=message):
        values()


def test_weights_whose_sum_overflows(tmp_path):
    (tmp_path / "m.csv").write_text("doc,group,weight\na,x,1e308\na,y,1e308\n")
    with pytest.warns(InputWarning, match="do not sum to 1"):
        attribute = Attribute.of("A", tmp_path / "m.csv")
    assert attribute.columns.weights.tolist() == [[0.5, 0.5]]


def test_a_target_file_whose_sum_overflows(tmp_path):
    (tmp_path / "t").write_text("1e308\n1e308\n")
    with pytest.raises(InputError, match=r"t:2: a target that sums to inf; expected 1"):
        read_target_file(tmp_path / "t", ["x", "y"])


# Memberships of other documents -----------------------------------------------------


def judgements(*rows: tuple[str, str, float]) -> Qrels:
    return Qrels.of(qrels_of(*rows))


@pytest.mark.parametrize("unmapped", ["uniform", "skip", "error", "m"])
def test_memberships_of_no_judged_document_are_an_error_with_an_id_of_each_side(unmapped):
    """Every document counted as unmapped, and so every ranking as perfectly fair."""
    qrels = judgements(("1", "doc1", 1), ("2", "doc2", 0))
    attribute = Attribute.of("SEX", {"DOC1": "f", "DOC2": "m"}, unmapped=unmapped)
    with pytest.raises(
        InputError, match=r"no judged document has a membership in SEX \(.*'DOC1'\).*such as 'doc1'"
    ):
        attribute.bound(qrels)


def test_memberships_of_other_topics_are_an_error_with_both_topics():
    table = pd.DataFrame({"topic": ["001", "001"], "doc": ["a", "b"], "group": ["f", "m"]})
    with pytest.raises(InputError, match=r"'a' of topic '001'.*'a' of topic '1'"):
        Attribute.of("SEX", table).bound(judgements(("1", "a", 1)))


def test_only_topics_to_which_the_attribute_applies_need_memberships():
    qrels = judgements(("R1", "a", 1), ("M1", "x", 1))
    attribute = Attribute.of("SEX", {"a": "f", "b": "m"}, topics=["R*"]).bound(qrels)
    assert (attribute.judged, attribute.judged_unmapped) == (1, 0)
    with pytest.raises(InputError, match="such as 'x'"):
        Attribute.of("SEX", {"a": "f", "b": "m"}, topics=["M*"]).bound(qrels)
    Attribute.of("SEX", {"a": "f", "b": "m"}, topics=["Z*"]).bound(qrels)


def test_an_attribute_bound_to_a_batch_of_topics_need_not_have_their_documents():
    attribute = Attribute.of("SEX", {"a": "f", "b": "m"}).bound(judgements(("1", "a", 1), ("2", "x", 1)))
    assert attribute.bound(judgements(("2", "x", 1))).judged_unmapped == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_remark_says_if_most_judged_documents_have_no_membership(jobs):
    qrels = {"1": {"a": 1, "b": 0, "c": 0}, "2": {"a": 1, "d": 0}}
    runs = {"x": {"1": {"a": 2, "b": 1}, "2": {"a": 1}}, "y": {"1": {"b": 2}, "2": {"d": 1}}}
    found = {}
    for known in ("ab", "ac", "a", "b"):
        groups = {"SEX": Attribute.of("SEX", dict.fromkeys(known, "f"), ["f", "m"])}
        collection = load_collection(None, qrels, groups)
        plan = Plan.of(collection, ["AWRF(attr='SEX')"])
        named = [Named(tag, run) for tag, run in runs.items()]
        notes = score(named, collection, plan, jobs=jobs).notes
        found[known] = [note for note in notes if "membership" in note]
    text = 'SEX: {} of 5 judged documents ({}%) have no membership and count as unmapped = "uniform" says'
    expected = {"ab": [], "ac": [], "a": [text.format(3, 60)], "b": [text.format(4, 80)]}
    assert found == expected
