"""What trained policies reach on web search data, beside baselines, and how fast training is.

    python benchmarks/training.py letor train.letor.gz test.letor.gz
    python benchmarks/training.py speed

The papers' own experiments are in experiments/ (`make experiment-simulated`, `make experiment-german`).
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # one query's matrices are too small to share among threads

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.measuring import measure_rankings
from fairevals.training import Dataset, Settings, load_dataset, train_policy
from fairevals.typing import Floats

MEASURES = {"2^g-1": "nDCG(dcg='exp-log2')@10", "g": "nDCG@10"}
"""nDCG by its gain. Methods are trained for and compared by the first; trec_eval and scikit-learn use the second."""


def verdict(right: bool) -> str:
    return "reached" if right else "NOT reached"


def row(name: str, seeds: int, scores_of: Callable[[int], Floats], test: Dataset) -> float:
    """Train with each seed and print means and deviations of nDCG@10; returns the mean with the first gain."""
    begin = time.perf_counter()
    scores = [scores_of(seed) for seed in range(seeds)]
    seconds = (time.perf_counter() - begin) / seeds
    means, cells = [], []
    for measure in MEASURES.values():
        values = [float(np.nanmean(measure_rankings(one, test, [measure])[measure])) for one in scores]
        means.append(float(np.mean(values)))
        cells.append(f"{means[-1]:.4f} {f'({np.std(values, ddof=1):.4f})' if seeds > 1 else '':8}")
    print(f"  {name:48} {'  '.join(cells)}  {seconds:.1f} s each", flush=True)
    return means[0]


def letor(train_path: str, test_path: str) -> None:
    data, test = load_dataset(train_path), load_dataset(test_path)
    test = test.with_features(data.features.shape[1])
    order = np.random.default_rng(0).permutation(len(data))
    held = len(data) // 5
    train, valid = data.split(np.sort(order[held:])), data.split(np.sort(order[:held]))
    barren = np.count_nonzero(np.maximum.reduceat(test.grades, test.starts[:-1]) == 0)
    print(
        f"Web search data, {len(train)} training and {len(valid)} validation topics; nDCG@10 of greedy rankings on "
        f"{len(test)} test topics, {barren} of them without a relevant document; mean (sd) over seeds 0-2"
    )
    print(f"  {'':48} {'  '.join(f'gain {gain:10}' for gain in MEASURES)}")

    def scores_of(method: str, **options: str) -> Callable[[int], Floats]:
        return lambda seed: train_policy(
            Settings.for_method(method, seed=seed, **options), train, valid
        ).predict(test)

    ridge = row("ridge", 1, scores_of("ridge"), test)
    listnet = row("listnet", 3, scores_of("listnet"), test)
    pg_rank = row("pg-rank", 3, scores_of("pg-rank"), test)
    row("pg-rank (reinforce)", 3, scores_of("pg-rank", estimator="reinforce"), test)
    bandit_rank = row("bandit-rank", 3, scores_of("bandit-rank"), test)
    print(f"  pg-rank at least as good as ridge: {verdict(pg_rank >= ridge)}")
    best = max(listnet, ridge)
    print(
        f"  bandit-rank within .02 of the best of listnet and ridge: {verdict(bandit_rank >= best - 0.02)}",
        flush=True,
    )
    try:
        lightgbm_rows(data, train, valid, test)
    except ImportError:
        print("  lightgbm is not installed, so lambdarank is left out")


EXAMPLE = {
    "min_data_in_leaf": 50,
    "min_sum_hessian_in_leaf": 5.0,
    "bagging_fraction": 0.9,
    "bagging_freq": 1,
}
"""What the lambdarank example in LightGBM's repository sets beside the defaults."""


def lightgbm_rows(data: Dataset, train: Dataset, valid: Dataset, test: Dataset) -> None:
    """LightGBM's lambdarank: its defaults, its example, and trees chosen on the validation topics."""
    import lightgbm

    def fitted(given: Dataset, seed: int, **options: float) -> lightgbm.Booster:
        fixed = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "verbose": -1,
            "num_threads": 2,
        }
        known, held = (
            lightgbm.Dataset(d.features, d.grades.astype(int), group=d.lengths) for d in (given, valid)
        )
        # With 100 of 100 trees this never stops early; it only records the best number of trees.
        stop = lightgbm.early_stopping(100, verbose=False) if given is train else None
        return lightgbm.train(
            {**fixed, "seed": seed, **options},
            known,
            num_boost_round=100,
            valid_sets=[held] if stop else None,
            callbacks=[stop] if stop else None,
        )

    def chosen(seed: int) -> Floats:
        boosters = [fitted(train, seed, num_leaves=leaves) for leaves in (7, 15, 31)]
        best = max(boosters, key=lambda booster: booster.best_score["valid_0"]["ndcg@10"])
        return np.asarray(best.predict(test.features, num_iteration=best.best_iteration))

    everything = f"100 trees, all {len(data)} topics"
    row(f"lightgbm, defaults, {everything}", 1, lambda seed: fitted(data, seed).predict(test.features), test)
    row(
        f"lightgbm, its example, {everything}",
        3,
        lambda seed: fitted(data, seed, **EXAMPLE).predict(test.features),
        test,
    )
    row("lightgbm, leaves and trees by validation", 1, chosen, test)
    print("  LightGBM's own ndcg@10 uses the gain 2^g-1, and is 1 on a topic without a relevant document")


def speed() -> None:
    queries, documents, features = 20_000, 24, 700
    print(
        f"One epoch over {queries} queries x {documents} documents x {features} features, linear, one query per step"
    )
    rng = np.random.default_rng(0)
    values = rng.random((queries * documents, features), dtype=np.float32)
    grades = rng.integers(0, 5, queries * documents).astype(np.float64)
    starts = np.arange(queries + 1) * documents
    names = [str(t) for t in range(queries)]
    data = Dataset(names, [""] * len(grades), starts, values, grades)
    for estimator, limit in (("reinforce", 60), ("pl-rank", 60), ("exact", 180)):
        begin, processor = time.perf_counter(), time.process_time()
        settings = Settings.for_method("pg-rank", estimator=estimator, samples=10, epochs=1, standardise=True)
        train_policy(settings, data)
        seconds, processor = time.perf_counter() - begin, time.process_time() - processor
        print(
            f"  {estimator:9} S=10: {seconds:.1f} s ({processor:.1f} s of processor), at most {limit}: "
            f"{verdict(seconds <= limit)}",
            flush=True,
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / values.nbytes
    print(f"  peak memory {peak:.2f} times the data (below 3): {verdict(peak < 3)}")


if __name__ == "__main__":
    sections = {"letor": letor, "speed": speed}
    if len(sys.argv) < 2 or sys.argv[1] not in sections:
        sys.exit(__doc__)
    begin = time.perf_counter()
    sections[sys.argv[1]](*sys.argv[2:])
    print(
        f"  {time.perf_counter() - begin:.0f} s in all, {os.cpu_count()} processors, numpy {np.__version__}"
    )
