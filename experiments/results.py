"""What an experiment produces: claims with verdicts, figures, tables and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from fairevals.io.out import Table
from fairevals.report.style import figure_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")

AGREES, IN_PART, DISAGREES, UNKNOWN = "agrees", "agrees in part", "does not agree", "not measured"


def verdict(held: Sequence[bool]) -> str:
    """The verdict on a claim that was examined several times.

    >>> verdict([True, True]), verdict([True, False]), verdict([False]), verdict([])
    ('agrees', 'agrees in part', 'does not agree', 'not measured')
    """
    if not held:
        return UNKNOWN
    return AGREES if all(held) else IN_PART if any(held) else DISAGREES


@dataclass(frozen=True)
class Budget:
    """How much work an experiment does: the whole of it or a quick check, on how many seeds and processes."""

    quick: bool = False
    seeds: int | None = None
    progress: Callable[[int, int], object] | None = None
    jobs: int = 1

    def choose(self, whole: int, quick: int) -> int:
        """The number of seeds: the one asked for, else `whole` or `quick`."""
        return self.seeds or (quick if self.quick else whole)

    def run(self, function: Callable[[JobT], ResultT], jobs: Sequence[JobT]) -> Iterator[ResultT]:
        """The results in the order of the jobs, with progress; they do not depend on the number of processes."""
        if self.jobs == 1:
            yield from self._shown(map(function, jobs), len(jobs))
            return
        with ProcessPoolExecutor(self.jobs) as pool:
            yield from self._shown(pool.map(function, jobs), len(jobs))

    def _shown(self, results: Iterator[ResultT], count: int) -> Iterator[ResultT]:
        for done, result in enumerate(results, 1):
            yield result
            if self.progress:
                self.progress(done, count)


@dataclass(frozen=True)
class Finding:
    """One check of a claim: where, what was measured, and whether the claim holds there."""

    where: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """What a source says, the rule by which it is judged, and the findings, from which the verdict follows."""

    source: str
    text: str
    rule: str
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """`agrees`, `agrees in part`, `does not agree` or `not measured`."""
        return verdict([finding.holds for finding in self.findings])

    @property
    def count(self) -> str:
        """In how many cases it holds."""
        return f"{sum(finding.holds for finding in self.findings)} of {len(self.findings)}"


@dataclass(frozen=True)
class Drawing:
    """A figure as svg and png, with a text alternative and a caption."""

    name: str
    svg: bytes
    png: bytes
    alt: str
    caption: str

    @classmethod
    def of(cls, name: str, figure: Figure, alt: str, caption: str) -> Drawing:
        """Render a figure."""
        return cls(name, figure_bytes(figure), figure_bytes(figure, "png"), alt, caption)


@dataclass(frozen=True)
class Reproduction:
    """All results of an experiment."""

    name: str
    title: str
    paper: str
    about: tuple[str, ...]
    claims: tuple[Claim, ...]
    drawings: tuple[Drawing, ...]
    tables: tuple[tuple[str, Table], ...]
    """For the page, with captions."""
    numbers: Mapping[str, Table]
    """Every number shown, by the name of its csv file."""
    settings: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    quick: bool = False
