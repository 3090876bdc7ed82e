"""Expected exposure of documents and groups, with merit and target beside it."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairevals.attention import Attention, AttentionLike, parse_attention
from fairevals.collection.blocks import Block
from fairevals.collection.collection import Collection
from fairevals.collection.spelling import variant_remarks
from fairevals.errors import InputWarning, UsageError, check_known, escape
from fairevals.evaluation.plan import OpenRun, Plan, open_run, policy_remarks
from fairevals.evaluation.scores import ALL
from fairevals.io.specs import PolicySpec
from fairevals.measures.expected_exposure import ideal_exposure
from fairevals.measures.group_sums import group_means, group_sums
from fairevals.measures.merits import MERITS, merit
from fairevals.measures.shares import shares_of_sum
from fairevals.policy.plackett_luce import AGREED, Estimate
from fairevals.policy.policies import Exposure, PlackettLuceRun, Policy, generator, jackknife
from fairevals.typing import Bools, Floats


@dataclass(frozen=True)
class DocumentRow:
    """One document of a topic."""

    topic: str
    doc: str
    exposure: float
    se: float
    """NaN where the exposure is exact."""
    merit: float
    target: float
    """The exposure it would have if documents of equal grade shared the ranks of an ideal order (Diaz et al. 2020)."""


@dataclass(frozen=True)
class GroupRow:
    """One group of an attribute on a topic, or (`topic` is "all") in the mean over topics."""

    topic: str
    attribute: str
    group: str
    exposure: float
    se: float
    share: float
    """The share of the exposure of all groups; NaN where there is no exposure."""
    target: float
    """The share that the attribute's target asks for."""
    merit: float
    """Mean merit of the group's candidates, weighted by membership."""


@dataclass(frozen=True)
class ExposureQuery:
    """Which exposure to compute."""

    policy: PolicySpec
    attention: AttentionLike = "log2"
    cutoff: int | None = None
    method: str = "exact"
    """"exact", or "mc": the mean over sampled rankings with its standard error (Plackett-Luce only)."""
    merit: str = "identity"

    def __post_init__(self) -> None:
        check_known("merit", self.merit, MERITS)
        check_known("method", self.method, ("exact", "mc"))
        if self.cutoff is not None and (not isinstance(self.cutoff, int) or self.cutoff < 1):
            raise UsageError(f"the cutoff is {escape(repr(self.cutoff))}; expected a whole number above 0")

    @cached_property
    def model(self) -> Attention:
        """The attention model; a wrong name is a `UsageError`."""
        return parse_attention(self.attention)


def _open(
    source: Any, collection: Collection, query: ExposureQuery, attributes: Sequence[str] = ()
) -> OpenRun:
    if query.method == "mc" and query.policy.kind != "pl":
        raise UsageError("the method 'mc' needs the policy 'pl', from which it draws rankings")
    if query.method == "exact" and query.model.looks_at_grades and query.policy.kind == "pl":
        raise UsageError(f"the attention {query.model} has no exact exposure; use the method 'mc'")
    opened = open_run(source, collection, Plan.reading(query.policy, attributes))
    tag = opened.run.tag
    spelled = variant_remarks(opened.run, collection.qrels)
    for remark in (*policy_remarks(query.policy, [opened.diagnosed()]), *spelled):
        warnings.warn(InputWarning(f"{escape(tag)}: {remark}"), stacklevel=2)
    return opened


def _estimate(policy: Policy, block: Block, query: ExposureQuery) -> Estimate:
    """Each document's exposure, with its standard error under the method "mc"."""
    if query.method != "mc" or not isinstance(policy, PlackettLuceRun):
        return Estimate(policy.exposure(block, query.model, query.cutoff).value)
    return policy.policy(block).exposure(
        query.model,
        k=query.cutoff,
        method="mc",
        samples=policy.samples,
        rng=[generator(policy.seed, policy.run, topic) for topic in block.topics],
        grades=block.grades,
    )


def document_exposures(source: Any, collection: Collection, query: ExposureQuery) -> Iterator[DocumentRow]:
    """Every document retrieved or judged, by topic; the most exposed first."""
    opened = _open(source, collection, query)
    for block in opened.blocks():
        estimate = _estimate(opened.policy, block, query)
        target = nothing = np.full(block.row.shape, np.nan)
        if not query.model.looks_at_grades:  # else the attention of a rank depends on the documents above it
            target = ideal_exposure(block.exposed(estimate.value), query.model, query.cutoff)
        se = nothing if estimate.se is None else estimate.se
        columns = (estimate.value, se, merit(block.grades, query.merit), target)
        names = block.documents.texts()
        for t, topic in enumerate(block.topics):
            cells = np.flatnonzero(block.present[t])
            order = cells[np.argsort(-estimate.value[t, cells], kind="stable")]
            for c in order.tolist():
                yield DocumentRow(topic, names[block.row[t, c]], *(float(column[t, c]) for column in columns))


def group_exposures(
    source: Any, collection: Collection, query: ExposureQuery, attributes: tuple[str, ...] = ()
) -> Iterator[GroupRow]:
    """Every group of the attributes (all of them by default), by topic, and then in the mean over topics."""
    names = attributes or collection.attribute_names
    if not names:
        raise UsageError("there are no attributes: groups need a task with [attributes.…]")
    loaded = collection.with_attributes(names)
    kept: dict[str, list[tuple[Floats, ...]]] = {name: [] for name in names}
    opened = _open(source, loaded, query, names)
    for block in opened.blocks():
        if query.method == "mc":  # draw, even where it could be computed
            exposure = Policy.exposure(opened.policy, block, query.model, query.cutoff)
        else:
            exposure = opened.policy.exposure(block, query.model, query.cutoff)
        sampled = exposure.left_out is not None
        unseen = opened.policy.agreeing_se(block, query.cutoff) if sampled else np.zeros(len(block.topics))
        for name in names:
            columns = _group_columns(block, name, exposure, query, unseen)
            kept[name].append(columns)
            for t in np.flatnonzero(~np.isnan(columns[0][:, 0])).tolist():
                for g, group in enumerate(block.attributes[name].groups):
                    yield GroupRow(block.topics[t], name, group, *(float(a[t, g]) for a in columns))
    for name in names:
        yield from _mean_rows(name, loaded.attributes[name].spec.groups, kept[name])


def _group_columns(
    block: Block, name: str, exposure: Exposure, query: ExposureQuery, unseen: Floats
) -> tuple[Floats, ...]:
    """Exposure, standard error, share, target and mean merit, each (topics, groups); NaN where it does not apply."""
    view = block.attributes[name]
    sums = group_sums(exposure.value, *view.factors)
    se = np.full(sums.shape, np.nan)
    if exposure.left_out is not None:
        without = np.stack([group_sums(each, *view.factors) for each in exposure.left_out])
        se = np.asarray(jackknife(sums, without).se)
        # As for documents: samples that agree do not make a value certain.
        span = 1.0 if query.model.looks_at_grades else float(np.max(query.model.weights(block.row.shape[1])))
        se = np.where(se < AGREED * span, span * unseen[:, None], se)
    there: Bools = view.applies[:, None] & (block.retrieved > 0)[:, None]
    mean_merit = group_means(merit(block.grades, query.merit), *view.factors, counted=block.is_candidate)
    columns = (sums, se, shares_of_sum(sums), view.target, mean_merit)
    return tuple(np.where(there, a, np.nan) for a in columns)


def _mean_rows(name: str, groups: tuple[str, ...], kept: list[tuple[Floats, ...]]) -> Iterator[GroupRow]:
    """The means over the topics on which the groups have a share."""
    arrays = [np.concatenate([columns[i] for columns in kept]) for i in range(5)]
    defined = ~np.isnan(arrays[2][:, 0])
    if not defined.any():
        return
    exposure, se, share, target, mean_merit = (a[defined] for a in arrays)
    count = len(share)
    errors = np.sqrt((se**2).sum(axis=0)) / count
    for g, group in enumerate(groups):
        merits = mean_merit[:, g][~np.isnan(mean_merit[:, g])]
        yield GroupRow(
            ALL,
            name,
            group,
            exposure=float(exposure[:, g].mean()),
            se=float(errors[g]),
            share=float(share[:, g].mean()),
            target=float(target[:, g].mean()),
            merit=float(merits.mean()) if merits.size else float("nan"),
        )
