"""The six systems whose runs ship with the sample task, from useful to useless and from fair to unfair."""

from __future__ import annotations

import math
from collections.abc import Callable

from tools.sample.draws import Draws
from tools.sample.pages import GROUPS, Page, Shares, mean_shares
from tools.sample.topics import Topic

ORIGIN_TARGET: Shares = (0.3, 0.2, 0.3, 0.2)
LEFT_OUT = {"round-robin": "M14"}  # a topic for which a system returns nothing

Ranking = list[tuple[str, str]]  # document and printed score, best first
PageScores = dict[Page, float]


def bm25(topic: Topic, seed: int) -> Ranking:
    """Average: matches words and ignores who is ranked."""
    scores = _signal(topic, 1.0, Draws(seed, "bm25", topic.topic))
    return _ranked({page: 14.0 + 3.1 * score for page, score in scores.items()}, 4, 100)


def dense(topic: Topic, seed: int) -> Ranking:
    """The most useful, and as unbalanced as the pages themselves."""
    return _ranked(_dense_scores(topic, seed), 6, 100)


def popularity(topic: Topic, seed: int) -> Ranking:
    """Famous people and American films first. Its scores come in steps, so that some are tied."""
    scores = _signal(topic, 0.2, Draws(seed, "popularity", topic.topic))
    famous = {page: 0.8 * score + 5.0 * page.fame for page, score in scores.items()}
    return _ranked({page: round(20 * score) / 20 for page, score in famous.items()}, 4, 80)


def fair_rerank(topic: Topic, seed: int) -> Ranking:
    """The list of `dense`, reordered: at each rank the page that best trades its score for balance so far."""
    scores = _dense_scores(topic, seed)
    left = sorted(scores, key=lambda page: (-scores[page], page.doc))[:60]
    printed = [f"{scores[page]:.6f}" for page in left]
    targets = _targets(topic, left[:20])
    totals = {attribute: (0.0,) * len(target) for attribute, target in targets.items()}
    ranking = []
    for rank, score in enumerate(printed, 1):
        balance = 0.2 * math.sqrt(rank)  # later pages change the balance less, so it gets more weight
        worth = {page: scores[page] - balance * _imbalance(_added(totals, page), targets) for page in left}
        best = max(worth, key=lambda page: (worth[page], page.doc))
        totals = _added(totals, best)
        left.remove(best)
        ranking.append((best.doc, score))
    return sorted(ranking, key=lambda entry: (float(entry[1]), entry[0]), reverse=True)  # ties, if any


def round_robin(topic: Topic, seed: int) -> Ranking:
    """A weak list dealt out group by group: very fair, less useful."""
    scores = _signal(topic, 1.4, Draws(seed, "round-robin", topic.topic))
    attribute = topic.attributes()[0]
    queues: list[list[Page]] = [[] for _ in GROUPS[attribute]]
    for page in sorted(scores, key=lambda page: (-scores[page], page.doc)):
        share = page.share(attribute)
        queues[share.index(max(share))].append(page)
    start = Draws(seed, "round-robin", topic.topic, "start").below(len(queues))
    order = queues[start:] + queues[:start]
    dealt = [queue[turn] for turn in range(len(scores)) for queue in order if turn < len(queue)]
    return [(page.doc, f"{1 / (60 + rank):.6f}") for rank, page in enumerate(dealt[:60], 1)]


def random(topic: Topic, seed: int) -> Ranking:
    """A random order, which the others must beat."""
    draws = Draws(seed, "random", topic.topic)
    return _ranked({page: draws.uniform() for page in topic.pages}, 6, 80)


SYSTEMS: dict[str, Callable[[Topic, int], Ranking]] = {
    "dense": dense,
    "fair-rerank": fair_rerank,
    "bm25": bm25,
    "popularity": popularity,
    "round-robin": round_robin,
    "random": random,
}


def _signal(topic: Topic, noise: float, draws: Draws) -> PageScores:
    """A noisy view of the grades."""
    return {page: topic.grade(page) + noise * draws.noise() for page in topic.pages}


def _dense_scores(topic: Topic, seed: int) -> PageScores:
    scores = _signal(topic, 0.72, Draws(seed, "dense", topic.topic))
    return {page: 0.52 + 0.09 * score for page, score in scores.items()}


def _targets(topic: Topic, top: list[Page]) -> dict[str, Shares]:
    """The task's targets; the top of the list stands in for the relevant documents, which a system does not know."""
    if topic.kind == "films":
        return {"ORIGIN": ORIGIN_TARGET}
    size = len(GROUPS["HINDEX"])
    return {"HINDEX": (1 / size,) * size, "REGION": mean_shares(page.share("REGION") for page in top)}


def _added(totals: dict[str, Shares], page: Page) -> dict[str, Shares]:
    return {
        attribute: tuple(a + b for a, b in zip(total, page.share(attribute), strict=True))
        for attribute, total in totals.items()
    }


def _imbalance(totals: dict[str, Shares], targets: dict[str, Shares]) -> float:
    """How far group totals are from the targets: half the absolute difference, averaged over attributes."""
    distances = []
    for attribute, target in targets.items():
        size = math.fsum(totals[attribute])
        distances.append(
            math.fsum(abs(a / size - b) for a, b in zip(totals[attribute], target, strict=True)) / 2
        )
    return math.fsum(distances) / len(distances)


def _ranked(scores: PageScores, places: int, depth: int) -> Ranking:
    """Best first by the score as printed, then by document id descending, as trec_eval reads it."""
    printed = [(float(f"{score:.{places}f}"), page.doc) for page, score in scores.items()]
    printed.sort(reverse=True)
    return [(doc, f"{score:.{places}f}") for score, doc in printed[:depth]]
