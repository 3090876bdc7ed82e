"""Scoring a partitioned run: pieces, bytes moved, topics per second, and an estimate for 10 million topics.

    python benchmarks/distributed.py [--topics 20000] [--documents 100] [--files 20] [--jobs 2] [--dask ADDRESS]

It writes a run as parquet files to a temporary folder, with judgements and an attribute of two groups; scores it
on one core, with a process pool and, if given, on a Dask cluster; and checks that all tables are the same to the
last bit. The estimate is the measured rate of one core (by CPU time) times the number of cores, because pieces
share nothing; it is never less than the time of the one process that distributes them.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fairevals.evaluation import Collection, Plan, Scores, load_collection, score, score_piece
from fairevals.io import dataset
from fairevals.io.dataset import open_dataset, parts, with_topics

# This file has the same name as Dask's package; remove its folder from the path so that Dask's is imported.
sys.path[:] = [path for path in sys.path if Path(path).resolve() != Path(__file__).resolve().parent]

JUDGED = 10
"""Documents judged for each topic."""
DOCUMENTS = 100_000
"""Number of documents, and of memberships."""
GOAL = 10_000_000
MEASURES = ["nDCG@10", "ERR@20", "GF(attr='GROUP')@20", "AWRF(attr='GROUP')@20", "D_group(attr='GROUP')@20"]


def write_run(
    folder: Path, topics: int, documents: int, files: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Write the run to files, each with its own topics; returns the judgements."""
    names = np.array([f"doc-{i:08}" for i in range(DOCUMENTS)], dtype=object)
    judged = []
    for number, part in enumerate(np.array_split(np.arange(topics), files)):
        topic = np.array([f"topic-{i:08}" for i in part], dtype=object)
        docs = (rng.integers(DOCUMENTS, size=(part.size, 1)) + 7 * np.arange(documents)) % DOCUMENTS
        frame = pd.DataFrame(
            {"topic": np.repeat(topic, documents), "doc": names[docs.ravel()], "score": rng.random(docs.size)}
        )
        frame.to_parquet(folder / f"part-{number:05}.parquet")
        pick = docs[:, : 2 * JUDGED : 2]
        grades = rng.integers(0, 3, size=pick.size)
        judged.append(
            pd.DataFrame({"topic": np.repeat(topic, JUDGED), "doc": names[pick.ravel()], "grade": grades})
        )
    return pd.concat(judged, ignore_index=True)


def measured(label: str, topics: int, *args: object, **options: object) -> tuple[Scores, float]:
    """The scores, and topics per second of this process's CPU time."""
    start, cpu = time.perf_counter(), time.process_time()
    scores = score(*args, **options)  # type: ignore[arg-type]
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    print(f"{label:<24} {seconds:8.2f} s  {topics / seconds:10,.0f} topics/s   ({cpu:.2f} s of CPU here)")
    return scores, topics / cpu


def moved(folder: Path, collection: Collection, plan: Plan) -> tuple[int, float, float, int]:
    """Pieces, bytes per topic to and from workers, and bytes that every worker gets once."""
    shared = (collection.shareable(slices_only=True), plan)
    whole = open_dataset(folder)
    cut = parts(whole, [with_topics(fragment) for fragment in whole.files])
    there, back, topics = 0, 0, 0
    for part in cut:
        numbers = collection.qrels.numbers(part.topics or ())
        call = (part, numbers, collection.slice_of(numbers))
        there += len(pickle.dumps(call))
        back += len(pickle.dumps(score_piece(shared, *call)))
        topics += numbers.size
    return len(cut), there / topics, back / topics, len(pickle.dumps(shared))


def duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 600 else f"{seconds:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--topics", type=int, default=20_000)
    parser.add_argument("--documents", type=int, default=100, help="documents per topic")
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--dask", metavar="ADDRESS")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        folder.mkdir()
        qrels = write_run(folder, args.topics, args.documents, args.files, rng)
        groups = {f"doc-{i:08}": "a" if i % 3 else "b" for i in range(DOCUMENTS)}
        collection = load_collection(None, qrels, {"GROUP": groups})
        plan = Plan.of(collection, MEASURES)
        collection = collection.with_attributes(
            plan.requirements.attributes
        )  # read once, however many topics there are
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(
            f"{args.topics:,} topics × {args.documents} documents in {args.files} parquet files, "
            f"{size / 1e6:.0f} MB; {len(plan.measures)} measures; parts of about {dataset.PART_ROWS:,} rows"
        )
        pieces, there, back, shared = moved(folder, collection, plan)
        print(f"pieces                   {pieces}")
        print(f"to a worker              {there:8.0f} bytes per topic ({JUDGED} judgements each)")
        print(f"back from it             {back:8.0f} bytes per topic")
        print(f"to every worker, once    {shared / 1e6:8.1f} MB (memberships of {DOCUMENTS:,} documents)")
        one, rate = measured("one core", args.topics, [folder], collection, plan)
        scores, hands = measured(
            f"--jobs {args.jobs}", args.topics, [folder], collection, plan, jobs=args.jobs
        )
        tables = [scores]
        if args.dask:
            from fairevals.ecosystem.cluster import connected

            with connected(args.dask) as executor:
                scores, _ = measured("--dask", args.topics, [folder], collection, plan, executor=executor)
                tables.append(scores)
        for table in tables:
            np.testing.assert_array_equal(table.values, one.values)
        print("all tables are the same, bit for bit")
        print(f"\n{GOAL:,} topics × {args.documents} documents at these rates:")
        print(
            f"  {GOAL * args.documents // dataset.PART_ROWS + 1:,} pieces, "
            f"read from files of {GOAL * size / args.topics / 1e9:.0f} GB"
        )
        print(
            f"  {GOAL * there / 1e9:.1f} GB to the workers and {GOAL * back / 1e9:.1f} GB back, through one process"
        )
        print(
            f"  which needs {duration(GOAL / hands)} to distribute and collect, besides reading the judgements"
        )
        for cores in (1, 16, 128):
            print(f"  {cores:>4} cores: {duration(max(GOAL / rate / cores, GOAL / hands))}")


if __name__ == "__main__":
    main()
