"""A measure of arrays: rankings given by the grades and groups of their documents, without runs and qrels."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from typing import Any

import numpy as np

from fairevals.collection.blocks import Block, Requirements, blocks
from fairevals.collection.collection import Collection
from fairevals.collection.groups import Attribute
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.errors import InputWarning, UsageError, escape, pluralize
from fairevals.ids import Ids
from fairevals.io.memberships import ROW_TOLERANCE
from fairevals.io.specs import LARGEST
from fairevals.io.task import Task
from fairevals.measures.base import CompositeMeasure, ExposureMeasure, Measure, RankingMeasure
from fairevals.policy.policies import OneRanking
from fairevals.typing import Floats


def value_of_arrays(
    measure: Measure,
    grades: Any,
    ideal: Any,
    max_grade: Any,
    groups: Any,
    target: Any,
    kind: str | None,
) -> Any:
    """See `Measure.__call__`."""
    ranked = _numbers(grades, "grades")
    if ranked.ndim not in (1, 2) or ranked.size == 0:
        expected = "(n,), the grades of a ranking, or (rankings, n)"
        raise UsageError(f"grades has the shape {ranked.shape}; expected {expected}")
    rows = np.atleast_2d(ranked)
    qrels = _qrels(rows, rows if ideal is None else _all_judged(ideal, len(rows)), given=ideal is not None)
    if max_grade is not None and (
        isinstance(max_grade, bool) or not isinstance(max_grade, (int, float, np.number))
    ):
        raise UsageError(f"max_grade is {escape(repr(max_grade))}; expected a number")
    if max_grade is not None and not max_grade >= qrels.max_grade:
        raise UsageError(f"max_grade is {max_grade}, but there is a grade of {qrels.max_grade:g}")
    attributes = {}
    if measure.attributes != "none" or measure.attributes_used():
        if groups is None:
            raise UsageError(f"{measure} needs groups=[…], one group for each ranked document")
        name = next(iter(measure.attributes_used()), "groups")
        attributes[name] = _attribute(name, ranked, groups, target, kind).bound(qrels, by_position=True)
    collection = Collection(Task(max_grade=max_grade), qrels, attributes=attributes)
    requirements = Requirements(None, True, tuple(attributes))
    parts = [_values(measure, block) for block in blocks(_run(rows), collection, requirements)]
    values = np.concatenate(parts)
    return float(values[0]) if ranked.ndim == 1 else values


def _values(measure: Measure, block: Block) -> Floats:
    """The value on each topic, as for a run with one ranking."""
    if isinstance(measure, CompositeMeasure):
        return measure.combine(tuple(_values(part, block) for part in measure.parts()))
    if isinstance(measure, RankingMeasure):
        return measure.of_ranking(block.ranked(measure.depth))
    if isinstance(measure, ExposureMeasure) and not measure.across_topics:
        exposure = OneRanking().exposure(block, measure.attention_model, measure.cutoff).value
        return measure.of_exposure(block.exposed(exposure))
    raise UsageError(f"{measure} is not a measure of single rankings; use fairevals.evaluate")


def _numbers(values: Any, name: str) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        expected = "expected numbers, and rows of one length"
        raise UsageError(f"{name} is {escape(repr(values))}; {expected}") from None
    for wrong in numbers[np.abs(numbers) > LARGEST][:1].tolist():
        raise UsageError(f"{name} has the number {wrong:g}; expected numbers of at most {LARGEST:g}")
    return numbers


def _all_judged(ideal: Any, rankings: int) -> Floats:
    judged = _numbers(ideal, "ideal")
    if judged.ndim not in (1, 2) or (judged.ndim == 2 and len(judged) != rankings):
        shapes = f"(m,), or ({rankings}, m) for {rankings} rankings"
        raise UsageError(f"ideal has the shape {judged.shape}; expected {shapes}")
    return np.broadcast_to(judged, (rankings, judged.shape[-1]))


def _qrels(ranked: Floats, judged: Floats, *, given: bool) -> Qrels:
    """The judgements of each ranking's topic: the ranked documents, and those that are judged but not ranked."""
    topics, docs, grades = [], [], []
    for topic, (row, ideal) in enumerate(zip(ranked.tolist(), judged.tolist(), strict=True)):
        known = {str(rank): grade for rank, grade in enumerate(row) if grade == grade}
        if given:
            rest = Counter(grade for grade in ideal if grade == grade)
            rest.subtract(known.values())
            for grade, count in rest.items():
                if grade > 0 and count < 0:
                    found = f"ideal lacks a grade {grade:g} that the ranking has"
                    raise UsageError(f"{found}; expected the grades of all judged documents, ranked or not")
            unranked = [grade for grade, count in rest.items() for _ in range(count)]
            known |= {f"unranked {number}": grade for number, grade in enumerate(unranked)}
        topics += [topic] * len(known)
        docs += list(known)
        grades += list(known.values())
    names = tuple(map(str, range(len(ranked))))
    return Qrels("grades", names, np.array(topics, np.int64), Ids.of(docs), np.array(grades, np.float64))


def _run(ranked: Floats) -> Run:
    """Each row as the ranking of its topic; a document's name is its rank."""
    topics, length = ranked.shape
    docs = Ids.of([str(rank) for rank in range(length)] * topics)
    scores = np.tile(np.arange(length, 0, -1.0), topics)
    lists = [(str(topic), "") for topic in range(topics)]
    return Run("grades", "grades", lists, np.arange(topics + 1) * length, docs, scores, ranked.size, "file")


def _attribute(name: str, ranked: Floats, given: Any, target: Any, kind: str | None) -> Attribute:
    """The attribute of the ranked documents; those that are not ranked have no membership."""
    import pandas as pd

    dtype: Any = getattr(given, "dtype", None)
    groups = getattr(dtype, "categories", None)  # of a pandas Categorical
    if kind is None and getattr(dtype, "ordered", False):
        kind = "ordinal"
    if hasattr(target, "to_dict"):  # a Series
        target = target.to_dict()
    try:
        cells = np.asarray(given, dtype=object)
    except ValueError:  # rows of different lengths
        cells = np.zeros(0, dtype=object)
    at: Sequence[Any]
    nested = any(isinstance(cell, Sized) and not isinstance(cell, str) for cell in cells.flat)
    if cells.shape == ranked.shape and not nested:
        cells = np.atleast_2d(cells)
        at = np.nonzero(~pd.isna(cells))
        columns = {"group": cells[at]}
        if kind == "ordinal" and groups is None and not isinstance(target, Mapping):
            expected = "expected target={group: share} in their order, a Categorical, or shares in each group"
            raise UsageError(f"attribute {escape(name)}: ordinal groups without an order; {expected}")
    elif cells.shape[:-1] == ranked.shape:
        shares = _numbers(given, "groups").reshape(-1, *cells.shape[-2:])
        *at, group = np.nonzero(shares)
        named = target if isinstance(target, Mapping) else range(cells.shape[-1])
        groups = list(getattr(given, "columns", named))
        if len(groups) != cells.shape[-1]:
            raise UsageError(f"groups has shares in {cells.shape[-1]} groups, and target has {len(groups)}")
        sums = shares.sum(axis=-1)
        off = int(np.count_nonzero((np.abs(sums - 1) > ROW_TOLERANCE) & (sums != 0)))
        if off:
            message = (
                f"groups: the memberships of {pluralize(off, 'document')} do not sum to 1 and were normalised"
            )
            warnings.warn(InputWarning(message), stacklevel=4)
        columns = {"group": np.array(groups, dtype=object)[group], "weight": shares[*at, group]}
    else:
        expected = f"{ranked.shape}, one group for each grade, or {(*ranked.shape, 'groups')} of shares"
        raise UsageError(f"groups is {escape(repr(given))}; expected the shape {expected}")
    columns["topic"], columns["doc"] = (axis.astype(str) for axis in at[:2])
    table = pd.DataFrame(columns)
    return Attribute.of(name, table, groups, kind, "uniform" if target is None else target, unmapped="skip")
