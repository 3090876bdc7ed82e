"""The files of TREC's Fair Ranking track: rankings in two columns and as JSON lines, relevant documents as JSON."""

from __future__ import annotations

import gzip
import json

import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.errors import InputError
from fairevals.io.check import Rules, check_run
from fairevals.io.streams import Source
from fairevals.io.topics import read_topics

QRELS = [
    {"id": 1, "title": "Agriculture", "keywords": ["soil", "x" * 3000], "rel_docs": [12, 15]},
    {"id": 2, "title": "Botany", "rel_docs": [12], "homepage": "…"},
]
TREC_QRELS = "1 0 12 1\n1 0 15 1\n2 0 12 1\n"
PAIRS = "1\t12\n1\t99\n1\t15\n2\t7\n2\t12\n"
TREC_RUN = "1 Q0 12 1 3 t\n1 Q0 99 2 2 t\n1 Q0 15 3 1 t\n2 Q0 7 1 2 t\n2 Q0 12 2 1 t\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in QRELS))
    (tmp_path / "trec.qrels").write_text(TREC_QRELS)
    (tmp_path / "trec.run").write_text(TREC_RUN)
    return tmp_path


def values(run, qrels, **options):
    return fe.evaluate(run, qrels, ["nDCG@10", "EE_L"], **options).frame(per_topic=True).value.tolist()


@pytest.mark.parametrize("header", ["", "id\tpage_id\n", "id page_id\n", "topic\tdoc\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_two_columns(folder, header, pack):
    (folder / "pairs").write_bytes(pack((header + PAIRS).encode()))
    assert values("pairs", "topics.jsonl") == values("trec.run", "trec.qrels")
    assert fe.read_run("pairs").lists == [("1", ""), ("2", "")]
    assert [
        problem.found for problem in check_run(Source.of("pairs"), Rules(topics=("1", "2"), style=True))
    ] == []


def test_json_lines_of_rankings(folder):
    """The same as sampled rankings in TREC's form, which the second column tells apart."""
    rankings = [("0.1", 1, [12, 99, 15]), ("0.2", 2, [7, 12]), ("1.1", 1, ["15", "12"]), ("1.2", 2, [12])]
    lines = [json.dumps({"q_num": q, "qid": topic, "ranking": docs}) + "\n" for q, topic, docs in rankings]
    (folder / "fair.jsonl").write_text("\n".join(lines))
    rows = [
        f"{topic} {q} {doc} {rank} {-rank} t\n"
        for q, topic, docs in rankings
        for rank, doc in enumerate(docs, 1)
    ]
    (folder / "samples.run").write_text("".join(rows))
    theirs = values("fair.jsonl", "topics.jsonl", policy="samples")
    assert theirs == values("samples.run", "trec.qrels", policy="samples")
    assert fe.read_run("fair.jsonl", samples=True).lists == [
        ("1", "0.1"),
        ("2", "0.2"),
        ("1", "1.1"),
        ("2", "1.2"),
    ]
    with pytest.raises(fe.UsageError, match=r"fair.jsonl has several rankings of a topic"):
        values("fair.jsonl", "topics.jsonl")
    (folder / "one.jsonl").write_text("".join(lines[:2]))
    assert values("one.jsonl", "topics.jsonl") == values("trec.run", "trec.qrels")


def test_qrels(folder):
    ours, theirs = fe.read_qrels("topics.jsonl"), fe.read_qrels("trec.qrels")
    assert ours.to_frame().equals(theirs.to_frame())
    (folder / "more.qrels").write_text("1 0 15 0\n")
    with pytest.raises(InputError, match=r"judged twice, 1 in topics.jsonl:1 and 0 here"):
        fe.read_qrels("topics.jsonl", "more.qrels")
    with pytest.raises(InputError, match=r"topics.jsonl:1: .*judged twice, 0 in more.qrels:1 and 1 here"):
        fe.read_qrels("more.qrels", "topics.jsonl")


def test_queries_of_2019_are_topics_and_qrels(folder):
    lines = [
        {"qid": 1, "frequency": 0.5, "query": "soil", "documents": [{"doc_id": "12", "relevance": 1}]},
        {
            "qid": 2,
            "query": "b\x1b\ud800",
            "documents": [{"doc_id": 7, "relevance": 0}, {"doc_id": "12", "relevance": 1.0}],
        },
    ]
    (folder / "queries.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = fe.read_qrels("queries.json").to_frame().values.tolist()
    assert sorted(rows) == [["1", "12", 1], ["2", "12", 1], ["2", "7", 0]]
    topics = read_topics("queries.json")
    assert topics.ids == ("1", "2")
    assert topics.columns == {"frequency": ("0.5", ""), "query": ("soil", "b\\x1b\\ud800")}
    assert read_topics("topics.jsonl").columns == {"title": ("Agriculture", "Botany")}


def test_a_line_may_be_longer_than_those_of_other_files(folder):
    docs = [f"document-{number}" for number in range(100_000)]
    (folder / "long.jsonl").write_text(json.dumps({"id": 1, "rel_docs": docs}) + "\n")
    assert (folder / "long.jsonl").stat().st_size > 1 << 20
    assert len(fe.read_qrels("long.jsonl")) == 100_000


def test_validate(folder, capsys):
    line = '{"q_num": "0.1", "qid": 1, "ranking": [12]}\n'
    (folder / "fine.jsonl").write_text(line + '{"q_num": "0.2", "qid": 2, "ranking": [12]}\n')
    (folder / "lacks.jsonl").write_text(line)
    (folder / "broken.jsonl").write_text(line + '{"q_num": "0.2", "qid": 2, "ranking": [12}\n')
    (folder / "pairs").write_text("1 12\n1 15\n1 12\n3 12\n")
    (folder / "twice.jsonl").write_text((folder / "fine.jsonl").read_text() + line.replace("0.1", "1.1"))
    files = ["fine.jsonl", "lacks.jsonl", "broken.jsonl", "pairs", "twice.jsonl"]
    assert main(["validate", "--topics", "topics.jsonl", *files, "--format", "csv"]) == 1
    rows = [line.split(",")[:4] for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["lacks.jsonl", "", "error", "missing topic"],
        ["broken.jsonl", "2", "error", "unreadable"],
        ["pairs", "3", "error", "duplicate"],
        ["pairs", "4", "error", "unknown topic"],
        ["pairs", "", "error", "missing topic"],
        ["twice.jsonl", "", "error", "samples"],
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"qid": 1, "ranking": [1]}\n{"qid": 1, "ranking": [2}',
            "x:2: a line that is not JSON (Expecting ','",
        ),
        ('{"qid": 1, "ranking": [1]}\nx y z', "x:2: a line that is not JSON"),
        ('{"qid": 1, "ranking": [1]}\n[]', "x:2: a list; expected {"),
        ('{"qid": 1, "ranking": {"a": 1}}', "x:1: ranking = {'a': 1}; expected {"),
        ('{"ranking": [1]}', "x:1: a line without 'qid'"),
        ('{"qid": 1, "ranking": [1.5]}', "x:1: a doc of type float: 1.5; expected texts or whole numbers"),
        ('{"qid": 1, "ranking": [""]}', "x:1: an empty doc"),
        ('{"qid": 1, "ranking": ["\\ud800"]}', "x:1: a doc with an invalid character"),
        ('{"qid": null, "ranking": [1]}', "x:1: a qid of type NoneType"),
        ('{"qid": 1, "ranking": []}', "x: no document"),
        (
            '{"qid": 1, "ranking": [1]}\n{"qid": 1, "ranking": [2, 1]}',
            "x:2: document '1' a second time in topic '1'",
        ),
        ('{"qid": 1, "ranking": ' + "[" * 100_000, "x:1: a line that is not JSON"),
        ('{"qid": 1, "ranking": [' + "9" * 5000 + "]}", "x:1: a line that is not JSON"),
        ('{"qid": 1, "ranking": [1]}\n{"qid": 1, "ranking": ["\xff"]}', "x:2: a byte that is not UTF-8"),
        ("1 12\n1 15 3\n", "x:2: 3 columns: '1 15 3'; expected 2 columns (topic doc)"),
        ("1 12\n1 12\n", "x:2: document '12' a second time in topic '1'"),
        ("id\tdoc\n", "x: no readable line; expected 2 columns (topic doc)"),
    ],
)
def test_bad_runs(folder, text, message):
    (folder / "x").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as error:
        fe.read_run("x")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1, "rel_docs": [1]}\n{"id": 2}', "x:2: a line without 'rel_docs'"),
        ('{"id": 1, "rel_docs": "12"}', "x:1: rel_docs = '12'"),
        ('{"rel_docs": [1]}', "x:1: a line without 'id'"),
        ('{"id": 1, "rel_docs": [true]}', "x:1: a doc of type bool"),
        ('{"id": 1, "rel_docs": []}', "x: no relevant document"),
        (
            '{"qid": 1, "documents": [{"doc_id": "a"}]}',
            "x:1: no relevance of the document 'a'; expected a number",
        ),
        (
            '{"qid": 1, "documents": [{"doc_id": "a", "relevance": NaN}]}',
            "x:1: relevance = nan of the document 'a'",
        ),
        ('{"qid": 1, "documents": [{"relevance": 1}]}', "x:1: a line without 'doc_id'"),
        ('{"qid": 1, "documents": ["a"]}', "x:1: a document that is"),
    ],
)
def test_bad_qrels(folder, text, message):
    (folder / "x").write_text(text)
    with pytest.raises(InputError) as error:
        fe.read_qrels("x")
    assert message in str(error.value)
