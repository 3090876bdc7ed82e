"""Task files: every key, and every wrong value named by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairevals import InputError, UsageError, evaluate, read_task
from fairevals.io import specs
from fairevals.io.specs import PolicySpec
from fairevals.io.task import Task, run_info
from fairevals.measures.divergences import DIVERGENCES

FULL = """\
# A comment.
name = "FairWeb sample"
qrels = "data/x.qrels"
max_grade = 2.5
order = "file"
cutoff = 20
measures = ["nDCG@10", "ERR"]
utility_weight = 0.5
max_documents = 50

[attributes.HINDEX]  # by citations
kind = "ordinal"
groups = ["<10", "10-29", ">=30"]
bins = [10, 30]
memberships = "data/x.gmemb"
target = [0.5, 0.25, 0.25]
unmapped = "<10"
divergence = "NMD"
topics = ["R*", "S1"]
weight = 2

[attributes."REGION"]
groups = ["N", "S"]
target = "relevant"
unmapped = "skip"

[attributes.SEX]
kind = "ordinal"
groups = ["she", "he"]
target = {R1 = [1, 0], "*" = [0.5, 0.5]}

[attributes.AGE]
groups = ["old", "new"]
target = "target.txt"

[policy]
kind = "pl"
temperature = 0.5
samples = 77
seed = 9
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text, name="task.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_task(path)

    return read_text


def test_every_key(read, tmp_path):
    task = read(FULL)
    assert (task.name, task.max_grade, task.order, task.cutoff) == ("FairWeb sample", 2.5, "file", 20)
    assert (task.measures, task.utility_weight, task.max_documents) == (("nDCG@10", "ERR"), 0.5, 50)
    assert task.qrels == (tmp_path / "data" / "x.qrels",)
    assert task.policy == PolicySpec("pl", 0.5, 77, 9)
    h, region, sex, age = task.attributes.values()
    assert list(task.attributes) == ["HINDEX", "REGION", "SEX", "AGE"]
    assert (h.kind, h.groups, h.bins) == ("ordinal", ("<10", "10-29", ">=30"), (10.0, 30.0))
    assert h.memberships == tmp_path / "data" / "x.gmemb"
    assert (h.target, h.unmapped, h.divergence, h.weight) == ((0.5, 0.25, 0.25), "<10", "NMD", 2)
    assert [h.applies_to(topic) for topic in ("R1", "S1", "S11", "r1")] == [True, True, False, False]
    assert (region.kind, region.target, region.unmapped, region.divergence) == (
        "nominal",
        "relevant",
        "skip",
        "JSD",
    )
    assert (region.memberships, region.topics, region.weight, region.bins) == (None, ("*",), 1.0, ())
    assert (sex.divergence, sex.target) == ("RNOD", {"R1": (1.0, 0.0), "*": (0.5, 0.5)})
    assert age.target == tmp_path / "target.txt"
    assert [attribute.place.line for attribute in (h, region, sex, age)] == [11, 22, 27, 32]


def test_nothing_is_needed(read, tmp_path):
    task = read("")
    assert task == Task(path=tmp_path / "task.toml")
    assert task.policy == PolicySpec("ranking", 1.0, 1000, 0)


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "t.toml").write_text('qrels = "../q"\n')
    monkeypatch.chdir(tmp_path)
    assert read_task("deep/t.toml").qrels == (Path("q"),)
    (tmp_path / "deep" / "t.toml").write_text('qrels = "/data/q"\n')
    assert read_task("deep/t.toml").qrels == (Path("/data/q"),)


def test_byte_order_mark_and_windows_line_ends(read):
    assert read(b"\xef\xbb\xbf" + FULL.replace("\n", "\r\n").encode()) == read(FULL)


WRONG = [
    # (what stands in the full file, what is put there, message)
    ('"FairWeb sample"', "3", r":2: name = 3; expected a text"),
    ('"data/x.qrels"', "7", r":3: qrels = 7; expected the name of a file"),
    ('"data/x.qrels"', '""', r":3: qrels = ''; expected the name of a file"),
    ("max_grade = 2.5", "max_grade = 0", r":4: max_grade = 0; expected a number above 0"),
    ("max_grade = 2.5", "max_grade = nan", r":4: max_grade = nan; expected a number"),
    ("max_grade = 2.5", "max_grade = true", r":4: max_grade = True; expected a number"),
    ("max_grade = 2.5", 'max_grade = "2"', r":4: max_grade = \"?'2'"),
    ('order = "file"', 'order = "rank"', r":5: order = \"?'rank'\"?; expected one of score, file"),
    ('order = "file"', "order = []", r":5: order = \[\]; expected one of score, file"),
    ("cutoff = 20", "cutoff = 0", r":6: cutoff = 0; expected a whole number of at least 1"),
    ("cutoff = 20", "cutoff = 2.0", r":6: cutoff = 2.0; expected a whole number"),
    ('["nDCG@10", "ERR"]', '"ERR"', r":7: measures = .*; expected a list of texts"),
    ('["nDCG@10", "ERR"]', '["ERR", 3]', r":7: measures = .*; expected a list of texts"),
    (
        "utility_weight = 0.5",
        "utility_weight = -1",
        r":8: utility_weight = -1; expected a number of at least 0",
    ),
    ("utility_weight = 0.5", "utility_weight = inf", r":8: utility_weight = inf"),
    ("max_documents = 50", "max_documents = 0", r":9: max_documents = 0; expected a whole number"),
    (
        "max_documents = 50",
        "max_docs = 50",
        r":9: the unknown key 'max_docs'; expected one of name, topics, qrels",
    ),
    (
        '"ordinal"\ngroups = ["<10"',
        '"interval"\ngroups = ["<10"',
        r":12: attributes.HINDEX.kind = .*one of nominal",
    ),
    (
        '["<10", "10-29", ">=30"]',
        '["<10", "<10", ">=30"]',
        r":13: attributes.HINDEX.groups = .*no group twice",
    ),
    ('["<10", "10-29", ">=30"]', "[]", r":13: attributes.HINDEX.groups = \[\]; expected one or more"),
    ('["<10", "10-29", ">=30"]', '"<10"', r":13: attributes.HINDEX.groups = .*; expected a list of texts"),
    ("[10, 30]", "[30, 10]", r":14: attributes.HINDEX.bins = .*; expected 2 ascending numbers"),
    ("[10, 30]", "[10]", r":14: attributes.HINDEX.bins = .*; expected 2 ascending numbers"),
    ("[10, 30]", "[10, 10]", r":14: attributes.HINDEX.bins = "),
    ("[10, 30]", "[10, nan]", r":14: attributes.HINDEX.bins = .*; expected a list of finite numbers"),
    ("[10, 30]", '["10", 30]', r":14: attributes.HINDEX.bins = .*; expected a list of finite numbers"),
    ('"data/x.gmemb"', "[]", r":15: attributes.HINDEX.memberships = \[\]; expected the name of a file"),
    (
        "[0.5, 0.25, 0.25]",
        '[0.5, "x"]',
        r":16: attributes.HINDEX.target = .*; expected a list of finite numbers",
    ),
    ("[0.5, 0.25, 0.25]", "7", r":16: attributes.HINDEX.target = 7"),
    (
        'unmapped = "<10"',
        'unmapped = "<11"',
        r":17: attributes.HINDEX.unmapped = .*; expected one of uniform, skip, error",
    ),
    ('"NMD"', '"nmd"', r":18: attributes.HINDEX.divergence = .*; expected one of JSD, NMD, RNOD"),
    ('["R*", "S1"]', '"R*"', r":19: attributes.HINDEX.topics = .*; expected a list of texts"),
    ("weight = 2\n", "weight = -2\n", r":20: attributes.HINDEX.weight = -2; expected a number of at least 0"),
    ("weight = 2\n", "wieght = 2\n", r":20: the unknown key 'wieght'; expected one of kind, groups, bins"),
    ('groups = ["N", "S"]\n', "", r":22: attributes.REGION.groups = \[\]; expected one or more"),
    ("{R1 = [1, 0],", "{R1 = 1,", r":30: attributes.SEX.target.R1 = 1; expected a list of finite numbers"),
    ('kind = "pl"', 'kind = "PL"', r":37: policy.kind = .*; expected one of ranking, pl, samples"),
    ("temperature = 0.5", "temperature = 0", r":38: policy.temperature = 0; expected a number above 0"),
    ("temperature = 0.5", "temperature = -1", r":38: policy.temperature = -1; expected a number"),
    ("samples = 77", "samples = 0", r":39: policy.samples = 0; expected a whole number of at least 2"),
    ("seed = 9", "seed = -1", r":40: policy.seed = -1; expected a whole number of at least 0"),
    ("seed = 9", "sed = 9", r":40: the unknown key 'sed'; expected one of kind, temperature"),
    ("[attributes.AGE]", "[attributs.AGE]", r":32: the unknown key 'attributs'; expected one of name"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_wrong_values(read, old, new, message):
    assert FULL.count(old) == 1
    with pytest.raises(InputError, match=rf"task\.toml{message}"):
        read(FULL.replace(old, new))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = 'x'\nattributes = 3\n", r":2: attributes = 3; expected a table"),
        ("name = 'x'\n[attributes]\nA = 3\n", r":3: attributes.A = 3; expected a table, \[attributes.A\]"),
        ("policy = 'pl'\n", r":1: policy = .*; expected a table, \[policy\]"),
        ("name = 'x'\norder = \n", r":2: not TOML \(Invalid value"),
        ("name = 'x'\nname = 'y'\n", r":2: the key 'name' a second time; expected every key once"),
        ("name = 'x", r": not TOML|:1: not TOML"),
        (b"name = 'x'\nqrels = '\xff'\n", r":2: bytes that are not UTF-8; expected UTF-8"),
        (b"name = 'x'\n\0", r":2: not TOML"),
        (b"\x1f\x8b\x08\x00", r": cannot be read"),
        (b"PK\x03\x04\x14\0", r": this is a zip archive; expected a task file"),
    ],
)
def test_files_that_are_no_task(read, text, message):
    with pytest.raises(InputError, match=rf"task\.toml({message})"):
        read(text)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: cannot be read \(No such file"):
        read_task(tmp_path / "none.toml")


def test_divergences_are_those_that_exist():
    assert set(specs.DIVERGENCE_NAMES) == set(DIVERGENCES)


def test_a_task_that_scores_nothing_says_so(read, tmp_path):
    run, qrels = {"q": {"a": 1.0}}, {"q": {"a": 3}}
    with pytest.raises(UsageError, match="no measure"):
        evaluate(run, qrels, task=read("measures = []")).frame()
    with pytest.raises(UsageError, match=r"max_grade is 2, but qrels has a grade 3"):
        evaluate(run, qrels, task=read("max_grade = 2")).frame()
    with pytest.raises(UsageError, match="there are no qrels"):
        evaluate(run, task=read("")).frame()


# Qrels, runs table and labels


def test_several_qrels(read, tmp_path):
    assert read('qrels = ["a", "b/c"]').qrels == (tmp_path / "a", tmp_path / "b" / "c")
    assert read("qrels = []").qrels == ()
    with pytest.raises(InputError, match=r"task\.toml:2: qrels = .*; expected the name of a file"):
        read('name = "x"\nqrels = ["a", 3]')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "cutoff = 1\n[policy]\nseed = 1\nseed = 2\n",
            r":4: the key 'seed' a second time; expected every key once",
        ),
        ('qrels = "a"\nname = "x"\nqrels = [\n  "b",\n]\n', r":5: the key 'qrels' a second time"),
        ("[policy]\nseed = 1\n[attributes]\n[policy]\nkind = 'pl'\n", r":4: not TOML \(.*policy.*twice"),
    ],
)
def test_keys_given_twice(read, text, message):
    with pytest.raises(InputError, match=rf"task\.toml{message}"):
        read(text)


def test_labels_of_measures(read):
    task = read("measures = ['nDCG@10', { measure = \"GFR(util='ERR')\", label = 'GFR-ERR' }, 'ERR']")
    assert task.measures == ("nDCG@10", "GFR(util='ERR')", "ERR")
    assert task.labels == {"GFR(util='ERR')": "GFR-ERR"}


@pytest.mark.parametrize(
    "item",
    ["{measure = 'ERR'}", "{measure = 'ERR', label = 'E', x = 1}", "{measure = 1, label = 'E'}", "{}", "3"],
)
def test_wrong_labels(read, item):
    with pytest.raises(
        InputError, match=r"task\.toml:2: measures = .*; expected a list of texts or tables such as"
    ):
        read(f"cutoff = 1\nmeasures = ['AP', {item}]")


def test_runs_table(read, tmp_path):
    (tmp_path / "data").mkdir()
    table = tmp_path / "data" / "runs.csv"
    table.write_text("file,status,name\na.run,baseline,BM25\n../runs/b.run,,\n'c'.run,reference,\n")
    task = read('runs = "data/runs.csv"')
    folder = tmp_path / "data"
    assert [(row.name, row.team, row.status) for row in task.runs] == [
        ("BM25", "", "baseline"),
        ("", "", "official"),
        ("", "", "reference"),
    ]
    assert [Path(row.file) for row in task.runs] == [
        folder / "a.run",
        folder / "../runs/b.run",
        folder / "'c'.run",
    ]
    assert run_info(task, folder / "a.run").name == "BM25"
    assert run_info(task, tmp_path / "elsewhere" / "a.run").name == "BM25"
    assert run_info(task, tmp_path / "runs" / "b.run") == task.runs[1]
    assert run_info(task, "d.run") is None


def test_a_path_decides_before_a_file_name(read, tmp_path, monkeypatch):
    (tmp_path / "runs.tsv").write_text("name\tfile\nX\tx/a.run\nY\ty/a.run\n")
    task = read('runs = "runs.tsv"')
    assert run_info(task, tmp_path / "y" / "a.run").name == "Y"
    assert run_info(task, "z/a.run") is None  # either of the two
    monkeypatch.chdir(tmp_path)
    assert run_info(task, "x/../x/a.run").name == "X"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "file,status\na,official\n\nb,Baseline\n",
            r":4: status 'Baseline'; expected one of official, unofficial",
        ),
        ("file,name\na,x\n./a,y\n", r":3: the file './a' a second time; expected every file once"),
        ("name,file\nx,\n", r":2: an empty file; expected the name of a run file"),
        ("name,team\nx,y\n", r":1: columns name, team; expected a header with file"),
        ("file,status,group\nx,official,y\n", r":1: the unknown column 'group'; expected one of file, name"),
        ("file,status\nx\n", r":2: 1 columns: 'x'; expected 2 \(file, status\)"),
    ],
)
def test_wrong_runs_tables(read, tmp_path, text, message):
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(InputError, match=rf"runs\.csv{message}"):
        read('runs = "runs.csv"')


def test_a_missing_runs_table(read):
    with pytest.raises(InputError, match=r"none\.csv: cannot be read"):
        read('runs = "none.csv"')


def test_a_task_that_is_too_large(read):
    assert read("\n" * 1000 + "cutoff = 3\n" + "#" * 1000).cutoff == 3
    with pytest.raises(InputError, match=r"task.toml: more than 4194304 bytes; expected a smaller task file"):
        read("\n" * (4 << 20) + "cutoff = 3\n")
