"""What a report calls measures: short labels where the task gives none."""

from collections import Counter
from collections.abc import Mapping

from fairevals.evaluation.scores import Scores
from fairevals.measures import Measure


def short_label(measure: Measure) -> str:
    """The name with the values of its parameters, without the grammar around them.

    >>> from fairevals.measures import parse_measure
    >>> [short_label(parse_measure(name)) for name in ("nDCG@10", "GF(attr='HINDEX')@20", "iRBU(phi=0.9)@20")]
    ['nDCG@10', 'GF HINDEX@20', 'iRBU phi=0.9@20']
    """
    values = [(field.name, getattr(measure, field.name), field.default) for field in measure.parameters()]
    given = [
        value if isinstance(value, str) else f"{name}={value}"
        for name, value, default in values
        if value != default
    ]
    at = f"@{measure.cutoff}" if measure.cutoff is not None else ""
    return " ".join([measure.name, *given]) + at


def measure_labels(scores: Scores) -> Mapping[str, str]:
    """For each measure the task's label, else its short label, or its name where another has that label already."""
    short = {str(measure): short_label(measure) for measure in scores.measures}
    taken = Counter([*short.values(), *scores.labels.values()])
    unique = {name: label if taken[label] == 1 else name for name, label in short.items()}
    return unique | dict(scores.labels)
