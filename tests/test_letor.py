from __future__ import annotations

import gzip
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairevals.errors import InputError, InputWarning, UsageError
from fairevals.io.letor import MOST_FEATURES, read_letor
from fairevals.training import Dataset, Standardiser, groups_from_feature, groups_from_file, load_dataset

SMALL = b"""# a comment of its own line
2 qid:a 1:0.5 2:1e-3 3:-4 # docid = GX-1 inc = 1 prob = 0.02

0 qid:b/x:1 3:7\t# d2 and more
1 qid:a 2:0.25 #d3
0 qid:b/x:1
"""


def test_sparse_lines_comments_and_blank_lines():
    read = read_letor(SMALL)
    assert read.topics == ["a", "b/x:1"]
    assert read.docs == ["GX-1", "d3", "d2", "b/x:1:2"]
    assert read.starts.tolist() == [0, 2, 4]
    assert read.grades.tolist() == [2, 1, 0, 0]
    np.testing.assert_allclose(read.features, [[0.5, 1e-3, -4], [0, 0.25, 0], [0, 0, 7], [0, 0, 0]])
    assert read.features.dtype == np.float32


def test_windows_line_ends_byte_order_mark_and_no_last_line_end():
    read = read_letor(b"\xef\xbb\xbf1 qid:1 1:2\r\n0 qid:1 2:3 # x\r\n0 qid:2 1:1")
    assert read.docs == ["1:1", "x", "2:1"]
    assert read.features.tolist() == [[2, 0], [0, 3], [1, 0]]


def test_features_may_stand_in_any_order():
    assert read_letor(b"1 qid:1 3:3 1:1\n").features.tolist() == [[1, 0, 3]]


def test_compressed(tmp_path):
    path = tmp_path / "data.letor.gz"
    path.write_bytes(gzip.compress(SMALL))
    assert read_letor(path).docs == read_letor(SMALL).docs


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x qid:1 1:2", "grade 'x'"),
        (b"nan qid:1 1:2", "grade 'nan'"),
        (b"1 1:2", "topic '1:2'; expected qid:ID"),
        (b"1", "1 columns: '1'; expected grade qid:ID"),
        (b"1 qid: 1:2", "topic 'qid:'; expected qid:ID"),
        (b"1 qid:1#doc", "topic 'qid:1#doc'; expected qid:ID"),
        (b"1 qid:1 1:nan", "'nan' as the value of feature 1"),
        (b"1 qid:1 1:inf", "'inf' as the value"),
        (b"1 qid:1 1:1e300", "'1e300' as the value"),
        (b"1 qid:1 0:1", "feature number 0"),
        (b"1 qid:1 -1:1", "'-1:1'"),
        (b"1 qid:1 1.5:1", "'1.5:1'"),
        (b"1 qid:1 %d:1" % (MOST_FEATURES + 1), "feature number"),
        (b"1 qid:1 99999999999999999999:1", "feature number"),
        (b"1 qid:1 0000001:1", "feature number 0000001"),
        (b"1 qid:1 1e2:1", "'1e2:1'"),
        (b"1 qid:1 +1:1", "'+1:1'"),
        (b"1 qid:1 " + b"9" * 6000 + b":1", "feature number 9"),
        (b"1 qid:1 1:" + b"9" * 6000, "as the value of feature 1"),
        (b"9" * 6000 + b" qid:1 1:1", "grade"),
        (b"1 qid:1 1:1 1:2", "feature 1 twice"),
        (b"1 qid:1 2:1 1:5 2:2", "feature 2 twice"),
        (b"1 qid:1 1", "'1'; expected number:value"),
        (b"1 qid:1 :2", "':2'; expected number:value"),
        (b"1 qid:1 1:", "'' as the value"),
        (b"1 qid:1 1:2:3 4", "'2:3' as the value of feature 1"),
        (b"1 qid:1 1:2 5 3:", "'5'; expected number:value"),
        (b"1 qid:1 1::2", "':2' as the value of feature 1"),
        (b"1 qid:1 1:2\x00", "a control character"),
        (b"1 qid:1 1:2 # \xff", "not UTF-8"),
        (b"1 qid:1 1:2 # a\x1b[31m", "a control character"),
        ("1 qid:1 1:2 # a\u202e".encode(), "printable"),
        (b"1 qid:z 1:2 # ok", "document 'ok' twice in topic 'z'"),
    ],
)
def test_a_bad_line_is_named(line, message):
    with pytest.raises(InputError) as error:
        read_letor(b"0 qid:z 1:1 # ok\n" + line + b"\n0 qid:y 1:3\n")
    assert message in str(error.value)
    assert error.value.place.line == 2


@pytest.mark.parametrize("data", [b"", b"\n\n", b"# nothing\n"])
def test_a_file_without_lines(data):
    with pytest.raises(InputError, match="no line"):
        read_letor(data)


rows = st.lists(
    st.tuples(
        st.floats(0, 4, allow_nan=False),
        st.sampled_from("abc"),
        st.dictionaries(st.integers(1, 9), st.floats(-1e6, 1e6, allow_nan=False, width=32), max_size=5),
    ),
    min_size=1,
    max_size=12,
)


@given(rows)
def test_what_is_written_is_read(written):
    lines = [
        f"{grade!r} qid:{topic} " + " ".join(f"{n}:{v!r}" for n, v in sorted(pairs.items())) + f" # d{at}\n"
        for at, (grade, topic, pairs) in enumerate(written)
    ]
    read = read_letor("".join(lines).encode(), np.float64)
    for topic, start, stop in zip(read.topics, read.starts[:-1], read.starts[1:], strict=True):
        mine = [(at, row) for at, row in enumerate(written) if row[1] == topic]
        assert read.docs[start:stop] == [f"d{at}" for at, _ in mine]
        assert read.grades[start:stop].tolist() == [row[0] for _, row in mine]
        for values, (_, row) in zip(read.features[start:stop], mine, strict=True):
            assert {n + 1: v for n, v in enumerate(values.tolist()) if v} == {
                n: v for n, v in row[2].items() if v
            }


def test_lines_across_chunks(monkeypatch):
    from fairevals.io import streams

    rng = np.random.default_rng(0)
    features = rng.random((300, 7)).round(4)
    text = "".join(
        f"{i % 3} qid:q{i % 10} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) + "\n"
        for i, x in enumerate(features.tolist())
    ).encode()
    whole = read_letor(text, np.float64)
    chunks = streams.Source.chunks
    monkeypatch.setattr(streams.Source, "chunks", lambda self, size=1000: chunks(self, 1000))
    cut = read_letor(text, np.float64)
    np.testing.assert_array_equal(cut.features, whole.features)
    assert (cut.docs, cut.topics) == (whole.docs, whole.topics)
    np.testing.assert_array_equal(whole.features[: whole.starts[1]], features[::10])


# Datasets ---------------------------------------------------------------------


def test_negative_grades_count_as_nothing(tmp_path):
    path = tmp_path / "a.letor"
    path.write_bytes(b"-2 qid:1 1:1\n3 qid:1 1:2\n")
    assert load_dataset(path).grades.tolist() == [0, 3]


def test_batches_are_padded():
    data = Dataset.of([[[1.0], [2.0]], [[3.0], [4.0]], [[5.0]]], [[1, 0], [0, 2], [3]], [[0, 1], [1, 1], [0]])
    assert data.batch([0, 1]).features[..., 0].tolist() == [[1, 2], [3, 4]]
    mixed = data.batch([2, 0])
    assert mixed.features[..., 0].tolist() == [[5, 0], [1, 2]]
    assert mixed.present.tolist() == [[True, False], [True, True]]
    assert mixed.membership[0].tolist() == [[1, 0], [0, 0]]
    (everything,) = data.batches()
    assert everything.features[..., 0].tolist() == [[5, 0], [1, 2], [3, 4]]
    assert data.split([2, 0]).topics == ["q3", "q1"]
    assert data.with_features(3).features.shape == (5, 3)


def test_groups_from_a_table(tmp_path):
    data = Dataset.of([[[1.0], [2.0]], [[3.0]]], [[1, 0], [1]])
    table = tmp_path / "groups.csv"
    table.write_text("doc,group\nq1:1,she\nq1:2,he\nq2:1,she\n")
    (found,) = groups_from_file([data], table)
    assert found.groups == ("he", "she")
    assert found.membership.tolist() == [[0, 1], [1, 0], [0, 1]]
    table.write_text("topic,doc,group,weight\nq1,q1:1,she,0.25\nq1,q1:1,he,0.75\nq2,q1:2,he,1\n")
    with pytest.warns(InputWarning, match="2 of 3 documents have no group"):
        (found,) = groups_from_file([data], table)
    assert found.membership.tolist() == [[0.75, 0.25], [0, 0], [0, 0]]
    table.write_text("doc,group\nother,she\n")
    with pytest.raises(InputError, match="no document"):
        groups_from_file([data], table)


def test_groups_from_a_feature():
    data = Dataset.of([[[1.0, 7.0], [2.0, 7.5]]], [[1, 0]])
    assert groups_from_feature([data], 2)[0].groups == ("7", "7.5")
    with pytest.raises(UsageError, match="no feature 3"):
        groups_from_feature([data], 3)
    with pytest.raises(UsageError, match=r"has 1 value in 1 document; expected 2 to 50 groups$"):
        groups_from_feature([Dataset.of([[[1.0]]], [[1]])], 1)


def test_standardisation_is_that_of_the_training_data():
    rng = np.random.default_rng(0)
    train = Dataset.of([rng.normal(5, 3, (50, 2))], [[0] * 50])
    fitted = Standardiser.fit(train)
    there = fitted(train.features)
    np.testing.assert_allclose(there.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(there.std(axis=0), 1)
    other = Dataset.of([[[5.0, 5.0]]], [[0]])
    np.testing.assert_allclose(fitted(other.features), [(5 - fitted.mean) * fitted.scale])


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_features_centered_by_group(seed, soft):
    """Against a loop over documents; the mean of hard groups is 0 in every topic, whatever is added to a group."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 3)
    data = Dataset.of([rng.normal(0, 3, (n, 2)) for n in lengths], [np.zeros(n) for n in lengths])
    membership = (
        rng.dirichlet(np.ones(3), lengths.sum()) if soft else np.eye(3)[rng.integers(0, 3, lengths.sum())]
    )
    membership[rng.random(len(membership)) < 0.2] = 0.0  # of no known group
    data = replace(data, groups=("a", "b", "c"), membership=membership)
    known = np.column_stack([membership, 1 - membership.sum(axis=1)])
    found = data.centered_by_group().features
    for start, stop in itertools.pairwise(data.starts.tolist()):
        for d in range(start, stop):
            expected = data.features[d].copy()
            for g in range(4):
                weight = sum(known[e, g] for e in range(start, stop))
                if weight > 1e-12:
                    mean = sum(known[e, g] * data.features[e] for e in range(start, stop)) / weight
                    expected -= known[d, g] * mean
            np.testing.assert_allclose(found[d], expected, atol=1e-9)
    if not soft:
        shifted = replace(data, features=data.features + 5.0 * known[:, :1])
        np.testing.assert_allclose(shifted.centered_by_group().features, found, atol=1e-9)


def test_features_centered_by_group_need_groups():
    with pytest.raises(UsageError, match="needs groups"):
        Dataset.of([[[1.0]]], [[1]]).centered_by_group()


@pytest.mark.parametrize("comment", ["docid = A", "inc = 1 docid = A", "x docid=A y", "A docid", "A"])
def test_the_name_of_a_document_in_a_comment(comment):
    assert read_letor(f"1 qid:1 1:1 # {comment}\n".encode()).docs == ["A"]
