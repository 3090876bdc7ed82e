"""Whether scores that are read as log-weights give a policy that is hardly better than a random order."""

import math
from dataclasses import dataclass

import numpy as np

from fairevals.typing import Floats


@dataclass(frozen=True)
class PolicyDiagnosis:
    """How often a Plackett-Luce policy ranks the document of the highest score first.

    All numbers are means over the topics with two or more documents; NaN without such topics.
    """

    first: float
    """The mean probability that the document of the highest score is ranked first."""
    uniform: float
    """The same for a random order: the mean of 1/n."""
    half_way_temperature: float | None
    """The temperature at which `first` would be half-way between `uniform` and 1; None if ties make that impossible."""

    @property
    def nearly_uniform(self) -> bool:
        """Whether `first` is below twice `uniform` (decides for long lists) and a tenth of the way to 1 (for short)."""
        return self.first < min(2 * self.uniform, self.uniform + 0.1 * (1 - self.uniform))

    def remark(self) -> str:
        """A sentence for the user about the run.

        >>> print(diagnose_policy(np.array([[0.9, 0.8, 0.7]])).remark())
        read as Plackett-Luce, this run is nearly a random order: its highest-scored document comes first \
with a mean probability of 0.3672, against 0.3333 in a random order. Scores such as cosines are not log-weights. At \
a temperature of 0.0995 the probability would be half-way to 1
        """
        at = self.half_way_temperature
        advice = "Too many of the highest scores are tied for any temperature to bring it half-way to 1"
        if at is not None:
            advice = f"At a temperature of {at:.4g} the probability would be half-way to 1"
        return (
            "read as Plackett-Luce, this run is nearly a random order: its highest-scored document comes first "
            f"with a mean probability of {self.first:.4f}, against {self.uniform:.4f} in a random order. "
            f"Scores such as cosines are not log-weights. {advice}"
        )


def diagnose_policy(scores: Floats, temperature: float = 1.0) -> PolicyDiagnosis:
    """Diagnose the Plackett-Luce policy of ``scores`` (topics, documents), −inf for padding.

    The first document of a topic has probability 1/Σ_d e^{(s_d − max s)/T}. It decreases in the temperature T,
    from 1/(number of documents with the highest score) to 1/n, so half-way is reached at most once.

    >>> diagnose_policy(np.log([[3.0, 1.0], [1.0, 1.0]]))
    PolicyDiagnosis(first=0.625, uniform=0.5, half_way_temperature=None)
    """
    ranked = scores > -np.inf
    documents = ranked.sum(axis=1)
    enough = documents >= 2
    if not enough.any():
        return PolicyDiagnosis(math.nan, math.nan, None)
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = scores[enough].max(axis=1, keepdims=True) - scores[enough]
    gaps[gaps < 1e-300] = 0.0  # a tie: no temperature could tell such scores apart
    # An overflowing gap stays finite, so that it differs from padding.
    gaps = np.where(ranked[enough], np.minimum(gaps, np.finfo(float).max), np.inf)

    def first_at(log_temperature: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.mean(1.0 / np.exp(-gaps / math.exp(log_temperature)).sum(axis=1)))

    uniform = float(np.mean(1.0 / documents[enough]))
    half_way = (1.0 + uniform) / 2.0
    half_way_temperature = None
    if float(np.mean(1.0 / (gaps == 0).sum(axis=1))) > half_way:
        from scipy.optimize import brentq

        # At the upper end every weight is at least 1/e, which is below half-way for any n ≥ 2; at the lower end
        # e^{−gap/T} is 0 for every gap, so that only ties are left.
        positive = gaps[(gaps > 0) & (gaps < np.inf)]
        low, high = math.log(positive.min() / 800.0), math.log(positive.max())
        half_way_temperature = math.exp(brentq(lambda x: first_at(x) - half_way, low, high, xtol=1e-12))
    return PolicyDiagnosis(first_at(math.log(temperature)), uniform, half_way_temperature)
