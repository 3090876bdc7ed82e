"""What a run says about itself: the comments between `# ir_metadata.start` and `# ir_metadata.end` at its start.

The schema is that of Breuer, Keller and Schaer: ir_metadata: An extensible metadata schema for IR experiments. SIGIR
2022. The content is YAML; it is checked where PyYAML is installed, and is text for everything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fairevals.errors import Place, escape
from fairevals.io.lines import Problem
from fairevals.io.streams import BOM, Source

MAX_METADATA = 1 << 16
_START, _END = b"ir_metadata.start", b"ir_metadata.end"


@dataclass(frozen=True)
class Metadata:
    """The metadata of a run."""

    line: int
    """The line at which it starts."""
    text: str
    problem: tuple[int, str, str] | None = None
    """The line, what was found and what was expected, if the metadata has no end."""


def read_metadata(source: Source) -> Metadata | None:
    """The metadata among the comments before the first line with data, if there is any.

    >>> read_metadata(Source.of(b"# ir_metadata.start\\n# tag: bm25\\n# ir_metadata.end\\n1 Q0 a 1 2 bm25\\n")).text
    'tag: bm25'
    """
    head = b""
    for piece in source.pieces(MAX_METADATA):
        head += piece
        if len(head) > MAX_METADATA:
            break
    start, lines = 0, list[bytes]()
    for number, line in enumerate(head[:MAX_METADATA].removeprefix(BOM).split(b"\n"), 1):
        comment = line.strip().removeprefix(b"#")
        if line.strip() and not line.lstrip().startswith(b"#"):
            break
        if start and comment.strip() == _END:
            return Metadata(start, b"\n".join(lines).decode(errors="replace"))
        if start:
            lines.append(comment.removeprefix(b" "))
        elif comment.strip() == _START:
            start = number
    if not start:
        return None
    found = "metadata of more than 64 KiB, or without an end"
    text = b"\n".join(lines).decode(errors="replace")
    return Metadata(start, text, (start, found, f"# {_END.decode()} before the first ranked document"))


def check_metadata(source: Source) -> Iterator[Problem]:
    """A warning if a run has metadata without an end or, where PyYAML is installed, metadata that is not YAML."""
    metadata = read_metadata(source)
    problem = metadata and (metadata.problem or _yaml_problem(metadata))
    if problem:
        line, found, expected = problem
        yield Problem(Place(source.name, line), "metadata", found, expected, warning=True)


def _yaml_problem(metadata: Metadata) -> tuple[int, str, str] | None:
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    expected = "YAML with keys and values"
    try:
        value = yaml.safe_load(metadata.text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = escape(getattr(error, "problem", None) or "cannot be read")
        return (
            metadata.line + 1 + (mark.line if mark else 0),
            f"metadata that is not YAML ({reason})",
            expected,
        )
    except (ValueError, RecursionError):  # such as a date that does not exist
        return metadata.line, "metadata that is not YAML", expected
    return None if isinstance(value, dict) else (metadata.line, "metadata without keys", expected)
