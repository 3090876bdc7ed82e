"""What a measure is: a declaration (name, parameters, direction, formula, source) above a pure function.

A *ranking* measure is a function of the documents at each rank; its expectation under a policy is taken
outside. An *exposure* measure is a function of each document's expected exposure on a topic. A measure
*across topics* is a function of the exposures on all topics together, and has one value per run. None of
them knows which policy the arrays came from.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fairevals.attention import Attention, parse_attention
from fairevals.collection import Exposed, ExposedTopics, Ranked, View
from fairevals.errors import UsageError, escape
from fairevals.typing import Array, Bools, Floats, Ints


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


HIGHEST_EXPONENT = 500
"""The highest grade g whose 2^g−1, summed and multiplied, stays a finite number."""


def exponential(grades: Floats) -> Floats:
    """2^g−1; a `UsageError` where that would be too large for a number."""
    highest = float(np.max(grades, initial=0.0))
    if highest > HIGHEST_EXPONENT:
        expected = f"expected at most {HIGHEST_EXPONENT}, as 2^g grows fast"
        raise UsageError(f"the gain or merit 2^g−1 of a grade of {highest:g}; {expected}")
    value: Floats = np.exp2(grades) - 1
    return value


MERITS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda grades: grades,
    "square": np.square,
    "sqrt": np.sqrt,
    "exp": exponential,
    "binary": lambda grades: (grades > 0).astype(np.float64),
}
"""Name of a merit function: the function. All of them give 0 for grade 0 and grow with the grade."""


def merit(grades: Floats, name: str = "identity") -> Floats:
    """The merit M = f(g) of each grade g ≥ 0: g, g², √g, 2^g−1, or 1 where g > 0.

    Singh and Joachims (Policy Learning for Fairness in Ranking, NeurIPS 2019) name the first three; 2^g−1 is
    the gain of Burges et al. (ICML 2005), and `binary` gives every relevant document the same claim.

    >>> merit(np.array([0.0, 1.0, 3.0]), "exp")
    array([0., 1., 7.])
    """
    return MERITS[name](np.asarray(grades, dtype=np.float64))


def merit_param() -> Any:
    """The declaration of the parameter `merit`, the same in every measure that has it."""
    return param("identity", "merit of a grade", choices=tuple(MERITS))


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


class _WithAttention(Measure):
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

    def gradient(self, exposed: Exposed) -> Floats:
        """∂value/∂exposure, (topics, documents); 0 on topics where the value is undefined."""
        return self.value_and_gradient(exposed)[1]

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """Both at once, because they share work; a measure without a gradient overrides `of_exposure` alone."""
        raise UsageError(f"{self} has no gradient, so it cannot be trained for")


class LinearMeasure(_WithAttention, RankingMeasure):
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
class ExposureMeasure(_WithAttention):
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


FEW = 8
"""Up to so many terms, such as groups, numpy adds whole columns faster than it accumulates along the rows."""
MANY = 512
"""From so many sums on, too, if the terms of one are apart in memory, as documents beside thousands of groups are."""


def rank_sum(terms: Array) -> Floats:
    """The sum along the last axis, added strictly from left to right.

    numpy's own sum adds in blocks that depend on the length, so that padding would change the last bit of
    a value, and a score would depend on which other topics share its block. This one never does.

    >>> float(rank_sum(np.array([0.5, 0.25, 0.0])))
    0.75
    """
    if terms.shape[-1] <= FEW or (terms.strides[-1] > terms.itemsize and terms[..., 0].size >= MANY):
        total = np.zeros(terms.shape[:-1])
        for position in range(terms.shape[-1]):
            total += terms[..., position]
        return total
    last: Floats = np.cumsum(terms, axis=-1, dtype=np.float64)[..., -1]
    return last


def stretches(values: Array) -> tuple[Ints, Ints]:
    """The first and the last position of the stretch of equal neighbours that each position is in, on the last axis.

    >>> stretches(np.array([7, 7, 5]))
    (array([0, 0, 2]), array([1, 1, 2]))
    """
    size = values.shape[-1]
    position = np.broadcast_to(np.arange(size), values.shape)
    differs = values[..., 1:] != values[..., :-1]
    edge = np.ones((*values.shape[:-1], min(size, 1)), dtype=bool)
    first = np.where(np.concatenate([edge, differs], axis=-1), position, 0)
    last = np.where(np.concatenate([differs, edge], axis=-1), position, size)
    return np.maximum.accumulate(first, axis=-1), np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]


def divide(above: Array, below: Array, where: Bools, otherwise: float = np.nan) -> Floats:
    """above/below where the condition holds, else `otherwise`; all broadcast.

    >>> divide(np.array([1.0, 1.0]), np.array([4.0, 0.0]), np.array([True, False]))
    array([0.25,  nan])
    """
    if np.all(where):  # the usual case, and much faster
        return np.true_divide(above, below)
    shape = np.broadcast_shapes(np.shape(above), np.shape(below))
    where = np.broadcast_to(where, shape)
    quotient: Floats = np.divide(above, below, out=np.full(shape, otherwise), where=where)
    return quotient


_GRAMMAR = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w]*)\s*(?:\((?P<params>.*)\))?\s*(?:@\s*(?P<cutoff>[0-9]{1,9}(?:\.[0-9]{1,9})?))?\s*",
    re.S,
)


def split_name(text: str) -> tuple[str, Mapping[str, Any], Any]:
    """Take `NAME(param=value, …)@cutoff` apart.

    >>> split_name("GF(attr='HINDEX', div='RNOD')@20")
    ('GF', {'attr': 'HINDEX', 'div': 'RNOD'}, 20)
    """
    expected = "expected NAME, NAME@cutoff or NAME(param=value,…)@cutoff"
    match = _GRAMMAR.fullmatch(text)
    if not match:
        raise UsageError(f"cannot read the measure {escape(text)!r}; {expected}")
    try:
        call = ast.parse(f"f({match['params'] or ''})", mode="eval").body
        # `f(a)(b)` parses too, as a call of a call: only one pair of brackets is meant.
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        params = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords if word.arg}
        if len(params) < len(call.keywords):  # one given twice, or a **
            raise ValueError
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise UsageError(f"cannot read the parameters of the measure {escape(text)!r}; {expected}") from None
    cutoff: Any = match["cutoff"]  # a decimal is for IPrec of ir-measures; others refuse it by themselves
    return match["name"], params, (float(cutoff) if "." in cutoff else int(cutoff)) if cutoff else None
