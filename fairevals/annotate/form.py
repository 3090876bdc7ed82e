"""The form for an entity: its fields in a topic, and the check of what was entered."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from fairevals.collection.topics import topic_groups
from fairevals.derive.pages import ANNOTATION_COLUMNS, entity_key, groups_of_value
from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.specs import AttributeSpec
from fairevals.io.task import Task

UNKNOWN = "NA"
MAX_TEXT = 500
"""Characters of one field."""
PROBLEMS = {
    "name": "the name of the entity is missing",
    "same": "the same name as above",
    "long": f"at most {MAX_TEXT} printable characters, please",
    "missing": f"missing; {UNKNOWN} if it cannot be found",
    "number": f"a number, or {UNKNOWN} if it cannot be found",
    "url": "an address that starts with http:// or https://, please",
}
"""What can be wrong with an entry: said by the browser, and by the server if the browser did not."""

_JOINERS = "\u200c\u200d"

Errors = dict[str, str]
"""Names of inputs, and what is wrong with them."""


@dataclass(frozen=True)
class FormField:
    """One field of an entity besides its name."""

    name: str
    attribute: AttributeSpec | None = None
    """None for a further field, which may stay empty."""

    @property
    def kind(self) -> str:
        """How it is entered: as `number` with a bin, as `one` or `several` of the groups, or as `text`."""
        if self.attribute is None:
            return "text"
        if self.attribute.bins:
            return "number"
        return "one" if self.attribute.kind == "ordinal" else "several"

    @property
    def is_url(self) -> bool:
        """Whether it is a further field whose name ends in URL."""
        return self.attribute is None and self.name.split()[-1].upper() == "URL"

    def problem(self, values: Sequence[str]) -> str:
        """What is wrong with the values that were entered; empty if nothing is."""
        text = "|".join(values)
        if self.kind in ("text", "number") and _is_unfit(text):
            return PROBLEMS["long"]
        if self.is_url and text and not text.startswith(("http://", "https://")) and text != UNKNOWN:
            return PROBLEMS["url"]
        if self.attribute is None:
            return ""
        if not text:
            return PROBLEMS["missing"]
        if UNKNOWN in values and len(values) > 1:
            return f"a value or {UNKNOWN}, not both"
        if self.kind == "one" and len(values) > 1:
            return "one choice only"
        try:
            groups_of_value(text, self.attribute, Place(self.name))
        except InputError as error:
            return PROBLEMS["number"] if self.kind == "number" else f"expected {error.expected}"
        return ""


def form_fields(task: Task, topics: Sequence[str]) -> dict[str, tuple[FormField, ...]]:
    """The fields of each topic: the attributes that apply to it, then the further fields of the task.

    A key of `[annotation.fields]` is the name of a topic group, or else a glob of topics; one that fits no topic is a
    `UsageError`; an attribute that `derive` could not read is an `InputError`.

    >>> task = Task(attributes={"A": {"groups": ["x", "y"], "topics": ["R*"]}}, annotation={"fields": {"R1": ["page"]}})
    >>> {topic: [field.name for field in fields] for topic, fields in form_fields(task, ["R1", "M1"]).items()}
    {'R1': ['A', 'page'], 'M1': []}
    """
    fields = {
        topic: [FormField(name, spec) for name, spec in task.attributes.items() if spec.applies_to(topic)]
        for topic in topics
    }
    for spec in task.attributes.values():
        if any(spec.applies_to(topic) for topic in topics):
            _check(spec)
    members: dict[str, set[str]] = {}
    for name in task.topic_groups if task.annotation.fields else ():
        for group, numbers in topic_groups(task, name, topics).items():
            members.setdefault(group, set()).update(topics[number] for number in numbers)
    for key, added in task.annotation.fields.items():
        found = members.get(key) or {topic for topic in topics if fnmatchcase(topic, key)}
        if not found:
            raise UsageError(
                f"annotation.fields: no topic of the pool is in {key!r}; expected a topic group or a glob"
            )
        for topic in found:
            names = {field.name for field in fields[topic]}
            fields[topic] += [FormField(name) for name in added if name not in names]
    return {topic: tuple(of) for topic, of in fields.items()}


def _check(spec: AttributeSpec) -> None:
    """Refuse, before anything is entered, what `derive` could not read."""
    name = escape(spec.name)
    if spec.name in ANNOTATION_COLUMNS or not _is_tidy(spec.name):
        problem = f"the attribute {name!r}"
        raise InputError(spec.place, problem, f"a plain name; not {', '.join(ANNOTATION_COLUMNS)}")
    for group in () if spec.bins else spec.groups:
        if group == UNKNOWN or "|" in group or not _is_tidy(group):
            expected = f"a plain name without | (in annotations {UNKNOWN} means unknown)"
            raise InputError(spec.place, f"the group {escape(group)!r} of {name}", expected)


def _is_tidy(name: str) -> bool:
    return name.isprintable() and name == " ".join(name.split())


def columns(task: Task) -> list[str]:
    """The columns of the annotations besides topic, doc, entity and annotator."""
    added = (name for names in task.annotation.fields.values() for name in names)
    return list(dict.fromkeys([*task.attributes, *added]))


def _cleaned(text: str) -> str:
    """A text as it should be stored: white space collapsed, and without invisible characters, which come along when
    names are copied from pages. Two of them are letters' own: the joiners of Persian and Indic names."""
    seen = (c for c in text if c in _JOINERS or unicodedata.category(c) != "Cf")
    return " ".join("".join(seen).split())


def _is_unfit(text: str) -> bool:
    return len(text) > MAX_TEXT or not text.translate(dict.fromkeys(map(ord, _JOINERS))).isprintable()


def read_form(
    body: Mapping[str, Sequence[str]], fields: Sequence[FormField], most: int
) -> tuple[list[dict[str, str]], Errors]:
    """The entities that a form has, and what is wrong with it, by the name of the input.

    The inputs of the i-th entity are `e{i}` for the name and `e{i}f{j}` for the j-th field, counted from 0.

    >>> hindex = FormField("HINDEX", AttributeSpec("HINDEX", ("<10", ">=10"), "ordinal", bins=(10,)))
    >>> read_form({"e0": ["Ada  Lovelace"], "e0f0": ["12"]}, [hindex], 3)
    ([{'entity': 'Ada Lovelace', 'HINDEX': '12'}], {})
    >>> read_form({"e0": ["Ada"], "e0f0": ["many"]}, [hindex], 3)[1]
    {'e0f0': 'a number, or NA if it cannot be found'}
    """
    entities: list[dict[str, str]] = []
    errors: Errors = {}
    seen: set[str] = set()
    for i in range(most):
        name = _cleaned("".join(body.get(f"e{i}", ())))
        entered = [
            [part for part in map(_cleaned, body.get(f"e{i}f{j}", ())) if part] for j in range(len(fields))
        ]
        if not name and not any(entered):
            continue
        if not name:
            errors[f"e{i}"] = PROBLEMS["name"]
        elif _is_unfit(name) or not entity_key(name):
            errors[f"e{i}"] = PROBLEMS["long"]
        elif entity_key(name) in seen:
            errors[f"e{i}"] = PROBLEMS["same"]
        seen.add(entity_key(name))
        for j, (field, values) in enumerate(zip(fields, entered, strict=True)):
            if problem := field.problem(values):
                errors[f"e{i}f{j}"] = problem
        entities.append(
            {"entity": name} | {f.name: "|".join(v) for f, v in zip(fields, entered, strict=True)}
        )
    return entities, errors
