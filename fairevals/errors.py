"""Errors and warnings about input, all in one form: file, line, what was found, what was expected."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice


class FairevalsError(ValueError):
    """Any error in the input, as opposed to one in the program; commands print it and exit with 1.

    It is a `ValueError`, so that code which knows nothing of this package can catch it.
    """


class UsageError(FairevalsError):
    """A wrong option, measure name, argument or combination; commands print it and exit with 2."""


@dataclass(frozen=True)
class Place:
    """Where something was found: a file, and a line counted from 1 (0: the file as a whole)."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        file = escape(self.file, 300)  # long paths differ mostly at their ends
        return f"{file}:{self.line}" if self.line else file


class InputError(FairevalsError):
    """A file or table that cannot be read as what it should be.

    >>> str(InputError(Place("a.run", 3), "found 5 columns", "6 (topic Q0 doc rank score tag)"))
    'a.run:3: found 5 columns; expected 6 (topic Q0 doc rank score tag)'
    """

    def __init__(self, place: Place, found: str, expected: str = "") -> None:
        super().__init__(f"{place}: {found}" + (f"; expected {expected}" if expected else ""))
        self.place, self.found, self.expected = place, found, expected

    def __reduce__(self) -> tuple[type[InputError], tuple[Place, str, str]]:
        # Exceptions cross process borders (`--jobs`), and the default would call __init__ with the message.
        return (type(self), (self.place, self.found, self.expected))


def pluralize(number: int, noun: str) -> str:
    """A number and its noun.

    >>> pluralize(1, "topic"), pluralize(2000, "error")
    ('1 topic', '2,000 errors')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


class EscapedText(str):
    """Text that is escaped already, so that its `repr` only puts it in quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"'{self}'"


def escape(text: str | bytes, limit: int = 60) -> EscapedText:
    r"""Untrusted text, safe and short enough to print in a message or a table.

    Control characters, separators that are not a plain space and right-to-left marks are escaped.

    >>> print(escape("a\x1b[31m" + "b" * 100))
    a\x1b[31mbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    # Cut before escaping too: what is dropped may be megabytes long.
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[: limit + 1])
    return EscapedText(clean if len(clean) <= limit else clean[: limit - 1] + "…")


def names(items: Iterable[str], most: int = 12) -> str:
    """A list of names for a message: short, and safe to print."""
    first = list(islice(items, most + 1))
    return ", ".join(map(escape, first[:most])) + (", …" if len(first) > most else "")


def abridged(names: Sequence[str], limit: int) -> str:
    """A list of names as text, shortened after `limit` names.

    >>> abridged(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def type_of(value: object) -> str:
    """The type of a value with its article.

    >>> type_of(3), type_of([])
    ('an int', 'a list')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def unknown(what: str, name: object, known: Iterable[str]) -> UsageError:
    """The error for a name that is not one of the known ones.

    >>> str(unknown("policy", "greedy", ("ranking", "pl")))
    "unknown policy 'greedy'; expected one of ranking, pl"
    """
    listed = names(known, 30)
    expected = f"expected one of {listed}" if listed else "there are none"
    found = repr(escape(name)) if isinstance(name, str) else escape(repr(name))
    return UsageError(f"unknown {what} {found}; {expected}")


def check_known(what: str, name: object, known: Collection[str]) -> None:
    """Raise the error of `unknown`, unless the name is a text and one of the known ones."""
    if not isinstance(name, str) or name not in known:
        raise unknown(what, name, known)


class FairevalsWarning(UserWarning):
    """The category of all warnings of this package; commands print them on standard error.

    `warnings.simplefilter("ignore", fairevals.FairevalsWarning)` silences all of them.
    """


class InputWarning(FairevalsWarning):
    """Something in the input that was corrected, such as memberships that do not sum to 1."""


class RemarkWarning(FairevalsWarning):
    """What a reader of scores should know, such as missing topics or an incomplete run."""
