"""What a measure is: a declaration (name, parameters, direction, formula, source) above a pure function.

A *ranking* measure is a function of the documents at each rank; its expectation under a policy is taken
outside. An *exposure* measure is a function of each document's expected exposure on a topic. A measure
*across topics* is a function of the exposures on all topics together, and has one value per run. None of
them knows which policy the arrays came from.
"""

from __future__ import annotations

import dataclasses
import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fairevals.attention import Attention, parse_attention
from fairevals.collection import Exposed, ExposedTopics, Ranked, View
from fairevals.errors import UsageError, escape
from fairevals.measures.numeric import divide, rank_sum
from fairevals.typing import Bools, Floats


@dataclass(frozen=True)
class Direction:
    """Which of two values is the better one: the higher, the lower, the one nearer to a target, or none of them."""

    word: str
    target: float | None = None

    def cost(self, value: Floats | float) -> Any:
        """A number that is smaller the better the value is; NaN stays NaN, and all is NaN without a direction."""
        if self.word == "none":
            return np.multiply(value, np.nan)
        if self.target is not None:
            return np.abs(np.subtract(value, self.target))
        return np.negative(value) if self.word == "higher" else np.asarray(value)

    @property
    def arrow(self) -> str:
        """A sign for table heads: ↑ higher is better, ↓ lower is better, →x nearer to x is better, or nothing."""
        return {"higher": "↑", "lower": "↓", "none": ""}.get(self.word, f"→{self.target or 0:g}")

    @property
    def words(self) -> str:
        """For readers: "higher is better" and so on."""
        return "no direction" if self.word == "none" else f"{self} is better"

    def __str__(self) -> str:
        return f"nearer to {self.target:g}" if self.target is not None else self.word


HIGHER = Direction("higher")
LOWER = Direction("lower")
NEUTRAL = Direction("none")
"""Of a count such as the number of retrieved documents: no value is better than another."""


def near(target: float) -> Direction:
    """The direction of a measure that is best at one value, such as a log-ratio at 0."""
    return Direction("target", target)


def param(
    default: Any, meaning: str, *, choices: tuple[Any, ...] = (), check: Callable[[Any], bool] | None = None
) -> Any:
    """Declare a parameter: default, meaning, and what values it may have (`choices`, or `check`)."""
    return field(default=default, metadata={"meaning": meaning, "choices": choices, "check": check})


def unit(value: Any) -> bool:
    """Whether a parameter is a number in [0, 1]."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def positive(value: Any) -> bool:
    """Whether a parameter is a number above 0."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def named(value: Any) -> bool:
    """Whether a parameter is a name: some text."""
    return isinstance(value, str) and value != ""


def optional(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The same check of a parameter that may also be None."""
    return lambda value: value is None or check(value)


def attr_param() -> Any:
    """The declaration of the parameter `attr` in every measure that needs an attribute."""
    return param(None, "the attribute's name", check=named)


M = TypeVar("M", bound="Measure")


class MeasureType(ABCMeta):
    """The class of the measures' classes: `nDCG @ 10` is `nDCG(cutoff=10)`, and `nDCG` prints as nDCG."""

    def __matmul__(cls: type[M], cutoff: int) -> M:  # type: ignore[misc] # the class of classes is `type`
        return cls(cutoff=cutoff)

    def __repr__(cls) -> str:
        name = getattr(cls, "name", None)
        return name if isinstance(name, str) else super().__repr__()

    @property
    def __signature__(cls) -> inspect.Signature:
        """That of the class, which `__call__` below would hide from help and completion."""
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]
        return signature.replace(
            parameters=list(signature.parameters.values())[1:], return_annotation=signature.empty
        )

    if not TYPE_CHECKING:  # type checkers know the parameters of each measure

        def __call__(cls, *args: Any, **params: Any) -> Any:
            fields = {f.name for f in dataclasses.fields(cls)}
            for key in (key for key in params if key not in fields):
                known = sorted(f.name for f in cls.parameters())
                takes = f"it takes {', '.join(known)}" if known else "it takes none"
                raise UsageError(f"{cls!r} has no parameter {escape(key)!r} ({takes})")
            try:
                return super().__call__(*args, **params)
            except TypeError:
                _check_arguments(cls, args, params)
                raise


def _check_arguments(cls: type, args: tuple[Any, ...], params: dict[str, Any]) -> None:
    """A `UsageError` unless the measure can be called like this."""
    try:
        inspect.signature(cls).bind(*args, **params)
    except TypeError as error:
        raise UsageError(
            f"{cls!r} of {escape(repr(args))}: {error}; expected {inspect.signature(cls)}"
        ) from None


def _literal(value: Any) -> Any:
    """A parameter's value as something that can be hashed, compared, and printed so that it reads back."""
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, Attention):
        return str(value)
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True)
class Measure(metaclass=MeasureType):
    """A measure with its parameters set. Subclasses are frozen dataclasses whose fields are the parameters.

    `measure @ 10` is the same measure at another cutoff. `str(measure)` is its name in ir-measures' grammar,
    parameters at their default left out; `parse_measure` reads it back, and so does Python.

    >>> from fairevals import nDCG
    >>> nDCG(dcg="exp-log2") @ 10
    nDCG(dcg='exp-log2')@10
    >>> nDCG @ 10 == nDCG(cutoff=10)
    True
    """

    name: ClassVar[str]
    """As in `NAME(param=value)@cutoff`."""
    direction: ClassVar[Direction]
    formula: ClassVar[str]
    """One line of plain text, in the words of the design."""
    source: ClassVar[str]
    """Who defined it: author, title, venue, year."""
    attributes: ClassVar[str] = "none"
    """Which attributes it needs: "none", "one" (its parameter `attr`), or "all" that apply to a topic."""
    missing: ClassVar[float] = float("nan")
    """Its value on a judged topic that a run leaves out: 0 for utility, GF and GFR; undefined for the rest."""
    aggregation: ClassVar[str] = "mean"
    """How the values of topics become one: "mean", or "sum" for counts."""

    cutoff: int | None = field(default=None, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = Measure.__repr__  # type: ignore[method-assign] # or `dataclass` writes another

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):
            object.__setattr__(self, f.name, _literal(getattr(self, f.name)))
        for f in self.parameters():
            value, choices, check = getattr(self, f.name), f.metadata["choices"], f.metadata["check"]
            if (choices and value not in choices) or (check and not check(value)):
                wanted = f"one of {', '.join(map(repr, choices))}" if choices else f.metadata["meaning"]
                if value is None:
                    raise UsageError(f"{self.name} requires {f.name}='…' ({wanted})")
                wrong = f"{f.name}={escape(repr(value))} is not a possible value ({wanted})"
                raise UsageError(f"{self.name}: {wrong}")
        if self.cutoff is not None and (type(self.cutoff) is not int or self.cutoff < 1):
            raise UsageError(
                f"{self.name}: the cutoff is {escape(repr(self.cutoff))}; expected a whole number above 0"
            )

    @classmethod
    def parameters(cls) -> list[dataclasses.Field[Any]]:
        """The declared parameters, in the order of a printed name."""
        declared = [f for f in dataclasses.fields(cls) if "meaning" in f.metadata]
        # The inherited parameter comes last in a name: D_group(attr='SEX',attention='rbp(0.8)').
        return sorted(declared, key=lambda f: f.name == "attention")

    def with_cutoff(self, cutoff: int | None) -> Self:
        """The same measure at the given cutoff, unless it has one of its own."""
        return self if self.cutoff or cutoff is None else dataclasses.replace(self, cutoff=cutoff)

    def __matmul__(self, cutoff: int) -> Self:
        return dataclasses.replace(self, cutoff=cutoff)

    def __call__(
        self,
        grades: ArrayLike,
        *,
        ideal: ArrayLike | None = None,
        max_grade: float | None = None,
        groups: Any = None,
        target: Any = None,
        kind: str | None = None,
    ) -> Any:
        """The value of a ranking, from the grades of its documents; NaN where it is undefined.

        It is what `fairevals.evaluate` gives for a run with this ranking, and convenient for examples and tests.

        Args:
            grades: the grades of the ranked documents, best rank first, NaN for unjudged: `(n,)` for one ranking, or
                `(rankings, n)`, each of a topic of its own.
            ideal: the grades of all judged documents, ranked or not; by default of those that are ranked.
            max_grade: the largest grade that a document can have; by default the largest one there is.
            groups: for a measure with an attribute, the group of each ranked document (None: unknown), or its shares
                in each group, `(n, groups)`, whose names are the columns of a DataFrame; with the leading axis of
                `grades` if it has one. The groups of judged documents that are not ranked are unknown.
            target: as for `fairevals.Attribute.of`: "uniform" (the default), "relevant", one share for each group in
                the order of their names, or `{group: share}`, which also gives their order.
            kind: "nominal" or "ordinal"; by default nominal, except for an ordered Categorical. Ordinal groups need a
                target `{group: share}` for their order, a Categorical, or shares.

        Returns:
            A number, or an array `(rankings,)`.

        >>> from fairevals import AWRF, nDCG
        >>> round((nDCG @ 10)([2, 0, 1], ideal=[2, 1]), 4)
        0.9502
        >>> AWRF(attr="SEX")([[1, 1], [1, 0]], groups=[["f", "m"], ["f", "f"]]).round(4)
        array([0.9906, 0.6887])
        """
        from fairevals.measures.arrays import value_of_arrays

        return value_of_arrays(self, grades, ideal, max_grade, groups, target, kind)

    @property
    def depth(self) -> int | None:
        """How many ranks it looks at; None for the whole ranking."""
        return self.cutoff

    @property
    def needs_all_documents(self) -> bool:
        """Whether it looks at documents that were judged but not retrieved (beyond their grades in the ideal)."""
        return False

    @property
    def is_utility(self) -> bool:
        """Whether it measures utility alone: a topic that a run leaves out is then worth 0."""
        return self.missing == 0 and self.attributes == "none"

    @property
    def across_topics(self) -> bool:
        """Whether it has one value for all topics of a run together, and none for a topic."""
        return False

    def of_missing(self, raw_grades: Floats, conventions: str) -> Floats | float:
        """The value on topics that a run leaves out, from the grades (topics, documents) of the judged documents."""
        return self.missing

    def attributes_used(self) -> tuple[str, ...]:
        """The attributes that it names."""
        attr = getattr(self, "attr", None)
        return (attr,) if attr else ()

    def __str__(self) -> str:
        values = [(f.name, getattr(self, f.name), f.default) for f in self.parameters()]
        given = ",".join(f"{name}={value!r}" for name, value, default in values if value != default)
        at = f"@{self.cutoff}" if self.cutoff is not None else ""
        return self.name + (f"({given})" if given else "") + at

    def __repr__(self) -> str:
        return str(self)


class RankingMeasure(Measure):
    """A measure of one ranking: a function of arrays whose last axis is the rank."""

    @abstractmethod
    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each leading index (topics, or topics × samples); NaN where undefined."""

    def weight(self, ranked: Ranked) -> Floats | None:
        """How much each ranking counts in the mean over a policy's; None: 1 where its value is defined, else 0."""
        return None

    def terms(self, view: View) -> tuple[RankingMeasure, ...]:
        """The measures whose means over a policy's rankings make up that of this one; by default itself."""
        return (self,)

    def combine(self, values: Sequence[Floats], view: View) -> Floats:
        """The value from those of `terms`."""
        return values[0]


def attention_param(meaning: str = "attention model, such as 'log2' or 'rbp(0.8)'") -> Any:
    """The declaration of the parameter `attention`, the same in every measure that has it."""
    return param("log2", meaning, check=bool)


class WithAttention(Measure):
    """A measure that weights ranks by an attention model."""

    attention: str | tuple[float, ...]

    @cached_property
    def attention_model(self) -> Attention:
        """The model that `attention` names."""
        try:
            return parse_attention(self.attention)
        except UsageError as error:
            raise UsageError(f"{self.name}: {error}") from None

    def of_exposure(self, exposed: Exposed) -> Floats:
        """The value for each topic, from exposures under `attention` cut at `cutoff`; NaN where undefined."""
        return self.value_and_gradient(exposed)[0]

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """The value, and ∂value/∂exposure (topics, documents), 0 on topics where the value is undefined.

        Both at once, because they share work. A measure without a gradient overrides `of_exposure` alone.
        """
        raise UsageError(f"{self} has no gradient, so it cannot be trained for")

    def smoothed(self, exposed: Exposed, smoothing: float) -> tuple[Floats, Floats]:
        """Value and gradient with each max(0, ·) and |·| rounded off (see `hinge`); without these, as they are."""
        return self.value_and_gradient(exposed)


class LinearMeasure(WithAttention, RankingMeasure):
    """A ranking measure that is Σ_k v_k·worth(document at rank k)/scale, v the attention of the ranks.

    Its expectation under any policy is then Σ_d ε_d·worth_d/scale, without sampling.
    """

    @abstractmethod
    def worth(self, view: View) -> Floats:
        """What each document is worth, (…, document or rank); 0 for padding."""

    @abstractmethod
    def scale(self, view: View) -> Floats | float:
        """What the sum is divided by, for each topic; the value is undefined where it is 0."""

    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each ranking; NaN where undefined."""
        cut = ranked.cut(self.cutoff)
        weights = self.attention_model.weights(cut.grades.shape[-1])
        total = rank_sum(self.worth(cut) * weights)
        scale = np.broadcast_to(self.scale(ranked), total.shape)
        return divide(total, scale, scale > 0)

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """The expected value, and worth/scale; NaN and 0 where undefined."""
        worth = self.worth(exposed)
        scale = np.broadcast_to(self.scale(exposed), worth.shape[:-1])
        value = divide(rank_sum(exposed.exposure * worth), scale, scale > 0)
        return value, divide(worth, scale[..., None], (scale > 0)[..., None], otherwise=0.0)


@dataclass(frozen=True)
class ExposureMeasure(WithAttention):
    """A measure of the documents' expected exposures."""

    attention: str | tuple[float, ...] = attention_param()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.attention_model  # noqa: B018 -- an attention that cannot be parsed is an error now

    @property
    def depth(self) -> int | None:
        """None: a document retrieved below the cutoff has exposure 0, but it is there."""
        return None

    @property
    def needs_all_documents(self) -> bool:
        """Exposure measures consider every document retrieved or judged."""
        return True

    def topics_used(self, exposed: ExposedTopics) -> Bools:
        """(topics,): on which a measure across topics is defined: its attribute applies, the run ranks documents."""
        used = exposed.ranked
        for name in self.attributes_used():
            used = used & exposed.applies(name)
        return used

    def of_topics(self, exposed: ExposedTopics, weights: Floats) -> Floats:
        """The value of a measure across topics if each topic counts as often as `weights` (samples, topics) says.

        (samples,), NaN where undefined. All topics are among `topics_used`.
        """
        raise NotImplementedError(f"{self} is not a measure across topics")


class AcrossTopicsMeasure(ExposureMeasure):
    """A measure of the documents' exposures on all topics together: override `of_topics`."""

    @property
    def across_topics(self) -> bool:
        return True


class CompositeMeasure(Measure):
    """A measure made of others' values on a topic, such as a product."""

    @abstractmethod
    def parts(self) -> tuple[Measure, ...]:
        """The measures it is made of, each at its own cutoff."""

    @abstractmethod
    def combine(self, values: tuple[Floats, ...]) -> Floats:
        """The value for each topic from the values of `parts`, NaN where undefined."""
