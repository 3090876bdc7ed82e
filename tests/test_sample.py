"""The sample task that ships: its files are what the generator writes, and they say what they should."""

from __future__ import annotations

import csv
import math
import os
import shutil
import subprocess
import sys
import tomllib
import warnings
import zipfile
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

from fairevals.cli.demo import extract_sample
from tools.sample import ARCHIVE, pack_sample, write_sample
from tools.sample.draws import Draws

TOP = Path(__file__).resolve().parents[1]
TRAINED = ["pg-rank", "fair-pg-rank"]
BEST_FIRST = ["dense", "fair-rerank", "bm25", "popularity", "round-robin", "random"]

Qrels = dict[str, dict[str, int]]
Run = dict[str, list[tuple[float, str]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other")
    write_sample(folder, seed=1)
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for part in ("runs", "qrels")
        for path in sorted((folder / part).iterdir())
    }


def read_qrels(folder: Path) -> Qrels:
    qrels: Qrels = defaultdict(dict)
    for line in (folder / "qrels" / "sample.qrels").read_text().splitlines():
        topic, iteration, doc, grade = line.split()
        assert iteration == "0"
        assert doc not in qrels[topic]
        qrels[topic][doc] = int(grade)
    return dict(qrels)


def read_run(folder: Path, tag: str) -> Run:
    run: Run = defaultdict(list)
    for line in (folder / "runs" / f"{tag}.run").read_text().splitlines():
        topic, _, doc, rank, score, name = line.split()
        assert name == tag
        run[topic].append((float(score), doc))
        assert int(rank) == len(run[topic])
    return dict(run)


def dcg(grades: list[int]) -> float:
    total = 0.0
    for rank, grade in enumerate(grades[:10], 1):
        total += grade / math.log2(1 + rank)
    return total


def mean_ndcg(run: Run, qrels: Qrels) -> float:
    total = 0.0
    for topic, grades in qrels.items():
        found = [grades.get(doc, 0) for _, doc in sorted(run.get(topic, []), reverse=True)]
        total += dcg(found) / dcg(sorted(grades.values(), reverse=True))
    return total / len(qrels)


def read_long(path: Path, delimiter: str) -> dict[str, dict[str, float]]:
    shares: dict[str, dict[str, float]] = defaultdict(dict)
    with path.open(newline="") as lines:
        for row in csv.DictReader(lines, delimiter=delimiter):
            assert row["group"] not in shares[row["doc"]]
            shares[row["doc"]][row["group"]] = float(row.get("weight", 1))
    return shares


def task_of(folder: Path) -> dict[str, dict[str, dict[str, list[str]]]]:
    return tomllib.loads((folder / "qrels" / "task.toml").read_text())


def test_the_shipped_files_are_those_the_generator_writes(folder: Path) -> None:
    written = files_below(folder)
    shipped = files_below(TOP)
    assert {name for name in written if shipped.get(name) != written[name]} == set()


def test_the_archive_in_the_package_has_the_files_of_the_repository(tmp_path: Path) -> None:
    shipped = files_below(TOP)
    del shipped["runs/README.md"]
    extract_sample(tmp_path)
    assert files_below(tmp_path) == shipped
    archive = (TOP / ARCHIVE).read_bytes()
    assert len(archive) < 400_000
    assert archive == pack_sample(TOP) == pack_sample(tmp_path)  # deterministic; `make sample` writes it


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "runs/../../evil", "other/x", "runs/"])
def test_an_archive_with_other_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "data").mkdir()
    with zipfile.ZipFile(tmp_path / "data" / "sample.zip", "w") as archive:
        archive.writestr(name, "x")
    monkeypatch.setattr("fairevals.cli.demo.files", lambda _: tmp_path)
    with pytest.raises(ValueError, match="unexpected file"):
        extract_sample(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_only_the_named_files_are_left(folder: Path) -> None:
    assert set(files_below(folder)) == {
        *(f"runs/{tag}.run" for tag in BEST_FIRST),
        "qrels/sample.qrels",
        "qrels/sample.HINDEX.gmemb",
        "qrels/sample.REGION.csv",
        "qrels/sample.ORIGIN.tsv",
        "qrels/sample.letor",
        "qrels/sample.groups.csv",
        "qrels/topics.tsv",
        "qrels/runs.csv",
        "qrels/task.toml",
    }


def test_writing_again_over_the_files_changes_nothing(tmp_path: Path, folder: Path) -> None:
    for _ in range(2):
        paths = write_sample(tmp_path)
    assert files_below(tmp_path) == files_below(folder)
    assert all(path.is_file() for path in paths)


def test_another_seed_gives_other_files(folder: Path, other: Path) -> None:
    ours, theirs = files_below(folder), files_below(other)
    same = {name for name in ours if ours[name] == theirs[name]}
    assert same == {"qrels/runs.csv", "qrels/task.toml", "qrels/topics.tsv"}


def test_the_files_are_small_and_plain(folder: Path) -> None:
    files = files_below(folder)
    assert sum(map(len, files.values())) < 2_000_000
    for text in files.values():
        assert text.isascii()
        assert b"\r" not in text
        assert text.endswith(b"\n")


def test_topics_and_grades(folder: Path) -> None:
    qrels = read_qrels(folder)
    with (folder / "qrels" / "topics.tsv").open(newline="") as lines:
        topics = list(csv.DictReader(lines, delimiter="\t"))
    assert [row["topic"] for row in topics] == list(qrels)
    assert Counter(row["kind"] for row in topics) == {"researchers": 20, "films": 20}
    assert {grade for grades in qrels.values() for grade in grades.values()} == {0, 1, 2}
    assert all(55 <= len(grades) <= 65 for grades in qrels.values())
    relevant = [sum(grade > 0 for grade in grades.values()) for grades in qrels.values()]
    assert relevant.count(1) == 1
    assert min(relevant) == 1
    assert 3 <= sum(count < 10 for count in relevant) <= 6


def test_documents_recur_within_a_kind_only(folder: Path) -> None:
    kinds: dict[str, set[str]] = defaultdict(set)
    times: Counter[str] = Counter()
    for topic, grades in read_qrels(folder).items():
        times.update(grades.keys())
        for doc in grades:
            kinds[doc].add(topic[0])
    assert all(len(kind) == 1 for kind in kinds.values())
    assert sum(count > 1 for count in times.values()) > len(times) / 2


@pytest.mark.parametrize("tag", BEST_FIRST)
def test_a_run_is_well_formed(folder: Path, tag: str) -> None:
    run, qrels = read_run(folder, tag), read_qrels(folder)
    for topic, ranking in run.items():
        docs = [doc for _, doc in ranking]
        assert len(docs) == len(set(docs)) <= 100
        assert ranking == sorted(
            ranking, reverse=True
        )  # ranks agree with score, then document id, descending
        assert any(doc not in qrels[topic] for doc in docs)


def test_one_run_leaves_out_one_topic(folder: Path) -> None:
    topics = set(read_qrels(folder))
    left_out = {tag: topics - set(read_run(folder, tag)) for tag in BEST_FIRST}
    assert {tag: missing for tag, missing in left_out.items() if missing} == {"round-robin": {"M14"}}


def test_one_run_has_many_ties(folder: Path) -> None:
    ranking = read_run(folder, "popularity")["R01"]
    assert len({score for score, _ in ranking}) < 0.8 * len(ranking)


@pytest.mark.parametrize("seed_folder", ["folder", "other"])
def test_the_runs_are_clearly_apart_in_usefulness(seed_folder: str, request: pytest.FixtureRequest) -> None:
    place: Path = request.getfixturevalue(seed_folder)
    qrels = read_qrels(place)
    values = [mean_ndcg(read_run(place, tag), qrels) for tag in BEST_FIRST]
    assert 0.75 < values[0] < 0.9
    assert values[-1] < 0.2
    assert all(better > worse + 0.02 for better, worse in pairwise(values))


def test_popularity_is_the_least_fair_to_films(folder: Path) -> None:
    origin = read_long(folder / "qrels" / "sample.ORIGIN.tsv", "\t")
    american = {}
    for tag in BEST_FIRST:
        run = read_run(folder, tag)
        top = [doc for topic in run if topic[0] == "M" for _, doc in run[topic][:10]]
        american[tag] = sum("Americas" in origin[doc] for doc in top if doc in origin) / len(top)
    assert max(american, key=lambda tag: american[tag]) == "popularity"
    assert american["popularity"] > 0.75
    assert abs(american["round-robin"] - 0.25) < 0.06


def test_hindex_memberships(folder: Path) -> None:
    groups = task_of(folder)["attributes"]["HINDEX"]["groups"]
    qrels = read_qrels(folder)
    seen = set()
    fractional = 0
    for line in (folder / "qrels" / "sample.HINDEX.gmemb").read_text().splitlines():
        topic, doc, *texts = line.split()
        shares = [float(text) for text in texts]
        assert topic in qrels
        assert topic[0] == "R"
        assert len(shares) == len(groups)
        assert min(shares) >= 0
        assert sum(shares) == pytest.approx(1)
        assert (topic, doc) not in seen
        seen.add((topic, doc))
        fractional += max(shares) < 1
    judged = {(topic, doc) for topic in qrels if topic[0] == "R" for doc in qrels[topic]}
    assert fractional > 100
    assert 0 < len(judged - seen) < 0.15 * len(judged)


@pytest.mark.parametrize(("name", "delimiter", "kind"), [("REGION.csv", ",", "R"), ("ORIGIN.tsv", "\t", "M")])
def test_long_tables(folder: Path, name: str, delimiter: str, kind: str) -> None:
    groups = task_of(folder)["attributes"][name.split(".")[0]]["groups"]
    shares = read_long(folder / "qrels" / f"sample.{name}", delimiter)
    for weights in shares.values():
        assert set(weights) <= set(groups)
        assert min(weights.values()) > 0
        assert sum(weights.values()) == pytest.approx(1)
    assert {group for weights in shares.values() for group in weights} == set(groups)
    assert any(len(weights) > 1 for weights in shares.values()) == (kind == "R")
    judged = {doc for topic, grades in read_qrels(folder).items() if topic[0] == kind for doc in grades}
    assert 0 < len(judged - set(shares)) < 0.15 * len(judged)


def test_the_task_file(folder: Path) -> None:
    task = tomllib.loads((folder / "qrels" / "task.toml").read_text())
    assert task["max_grade"] == 2
    assert task["cutoff"] == 20
    assert task["policy"] == {"kind": "ranking"}
    assert list(task["attributes"]) == ["HINDEX", "REGION", "ORIGIN"]
    assert sum(task["attributes"]["ORIGIN"]["target"]) == pytest.approx(1)
    for name in (task["qrels"], *(table["memberships"] for table in task["attributes"].values())):
        assert (folder / "qrels" / name).is_file()


def test_learning_data(folder: Path) -> None:
    qrels = read_qrels(folder)
    seen: dict[str, list[str]] = defaultdict(list)
    for line in (folder / "qrels" / "sample.letor").read_text().splitlines():
        values, doc = line.split(" # ")
        grade, qid, *features = values.split()
        topic = qid.removeprefix("qid:")
        assert int(grade) == qrels[topic].get(doc, 0)
        assert [feature.split(":")[0] for feature in features] == ["1", "2", "3", "4"]
        seen[topic].append(doc)
    assert list(seen) == list(qrels)
    assert all(len(docs) == len(set(docs)) and set(qrels[topic]) <= set(docs) for topic, docs in seen.items())
    shares = read_long(folder / "qrels" / "sample.groups.csv", ",")
    assert set(shares) == {doc for docs in seen.values() for doc in docs}
    assert all(sum(weights.values()) == pytest.approx(1, abs=1e-3) for weights in shares.values())


@pytest.mark.parametrize("tag", TRAINED)
def test_a_trained_run_ranks_all_pages_of_all_topics(folder: Path, tag: str) -> None:
    run = read_run(TOP, tag)
    pages: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels" / "sample.letor").read_text().splitlines():
        values, doc = line.split(" # ")
        pages[values.split()[1].removeprefix("qid:")].add(doc)
    assert {topic: {doc for _, doc in ranking} for topic, ranking in run.items()} == pages
    for ranking in run.values():
        assert len({doc for _, doc in ranking}) == len(ranking)
        assert ranking == sorted(ranking, reverse=True)
    assert mean_ndcg(run, read_qrels(folder)) > 0.6


@pytest.mark.thorough
def test_the_trained_runs_are_what_their_commands_give(tmp_path: Path) -> None:
    """The comment in runs/README.md, run as it stands; another machine may differ in the last digits."""
    shutil.copytree(TOP / "qrels", tmp_path / "qrels")
    (tmp_path / "runs").mkdir()
    comment = (TOP / "runs" / "README.md").read_text(encoding="utf-8").split("-->")[0]
    commands = [line for line in comment.splitlines() if line.startswith("fairevals ")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", "\n".join(commands)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    for tag in TRAINED:
        now, then = read_run(tmp_path, tag), read_run(TOP, tag)
        for topic, ranking in then.items():
            scores = {doc: score for score, doc in ranking}
            assert {doc: score for score, doc in now[topic]} == pytest.approx(scores, abs=1e-3)


def test_the_fair_policy_is_fairer_than_the_useful_one() -> None:
    import fairevals

    measures = ["D_group(attr='HINDEX')", "D_group(attr='ORIGIN')", "D_ind", "nDCG@10"]
    files = [str(TOP / "runs" / f"{tag}.run") for tag in TRAINED]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # D_group is undefined on the topics of the other kind
        found = fairevals.evaluate(
            files, task=str(TOP / "qrels" / "task.toml"), measures=measures, policy="pl"
        ).frame()
    value = {(row.run, row.measure.split("@")[0]): row.value for row in found.itertuples()}
    for measure in measures[:3]:
        assert value["fair-pg-rank", measure] < value["pg-rank", measure]
    assert value["fair-pg-rank", "nDCG"] < value["pg-rank", "nDCG"]  # and that is its price


def test_draws_are_keyed_by_their_purpose() -> None:
    first = [Draws(3, "a").uniform() for _ in range(2)]
    assert first[0] == first[1]
    assert Draws(3, "a").uniform() != Draws(3, "b").uniform()
    assert Draws(3, "a").uniform() != Draws(4, "a").uniform()


def test_draws_follow_their_distributions() -> None:
    draws = Draws(5, "check")
    noise = [draws.noise() for _ in range(4000)]
    assert abs(sum(noise) / 4000) < 0.06
    assert abs(sum(x * x for x in noise) / 4000 - 1) < 0.1
    counts = Counter(draws.weighted((1.0, 0.0, 3.0)) for _ in range(4000))
    assert counts[1] == 0
    assert abs(counts[2] / 4000 - 0.75) < 0.04
    assert {draws.between(2, 4) for _ in range(100)} == {2, 3, 4}
