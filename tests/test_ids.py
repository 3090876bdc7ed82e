"""Ids behave as Python's own strings, dicts and sorting of bytes do, even if all hashes were alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe
from fairevals import ids
from fairevals.errors import InputError
from fairevals.ids import Ids, Index, keys
from fairevals.io.runs import RunOptions, read_run_columns
from fairevals.io.streams import Source

characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
names = st.one_of(
    st.text("ab", min_size=1, max_size=4),  # prefixes of each other, often the same
    st.text("a", min_size=6, max_size=26),  # ends around the borders of words
    st.text(characters, min_size=1, max_size=20),
    st.builds(lambda tail: "x" * 600 + tail, st.text("ab", max_size=3)),
)
columns = st.lists(names, max_size=40)
rows_of = st.lists(st.tuples(st.integers(0, 3), names), max_size=40)


@pytest.fixture(params=["hashes as they are", "all hashes alike", "one bit of hash"])
def hashing(request, monkeypatch):
    mixes = {
        "all hashes alike": lambda words: np.zeros_like(words),
        "one bit of hash": lambda words: words & np.uint64(1),
    }
    if request.param in mixes:
        monkeypatch.setattr(ids, "mix", mixes[request.param])


def parts(rows):
    return np.array([topic for topic, _ in rows], dtype=np.int64), Ids.of([doc for _, doc in rows])


@given(columns)
def test_texts_come_back(texts):
    column = Ids.of(texts)
    assert column.texts() == texts
    assert column.compact().texts() == texts
    assert [column.text(i) for i in range(len(column))] == texts


@given(columns, columns, st.randoms(use_true_random=False))
def test_take_compact_and_concatenate(first, second, random):
    rows = [random.randrange(len(first)) for _ in range(10)] if first else []
    taken = Ids.of(first).take(np.array(rows, dtype=np.int64))
    expected = [first[row] for row in rows]
    assert taken.compact().texts() == expected
    assert Ids.concatenate([taken, Ids.of(second), Ids.of([])]).texts() == expected + second


@given(columns)
def test_ranks_are_those_of_sorted_bytes(texts):
    order = {name: place for place, name in enumerate(sorted({text.encode() for text in texts}))}
    assert Ids.of(texts).ranks().tolist() == [order[text.encode()] for text in texts]


def test_ranks_of_one_absurdly_long_id():
    texts = ["b" * 200_000, "b" * 199_999 + "a"] + [f"d{i}" for i in range(1000)]
    order = {name: place for place, name in enumerate(sorted(texts))}
    assert Ids.of(texts).ranks().tolist() == [order[text] for text in texts]


@given(columns)
def test_equal_ids_have_equal_hasheswherever_they_stand(texts):
    """What stands around an id in the buffer must not leak into its hash."""
    hashes = Ids.of(texts).hashes()
    alone = np.array([Ids.of([text]).hashes()[0] for text in texts], dtype=np.uint64)
    assert np.array_equal(hashes, alone)
    assert len(set(hashes.tolist())) == len(set(texts))


def test_an_absurdly_long_id_does_not_slow_down_the_others(monkeypatch):
    """Neither by a pass over all rows for each of its words, nor by one pass for each."""
    loaded = []
    real = ids.words_at

    def counting(buffer, position):
        loaded.append(position.size)
        return real(buffer, position)

    monkeypatch.setattr(ids, "words_at", counting)
    column = Ids.of(["x" * (1 << 20), "x" * (1 << 20)] + [f"doc{i}" for i in range(20_000)])
    assert column.hashes()[0] == column.hashes()[1]
    assert column.repeats()[:3].tolist() == [False, True, False]
    # The other ids have one word each: it is loaded once by each `hashes`, and twice by `repeats`.
    assert sum(loaded) <= 4 * len(column) + 1000
    assert len(loaded) <= 300


@given(columns)
def test_repeats(texts):
    expected = [i > 0 and texts[i] == texts[i - 1] for i in range(len(texts))]
    assert Ids.of(texts).repeats().tolist() == expected


@given(rows_of)
def test_keys_tell_topics_and_documents_apart(rows):
    assert len(set(keys(*reversed(parts(rows))).tolist())) == len(set(rows))


@given(rows_of, rows_of)
def test_find_is_a_dict(rows, wanted):
    _find_is_a_dict(rows, wanted)


def _find_is_a_dict(rows, wanted):
    rows = list(dict.fromkeys(rows))
    where = {row: i for i, row in enumerate(rows)}
    positions = Index(*parts(rows)).find(*parts(wanted + rows))
    assert positions.tolist() == [where.get(row, -1) for row in wanted + rows]


EXAMPLES = [
    (0, "a"),
    (0, "b"),
    (1, "a"),
    (0, "ab"),
    (1, "b"),
    (2, "a" * 9),
    (2, "a" * 8 + "b"),
    (3, "é"),
    (3, "e"),
]


@pytest.mark.usefixtures("hashing")
class TestUnderCollisions:
    def test_find(self):
        _find_is_a_dict(EXAMPLES, [(2, "a"), (3, "x"), (0, "")])

    @pytest.mark.parametrize("again", [[], [1], [1, 1, 4], [0, 8, 8, 8]])
    def test_duplicates(self, again):
        rows = EXAMPLES + [EXAMPLES[i] for i in again]
        assert Index(*parts(rows)).duplicates().tolist() == list(range(len(EXAMPLES), len(rows)))

    def test_find_the_first_of_several(self):
        rows = [EXAMPLES[i] for i in (3, 1, 3, 0, 8, 7, 1, 0, 2)]
        assert Index(*parts(rows)).find(*parts(rows)).tolist() == [rows.index(row) for row in rows]

    @pytest.mark.parametrize("depth", [None, 1])
    def test_reading_a_run(self, depth):
        lines = [f"t{topic} Q0 {doc} 1 {i} tag\n" for i, (topic, doc) in enumerate(EXAMPLES)]
        columns = read_run_columns(Source.of("".join(lines).encode(), "x.run"), RunOptions(depth=depth))
        assert columns.lines == len(EXAMPLES)
        if depth is None:
            assert columns.docs.texts() == [doc for _, doc in EXAMPLES]
        with pytest.raises(InputError, match=r"x\.run:10: document 'b' a second time in topic 't0'.*line 2"):
            read_run_columns(
                Source.of("".join([*lines, lines[1]]).encode(), "x.run"), RunOptions(depth=depth)
            )

    def test_scores(self):
        run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"a": 1.0, "d": 2.0}}
        qrels = {"q": {"b": 2, "d": 1}, "r": {"d": 1, "c": 1}}
        table = fe.evaluate(run, qrels, ["nDCG@3", "D_ind", "AP"]).frame(per_topic=True)
        value = {(row.topic, row.measure): row.value for row in table.itertuples()}
        log2 = np.log2
        assert value["q", "nDCG@3"] == pytest.approx((2 / log2(3)) / (2 + 1 / log2(3)), abs=1e-15)
        assert value["r", "nDCG@3"] == pytest.approx(1 / (1 + 1 / log2(3)), abs=1e-15)
        assert value["q", "AP"] == pytest.approx(0.25)
        assert value["r", "D_ind"] == pytest.approx(0.5)  # over the ordered pairs of two equal merits
        sampled = [("q", 0, "a"), ("q", 0, "b"), ("q", 1, "b"), ("q", 1, "a"), ("r", 0, "d"), ("r", 0, "b")]
        import pandas as pd

        frame = pd.DataFrame(sampled, columns=["topic", "sample", "doc"]).assign(score=[2, 1] * 3)
        table = fe.evaluate(frame, qrels, ["P@1"], policy="samples").frame(per_topic=True)
        assert dict(zip(table.topic, table.value, strict=True)) == {"q": 0.5, "r": 1.0, "all": 0.75}
