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

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fairevals.errors import UsageError, escape
from fairevals.typing import Floats


class _Model(NamedTuple):
    formula: Callable[..., Floats]
    """The weights of the given ranks, 1..k, and parameters; for `cascade`, without its grades."""
    defaults: dict[str, float] = {}  # noqa: RUF012 -- never changed
    monotone_from: int | None = None


_MODELS = {
    "log2": _Model(lambda k: 1.0 / np.log2(1.0 + k), monotone_from=1),
    "trecfair": _Model(lambda k: 1.0 / np.log2(np.maximum(k, 2.0)), monotone_from=2),
    "rbp": _Model(lambda k, p: np.float64(p) ** (k - 1.0), {"p": 0.8}, 1),
    "reciprocal": _Model(lambda k: 1.0 / k, monotone_from=1),
    "uniform": _Model(np.ones_like, monotone_from=1),
    "geometric": _Model(lambda k, p: p * np.float64(1.0 - p) ** (k - 1.0), {"p": 0.5}, 1),
    "cascade": _Model(lambda k, p, u: np.float64(p) ** (k - 1.0), {"p": 0.8, "u": 0.5}),
}
_LIST = "list"


@dataclass(frozen=True)
class Attention:
    """An attention model: hashable, and its ``str`` is the text that parses back to it.

    ``name`` is that of the table above with its parameters in order, or "list" with the weights themselves.

    >>> parse_attention("geometric(0.25)") == Attention("geometric", (0.25,))
    True
    """

    name: str
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.name == _LIST:
            if not self.parameters:
                raise UsageError("a list attention needs at least one number")
            if not all(math.isfinite(number) and number >= 0 for number in self.parameters):
                got = list(self.parameters)
                raise UsageError(f"attention weights must be finite and not negative, got {got}")
            return
        for name, value in zip(_MODELS[self.name].defaults, self.parameters, strict=True):
            if not 0 <= value <= 1:
                raise UsageError(f"{self.name}: {name} must lie between 0 and 1, got {value}")
        if self.name == "geometric" and self.parameters[0] == 0:
            raise UsageError("geometric(p): p must be above 0, or no rank would be seen")

    @property
    def looks_at_grades(self) -> bool:
        """Whether the weight of a rank depends on the grades of the documents above it."""
        return self.name == "cascade"

    @property
    def monotone_from(self) -> int | None:
        """The rank from which v_k, v_{k+1}, … is completely monotone, None if that is not known.

        Such weights are a mixture of geometric sequences; exact exposure needs far fewer quadrature nodes for them.
        """
        return None if self.name == _LIST else _MODELS[self.name].monotone_from

    def weights(self, k: int) -> Floats:
        """Weights of ranks 1..k, shape ``(k,)``. Raises `UsageError` if they depend on grades.

        >>> parse_attention("trecfair").weights(4).round(4)
        array([1.    , 1.    , 0.6309, 0.5   ])
        """
        if self.looks_at_grades:
            raise UsageError(
                f"the attention {self} depends on the grades of the documents ranked above: "
                "its weights are known only for a given ranking (weights_given)"
            )
        if k < 0:
            raise UsageError(f"the number of ranks must not be negative, got {k}")
        if self.name == _LIST:
            weights = np.zeros(k)
            weights[: len(self.parameters)] = self.parameters[:k]
            return weights
        return _MODELS[self.name].formula(np.arange(1, k + 1, dtype=np.float64), *self.parameters)

    def weights_given(self, grades: ArrayLike) -> Floats:
        """Weights of the ranks of lists whose documents have these grades, shape of ``grades`` (…, k).

        Only ``cascade`` depends on the grades; the others repeat ``weights(k)``.

        >>> parse_attention("cascade(0.9,0.5)").weights_given([0, 1, 0, 2]).round(5)
        array([1.    , 0.9   , 0.405 , 0.3645])
        """
        given = np.asarray(grades)
        if not self.looks_at_grades:
            return np.broadcast_to(self.weights(given.shape[-1]), given.shape).copy()
        patience, satisfied = self.parameters
        stays = np.where(given > 0, 1.0 - satisfied, 1.0)
        unsatisfied = np.ones_like(stays)
        np.cumprod(stays[..., :-1], axis=-1, out=unsatisfied[..., 1:])
        return Attention("rbp", (patience,)).weights(given.shape[-1]) * unsatisfied

    def __str__(self) -> str:
        if self.name == _LIST:
            return str(list(self.parameters))
        return f"{self.name}({','.join(map(repr, self.parameters))})" if self.parameters else self.name


AttentionLike: TypeAlias = str | Sequence[float] | Floats | Attention


def parse_attention(attention: AttentionLike) -> Attention:
    """The attention model for its text, for a sequence of numbers, or for a model (returned unchanged).

    Parameters can be given by position or by name; by default ``p`` is 0.8 (``geometric``: 0.5) and ``u`` 0.5.
    Anything else raises a `UsageError`.

    >>> str(parse_attention("cascade(u=0.3)"))
    'cascade(0.8,0.3)'
    >>> parse_attention("dcg")
    Traceback (most recent call last):
        ...
    fairevals.errors.UsageError: unknown attention 'dcg': known are log2, trecfair, rbp(p), reciprocal, uniform, \
geometric(p), cascade(p,u), or a list of numbers
    """
    if isinstance(attention, Attention):
        return attention
    known = ", ".join(map(_signature, _MODELS)) + ", or a list of numbers"
    if not isinstance(attention, str):
        try:
            numbers = tuple(float(number) for number in attention)
        except (TypeError, ValueError):
            raise UsageError(f"unknown attention {escape(repr(attention))}: known are {known}") from None
        return Attention(_LIST, numbers)
    stripped = attention.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        return Attention(_LIST, tuple(_number(attention, part) for part in _parts(stripped[1:-1])))
    match = re.fullmatch(r"(\w+)\s*(?:\((.*)\))?", stripped)
    if match is None or match[1] not in _MODELS:
        raise UsageError(f"unknown attention {escape(attention)!r}: known are {known}")
    defaults = _MODELS[match[1]].defaults
    names = list(defaults)
    parameters: dict[str, float] = {}
    for position, part in enumerate(_parts(match[2] or "")):
        name, equals, value = part.rpartition("=")
        name = name.strip() if equals else "".join(names[position : position + 1])
        if name not in names or name in parameters:
            expected = _signature(match[1])
            wrong = f"attention {escape(attention)!r} has a wrong parameter {escape(part)!r}"
            raise UsageError(f"{wrong}: expected {expected}")
        parameters[name] = _number(attention, value)
    return Attention(match[1], tuple({**defaults, **parameters}.values()))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        found = f"{escape(value.strip())!r} where a number is expected"
        raise UsageError(f"attention {escape(text)!r} has {found}") from None


def _signature(name: str) -> str:
    names = ",".join(_MODELS[name].defaults)
    return f"{name}({names})" if names else name
