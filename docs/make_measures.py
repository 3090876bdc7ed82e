"""The page of measures, made from their declarations.

    python docs/make_measures.py            print it
    python docs/make_measures.py --update   write docs/measures.md

Nothing on the page is typed: formulas, directions, sources and parameters are what the measures declare, and every
number is computed here, on five people who apply for a job.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import fairevals as fe
from fairevals import attention
from fairevals.measures import INDEX, Measure, RankingMeasure, measure_class
from fairevals.measures.divergences import DIVERGENCES, ORDINAL
from fairevals.measures.merit import MERITS

PAGE = Path(__file__).with_name("measures.md")
GIVEN = {"attr": "GENDER", "protected": "women", "step": 2}
"""What the example gives to the parameters of these names: two without a default, and one that fits five people."""
FILES = {
    "example.qrels": """\
nurse 0 adaeze 2
nurse 0 bruno 2
nurse 0 chen 1
nurse 0 dana 0
nurse 0 emil 1
""",
    "example.run": """\
nurse Q0 bruno 1 2.6 example
nurse Q0 chen 2 1.9 example
nurse Q0 emil 3 1.5 example
nurse Q0 adaeze 4 0.7 example
nurse Q0 dana 5 0.1 example
""",
    "example.csv": """\
doc,group
adaeze,women
bruno,men
chen,women
dana,women
emil,men
""",
    "example.toml": """\
qrels = "example.qrels"
cutoff = 5

[attributes.GENDER]
groups = ["women", "men"]
memberships = "example.csv"
target = [0.6, 0.4]
""",
}
INTRODUCTION = """\
# Measures

<!-- Made by docs/make_measures.py from the declarations in fairevals/measures; do not edit. -->

A measure is named in [ir-measures'](https://ir-measur.es) grammar, `NAME(param=value)@cutoff`. Parameters at their
default may be left out, and so may the cutoff: the task's is then taken, or the whole ranking. Whatever ir-measures
knows and is not listed here, such as `Rprec`, `Bpref` or `Judged@10`, works by its name too.

Every number on this page is computed from one example: five people who apply for a job as a nurse.

"""
WORDS = """\
In the formulas, `g_k` is the grade at rank k (unjudged and negative: 0), `G` the largest grade of the task, `K` the
cutoff, `v` the exposure of a document (its expected [attention](#attention)), `M` its [merit](#merit).

The columns say what is better, what the measure asks the task for, and its value in the example twice: for the run
as one **ranking**, and as a Plackett-Luce **policy** (`--policy pl`), where a value without ± is exact. A measure that
needs an attribute is undefined on topics to which that attribute does not apply.

"""


def console() -> ModuleType:
    """The module beside this one that runs the commands of a page."""
    spec = importlib.util.spec_from_file_location("console", Path(__file__).with_name("console.py"))
    if spec is None or spec.loader is None:
        raise ImportError("console.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(name: str) -> Measure:
    """The measure as the example asks for it."""
    cls = measure_class(name)
    given = {f.name: GIVEN[f.name] for f in cls.parameters() if f.name == "step" or needed(cls, f.name)}
    return cls(**given, cutoff=5)


def needed(cls: type[Measure], parameter: str) -> bool:
    """Whether a parameter has to be given: the attribute and the group of measures that are about one."""
    return parameter in ("attr", "protected") and cls.attributes == "one"


def worked(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Each measure's value in the example, as a ranking and as a Plackett-Luce policy."""
    measures = {name: example(name) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for file, text in FILES.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        run, task = Path(folder) / "example.run", Path(folder) / "example.toml"
        tables = [
            fe.evaluate(run, task=task, measures=measures.values(), policy=policy)
            for policy in ("ranking", "pl")
        ]
    found = {}
    for i, name in enumerate(measures):
        rows = [table.iloc[i] for table in tables]
        found[name] = (number(rows[0]["value"]), number(rows[1]["value"], rows[1]["se"]))
    return found


def number(value: float, se: float = float("nan")) -> str:
    """Four decimals, and the standard error where there is one."""
    if np.isnan(value):
        return "undefined"
    return f"{value:.4f}" + ("" if np.isnan(se) else f" ±{se:.4f}")


def prose(text: str | None) -> str:
    """A docstring without its examples, on one line a paragraph."""
    plain = inspect.cleandoc(text or "").split("\n>>>")[0]
    return "\n\n".join(" ".join(part.split()) for part in plain.split("\n\n") if part.strip())


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return re.split(r"(?<=\.) ", text.replace("\n\n", " "))


def undefined(cls: type[Measure]) -> str:
    """What its docstring, or that of the family it belongs to, says of where it is undefined."""
    families = [family for family in cls.__mro__ if issubclass(family, Measure) and family is not Measure]
    for family in families:
        said = [s for s in sentences(prose(family.__doc__)) if "ndefined" in s]
        if said:
            return " ".join(said)
    return "Never undefined: a ranking without relevant documents has the value 0."


def description(cls: type[Measure]) -> str:
    """What its docstring says, but for where it is undefined."""
    own = [s for s in sentences(prose(cls.__doc__)) if "ndefined" not in s]
    return " ".join(own)


def missing(cls: type[Measure]) -> str:
    """What a judged topic counts that the run leaves out."""
    return "undefined" if np.isnan(cls.missing) else f"{cls.missing:g}"


def asks_for(cls: type[Measure]) -> str:
    """What the measure needs besides a run and grades."""
    return {"none": "–", "one": "an attribute", "all": "all attributes"}[cls.attributes]


def parameters(cls: type[Measure]) -> Iterator[str]:
    """A table of its parameters, if it has any."""
    fields = cls.parameters()
    if fields:
        yield "| parameter | default | meaning |\n|---|---|---|\n"
    # Those that are always given come first.
    for f in sorted(fields, key=lambda f: f.name not in ("attr", "protected")):
        default = "has to be given" if needed(cls, f.name) else f"`{f.default!r}`"
        choices = [f"`{choice!r}`" for choice in f.metadata["choices"]]
        meaning = f.metadata["meaning"] + (f"; one of {', '.join(choices)}" if choices else "")
        yield f"| `{f.name}` | {default} | {meaning} |\n"
    if fields:
        yield "\n"


def section(name: str, values: tuple[str, str]) -> Iterator[str]:
    """All about one measure."""
    cls = measure_class(name)
    better = {"higher": "Higher is better.", "lower": "Lower is better."}
    yield f"## {name}\n\n"
    yield f"{description(cls)} **{better.get(str(cls.direction), f'Best {cls.direction}.')}**\n\n"
    yield f"    {cls.formula}\n\n"
    yield from parameters(cls)
    how = "" if "±" in values[1] else ", exactly"
    yield f"- In the example, `{example(name)}` is {values[0]} for the ranking and {values[1]} for the policy{how}.\n"
    yield f"- {undefined(cls)}\n"
    yield f"- A judged topic that the run leaves out: {missing(cls)}.\n"
    yield f"- Source: {cls.source}.\n\n"


def summary(values: dict[str, tuple[str, str]]) -> Iterator[str]:
    """All measures in one table."""
    yield "| measure | better | needs | ranking | policy |\n|---|---|---|---|---|\n"
    for name, (ranking, policy) in values.items():
        cls = measure_class(name)
        yield f"| [{name}](#{name.lower()}) | {cls.direction.arrow} {cls.direction} | {asks_for(cls)} "
        yield f"| {ranking} | {policy} |\n"
    sampled = [name for name in values if "±" in values[name][1]]
    exact = [
        name for name in values if name not in sampled and issubclass(measure_class(name), RankingMeasure)
    ]
    yield f"\nUnder a Plackett-Luce policy, {listed(sampled)} are means over sampled rankings with a standard error; "
    yield f"{listed(exact)} and all measures of exposure are exact.\n\n"


def listed(names: list[str]) -> str:
    """Names with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def first(text: str | None) -> str:
    """The first paragraph of a docstring."""
    return prose(text).split("\n\n")[0]


def divergences() -> Iterator[str]:
    """How far two distributions are apart, with the example of three groups."""
    p, target = np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.3, 0.5])
    yield "## Divergences\n\n"
    yield "How far a distribution over groups is from its target, for `div` and for `divergence` in a task file. "
    yield f"The example compares {p.tolist()} with the target {target.tolist()}.\n\n"
    for name, function in DIVERGENCES.items():
        order = ", and looks at the order of the groups" if name in ORDINAL else ""
        value = float(function(p, target))
        yield f"- **{name}** is {value:.4f} in the example{order}: `{first(function.__doc__).rstrip('.')}`\n"
    yield "\n"


def attentions() -> Iterator[str]:
    """How much attention ranks get, with the weights of the first five."""
    yield "## Attention\n\n"
    yield "How much of a reader's attention each rank gets, for the parameter `attention` and for `fairevals exposure "
    yield "--attention`. `cascade` looks at the grades ranked above, here 2, 1, 1, 2, 0 as in the example; a list of "
    yield "numbers such as `[1, 0.5]` is an attention too.\n\n"
    yield "| name | definition | ranks 1 to 5 |\n|---|---|---|\n"
    grades = np.array([2.0, 1.0, 1.0, 2.0, 0.0])
    for _, model in inspect.getmembers(attention, inspect.isclass):
        if not issubclass(model, attention.Attention) or model in (attention.Attention, attention.Weights):
            continue
        made = model()
        names = ",".join(f"{f.name}={f.default!r}" for f in dataclasses.fields(model))
        definition = first(model.__doc__).replace("``", "`").rstrip(".")
        weights = ", ".join(f"{w:.4f}" for w in made.weights_given(grades))
        yield f"| `{model.name}{f'({names})' if names else ''}` | {definition} | {weights} |\n"
    yield "\n"


def merits() -> Iterator[str]:
    """What grades are worth."""
    yield "## Merit\n\nWhat exposure should follow: a function of the grade, for the parameter `merit`.\n\n"
    yield "| name | grade 0 | grade 1 | grade 2 | grade 3 |\n|---|---|---|---|---|\n"
    for name, function in MERITS.items():
        yield f"| `{name}` | " + " | ".join(f"{float(v):.4f}" for v in function(np.arange(4.0))) + " |\n"


def made() -> str:
    """The page."""
    files = "".join(f"$ cat > {file} <<'EOF'\n{text}EOF\n" for file, text in FILES.items())
    block = f"```console\n{files}```\n\n"
    values = worked(INDEX)
    measures = "\\\n".join(f'-m "{example(name)}" ' for name in INDEX).strip()
    check = (
        f"```console\n$ fairevals score --task example.toml example.run --format csv -p 4 {measures}\n```\n\n"
    )
    parts: list[Any] = [
        [INTRODUCTION, block, WORDS],
        summary(values),
        *(section(name, values[name]) for name in INDEX),
        divergences(),
        attentions(),
        merits(),
        [
            "\n## All of them at once\n\nThe same numbers from the command line:\n\n",
            check.rstrip("\n") + "\n",
        ],
    ]
    page: str = console().rerun("".join(text for part in parts for text in part))
    return page


def main(arguments: list[str]) -> int:
    """Print or write the page."""
    page = made()
    if "--update" in arguments:
        PAGE.write_text(page, encoding="utf-8")
    else:
        sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
