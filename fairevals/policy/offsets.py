"""Offsets of groups: what to add to the scores of a Plackett-Luce policy so that groups share exposure as wanted.

A Plackett-Luce ranking sorts the documents by ``s_d + G_d`` with independent Gumbel noise (Kool et al. 2020). Where
attention v falls with the rank, sorting maximises ``Σ_d v_{rank(d)}·(s_d + G_d)`` over all rankings, so that exposure
is the gradient of a convex function, the expected maximum:

    ε(s) = ∇Φ(s),   Φ(s) = E[max over rankings of Σ_d v_{rank(d)}·(s_d + G_d)].

The offsets b that give the groups the exposures c are therefore the minimum of ``F(b) = Φ(s + m·b) − c·b`` with the
memberships m: a smooth convex problem with as many unknowns as groups. Its gradient is the excess of the exposures
over c. Proximal Newton steps solve it: each minimises the second-order model of F plus ``|step|²/2λ``, by conjugate
gradients. A product with the Hessian ``mᵀ(∂ε/∂s)m`` is one reverse pass of the exact exposures, however many groups
there are. If the goal is out of reach, F has no minimum and the offsets grow, but the gradient tends to the shortest
that there is: the exposures come as near to the goal as they can (Rockafellar 1976).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fairevals.attention import Attention, AttentionLike, parse_attention
from fairevals.errors import UsageError
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.typing import Bools, Floats

MET = 1e-8
"""A share is met up to this."""
_TOLERANCE, _SLOPE_TOLERANCE = 1e-10, 1e-6
"""Of exact exposures, and of their derivatives, which only have to lead there."""
_OVERSHOT = 0.3
"""A step may go so far beyond the minimum in its direction that the slope there is this part of that at its start."""
_SMOOTH_SPAN = 8.0
"""Scores within such a span, over the temperature, give exposures that change with every offset."""
_CERTAIN = 40.0
"""Scores further apart, over the temperature, are in their order with certainty."""
_WIDEST_SPAN = 1e12
"""Of scores: beyond it, rounding hides what offsets change."""


class Offsets(NamedTuple):
    """The offsets of each topic's groups, and what they reach."""

    value: Floats
    """(topics, groups): what is added to the score of a document of the group; 0 for a group without documents."""
    share: Floats
    """(topics, groups): their shares of exposure with the offsets; NaN on a topic whose documents have no group."""
    goal: Floats
    """(topics, groups): the shares that were wanted."""

    @property
    def met(self) -> Bools:
        """(topics,): whether the goal is met. It cannot be where a group has no documents, or too few or too many."""
        met: Bools = np.max(np.abs(self.share - self.goal), axis=-1, initial=0.0) <= MET
        return met


def exposure_offsets(
    scores: Floats, membership: Floats, goal: Floats, attention: AttentionLike = "log2", k: int | None = None
) -> Offsets:
    """The offsets b with which the policy of scores ``s_d + Σ_g m(d,g)·b_g`` gives each group its share of exposure.

    `scores` are log-weights (topics, documents), −inf for padding; `membership` is (topics, documents, groups);
    `goal` (topics, groups) has the wanted shares, up to a factor. A goal that no policy can meet is met as nearly as
    possible: what a group without documents should have goes to the others in proportion, and where even the first
    ranks do not give a group its share, or the last ones give it more, the sum of the squared differences is least.
    Documents without any membership keep their scores and, together, their exposure; shares are of the exposure of the
    others.

    >>> scores = np.array([[2.0, 1.0, 0.0]])
    >>> sex = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]])
    >>> offsets = exposure_offsets(scores, sex, goal=np.array([[0.4, 0.6]]))
    >>> offsets.value.round(3), offsets.share.round(3), offsets.met
    (array([[-0.089,  0.089]]), array([[0.4, 0.6]]), array([ True]))
    """
    model = parse_attention(attention)
    if np.any(np.diff(model.weights(scores.shape[1])) > 0):
        raise UsageError(f"the attention {model} does not fall with the rank: there may be no such offsets")
    membership = membership * (scores > -np.inf)[..., None]
    present: Bools = np.any(membership, axis=1)
    goal = goal / goal.sum(axis=1, keepdims=True)
    offset, share = np.zeros(goal.shape), np.full(goal.shape, np.nan)
    for t in np.flatnonzero(present.any(axis=1)).tolist():
        here, groups = scores[t] > -np.inf, present[t]
        m, possible = membership[t][here][:, groups], goal[t, groups]
        share[t] = 0.0
        if possible.sum() > 0 and np.ptp(scores[t, here]) <= _WIDEST_SPAN:
            solution = _solve(scores[t, here], m, possible / possible.sum(), model, k)
            offset[t, groups], share[t, groups] = solution
        else:  # everything is for groups without documents, or the policy is one ranking
            exposure = PlackettLuce(scores[t, here]).exposure(model, k, tolerance=_TOLERANCE).value @ m
            share[t, groups] = exposure / exposure.sum()
    return Offsets(offset, share, goal)


def _solve(
    scores: Floats, m: Floats, goal: Floats, attention: Attention, k: int | None
) -> tuple[Floats, Floats]:
    """The offsets and shares of one topic whose groups all have documents.

    Scores far apart make a policy that is nearly one ranking, whose exposures hardly change with most offsets. So
    the problem is solved at a temperature where they do, and then at lower ones, each from the solution before.
    """

    def exposures(offset: Floats) -> Floats:
        policy = PlackettLuce(scores + m @ offset, temperature)
        return policy.exposure(attention, k, tolerance=_TOLERANCE).value @ m

    def derivative(offset: Floats) -> Callable[[Floats], Floats]:
        """The change of the groups' exposures in a direction of offsets."""
        policy = PlackettLuce(scores + m @ offset, temperature)
        vjp = policy.exposure_with_vjp(attention, k, _SLOPE_TOLERANCE)[1]
        return lambda direction: vjp(m @ direction) @ m

    temperature, span = 1.0, float(np.ptp(scores))
    offset = np.zeros(len(goal))
    sums = exposures(offset)
    wanted = goal * sums.sum()
    is_free = bool(np.all(m.sum(axis=1) > 0))  # then only differences of offsets matter
    stages = int(np.ceil(np.log2(max(span / _SMOOTH_SPAN, 1.0)) / 2))
    for stage in range(stages, -1, -1):
        temperature = 4.0**stage
        near = (1e-6 if stage else MET / 4) * wanted.sum()
        certain = span + _CERTAIN * temperature  # what makes any order of two documents certain
        radius, travelled, sums = 16 * temperature, 0.0, exposures(offset)
        best, least = (offset, sums), np.linalg.norm(wanted - sums)
        for _ in range(200):
            missing = wanted - sums
            if np.abs(missing).max() <= near or travelled > 4 * certain:
                break
            radius = min(radius, certain / np.abs(missing).max())
            direction = _conjugate_gradients(derivative(offset), missing, 1 / radius)
            start, slope = offset, missing @ direction
            for halving in range(60):
                offset = start + direction / 2**halving
                offset = offset - offset.mean() * is_free
                sums = exposures(offset)
                if (wanted - sums) @ direction >= -_OVERSHOT * slope:
                    break
            radius *= 4.0 if halving == 0 else 0.5**halving
            travelled += np.ptp(m @ (offset - start))
            distance = np.linalg.norm(wanted - sums)
            # Not by less: out of reach, ever larger offsets would come ever nearer.
            if distance < least - near / 4:
                best, least, travelled = (offset, sums), distance, 0.0
        offset, sums = best
    return offset, sums / sums.sum()


def _conjugate_gradients(product: Callable[[Floats], Floats], right: Floats, ridge: float) -> Floats:
    """An approximate solution x of `product(x) + ridge·x = right`, for a symmetric product that is nowhere negative."""
    x: Floats = np.zeros(right.size)
    residual = right.copy()
    direction, squared = residual.copy(), residual @ residual
    for _ in range(right.size):
        image = product(direction) + ridge * direction
        length = squared / (direction @ image)
        x = x + length * direction
        residual = residual - length * image
        before, squared = squared, residual @ residual
        if squared <= 1e-8 * (right @ right):
            break
        direction = residual + squared / before * direction
    return x
