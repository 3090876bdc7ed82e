"""What an experiment gives: claims with verdicts, figures, tables, numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from fairevals.io.out import Table
from fairevals.report.style import figure_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Task = TypeVar("Task")
Result = TypeVar("Result")

AGREES, IN_PART, DISAGREES, UNKNOWN = "agrees", "agrees in part", "does not agree", "not measured"


def verdict(held: Sequence[bool]) -> str:
    """What can be said of a claim that was looked at several times.

    >>> verdict([True, True]), verdict([True, False]), verdict([False]), verdict([])
    ('agrees', 'agrees in part', 'does not agree', 'not measured')
    """
    if not held:
        return UNKNOWN
    return AGREES if all(held) else IN_PART if any(held) else DISAGREES


@dataclass(frozen=True)
class Budget:
    """How much is done: all, or as little as shows that everything works; on how many seeds, in how many processes."""

    quick: bool = False
    seeds: int | None = None
    progress: Callable[[int, int], object] | None = None
    jobs: int = 1

    def choose(self, whole: int, quick: int) -> int:
        """The number of seeds: what was asked for, or one of these."""
        return self.seeds or (quick if self.quick else whole)

    def work(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
        """The results in the order of the tasks, each a step of the progress bar; they do not depend on `jobs`."""
        steps = Steps(self, len(tasks))
        if self.jobs == 1:
            for task in tasks:
                yield function(task)
                steps.step()
            return
        with ProcessPoolExecutor(self.jobs) as pool:
            for result in pool.map(function, tasks):
                yield result
                steps.step()


@dataclass(frozen=True)
class Finding:
    """One look at a claim: what was measured, where, and whether it holds."""

    where: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """What a source says, the rule by which it is judged, and what was found; the verdict follows from it."""

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
    """A figure as svg and png, with a text for those who do not see it."""

    name: str
    svg: bytes
    png: bytes
    alt: str
    caption: str

    @classmethod
    def of(cls, name: str, figure: Figure, alt: str, caption: str) -> Drawing:
        """Draw it."""
        return cls(name, figure_bytes(figure), figure_bytes(figure, "png"), alt, caption)


@dataclass(frozen=True)
class Reproduction:
    """All of an experiment."""

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


class Steps:
    """Counts the steps of an experiment for its progress bar."""

    def __init__(self, effort: Budget, of: int) -> None:
        self._progress, self._of, self._done = effort.progress, of, 0

    def step(self) -> None:
        """One more is done."""
        self._done += 1
        if self._progress:
            self._progress(min(self._done, self._of), self._of)
