"""Utilities: what a ranking is worth to its users, as a reward, and where possible as a linear function of exposure.

A utility is written as text, a weighted sum of measures: `nDCG`, `nDCG@10`, `0.5*AP + 0.5*RR`. Gains are 2^g − 1, as
in Singh & Joachims 2019 (Chapelle & Chang 2011), and a document is relevant if its grade is above 0.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from fairevals.attention import AttentionLike, parse_attention
from fairevals.errors import UsageError, escape
from fairevals.measures.average_precision import average_precision
from fairevals.measures.err import expected_reciprocal_rank
from fairevals.measures.ndcg import gains
from fairevals.measures.reciprocal_rank import reciprocal_rank
from fairevals.training.data import Batch
from fairevals.typing import Floats, Ints


@dataclass(frozen=True)
class Term:
    """Σ_d worth_d · v_{rank(d)}: a part of a utility that is linear in exposure under `attention` up to `cutoff`."""

    attention: AttentionLike
    cutoff: int | None
    worth: Floats
    """(topics, documents)"""

    def weights(self, ranks: int) -> Floats:
        """Attention of ranks 1..ranks, 0 beyond the cutoff."""
        return (
            _weights(self.attention, self.cutoff, ranks)
            if isinstance(self.attention, str)
            else _fresh(self, ranks)
        )


@lru_cache(maxsize=256)
def _weights(attention: str, cutoff: int | None, ranks: int) -> Floats:
    weights = parse_attention(attention).weights(ranks)
    if cutoff is not None:
        weights[cutoff:] = 0.0
    weights.flags.writeable = False
    return weights


def _fresh(term: Term, ranks: int) -> Floats:
    weights = parse_attention(term.attention).weights(ranks)
    weights[term.cutoff if term.cutoff is not None else ranks :] = 0.0
    return weights


@dataclass(frozen=True)
class Utility(ABC):
    """A measure with a cutoff, as a reward; higher is better, 0 on a topic where it is undefined."""

    name: ClassVar[str]
    cutoff: int | None = None

    @abstractmethod
    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """Values (topics, samples), given the grades (topics, samples, rank) down the rankings."""

    def terms(self, block: Batch) -> list[Term] | None:
        """The utility as linear terms; None if it is not linear in exposure."""
        return None


class NDCG(Utility):
    """Σ_k (2^{g_k} − 1)/log2(1 + k), over its value for the ideal order (Burges et al. 2005)."""

    name = "nDCG"

    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """The gains at each rank, discounted."""
        gain = (np.exp2(grades) - 1.0) * self._norm(block)[:, None, None]
        value: Floats = gain @ _weights("log2", self.cutoff, grades.shape[-1])
        return value

    def terms(self, block: Batch) -> list[Term]:
        """One, under the attention log2."""
        return [Term("log2", self.cutoff, gains(block.grades, "exp-log2") * self._norm(block)[:, None])]

    def _norm(self, block: Batch) -> Floats:
        best = -np.sort(-gains(block.grades, "exp-log2"), axis=-1)
        ideal = best @ _weights("log2", self.cutoff, best.shape[-1])
        norm: Floats = np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)
        return norm


class DCG(NDCG):
    """Σ_k (2^{g_k} − 1)/log2(1 + k)."""

    name = "DCG"

    def _norm(self, block: Batch) -> Floats:
        return np.ones(len(block.grades))


class ERR(Utility):
    """Expected reciprocal rank (Chapelle et al. 2009) with the data's largest grade."""

    name = "ERR"

    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """Σ_k w_k/k."""
        return expected_reciprocal_rank(grades[..., : self.cutoff], block.max_grade)


class AP(Utility):
    """Average precision: Σ over relevant ranks k of the precision at k, over the number of relevant documents."""

    name = "AP"

    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """With the number of all relevant documents below the line, ranked or not."""
        relevant = np.count_nonzero(block.grades > 0, axis=-1)[:, None]
        return average_precision(grades[..., : self.cutoff] > 0, np.maximum(relevant, 1))


class RR(Utility):
    """Reciprocal rank of the first relevant document."""

    name = "RR"

    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """1/k at the first relevant rank k, 0 without one."""
        return reciprocal_rank(grades[..., : self.cutoff] > 0)


class Precision(Utility):
    """Share of relevant documents up to the cutoff."""

    name = "P"

    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """Relevant ranks over the cutoff."""
        value: Floats = np.count_nonzero(grades[..., : self.cutoff] > 0, axis=-1) / self._depth(block)
        return value

    def terms(self, block: Batch) -> list[Term]:
        """One, under the attention uniform."""
        return [Term("uniform", self.cutoff, (block.grades > 0) / self._depth(block))]

    def _depth(self, block: Batch) -> int:
        return self.cutoff or block.grades.shape[-1]


class AverageRank(Utility):
    """Minus the mean rank of the relevant documents (Singh & Joachims 2019, section 2.1); takes no cutoff."""

    name = "AverageRank"

    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """A relevant document that is not ranked counts as the one after the last."""
        relevant = np.count_nonzero(block.grades > 0, axis=-1)[:, None]
        ranks = np.arange(1, grades.shape[-1] + 1)
        hit = grades > 0
        total = (hit * ranks).sum(axis=-1) + (relevant - hit.sum(axis=-1)) * (grades.shape[-1] + 1)
        value: Floats = -total / np.maximum(relevant, 1)
        return value

    def terms(self, block: Batch) -> list[Term]:
        """One, whose weights are the ranks themselves."""
        hit = (block.grades > 0).astype(np.float64)
        worth = -hit / np.maximum(np.count_nonzero(hit, axis=-1), 1)[:, None]
        return [Term(tuple(range(1, hit.shape[-1] + 1)), None, worth)]


@dataclass(frozen=True)
class OtherMeasure(Utility):
    """Any ranking measure of the package or of ir-measures, by its name; slower than those above."""

    text: str = ""
    name = "other"

    def of_grades(self, grades: Floats, block: Batch, rankings: Ints) -> Floats:
        """The measure's values, 0 where it is undefined."""
        from fairevals.collection import Ranked
        from fairevals.measures import RankingMeasure, parse_measure

        measure = parse_measure(self.text)
        if not isinstance(measure, RankingMeasure):
            raise UsageError(f"{escape(self.text)} is no measure of a ranking, so it is no utility")
        values = [
            measure.of_ranking(
                Ranked(
                    grades=grades[t : t + 1],
                    present=rankings[t : t + 1] >= 0,
                    ideal=-np.sort(-block.grades[t : t + 1])[:, None, :],
                    max_grade=block.max_grade,
                    documents=rankings[t : t + 1],
                    raw_grades=block.grades[t : t + 1, block.present[t]],
                )
            )
            for t in range(len(grades))
        ]
        return np.nan_to_num(np.concatenate(values))


@dataclass(frozen=True)
class WeightedSum:
    """Σ weight · utility.

    >>> str(parse_utility("0.5*AP + 0.5 * nDCG@10"))
    '0.5*AP+0.5*nDCG@10'
    """

    parts: tuple[tuple[float, Utility], ...]

    @property
    def depth(self) -> int | None:
        """How many ranks it looks at; None for all."""
        cutoffs = [part.cutoff for _, part in self.parts]
        return None if None in cutoffs else max(c for c in cutoffs if c is not None)

    def of_rankings(self, rankings: Ints, block: Batch) -> Floats:
        """Rewards (topics, samples) of rankings (topics, samples, rank), −1 where a ranking has ended."""
        padded = np.concatenate([block.grades, np.zeros((len(block.grades), 1))], axis=1)
        grades = np.take_along_axis(padded[:, None, :], rankings, axis=2)
        total = np.zeros(grades.shape[:-1])
        for weight, utility in self.parts:
            total += weight * utility.of_grades(grades, block, rankings)
        return total

    def terms(self, block: Batch) -> list[Term] | None:
        """All terms, if every utility is linear in exposure."""
        found: list[Term] = []
        for weight, utility in self.parts:
            terms = utility.terms(block)
            if terms is None:
                return None
            found += [Term(t.attention, t.cutoff, weight * t.worth) for t in terms]
        return found

    @property
    def linear(self) -> bool:
        """Whether it is linear in exposure, so that expectations under Plackett-Luce are exact."""
        return all(type(utility).terms is not Utility.terms for _, utility in self.parts)

    def __str__(self) -> str:
        shown_parts = []
        for weight, utility in self.parts:
            name = utility.text if isinstance(utility, OtherMeasure) else utility.name
            if utility.cutoff and not isinstance(utility, OtherMeasure):
                name += f"@{utility.cutoff}"
            shown_parts.append(name if weight == 1 else f"{weight:g}*{name}")
        return "+".join(shown_parts)


UTILITIES: Mapping[str, type[Utility]] = {u.name: u for u in (NDCG, DCG, ERR, AP, RR, Precision, AverageRank)}

_PART = re.compile(r"(?:([-+]?[0-9.]+(?:e[-+]?\d+)?)\s*\*\s*)?([A-Za-z]\w*)((?:\(.*\))?)(?:@([1-9]\d{0,6}))?")


def parse_utility(text: str) -> WeightedSum:
    """A utility from its text: measures joined by `+`, each perhaps with a weight and a cutoff.

    >>> parse_utility("nDCG").linear, parse_utility("AP+RR").linear
    (True, False)
    """
    parts: list[tuple[float, Utility]] = []
    for piece in re.split(r"\+(?![^(]*\))", text):
        match = _PART.fullmatch(piece.strip())
        if not match:
            raise UsageError(
                f"cannot read the utility {escape(text)!r}; expected such as nDCG, ERR@10 or 0.5*AP+0.5*RR"
            )
        weight, name, params, cutoff = float(match[1] or 1), match[2], match[3], match[4]
        known = next((u for u in UTILITIES if u.lower() == name.lower()), None)
        if known and not params:
            if known == "AverageRank" and cutoff:
                raise UsageError("AverageRank takes no cutoff")
            parts.append((weight, UTILITIES[known](int(cutoff) if cutoff else None)))
        else:
            from fairevals.measures import parse_measure

            measure = parse_measure(
                name + params + (f"@{cutoff}" if cutoff else "")
            )  # raises on unknown names
            parts.append((weight, OtherMeasure(measure.cutoff, str(measure))))
    return WeightedSum(tuple(parts))
