"""The example in the form of TREC's Fair Ranking track: the command's values are those of the track's formulas.

The formulas are computed here by loops over the files of `examples/trec-fair`, without any code of the package.
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest

from fairevals.cli.main import main

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "trec-fair"
UNKNOWN = "@UNKNOWN"
GEO, GENDER = [UNKNOWN, "Africa", "Asia", "Europe"], [UNKNOWN, "female", "male", "NB"]
BACKGROUNDS = [{"Africa": 0.2, "Asia": 0.6, "Europe": 0.2}, {"female": 0.495, "male": 0.495, "NB": 0.01}]


def command(capsys, task, *runs):
    """The values that `score` prints, by run, topic and measure."""
    files = [str(EXAMPLE / run) for run in runs]
    assert main(["score", "--task", str(EXAMPLE / task), *files, "-q", "--format", "csv"]) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    return {(row["run"], row["topic"], row["measure"]): float(row["value"] or "nan") for row in rows}


def relevant():
    lines = map(json.loads, (EXAMPLE / "topics.jsonl").read_text().splitlines())
    return {str(line["id"]): list(map(str, line["rel_docs"])) for line in lines}


def alignment(name):
    with (EXAMPLE / name).open() as lines:
        rows = {row.pop("page_id"): row for row in csv.DictReader(lines)}
    return {doc: {group: float(share) for group, share in row.items()} for doc, row in rows.items()}


def rankings(name):
    """The rankings of each topic; one of them in files with two columns."""
    found = defaultdict(lambda: defaultdict(list))
    for line in (EXAMPLE / name).read_text().splitlines():
        topic, *sample, doc = line.split("\t")
        if topic != "id":
            found[topic][tuple(sample)].append(doc)
    return {topic: list(samples.values()) for topic, samples in found.items()}


def weight(rank):
    return 1 / math.log2(max(rank, 2))


def share(table, doc, group):
    return table[doc][group] if doc in table else float(group == UNKNOWN)


def cells(doc):
    geo, gender = alignment("geo.csv"), alignment("gender.csv")
    return {(a, b): share(geo, doc, a) * share(gender, doc, b) for a, b in product(GEO, GENDER)}


def mean_of(docs):
    mean = dict.fromkeys(product(GEO, GENDER), 0.0)
    for doc in docs:
        for cell, part in cells(doc).items():
            mean[cell] += part / len(docs)
    return mean


def target_of(docs):
    """Half of the mass of all cells with the same known attributes is spread as the world is."""
    mean, target = mean_of(docs), {}
    for cell in mean:
        alike = [other for other in mean if [g == UNKNOWN for g in other] == [g == UNKNOWN for g in cell]]
        mass = sum(mean[other] for other in alike)
        world = 1.0
        for group, background in zip(cell, BACKGROUNDS, strict=True):
            world *= 1.0 if group == UNKNOWN else background[group]
        target[cell] = mean[cell] if cell == (UNKNOWN, UNKNOWN) else mean[cell] / 2 + mass * world / 2
    assert math.isclose(sum(target.values()), 1)
    return target


def geo_target_of(docs):
    table = alignment("geo.csv")
    mean = {group: sum(share(table, doc, group) for doc in docs) / len(docs) for group in GEO}
    known = 1 - mean[UNKNOWN]
    return {g: mean[g] if g == UNKNOWN else mean[g] / 2 + known * BACKGROUNDS[0][g] / 2 for g in GEO}


def awrf(ranking, target, memberships):
    sums = dict.fromkeys(target, 0.0)
    for rank, doc in enumerate(ranking, 1):
        for group, part in memberships(doc).items():
            sums[group] += weight(rank) * part
    total, divergence = sum(sums.values()), 0.0
    for group, wanted in target.items():
        given = sums[group] / total
        middle = (given + wanted) / 2
        divergence += sum(p / 2 * math.log(p / middle) for p in (given, wanted) if p > 0)
    return 1 - divergence


@pytest.mark.parametrize("run", ["useful1.tsv", "balanced1.tsv"])
def test_task_1(capsys, run):
    values = command(capsys, "task1.toml", run)
    sums = defaultdict(float)
    geo = alignment("geo.csv")
    for topic, docs in relevant().items():
        (ranking,) = rankings(run)[topic]
        gain = sum(weight(rank) for rank, doc in enumerate(ranking, 1) if doc in docs)
        ndcg = gain / sum(weight(rank) for rank in range(1, len(docs) + 1))
        fair = awrf(ranking, target_of(docs), cells)
        places = awrf(
            ranking, geo_target_of(docs), lambda doc: {group: share(geo, doc, group) for group in GEO}
        )
        wanted = {
            "nDCG(attention='trecfair')@1000": ndcg,
            "AWRF(attr='BOTH',base='e',attention='trecfair')@1000": fair,
            "M1(attr='BOTH',base='e',attention='trecfair')@1000": ndcg * fair,
            "AWRF(attr='GEO',base='e',attention='trecfair')@1000": places,
        }
        for measure, value in wanted.items():
            assert values[run, topic, measure] == pytest.approx(value, abs=1e-12), (topic, measure)
            sums[measure] += value
    assert len(sums) * (len(relevant()) + 1) == len(values)
    for measure, total in sums.items():
        assert values[run, "all", measure] == pytest.approx(total / len(relevant()), abs=1e-12)


@pytest.mark.parametrize("run", ["useful2.tsv", "balanced2.tsv"])
def test_task_2(capsys, run):
    values = command(capsys, "task2.toml", run)
    depth = 5
    options = "attr='BOTH',target='task',relevant_only=True,attention='trecfair'"
    for topic, docs in relevant().items():
        samples = rankings(run)[topic]
        exposure = defaultdict(float)
        for ranking in samples:
            for rank, doc in enumerate(ranking[:depth], 1):
                exposure[doc] += weight(rank) / len(samples)
        attention = sum(weight(rank) for rank in range(1, depth + 1))
        wanted = {cell: attention * part for cell, part in target_of(docs).items()}
        given = dict.fromkeys(wanted, 0.0)
        for doc in docs:
            for cell, part in cells(doc).items():
                given[cell] += exposure[doc] * part
        # All relevant pages have one target: the mean attention of the ranks that they would share.
        ideal = sum(weight(rank) for rank in range(1, min(len(docs), depth) + 1)) / len(docs)
        under = dict.fromkeys(wanted, 0.0)
        for doc in docs:
            lacks = max(0.0, ideal / (ideal * len(docs)) - exposure[doc] / sum(exposure.values()))
            for cell, part in cells(doc).items():
                under[cell] += lacks * part
        expected = {
            f"EE_L({options})@5": sum((given[cell] - wanted[cell]) ** 2 for cell in wanted),
            f"EE_D({options})@5": sum(part**2 for part in given.values()),
            f"EE_R({options})@5": sum(given[cell] * wanted[cell] for cell in wanted),
            "UEXP(attr='BOTH',attention='trecfair')@5": sum(part**2 for part in under.values()),
            "UEXP(attr='BOTH',total=True,attention='trecfair')@5": sum(under.values()),
        }
        for measure, value in expected.items():
            assert values[run, topic, measure] == pytest.approx(value, abs=1e-12), (topic, measure)


def test_sequences_of_2019(capsys):
    values = command(capsys, "task2019.toml", "authors.jsonl")
    groups = defaultdict(set)
    with (EXAMPLE / "countries.csv").open() as lines:
        for row in csv.DictReader(lines):
            groups[row["doc"]].add(row["group"])
    exposure, relevance = defaultdict(float), defaultdict(float)
    for line in (EXAMPLE / "authors.jsonl").read_text().splitlines():
        query = json.loads(line)
        docs, browsing = relevant()[str(query["qid"])], 1.0
        for doc in map(str, query["ranking"]):
            for group in groups[doc]:
                exposure[group] += browsing / len(groups[doc])
            browsing *= 0.5 * (1 - 0.7 * (doc in docs))
        for doc in docs:
            for group in groups[doc]:
                relevance[group] += 1 / len(groups[doc])
    distance = 0.0
    for group in exposure | relevance:
        e, r = exposure[group] / sum(exposure.values()), relevance[group] / sum(relevance.values())
        distance += (e - r) ** 2
    assert values == {
        ("authors.jsonl", "all", "L2(attr='GEO',attention='cascade(0.5,0.7)')"): pytest.approx(
            math.sqrt(distance), abs=1e-12
        )
    }
