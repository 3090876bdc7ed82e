"""Attention: how much of a user's attention each rank gets.

An attention model gives the weight ``v_k`` of rank ``k``; a document's exposure is the expected weight of its
rank. A model can be given as text everywhere:

==================  =====================================  ===================================================
text                weight of rank k                       from
==================  =====================================  ===================================================
``log2``            1 / log2(1 + k)                        Järvelin & Kekäläinen 2002, the discount of DCG
``trecfair``        1 / log2(max(k, 2))                    TREC Fair Ranking 2021 and 2022
``rbp(p)``          p^(k−1)                                Moffat & Zobel 2008, not normalised
``reciprocal``      1 / k                                  ERR's and RR's discount
``uniform``         1                                      every rank gets the same attention
``geometric(p)``    p (1 − p)^(k−1)                        Sapiezynski et al. 2019; sums to 1
``cascade(p,u)``    p^(k−1) Π_{j<k} (1 − u [g_j > 0])      Diaz et al. 2020; depends on the grades shown above
``[1, 0.5, …]``     the numbers, 0 beyond their end        any weights of your own
==================  =====================================  ===================================================

>>> parse_attention("rbp(p=0.5)").weights(4)
array([1.   , 0.5  , 0.25 , 0.125])
>>> str(parse_attention([1, 0.5]))
'[1.0, 0.5]'
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fairevals.typing import Floats


@dataclass(frozen=True)
class Attention(ABC):
    """Base of the attention models: hashable, and its ``str`` is the text that parses back to it.

    >>> parse_attention(str(Geometric(0.25))) == Geometric(0.25)
    True
    """

    name: ClassVar[str]
    looks_at_grades: ClassVar[bool] = False
    # The rank from which v_k, v_{k+1}, … is completely monotone (a mixture of geometric sequences), None if
    # that is not known. Exact exposure needs far fewer quadrature nodes for such weights.
    monotone_from: ClassVar[int | None] = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 <= value <= 1:
                raise ValueError(f"{self.name}: {field.name} must lie between 0 and 1, got {value}")

    def weights(self, k: int) -> Floats:
        """Weights of ranks 1..k, shape ``(k,)``. Raises ValueError if they depend on grades (`Cascade`)."""
        if k < 0:
            raise ValueError(f"the number of ranks must not be negative, got {k}")
        return self._at(np.arange(1, k + 1, dtype=np.float64))

    @abstractmethod
    def _at(self, ranks: Floats) -> Floats:
        """Weights of ``ranks``, which are 1..k."""

    def weights_given(self, grades: ArrayLike) -> Floats:
        """Weights of the ranks of lists whose documents have these grades, shape of ``grades`` (…, k).

        Only `Cascade` depends on the grades; the others repeat ``weights(k)``.

        >>> Reciprocal().weights_given([[2, 0], [0, 1]])
        array([[1. , 0.5],
               [1. , 0.5]])
        """
        shape = np.shape(grades)
        return np.broadcast_to(self.weights(shape[-1]), shape).copy()

    def __str__(self) -> str:
        parameters = ",".join(repr(float(getattr(self, field.name))) for field in fields(self))
        return f"{self.name}({parameters})" if parameters else self.name


AttentionLike: TypeAlias = str | Sequence[float] | Floats | Attention


@dataclass(frozen=True)
class Log2(Attention):
    """``v_k = 1 / log2(1 + k)``, the discount of DCG (Järvelin & Kekäläinen 2002).

    >>> Log2().weights(3).round(4)
    array([1.    , 0.6309, 0.5   ])
    """

    name: ClassVar[str] = "log2"
    monotone_from: ClassVar[int | None] = 1

    def _at(self, ranks: Floats) -> Floats:
        return 1.0 / np.log2(1.0 + ranks)


@dataclass(frozen=True)
class TrecFair(Attention):
    """``v_k = 1 / log2(max(k, 2))``, TREC Fair Ranking's: ranks 1 and 2 weigh the same.

    >>> TrecFair().weights(4).round(4)
    array([1.    , 1.    , 0.6309, 0.5   ])
    """

    name: ClassVar[str] = "trecfair"
    monotone_from: ClassVar[int | None] = 2

    def _at(self, ranks: Floats) -> Floats:
        return 1.0 / np.log2(np.maximum(ranks, 2.0))


@dataclass(frozen=True)
class Rbp(Attention):
    """``v_k = p^(k−1)``: a user continues to the next rank with probability ``p`` (Moffat & Zobel 2008).

    The weights are the probabilities of seeing a rank, without rank-biased precision's factor 1 − p.

    >>> Rbp(0.5).weights(3)
    array([1.  , 0.5 , 0.25])
    """

    p: float = 0.8
    name: ClassVar[str] = "rbp"
    monotone_from: ClassVar[int | None] = 1

    def _at(self, ranks: Floats) -> Floats:
        return np.float64(self.p) ** (ranks - 1.0)


@dataclass(frozen=True)
class Reciprocal(Attention):
    """``v_k = 1 / k``.

    >>> Reciprocal().weights(4)
    array([1.        , 0.5       , 0.33333333, 0.25      ])
    """

    name: ClassVar[str] = "reciprocal"
    monotone_from: ClassVar[int | None] = 1

    def _at(self, ranks: Floats) -> Floats:
        return 1.0 / ranks


@dataclass(frozen=True)
class Uniform(Attention):
    """``v_k = 1``: with a cutoff, exposure is the probability of being shown at all.

    >>> Uniform().weights(3)
    array([1., 1., 1.])
    """

    name: ClassVar[str] = "uniform"
    monotone_from: ClassVar[int | None] = 1

    def _at(self, ranks: Floats) -> Floats:
        return np.ones_like(ranks)


@dataclass(frozen=True)
class Geometric(Attention):
    """``v_k = p (1 − p)^(k−1)``: a user stops at each rank with probability ``p`` (Sapiezynski et al. 2019).

    >>> Geometric(0.5).weights(3)
    array([0.5  , 0.25 , 0.125])
    """

    p: float = 0.5
    name: ClassVar[str] = "geometric"
    monotone_from: ClassVar[int | None] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p == 0:
            raise ValueError("geometric(p): p must be above 0, or no rank would be seen")

    def _at(self, ranks: Floats) -> Floats:
        return self.p * np.float64(1.0 - self.p) ** (ranks - 1.0)


@dataclass(frozen=True)
class Cascade(Attention):
    """``v_k = p^(k−1) Π_{j<k} (1 − u [g_j > 0])``: patience ``p``, and satisfied users stop.

    Each relevant document (grade above 0) satisfies a user with probability ``u`` (Diaz et al. 2020).
    ``cascade(p,0)`` is ``rbp(p)``.

    >>> Cascade(0.9, 0.5).weights_given([0, 1, 0, 2]).round(5)
    array([1.    , 0.9   , 0.405 , 0.3645])
    """

    p: float = 0.8
    u: float = 0.5
    name: ClassVar[str] = "cascade"
    looks_at_grades: ClassVar[bool] = True

    def _at(self, ranks: Floats) -> Floats:
        raise ValueError(
            f"the attention {self} depends on the grades of the documents ranked above: "
            "its weights are known only for a given ranking (weights_given)"
        )

    def weights_given(self, grades: ArrayLike) -> Floats:
        """Weights of the ranks of lists whose documents have these grades, shape of ``grades`` (…, k)."""
        stays = np.where(np.asarray(grades) > 0, 1.0 - self.u, 1.0)
        unsatisfied = np.ones_like(stays)
        np.cumprod(stays[..., :-1], axis=-1, out=unsatisfied[..., 1:])
        return Rbp(self.p).weights(stays.shape[-1]) * unsatisfied


@dataclass(frozen=True)
class Weights(Attention):
    """The given numbers as the weights of ranks 1, 2, …; 0 beyond their end.

    >>> Weights((1.0, 0.5)).weights(4)
    array([1. , 0.5, 0. , 0. ])
    """

    numbers: tuple[float, ...]
    name: ClassVar[str] = "list"

    def __post_init__(self) -> None:
        if not self.numbers:
            raise ValueError("a list attention needs at least one number")
        if not all(math.isfinite(number) and number >= 0 for number in self.numbers):
            raise ValueError(f"attention weights must be finite and not negative, got {list(self.numbers)}")

    def _at(self, ranks: Floats) -> Floats:
        weights = np.zeros_like(ranks)
        given = self.numbers[: len(ranks)]
        weights[: len(given)] = given
        return weights

    def __str__(self) -> str:
        return str([float(number) for number in self.numbers])


_MODELS: dict[str, type[Attention]] = {
    model.name: model for model in (Log2, TrecFair, Rbp, Reciprocal, Uniform, Geometric, Cascade)
}


def parse_attention(attention: AttentionLike) -> Attention:
    """The attention model for its text, for a sequence of numbers, or for a model (returned unchanged).

    Parameters can be given by position or by name; their defaults are those of the model's class. Anything
    else raises a ValueError.

    >>> parse_attention("cascade(0.9, u=0.3)")
    Cascade(p=0.9, u=0.3)
    >>> parse_attention("dcg")
    Traceback (most recent call last):
        ...
    ValueError: unknown attention 'dcg': known are log2, trecfair, rbp(p), reciprocal, uniform, \
geometric(p), cascade(p,u), or a list of numbers
    """
    if isinstance(attention, Attention):
        return attention
    if isinstance(attention, str):
        return _parse_text(attention)
    try:
        return Weights(tuple(float(number) for number in attention))
    except TypeError:
        raise ValueError(f"unknown attention {attention!r}: known are {_known()}") from None


def _parse_text(text: str) -> Attention:
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        return Weights(tuple(_number(text, part) for part in _parts(stripped[1:-1])))
    match = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", stripped)
    model = _MODELS.get(match[1]) if match else None
    if match is None or model is None:
        raise ValueError(f"unknown attention {text!r}: known are {_known()}")
    names = [field.name for field in fields(model)]
    parameters: dict[str, float] = {}
    for position, part in enumerate(_parts(match[2] or "")):
        name, equals, value = part.rpartition("=")
        name = name.strip() if equals else (names[position] if position < len(names) else "")
        if name not in names or name in parameters:
            expected = _signature(model)
            raise ValueError(f"attention {text!r} has a wrong parameter {part!r}: expected {expected}")
        parameters[name] = _number(text, value)
    return model(**parameters)


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"attention {text!r} has {value.strip()!r} where a number is expected") from None


def _signature(model: type[Attention]) -> str:
    names = ",".join(field.name for field in fields(model))
    return f"{model.name}({names})" if names else model.name


def _known() -> str:
    return ", ".join(_signature(model) for model in _MODELS.values()) + ", or a list of numbers"
