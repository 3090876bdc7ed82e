"""The result of scoring: what `evaluate` returns, and what the commands print and write."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairevals.collection.collection import Collection
from fairevals.collection.inputs import Named
from fairevals.collection.topics import topic_groups
from fairevals.errors import RemarkWarning, UsageError, check_known, escape
from fairevals.evaluation.leaderboard import (
    gap_and_worst,
    group_table,
    json_table,
    leaderboard,
    long_group_table,
    long_table,
    topic_table,
)
from fairevals.evaluation.plan import Plan
from fairevals.evaluation.scores import Scores
from fairevals.export.names import measure_file, unique
from fairevals.io.folders import check_folder, write_files
from fairevals.io.out import DECIMALS, PEOPLE, STYLES, Table, check_places, render_with_notes
from fairevals.io.streams import checked_path
from fairevals.measures import Measure

if TYPE_CHECKING:
    import pandas as pd

    from fairevals.report.plots import Plots
    from fairevals.statistics.by_group import GroupedComparisons
    from fairevals.statistics.compare import Comparisons
    from fairevals.statistics.tukey import RunGroups


@dataclass(frozen=True, eq=False)
class Result:
    """Scored runs: values with their standard errors, and methods for tests, figures and the report.

    It prints as the leaderboard: best run first, the best of each measure marked, undefined topics counted. It has
    the length of its runs, and iterates over their names; `result["bm25"]` are the means of one run. It can be
    pickled if its runs can.

    >>> import fairevals as fe
    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 2, "c": 1}}
    >>> one = {"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 2.0, "b": 1.0}}
    >>> two = {"q1": {"b": 2.0, "a": 1.0}, "q2": {"b": 2.0, "c": 1.0}}
    >>> result = fe.evaluate({"one": one, "two": two}, qrels, ["nDCG", "RR"])
    >>> print(result)
    run         nDCG ↑     RR ↑
    ───────────────────────────
    one         0.9299 * 1.0000 *
    two         0.8155   0.7500
    ───────────────────────────
    topics           2        2
    undefined        0        0
    >>> result["two"].round(2)
    nDCG    0.82
    RR      0.75
    Name: two, dtype: float64
    """

    scores: Scores
    collection: Collection = field(repr=False)
    plan: Plan = field(repr=False)
    sources: tuple[Any, ...] = field(repr=False)
    """The runs as they were given."""
    qrels: Any = field(default=None, repr=False)
    """The qrels as they were given, where they are not the task's."""
    given: bool = field(default=True, repr=False)
    """Whether the measures were given, and are not the task's: a report then adds none of its own."""

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs."""
        return self.scores.runs

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures."""
        return self.scores.measures

    @property
    def topics(self) -> tuple[str, ...]:
        """The judged topics."""
        return self.scores.topics

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the values should know: missing topics, incomplete runs, unjudged documents, undefined
        values."""
        return (*self.scores.notes, *self.scores.undefined_remarks())

    @property
    def missing_topics(self) -> Mapping[str, tuple[str, ...]]:
        """By the names of the runs that leave out judged topics: those topics."""
        return self.scores.missing_topics

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[str]:
        return iter(self.runs)

    def __getitem__(self, run: str) -> pd.Series:
        return self.pivot().iloc[self._place(run)]

    def _place(self, run: Any) -> int:
        """The position of a run by its name, its position, or what was given as the run."""
        from fairevals.statistics.pairing import position

        if isinstance(run, (str, os.PathLike)) and run not in self.runs:
            for place, given in enumerate(self.sources):
                source = given.run if isinstance(given, Named) else given
                if isinstance(source, (str, os.PathLike)) and Path(source).resolve() == Path(run).resolve():
                    return place
            run = os.fspath(run)
        return position(self.scores, run)

    # Tables -------------------------------------------------------------------------------------------------

    def frame(self, per_topic: bool = False) -> pd.DataFrame:
        """A long table: run, topic, measure, value, se.

        The rows with topic `all` are the means over the topics on which a measure is defined; with `per_topic`
        those of the topics precede them. NaN is undefined; in `se` it says that a value is exact.
        """
        return self.scores.frame(per_topic)

    def pivot(self, per_topic: bool = False) -> pd.DataFrame:
        """A wide table: one row for each run (and topic), one column for each measure (that has values by topic)."""
        import pandas as pd

        columns = [str(measure) for measure in self.measures]
        if per_topic:
            index: pd.Index = pd.MultiIndex.from_product([self.runs, self.topics], names=["run", "topic"])
            values = self.scores.values.transpose(0, 2, 1).reshape(-1, len(columns))
            across = [str(measure) for measure in self.measures if measure.across_topics]
            return pd.DataFrame(values, index, columns).drop(columns=across)
        means = [[self.scores.mean(r, m).value for m in range(len(columns))] for r in range(len(self))]
        return pd.DataFrame(means, pd.Index(self.runs, name="run"), columns)

    def matrix(self, measure: Any = None) -> pd.DataFrame:
        """The values of one measure (default: the first): one row for each topic, one column for each run."""
        import pandas as pd

        from fairevals.statistics.pairing import measure_position

        m = 0 if measure is None else measure_position(self.scores, measure, self.collection.task.cutoff)
        index = pd.Index(self.topics, name="topic")
        return pd.DataFrame(self.scores.values[:, m].T, index, pd.Index(self.runs, name="run"))

    def to_tsm(
        self, folder: str | os.PathLike[str], *, places: int | None = None, force: bool = False
    ) -> Path:
        """Write the topic-by-run matrices as NTCIR's tools, such as Discpower, read them, into a new folder.

        For each measure there is MEASURE.tsm, with one line for each topic and one number for each run, separated by
        spaces, and MEASURE.topics.txt with the topics of its lines; runs.txt has the runs of the columns. Those tools
        take numbers only: a topic on which some run has no value is left out, and a measure across topics has no file.
        """
        folder = check_folder(folder, force=force)
        files = {"runs.txt": "".join(f"{escape(run, 10_000)}\n" for run in self.runs)}
        by_topic = [measure for measure in self.measures if not measure.across_topics]
        by_topic = by_topic or list(self.measures[:1])
        names = unique(map(self.scores.label, by_topic), measure_file)
        for measure, name in zip(by_topic, names, strict=True):
            files[f"{name}.tsm"] = self.tsm(measure, places=places)
            topics = self.matrix(measure).dropna().index
            files[f"{name}.topics.txt"] = "".join(f"{escape(topic, 10_000)}\n" for topic in topics)
        write_files(folder, {name: text.encode() for name, text in files.items()})
        return folder

    def tsm(self, measure: Any = None, *, places: int | None = None) -> str:
        """The text of one file of `to_tsm`."""
        matrix = self.matrix(measure).dropna()
        if matrix.empty:
            what = self.scores.label(self.measures[0] if measure is None else measure)
            raise UsageError(f"{what}: there is no topic on which every run has a value")
        decimals = None if places is None else f"%.{places}f"
        text: str = matrix.to_csv(
            sep=" ", header=False, index=False, float_format=decimals, lineterminator="\n"
        )
        return text

    def by(self, groups: Any) -> pd.DataFrame:
        """Means over groups of topics: one row for each run and measure, one column for each group.

        `groups` names topic groups of the task, or is a dict {group: globs} or {topic: group}. The column `gap` is
        the largest difference between groups, and `worst` the group that is worst by the measure's direction (where a
        value such as 0 is best, by the mean distance to it); empty where all groups are equally good.

        >>> qrels = {"R1": {"a": 1}, "R2": {"a": 1}, "M1": {"a": 1}}
        >>> run = {"R1": {"a": 2.0, "b": 1.0}, "R2": {"b": 2.0, "a": 1.0}, "M1": {"b": 2.0, "a": 1.0}}
        >>> import fairevals as fe
        >>> fe.evaluate(run, qrels, ["RR"]).by({"R": ["R*"], "M": ["M*"]}).reset_index()
           run measure     R    M   gap worst
        0  run      RR  0.75  0.5  0.25     M
        """
        import pandas as pd

        parts = self._parts(groups)
        rows = []
        for r, run in enumerate(self.runs):
            for m, measure in enumerate(self.measures):
                means = [part.mean(r, m).value for part in parts.values()]
                rows.append((run, str(measure), *means, *gap_and_worst(parts, r, m)))
        columns = ["run", "measure", *parts, "gap", "worst"]
        return pd.DataFrame(rows, columns=columns).set_index(["run", "measure"])

    def _parts(self, groups: Any) -> dict[str, Scores]:
        """The scores on the topics of each topic group."""
        positions = topic_groups(self.collection.task, groups, self.topics)
        return {group: self.scores.on_topics(at) for group, at in positions.items()}

    def table(
        self,
        style: str = "table",
        *,
        per_topic: bool = False,
        by: Any = None,
        ci: bool = False,
        places: int | None = None,
    ) -> Table:
        """The table that a format shows: leaderboard, topic groups or topics for people, long rows for programs.

        `by` are topic groups as in `by`: for people one column for each group, else rows with a column `group`, which
        is empty in the rows for all topics. With `ci`, 95 % intervals over topics are beside the means, and in the
        leaderboard the letters of the report.
        """
        from fairevals.statistics.inference import mean_intervals

        check_known("format", style, STYLES)
        check_places(places)
        scores, digits = self.scores, DECIMALS if places is None else places
        if by is not None and per_topic:
            raise UsageError("values can be printed by topic or by topic group, not both")
        if style not in PEOPLE:

            def long(part: Scores) -> Table:
                make = json_table if style == "json" else long_table
                return make(part, per_topic, mean_intervals(part) if ci else None)

            return long(scores) if by is None else long_group_table(scores, self._parts(by), long)
        if by is not None:
            parts = self._parts(by)
            bounds = {group: mean_intervals(part) for group, part in parts.items()} if ci else None
            return group_table(scores, parts, digits, bounds)
        intervals = mean_intervals(scores) if ci else None
        if per_topic:
            return topic_table(scores, digits, intervals)
        return leaderboard(scores, digits, intervals, [one.letters for one in self._letters] if ci else ())

    @cached_property
    def _letters(self) -> list[RunGroups]:
        """The letters of every measure, as on a page of these runs without a named baseline."""
        from fairevals.report.board import letters

        return letters(self.scores, seed=self.plan.policy.seed)

    def render(
        self,
        style: str = "table",
        *,
        per_topic: bool = False,
        by: Any = None,
        ci: bool = False,
        places: int | None = None,
        spreadsheet: bool = False,
    ) -> str:
        """The result as text: "table", "csv", "tsv", "json", "latex" or "html"; see `table`.

        `spreadsheet` is as in `render` of `fairevals.io.out`.
        """
        table = self.table(style, per_topic=per_topic, by=by, ci=ci, places=places)
        notes: list[str] = []
        if ci and style in PEOPLE:
            from fairevals.report.board import interval_notes

            notes = interval_notes(self.scores, self._letters if by is None and not per_topic else ())
        return render_with_notes(table, style, places, notes, spreadsheet=spreadsheet)

    def to_latex(
        self, *, per_topic: bool = False, by: Any = None, ci: bool = False, places: int = DECIMALS
    ) -> str:
        """The leaderboard for a paper, with the rules of booktabs and the best values in bold."""
        return self.render("latex", per_topic=per_topic, by=by, ci=ci, places=places)

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.render("html")

    # Statistics, figures, report -----------------------------------------------------------------------------

    def compare(
        self,
        baseline: Any = 0,
        *,
        all_pairs: bool = False,
        by: Any = None,
        test: str = "ttest",
        correct: str | None = None,
        alpha: float = 0.05,
    ) -> Comparisons | GroupedComparisons:
        """Every other run against the baseline (a name, a position or the file of a run): see `fairevals.compare`."""
        from fairevals.statistics.all_pairs import all_pairs as compare_pairs
        from fairevals.statistics.by_group import GroupedComparisons
        from fairevals.statistics.compare import compare_with_baseline

        if len(self) < 2:
            raise UsageError("nothing to compare: evaluate at least two runs")
        if all_pairs and (baseline != 0 or test not in ("ttest", "tukey") or correct not in (None, "none")):
            raise UsageError("all pairs are compared by Tukey HSD, without a baseline and another correction")
        options: Any = {"alpha": alpha, "seed": self.plan.policy.seed}
        if not all_pairs:
            options |= {"test": test, "correction": correct}
            options["baseline"] = self._place(baseline)
        compared = compare_pairs if all_pairs else compare_with_baseline
        if by is None:
            return compared(self.scores, **options)
        return GroupedComparisons(
            {group: compared(part, **options) for group, part in self._parts(by).items()}
        )

    def correlate(self) -> pd.DataFrame:
        """How similarly every two measures rank the runs: see `fairevals.correlate`."""
        from fairevals.statistics.correlation import rank_correlations

        if len(self) < 2 or sum(not measure.across_topics for measure in self.measures) < 2:
            raise UsageError(
                "nothing to correlate: evaluate at least two runs by at least two measures with values by topic"
            )
        return rank_correlations(self.scores, seed=self.plan.policy.seed).frame()

    def power(
        self,
        difference: float | Iterable[float] | None = None,
        *,
        power: float = 0.8,
        alpha: float = 0.05,
        systems: int | None = None,
    ) -> pd.DataFrame:
        """How many topics are needed to see a difference, by each measure: one row for each measure and difference.

        The columns `ttest`, `anova` and `interval` are numbers of topics, <NA> where undefined; see
        `fairevals.statistics.power.topic_set_sizes`. Remarks are warnings.
        """
        from fairevals.statistics.power import topic_set_sizes

        sizes = topic_set_sizes(self.scores, difference, power=power, alpha=alpha, systems=systems)
        for remark in sizes.remarks:
            warnings.warn(RemarkWarning(remark), stacklevel=2)
        return sizes.frame()

    @property
    def plot(self) -> Plots:
        """Figures: `tradeoff`, `groups`, `topics`, `power` and `exposure`, each a matplotlib Axes."""
        from fairevals.report.plots import Plots

        return Plots(self.scores, self.collection, self.plan, self.sources, self._place)

    def report(
        self,
        folder: str | os.PathLike[str],
        *,
        baseline: Any = None,
        references: Iterable[Any] = (),
        test: str = "ttest",
        correct: str | None = None,
        by: Any = None,
        trained: Iterable[str | os.PathLike[str]] = (),
        drilldown: str | None = None,
        force: bool = False,
    ) -> Path:
        """Write the report of these runs into a folder, as `fairevals report` does, and return the path of its page.

        `drilldown` says which runs have their first ranks in the page: "all", the baseline, Pareto "front" and
        references only, or "none"; by default all if they fit.
        """
        from fairevals.report.gather import gather
        from fairevals.report.write import REPORT, write_report

        REPORT.check(Path(checked_path(folder)), force=force)  # before the work
        gathered = gather(
            self.sources,
            self.collection,
            self.plan,
            baseline=None if baseline is None else self._place(baseline),
            references=[self._place(run) for run in several("references", references)],
            test=test,
            correction=correct,
            by=by,
            trained=[Path(checked_path(one)) for one in several("trained", trained)],
            given=self.given,
            qrels=self.qrels,
            drilldown=drilldown,
        )
        return write_report(gathered, Path(folder), force=force)[0]

    def export(
        self, platform: str, folder: str | os.PathLike[str], *, image: str | None = None, force: bool = False
    ) -> list[Path]:
        """Write what a platform needs into a folder, as `fairevals export` does, and return the paths of the files.

        `platform` is "codabench", "tira" or "participants"; `image` is the Docker image for Codabench.
        """
        from fairevals.export.write import export

        if not isinstance(folder, (str, os.PathLike)):
            raise UsageError(f"cannot take {escape(repr(folder))} as a folder; expected its path")
        files, remarks = export(
            platform,
            Path(folder),
            self.scores,
            self.collection,
            self.plan,
            [run.run if isinstance(run, Named) else run for run in self.sources],
            qrels=self.qrels,
            given=self.given,
            image=image,
            force=force,
        )
        for remark in remarks:
            warnings.warn(RemarkWarning(remark), stacklevel=2)
        return files


def several(name: str, given: Any) -> list[Any]:
    """One or several names or paths, as a list."""
    if isinstance(given, (str, int, os.PathLike)):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise UsageError(f"{name}={escape(repr(given))}; expected a name or a list of names") from None
