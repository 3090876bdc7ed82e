"""Statistics over topics: is one run better than another, by how much, and how sure is that."""

from fairevals.statistics.compare import Comparisons, compare, description, remarks
from fairevals.statistics.correlation import RankCorrelations, rank_correlations
from fairevals.statistics.inference import (
    bootstrap_interval,
    bootstrap_test,
    correct,
    mean_interval,
    t_interval,
    t_test,
    wilcoxon_test,
)
from fairevals.statistics.pairing import Paired, pair, spread_of
from fairevals.statistics.tukey import RunGroups, significance_groups, tukey_family, tukey_hsd

__all__ = [
    "Comparisons",
    "Paired",
    "RankCorrelations",
    "RunGroups",
    "bootstrap_interval",
    "bootstrap_test",
    "compare",
    "correct",
    "description",
    "mean_interval",
    "pair",
    "rank_correlations",
    "remarks",
    "significance_groups",
    "spread_of",
    "t_interval",
    "t_test",
    "tukey_family",
    "tukey_hsd",
    "wilcoxon_test",
]
