"""Tukey HSD, randomised or by bootstrap: all runs of a family against each other, and letters for a leaderboard."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from string import ascii_letters

import numpy as np

from fairevals.errors import abridged, escape, pluralize
from fairevals.evaluation.scores import Scores
from fairevals.statistics.across import centred, resampled, studentized, topics_across
from fairevals.statistics.pairing import (
    DEFAULT_RESAMPLES,
    batches,
    common_topics,
    costs_of,
    subtract,
)
from fairevals.typing import Bools, Floats

LISTED_RUNS = 20
"""How many runs of a family a note names."""
PERMUTED_VALUES = 8_000_000
"""About as many values are permuted for a measure, in 1,000 to 10,000 permutations."""


@dataclass(frozen=True)
class Family:
    """The runs that one Tukey test compares, and the runs that stay outside it."""

    places: tuple[int, ...]
    """The positions of its runs in the scores, in the order of the names."""
    runs: tuple[str, ...]
    outside: tuple[tuple[str, str], ...]
    """(run, reason): `baseline`, `reference`, `incomplete` or `no value`."""

    def __str__(self) -> str:
        """Such as "Tukey HSD over 2 runs: dense, hybrid; outside: bm25 (baseline), random (reference)"."""
        names = abridged([escape(run) for run in self.runs], LISTED_RUNS)
        text = f"Tukey HSD over {pluralize(len(self.runs), 'run')}" + (f": {names}" if names else "")
        outside = abridged([f"{escape(run)} ({reason})" for run, reason in self.outside], LISTED_RUNS)
        return text + (f"; outside: {outside}" if outside else "")


def tukey_family(
    scores: Scores,
    measure: int,
    *,
    baseline: int | None = None,
    references: Collection[int] = (),
    include: int | None = None,
) -> Family:
    """The family of runs for a Tukey test on a measure.

    Runs with the status baseline or reference stay outside, as do those named as `baseline` and `references`. The test
    permutes the values of all runs of the family, so a run far below the others (a random order, say) widens the
    differences that chance explains, and hides differences among the others. Incomplete runs stay outside too, because
    the test uses common topics only. `include` names the baseline of a comparison, which is in the family in any case;
    it is compared with incomplete runs if there are no others.
    """
    runs = range(len(scores.runs))
    statuses = {r: scores.status(r) for r in runs} | dict.fromkeys(references, "reference")
    if baseline is not None:
        statuses[baseline] = "baseline"
    reasons = {r: "no value" for r in runs if not _common(scores, measure, [r]).any()}
    reasons |= {r: s for r, s in statuses.items() if s in ("baseline", "reference") and r != include}
    incomplete = np.flatnonzero(scores.incomplete[:, measure]).tolist()
    lacking = [r for r in incomplete if r not in reasons and r != include]
    if include is None or len(runs) - len(reasons) - len(lacking) >= 2:
        reasons |= dict.fromkeys(lacking, "incomplete")
    by_name = sorted(runs, key=lambda r: scores.runs[r])
    places = tuple(r for r in by_name if r not in reasons)
    outside = tuple((scores.runs[r], reasons[r]) for r in by_name if r in reasons)
    return Family(places, tuple(scores.runs[r] for r in places), outside)


def _common(scores: Scores, measure: int, runs: Sequence[int]) -> Bools:
    across = scores.measures[measure].across_topics
    return (topics_across if across else common_topics)(scores, measure, runs)


@dataclass(frozen=True)
class TukeyHSD:
    """Every pair of runs: `[i, j]` is for run i minus run j."""

    differences: Floats
    p: Floats
    """Corrected for all pairs by construction; 1 on the diagonal."""
    effects: Floats
    """Difference over the square root of the residual variance; NaN if that is 0 and the difference is not, and for
    a measure across topics."""
    critical: float
    """A difference is significant at 1 − level if it is larger: difference ± critical are simultaneous intervals."""
    resamples: int = 0
    """The number of permutations or resamples of the topics."""


def tukey_hsd(
    values: Floats, *, level: float = 0.95, resamples: int | None = None, seed: int = 0
) -> TukeyHSD:
    """Randomised Tukey HSD over complete values, (topics, runs).

    Values are permuted within every topic. p of a pair is (1 + #) / (1 + resamples), where # counts the permutations in
    which some two means differ by as much as the pair's. So it bounds the chance of any false discovery if all runs
    are alike, and is conservative otherwise. With two runs it is the paired randomisation test. All numbers are NaN
    with fewer than two topics or two runs. The effect size is (mean_i − mean_j)/√V_E with the residual variance of the
    two-way analysis of variance without replication, V_E = Σ(x_tr − x̄_t − x̄_r + x̄)² / ((n − 1)(m − 1)).

    By default there are 1,000 to 10,000 permutations, by the number of values and nothing else: every table of the
    same runs has the same letters.

    Carterette, "Multiple testing in statistical analysis of systems-based information retrieval experiments", TOIS 30,
    2012; Sakai, "Laboratory Experiments in Information Retrieval", Springer 2018.

    >>> result = tukey_hsd(np.array([[0.9, 0.1, 0.2], [0.8, 0.1, 0.0], [0.9, 0.2, 0.1], [0.7, 0.0, 0.1]]))
    >>> result.p.round(2).tolist()
    [[1.0, 0.03, 0.03], [0.03, 1.0, 1.0], [0.03, 1.0, 1.0]]
    """
    n, m = values.shape
    if n < 2 or m < 2:
        return _untested(m)
    means = values.mean(axis=0)
    scale = float(np.abs(values).max())
    rng = np.random.default_rng(seed)
    if resamples is None:
        resamples = max(1_000, min(DEFAULT_RESAMPLES, PERMUTED_VALUES // values.size))
    drawn = []
    for count in batches(resamples, values.size):
        permuted = rng.permuted(np.broadcast_to(values, (count, *values.shape)), axis=2)
        drawn.append(np.ptp(permuted.mean(axis=1), axis=1))
    residual = values - means - values.mean(axis=1, keepdims=True) + means.mean()
    deviation = math.sqrt(float((residual**2).sum()) / ((n - 1) * (m - 1)))
    tested = _by_ranges(means, np.concatenate(drawn), scale, level)
    none = np.where(tested.differences == 0, 0.0, np.nan)
    effects = tested.differences / deviation if deviation > 1e-10 * scale else none
    return replace(tested, effects=effects)


def bootstrap_hsd(values: Floats, drawn: Floats, topics: int, *, level: float = 0.95) -> TukeyHSD:
    """The same for a measure across topics, by bootstrap: `values` (runs,), `drawn` (runs, resamples of the topics).

    Permuting runs within a topic needs values by topic. Here p of a pair is the share of resamples of the topics in
    which the studentized deviations of some two runs from their means differ by as much as the pair's values. With
    two runs it is the paired bootstrap (see `fairevals.statistics.across`). All numbers are NaN with fewer than two
    runs, and for different runs whose differences are the same in all resamples.

    >>> drawn = np.random.default_rng(0).normal([[0.1], [0.2], [0.9]], 0.1, (3, 999))
    >>> bootstrap_hsd(np.array([0.1, 0.2, 0.9]), drawn, topics=50).p.round(1).tolist()
    [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    drawn = drawn[:, ~np.isnan(drawn).any(axis=0)]
    if drawn.shape[0] < 2 or drawn.shape[1] < 2:
        return _untested(values.size)
    scale = float(np.abs(drawn).max())
    deviations = centred(drawn, topics)
    tested = _by_ranges(values, np.ptp(studentized(deviations, topics), axis=0), scale, level)
    if np.ptp(deviations, axis=0).max() <= 1e-10 * scale:
        tested = replace(tested, p=np.where(tested.differences == 0, 1.0, np.nan), critical=math.nan)
    return tested


def _untested(runs: int) -> TukeyHSD:
    undefined = np.full((runs, runs), np.nan)
    return TukeyHSD(undefined, undefined, undefined, math.nan)


def _by_ranges(values: Floats, ranges: Floats, scale: float, level: float) -> TukeyHSD:
    """Differences of runs (runs,) against the ranges (resamples,) of the runs' values by chance; no effect sizes."""
    differences = subtract(values[:, None], values[None, :], scale)
    ranges, resamples = np.sort(ranges), ranges.size
    # A permutation that only renames runs must count, whatever the rounding of its sums.
    least = np.abs(differences) - 1e-12 * scale
    p = (1 + resamples - np.searchsorted(ranges, least, side="left")) / (1 + resamples)
    # The largest difference with p ≥ 1 − level; `allowed` is how many ranges may be as large for p < 1 − level. There
    # is none with too few resamples for any such p.
    allowed = math.ceil((1 - level) * (1 + resamples) - 1e-9) - 2
    critical = float(ranges[resamples - 1 - allowed]) if 0 <= allowed < resamples else math.nan
    return TukeyHSD(differences, p, np.full(p.shape, np.nan), critical, resamples)


def compact_letters(different: Bools, order: Sequence[int]) -> tuple[str, ...]:
    """The letters of every run, `a` for the best; no letter for a run that is not in `order`.

    Two runs share a letter if and only if they do not differ. `different` is symmetric; `order` has the runs concerned,
    best first. The runs of a letter are a maximal clique of the graph of pairs that do not differ, grown best first
    from a pair that shares no letter yet. If runs differ from a certain difference of means on, as with Tukey's test,
    these are the fewest letters possible. (Piepho's insert-and-absorb, JCGS 13, 2004, gives all maximal cliques, of
    which there may be very many.) After a … z and A … Z come numbers in brackets.

    >>> compact_letters(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool), [0, 1, 2])
    ('a', 'ab', 'b')
    """
    groups: list[set[int]] = []
    for place, i in enumerate(order):
        for j in (*order[place + 1 :], i):  # i itself last, for a run that differs from all others
            if different[i, j] or any({i, j} <= group for group in groups):
                continue
            group = {i, j}
            for k in order:
                if not any(different[k, other] for other in group):
                    group.add(k)
            groups.append(group)
    letters = [""] * len(different)
    for n, places in enumerate(sorted([p for p, k in enumerate(order) if k in group] for group in groups)):
        for place in places:
            letters[order[place]] += ascii_letters[n] if n < len(ascii_letters) else f"[{n + 1}]"
    return tuple(letters)


@dataclass(frozen=True)
class RunGroups:
    """The runs of a family on one measure, by randomised Tukey HSD."""

    family: Family
    tukey: TukeyHSD
    """In the order of the family's runs. A difference above 0 means that the second run of the pair is better."""
    letters: tuple[str, ...]
    """For every run of the scores. Two runs of the family share a letter if and only if they do not differ
    significantly; `a` is for the best. Empty for runs outside, and for all runs if a pair could not be tested."""
    topics: tuple[str, ...]
    """The topics common to the family."""
    drawn: Floats | None = None
    """(runs of the family, resamples): the resampled values of a measure across topics."""

    @property
    def note(self) -> str:
        """One line that says which family the letters are for, or why there are none."""
        if any(self.letters):
            return f"letters: {self.family}"
        runs, topics = pluralize(len(self.family.runs), "run"), pluralize(len(self.topics), "common topic")
        if min(len(self.family.runs), len(self.topics)) > 1:
            return f"no letters: the differences are the same in every resample; {self.family}"
        needed = "at least two runs and two common topics are needed"
        return f"no letters: {needed}, not {runs} and {topics}; {self.family}"


def significance_groups(
    scores: Scores,
    measure: int,
    family: Family | None = None,
    *,
    alpha: float = 0.05,
    resamples: int | None = None,
    seed: int = 0,
) -> RunGroups:
    """Test every pair of runs of a family (default: `tukey_family`) on a measure, on the topics common to it.

    The result does not depend on the order of the runs. A measure across topics is tested by bootstrap.
    """
    family = family or tukey_family(scores, measure)
    used = _common(scores, measure, family.places)
    direction = scores.measures[measure].direction
    drawn = None
    if scores.measures[measure].across_topics:
        values = np.array([scores.across_mean(r, measure, used).value for r in family.places])
        drawn = np.zeros((values.size, 0))
        if used.sum() >= 2:
            drawn = resampled(scores, measure, family.places, used, seed)
        costs = costs_of(direction, values)
        tukey = bootstrap_hsd(costs, costs_of(direction, drawn), int(used.sum()), level=1 - alpha)
    else:
        by_topic = costs_of(direction, scores.values[list(family.places), measure][:, used].T)
        tukey = tukey_hsd(by_topic, level=1 - alpha, resamples=resamples, seed=seed)
        costs = by_topic.sum(axis=0)
    letters = [""] * len(scores.runs)
    if not np.isnan(tukey.p).any():
        best_first = np.argsort(costs, kind="stable").tolist()
        for place, text in zip(family.places, compact_letters(tukey.p < alpha, best_first), strict=True):
            letters[place] = text
    return RunGroups(family, tukey, tuple(letters), tuple(compress(scores.topics, used)), drawn)
