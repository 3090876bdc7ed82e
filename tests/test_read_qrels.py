"""Judgements in TREC's and NTCIR's form, and what cannot be read, by file and line."""

from __future__ import annotations

import gzip

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals import InputError, read_qrels
from fairevals.collection.collection import load_collection
from fairevals.collection.inputs import load_qrels
from fairevals.io.streams import Source


def grades(qrels):
    return {(row.topic, row.doc): row.grade for row in qrels.to_frame().itertuples()}


def written(folder, data, name="x.qrels"):
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


EXPECTED = {("9", "b"): 2, ("9", "a"): -1, ("10", "zoë"): 0.5}
FORMS = {
    "TREC": "10 0 zoë 0.5\n9 0 b 2\n9 0 a -1\n",
    "TREC with any iteration": "10 Q0 zoë 5e-1\n9 1 b 2.0\n9 x a -1\n",
    "NTCIR": "10 zoë L0.5\n9 b L2\n9 a L-1\n",
    "NTCIR without L": "10 zoë 0.5\n9 b 2\n9 a -1\n",
    "NTCIR with l": "10 zoë l0.5\n9 b l2\n9 a L-1\n",
    "tabs": "10\t0\tzoë\t0.5\n9\t0\tb\t2\n9\t0\ta\t-1\n",
    "Windows, blank lines, byte-order mark": "\ufeff\r\n10 0  zoë 0.5\r\n\r\n9 0 b 2\r\n9\t0 a -1",
    "the same judgement twice": "10 0 zoë 0.5\n9 0 b 2\n9 0 a -1\n9 1 b 2.0\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_forms(tmp_path, text):
    qrels = read_qrels(written(tmp_path, text))
    assert grades(qrels) == EXPECTED
    assert qrels.topics == ("9", "10")  # as people count
    assert len(qrels) == 3
    assert qrels.max_grade == 2
    assert grades(read_qrels(written(tmp_path, gzip.compress(text.encode()), "y.qrels.gz"))) == EXPECTED


def test_an_id_that_starts_with_l_is_no_grade(tmp_path):
    assert grades(read_qrels(written(tmp_path, "L1 0 L2 3\n"))) == {("L1", "L2"): 3}
    assert grades(read_qrels(written(tmp_path, "L1 L2 L3\n"))) == {("L1", "L2"): 3}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"9 0 c", r"3 columns: '9 0 c'; expected 4 columns \(topic iteration doc grade\)"),
        (b"9 0 c 1 2", r"5 columns"),
        (b"9 0 c high", r"grade 'high'; expected a number, or L and a number"),
        (b"9 0 c nan", r"grade 'nan'"),
        (b"9 0 c 1e999", r"grade '1e999'"),
        (b"9 0 c L", r"grade 'L'"),
        (b"9 0 c LL2", r"grade 'LL2'"),
        (b"9 0 c Ll2", r"grade 'Ll2'"),
        (b"9 0 c 1_0", r"grade '1_0'"),
        (b"9 0 c\xff 1", r"a byte that is not UTF-8 .*; expected UTF-8"),
        (b"9 0 c\x00 1", r"a control character in .*; expected text"),
        (
            b"9 1 b 1",
            r"document 'b' of topic '9' judged twice, 2 in .*x\.qrels:3 and 1 here; expected one grade",
        ),
    ],
)
def test_what_is_wrong_with_a_line(tmp_path, line, message):
    path = written(tmp_path, b"9 0 a 1\n\n9 0 b 2\n" + line + b"\n9 0 z 0\n")
    with pytest.raises(InputError, match=rf"x\.qrels:4: {message}"):
        read_qrels(path)


def test_ntcir_lines_that_are_wrong(tmp_path):
    with pytest.raises(
        InputError, match=r"x\.qrels:2: 4 columns: '9 0 b L1'; expected 3 columns \(topic doc grade\)"
    ):
        read_qrels(written(tmp_path, "9 a L1\n9 0 b L1\n"))
    with pytest.raises(
        InputError, match=r"x\.qrels:3: document 'a' of topic '9' judged twice, 1 in .*x\.qrels:1 and 2"
    ):
        read_qrels(written(tmp_path, "9 a L1\n9 b L1\n9 a L2\n"))


@pytest.mark.parametrize("data", [b"", b"\n \n", b"\xef\xbb\xbf"])
def test_empty_files(tmp_path, data):
    with pytest.raises(InputError, match=r"x\.qrels: no line; expected 4 columns .* or 3 columns"):
        read_qrels(written(tmp_path, data))


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none\.qrels: cannot be read \(No such file"):
        read_qrels(tmp_path / "none.qrels")


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["1", "2", "10", "R3"]), st.text("abé", min_size=1, max_size=2)),
        st.sampled_from([-2, 0, 1, 3, 0.25]),
        min_size=1,
        max_size=25,
    ),
    st.integers(3, 30),
    st.randoms(use_true_random=False),
)
def test_pieces_of_any_size_and_any_order_of_lines(judged, size, random):
    rows = list(judged.items())
    random.shuffle(rows)
    text = "".join(f"{topic} 0 {doc} {grade}\n" for (topic, doc), grade in rows)
    with pytest.MonkeyPatch.context() as patch:
        chunks = Source.chunks
        patch.setattr(Source, "chunks", lambda self, _=0: chunks(self, size))
        patch.setattr("pathlib.Path.open", None)  # nothing but the bytes at hand is read
        from fairevals.collection.qrels import Qrels
        from fairevals.io.qrels import read_qrels_columns

        found = Qrels.of(read_qrels_columns(Source.of(text.encode(), "x")))
    assert grades(found) == judged
    assert found.max_grade == (max([grade for grade in judged.values() if grade > 0], default=1))
    for number, topic in enumerate(found.topics):
        ideal = sorted((max(g, 0) for (t, _), g in judged.items() if t == topic), reverse=True)
        assert found.ideal(number, number + 1)[0].tolist() == ideal


def test_from_python():
    nested = {"q": {"a": 1, "b": 0}, "r": {"a": -1.5}}
    expected = {("q", "a"): 1, ("q", "b"): 0, ("r", "a"): -1.5}
    assert grades(load_qrels(nested)) == expected
    frame = pd.DataFrame(
        [("q", "a", 1), ("q", "b", 0), ("r", "a", -1.5)], columns=["query_id", "doc_id", "relevance"]
    )
    assert grades(load_qrels(frame)) == expected
    with pytest.raises(InputError, match=r"qrels:2: grade 'x'; expected a number"):
        load_qrels(pd.DataFrame({"topic": ["q", "q"], "doc": ["a", "b"], "grade": ["1", "x"]}))
    with pytest.raises(InputError, match=r"qrels: columns topic, doc; expected topic, doc, grade"):
        load_qrels(pd.DataFrame({"topic": ["q"], "doc": ["a"]}))
    with pytest.raises(
        InputError, match=r"qrels:3: document 'a' of topic 'q' judged twice, 1 in qrels:1 and 2 here"
    ):
        load_qrels(pd.DataFrame({"topic": ["q"] * 3, "doc": ["a", "b", "a"], "grade": [1, 1, 2]}))


# Several files


def test_several_files_are_joined(tmp_path):
    paths = [
        written(tmp_path, "10 0 zoë 0.5\n9 0 b 2\n", "a.qrels"),
        written(tmp_path, "# NTCIR\n9 a L-1\n9 b L2\n", "b.qrels"),
        written(tmp_path, gzip.compress(b"10 0 new 1\n"), "c.qrels"),
    ]
    expected = EXPECTED | {("10", "new"): 1}
    assert grades(read_qrels(*paths)) == expected
    assert grades(load_qrels(paths)) == expected
    assert grades(load_qrels(tuple(map(str, paths[::-1])))) == expected
    task = written(tmp_path, 'qrels = ["a.qrels", "b.qrels", "c.qrels"]', "task.toml")
    assert grades(load_collection(task).qrels) == expected
    assert grades(load_collection(task, [paths[0]]).qrels) == {
        k: v for k, v in EXPECTED.items() if k != ("9", "a")
    }


def test_two_grades_in_two_files_are_an_error_that_names_both_places(tmp_path):
    a = written(tmp_path, "# x\n9 0 c 0\n9 0 b 2\n", "a.qrels")
    b = written(tmp_path, "9 0 d 1\n\n9 0 b 1\n", "b.qrels")
    message = r"b\.qrels:3: document 'b' of topic '9' judged twice, 2 in .*a\.qrels:3 and 1 here; expected one grade"
    with pytest.raises(InputError, match=message):
        read_qrels(a, b)
    c = written(tmp_path, "9 b L1\n", "c.qrels")
    with pytest.raises(InputError, match=r"a\.qrels:3: document 'b' .*, 1 in .*c\.qrels:1 and 2 here"):
        read_qrels(c, a)


def test_an_empty_file_among_several(tmp_path):
    with pytest.raises(InputError, match=r"b\.qrels: no line"):
        read_qrels(written(tmp_path, "9 0 b 2\n", "a.qrels"), written(tmp_path, "# nothing\n", "b.qrels"))
