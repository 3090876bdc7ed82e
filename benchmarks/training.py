"""What the trainer reaches, beside what it should: simulated data, German Credit, web search data, speed.

python benchmarks/training.py simulated
python benchmarks/training.py german german.data
python benchmarks/training.py letor train.letor.gz test.letor.gz
python benchmarks/training.py speed
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # the matrices of one query are too small to be worth sharing

import numpy as np

from experiments.examples import simulated
from fairevals.measures.ndcg import discounted_cumulative_gain
from fairevals.training import (
    Dataset,
    Settings,
    evaluate_policy,
    load_dataset,
    sweep,
    train_policy,
)
from fairevals.training.evaluation import NDCG, greedy_rankings
from fairevals.training.policies import TrainedPolicy
from fairevals.typing import Floats

LAMBDAS = (0.0, 1.0, 5.0, 10.0, 25.0)


def verdict(right: bool) -> str:
    return "reached" if right else "NOT reached"


def measured(policy: TrainedPolicy, data: Dataset) -> dict[str, float]:
    return {m.measure: m.value for m in evaluate_policy(policy, data, samples=2)}


def simulated_set() -> None:
    from experiments.reproduce.simulated import WHOLE

    print("Simulated set, full-batch exact: theta2/theta1, nDCG, D_group for lambda = 0, 1, 5, 10, 25")
    for draw in (1, 0, 2):
        data = simulated(seed=draw)
        rows = []
        for policy in sweep("fair-pg-rank", data, lambdas=LAMBDAS, **WHOLE.training):
            theta, found = policy.model.parameters["theta"], measured(policy, data)
            rows.append((theta[1] / theta[0], found[NDCG], found["D_group"]))
            print(
                f"  draw {draw} lambda {policy.settings.lam:4g}: {rows[-1][0]:6.3f} {rows[-1][1]:.4f} {rows[-1][2]:.4f}"
            )
        ratio, ndcg, disparity = np.array(rows).T
        fine = bool(np.all(np.diff(disparity) < 0)) and disparity[0] > 0.015 and disparity[-1] < 0.003
        fine = fine and ratio[0] > 0.6 and ratio[-1] < 0.1 and ndcg[0] >= 0.95
        print(
            f"  draw {draw}: D_group falling from > .015 to < .003, ratio from > .6 to < .1, nDCG >= .95: "
            f"{verdict(fine)}"
        )


def german(path: str) -> None:
    from experiments.reproduce import Budget, reproduce

    print("German Credit, 500/100 queries of 10, seeds 0-4; test set, mean (sd)")
    found = reproduce("fair-pg-rank-german", [path], Budget(jobs=os.cpu_count() or 1))
    for row in found.numbers["means.csv"].rows:
        name, ties, lam, ndcg, ndcg_sd, above, package, package_sd, published, published_sd = row
        print(
            f"  {name:15} ties={ties:5} lambda {lam:>5}: nDCG {ndcg:.4f} ({ndcg_sd:.4f}), above random {above:.4f}, "
            f"D_group {package:.5f} ({package_sd:.5f}), as published {published:.5f} ({published_sd:.5f})"
        )
    for claim in found.claims:
        for finding in claim.findings:
            print(f"  {claim.text} {finding.where}: {finding.measured}: {verdict(finding.holds)}")


GAINS: dict[str, Callable[[Floats], Floats]] = {"2^g-1": lambda g: np.exp2(g) - 1.0, "g": lambda g: g}
"""The comparison is by the first, the trainer's own; the second is what trec_eval and scikit-learn use."""


def ndcg_at_10(scores: Floats, data: Dataset, gain: Callable[[Floats], Floats]) -> float:
    """Mean over the topics with a relevant document, of the rankings by descending score."""
    found = []
    for t, ranking in enumerate(greedy_rankings(scores, data)):
        gains = gain(data.grades[data.starts[t] : data.starts[t + 1]])
        best = discounted_cumulative_gain(np.sort(gains)[::-1][:10])
        if best > 0:
            found.append(discounted_cumulative_gain(gains[ranking][:10]) / best)
    return float(np.mean(found))


def row(name: str, seeds: int, scores_of: Callable[[int], Floats], test: Dataset) -> float:
    """Train with each seed, print means and deviations of nDCG@10 by both gains; the mean by the first."""
    begin = time.perf_counter()
    scores = [scores_of(seed) for seed in range(seeds)]
    seconds = (time.perf_counter() - begin) / seeds
    means, cells = [], []
    for gain in GAINS.values():
        values = [ndcg_at_10(one, test, gain) for one in scores]
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
    print(f"  {'':48} {'  '.join(f'gain {gain:10}' for gain in GAINS)}")

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
        print("  lightgbm is not installed: no lambdarank beside them")


EXAMPLE = {
    "min_data_in_leaf": 50,
    "min_sum_hessian_in_leaf": 5.0,
    "bagging_fraction": 0.9,
    "bagging_freq": 1,
}
"""What the lambdarank example of LightGBM's own repository sets besides the defaults."""


def lightgbm_rows(data: Dataset, train: Dataset, valid: Dataset, test: Dataset) -> None:
    """LightGBM's lambdarank: its defaults, its example, and trees chosen on the same validation topics as the rest."""
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
        # Stopping after a hundred trees without gain, of a hundred, is never: it only notes the best number of trees.
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
    print("  LightGBM's own ndcg@10 is by the gain 2^g-1, and 1 on a topic without a relevant document")


def speed() -> None:
    queries, documents, features = 20_000, 24, 700
    print(
        f"One epoch over {queries} queries x {documents} documents x {features} features, linear, a query a step"
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
    sections = {"simulated": simulated_set, "german": german, "letor": letor, "speed": speed}
    if len(sys.argv) < 2 or sys.argv[1] not in sections:
        sys.exit(__doc__)
    begin = time.perf_counter()
    sections[sys.argv[1]](*sys.argv[2:])
    print(
        f"  {time.perf_counter() - begin:.0f} s in all, {os.cpu_count()} processors, numpy {np.__version__}"
    )
