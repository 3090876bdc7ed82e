"""Rankings with a protected group, for the tests of measures of prefixes."""

from __future__ import annotations

import numpy as np

from fairevals.collection import AttributeView, Ranked


def ranked(*lists, share=0.5, width=0, applies=True):
    """Rankings of documents with these protected shares, None for no membership; `share` is the target of the group."""
    width = max(width, *map(len, lists))
    membership = np.zeros((len(lists), width, 2))
    present = np.zeros((len(lists), width), bool)
    for row, shares in enumerate(lists):
        present[row, : len(shares)] = True
        for rank, weight in enumerate(shares):
            if weight is not None:
                membership[row, rank] = weight, 1 - weight
    target = np.broadcast_to(np.stack([share, 1 - np.asarray(share)], axis=-1), (len(lists), 2))
    view = AttributeView(("p", "q"), False, (membership,), target, np.full(len(lists), applies))
    return Ranked(np.zeros(present.shape), present, np.zeros((len(lists), 0)), 1.0, {"A": view})
