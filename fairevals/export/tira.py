"""TIRA: the values of runs as `evaluation.prototext`."""

from fairevals.errors import escape
from fairevals.evaluation.scores import Scores
from fairevals.export.names import measure_key, unique

EVALUATION = "evaluation.prototext"


def prototext(scores: Scores) -> tuple[str, list[str]]:
    r"""One `measure` for each mean, with its key and its value; and a remark for each undefined one, which is left out.

    The key is the measure's name; where there are several runs, the run's name precedes it.

    >>> import numpy as np
    >>> from fairevals.measures import parse_measure
    >>> scores = Scores(("a",), (parse_measure("nDCG@10"),), ("1", "2"), np.array([[[0.5, 1.0]]]), np.ones((1, 1, 2)))
    >>> print(prototext(scores)[0], end="")
    measure {
      key: "nDCG@10"
      value: "0.75"
    }
    """
    places = [(r, m) for r in range(len(scores.runs)) for m in range(len(scores.measures))]
    several = len(scores.runs) > 1
    texts = [
        f"{scores.runs[r]} {scores.measures[m]}" if several else str(scores.measures[m]) for r, m in places
    ]
    blocks, remarks = [], []
    for (r, m), key in zip(places, unique(texts, measure_key), strict=True):
        value = scores.mean(r, m).value
        if value != value:
            remarks.append(
                f"{scores.measures[m]} of {escape(scores.runs[r])} is undefined: not in {EVALUATION}"
            )
            continue
        blocks.append(f'measure {{\n  key: "{key}"\n  value: "{value!r}"\n}}\n')
    return "".join(blocks), remarks
