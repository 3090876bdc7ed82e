"""Statistics over topics: is one run better than another, by how much, and how sure is that."""

from fairevals.statistics.compare import Comparison, Comparisons, compare, description, remarks
from fairevals.statistics.correlation import RankCorrelations, rank_correlations
from fairevals.statistics.intervals import bootstrap_interval, mean_interval, t_interval
from fairevals.statistics.pairing import NEGLIGIBLE, Paired, pair, spread_of
from fairevals.statistics.tests import bootstrap_test, correct, t_test, wilcoxon_test
from fairevals.statistics.tukey import (
    Family,
    RunGroups,
    compact_letters,
    significance_groups,
    tukey_family,
    tukey_hsd,
)

__all__ = [
    "NEGLIGIBLE",
    "Comparison",
    "Comparisons",
    "Family",
    "Paired",
    "RankCorrelations",
    "RunGroups",
    "bootstrap_interval",
    "bootstrap_test",
    "compact_letters",
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
