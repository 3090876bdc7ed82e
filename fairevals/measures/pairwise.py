"""Parity of the pairs of documents that a group wins, without any attention model: ARP."""

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import LOWER, RankingMeasure, attr_param
from fairevals.measures.numeric import divide, rank_sum
from fairevals.measures.prefix import EPS
from fairevals.typing import Bools, Floats


def favoured_shares(membership: Floats) -> Floats:
    """The share of mixed pairs that each group wins, (…, group), from memberships (…, rank, group).

    A pair of documents is mixed for a group by as much as one of them belongs to it and the other does not:
    m_ig·(1 − m_jg). The one that is ranked higher wins. A row of zeros takes part in no pair. NaN for a group without
    mixed pairs.

    >>> favoured_shares(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    array([0.5, 0.5])
    """
    inside = membership.swapaxes(-1, -2)
    known: Bools = np.any(membership, axis=-1)
    outside = np.where(known[..., None, :], 1 - inside, 0.0)
    won = rank_sum(outside * (np.cumsum(inside, axis=-1) - inside))
    lost = rank_sum(inside * (np.cumsum(outside, axis=-1) - outside))
    return divide(won, won + lost, won + lost > EPS)


@dataclass(frozen=True)
class ARP(RankingMeasure):
    """Attribute rank parity: how differently the groups fare in pairs with documents of other groups.

    0 where every group wins the same share of its mixed pairs, 1 where one wins all and another none. All ranks count
    alike, and the target plays no role. Documents without a membership take part in no pair. With a cutoff, pairs are
    those among the first ranks. Only ranked documents form pairs: a group that is not ranked is not compared, so that
    one of several groups can be hidden (Skew and AWRF show that), and documents need not be relevant or judged.
    Undefined where fewer than two groups have mixed pairs, or the attribute does not apply.

    >>> arp = ARP(attr="SEX")
    >>> arp([1, 1, 1, 1], groups=["f", "m", "m", "f"]), arp([1, 1, 1, 1], groups=["m", "m", "f", "f"])
    (0.0, 1.0)
    """

    name = "ARP"
    direction = LOWER
    formula = "max − min over groups of the share of mixed pairs (a document of the group, one of another) that it wins"
    source = (
        "Cachel, Rundensteiner, Harrison: MANI-Rank: multiple attribute and intersectional group fairness for "
        "consensus ranking. ICDE 2022"
    )
    attributes = "one"

    attr: str = attr_param()

    def of_ranking(self, ranked: Ranked) -> Floats:
        attribute = ranked.cut(self.cutoff).attribute(self.attr)
        shares = favoured_shares(attribute.membership)
        compared = ~np.isnan(shares)
        largest = np.max(shares, axis=-1, where=compared, initial=0.0)
        smallest = np.min(shares, axis=-1, where=compared, initial=1.0)
        defined = attribute.applies & (np.count_nonzero(compared, axis=-1) > 1)
        return np.where(defined, largest - smallest, np.nan)
