"""Statistics over topics: is one run better than another, by how much, and how sure is that."""

from __future__ import annotations

from fairevals.statistics.compare import PROCEDURES, Comparison, Comparisons, compare, description, remarks
from fairevals.statistics.corrections import CORRECTIONS, benjamini_hochberg, correct, holm
from fairevals.statistics.correlation import RankCorrelations, rank_correlations
from fairevals.statistics.intervals import (
    Interval,
    MeanInterval,
    bootstrap_interval,
    mean_interval,
    t_interval,
)
from fairevals.statistics.letters import compact_letters
from fairevals.statistics.paired import (
    PairedTest,
    bootstrap_test,
    cohens_dz,
    rank_biserial,
    t_test,
    wilcoxon_test,
)
from fairevals.statistics.pairing import Paired, pair
from fairevals.statistics.sampling import NEGLIGIBLE, Spread, spread_of
from fairevals.statistics.tukey import RunGroups, TukeyHSD, significance_groups, tukey_hsd

__all__ = [
    "CORRECTIONS",
    "NEGLIGIBLE",
    "PROCEDURES",
    "Comparison",
    "Comparisons",
    "Interval",
    "MeanInterval",
    "Paired",
    "PairedTest",
    "RankCorrelations",
    "RunGroups",
    "Spread",
    "TukeyHSD",
    "benjamini_hochberg",
    "bootstrap_interval",
    "bootstrap_test",
    "cohens_dz",
    "compact_letters",
    "compare",
    "correct",
    "description",
    "holm",
    "mean_interval",
    "pair",
    "rank_biserial",
    "rank_correlations",
    "remarks",
    "significance_groups",
    "spread_of",
    "t_interval",
    "t_test",
    "tukey_hsd",
    "wilcoxon_test",
]
