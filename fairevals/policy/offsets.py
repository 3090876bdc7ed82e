"""Offsets of groups: what to add to the scores of a Plackett-Luce policy so that groups share exposure as wanted.

A Plackett-Luce ranking sorts the documents by ``s_d + G_d`` with independent Gumbel noise (Kool et al. 2020). Where
attention v falls with the rank, sorting maximises ``Σ_d v_{rank(d)}·(s_d + G_d)`` over all rankings, so that exposure
is the gradient of a convex function, the expected maximum:

    ε(s) = ∇Φ(s),   Φ(s) = E[max over rankings of Σ_d v_{rank(d)}·(s_d + G_d)].

The offsets b that give the groups the exposures c are therefore the minimum of ``Φ(s + m·b) − c·b`` with the
memberships m: a smooth convex problem with as many unknowns as groups. Newton's method solves it, with conjugate
gradients for each step: a product with the Hessian ``mᵀ(∂ε/∂s)m`` is one reverse pass of the exact exposures, however
many groups there are. If the goal is out of reach, the gradient tends to its shortest: the exposures come as near to
the goal as they can.
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
_TOLERANCE, _SLOPE_TOLERANCE = 1e-10, 1e-5
"""Of exact exposures, and of their derivatives, which only have to lead there."""
_LARGEST_STEP = 4.0
"""Of an offset, over the temperature: further away the second-order model of a step means nothing."""
_SMOOTH_SPAN = 8.0
"""Scores within such a span, over the temperature, give exposures that change with every offset."""
_CERTAIN = 40.0
"""Scores further apart, over the temperature, are in their order with certainty."""


class Offsets(NamedTuple):
    """The offsets of each topic's groups, and what they reach."""

    value: Floats
    """(topics, groups): what is added to the score of a document of the group; 0 for a group without documents."""
    share: Floats
    """(topics, groups): their shares of exposure with the offsets; NaN on a topic without documents of a group."""
    goal: Floats
    """(topics, groups): the shares that were wanted, 0 for groups without documents."""

    @property
    def met(self) -> Bools:
        """(topics,): whether the goal is met. It is not where even the first ranks cannot give a group its share."""
        met: Bools = np.max(np.abs(self.share - self.goal), axis=-1, initial=0.0) <= MET
        return met


def exposure_offsets(
    scores: Floats, membership: Floats, goal: Floats, attention: AttentionLike = "log2", k: int | None = None
) -> Offsets:
    """The offsets b with which the policy of scores ``s_d + Σ_g m(d,g)·b_g`` gives each group its share of exposure.

    `scores` are log-weights (topics, documents), −inf for padding; `membership` is (topics, documents, groups);
    `goal` (topics, groups) has the wanted shares. A group without documents in a topic can have no share: what it
    should have goes to the others in proportion. Documents without any membership keep their scores and, together,
    their exposure; shares are of the exposure of the others. A goal that no ranking can meet is met as nearly as
    possible.

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
    goal = np.where(membership.any(axis=1), goal, 0.0)
    total = goal.sum(axis=1, keepdims=True)
    goal = np.divide(goal, total, out=np.full(goal.shape, np.nan), where=total > 0)
    offset, share = np.zeros(goal.shape), np.full(goal.shape, np.nan)
    for t in np.flatnonzero(total[:, 0] > 0).tolist():
        here, present = scores[t] > -np.inf, membership[t].any(axis=0)
        found = _solve(scores[t, here], membership[t][here][:, present], goal[t, present], model, k)
        share[t] = 0.0
        offset[t, present], share[t, present] = found
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
    wanted = goal * exposures(offset).sum()
    is_free = bool(np.all(m.sum(axis=1) > 0))  # then only differences of offsets matter
    stages = int(np.ceil(np.log2(max(span / _SMOOTH_SPAN, 1.0)) / 2))
    for stage in range(stages, -1, -1):
        temperature = 4.0**stage
        near = (1e-6 if stage else MET / 4) * wanted.sum()
        largest = span + _CERTAIN * temperature
        sums = exposures(offset)
        for _ in range(100):
            missing = wanted - sums
            if np.abs(missing).max() <= near:
                break
            step = _conjugate_gradients(derivative(offset), missing, _LARGEST_STEP * temperature)
            start, step = offset, step * min(1.0, _LARGEST_STEP * temperature / np.abs(step).max())
            for halving in range(20):
                offset = start + step / 2**halving
                offset = np.clip(offset - offset.mean() * is_free, -largest, largest)
                sums = exposures(offset)
                if np.linalg.norm(wanted - sums) < np.linalg.norm(missing):
                    break
            else:  # as near as it gets
                break
    return offset, sums / sums.sum()


def _conjugate_gradients(product: Callable[[Floats], Floats], right: Floats, largest: float) -> Floats:
    """An approximate solution x of `product(x) = right`, for a symmetric product that is nowhere negative.

    A direction in which nothing changes any more, because a group is before all others with certainty, gets a step of
    the `largest` size: an unmet goal is still approached.
    """
    x: Floats = np.zeros(right.size)
    residual = right.copy()
    direction, squared = residual.copy(), residual @ residual
    for _ in range(right.size):
        image = product(direction)
        curvature = direction @ image
        if curvature <= 1e-14 * (direction @ direction):
            step: Floats = x + direction * (largest / np.abs(direction).max())
            return step
        length = squared / curvature
        x = x + length * direction
        residual = residual - length * image
        before, squared = squared, residual @ residual
        if squared <= 1e-8 * (right @ right):
            break
        direction = residual + squared / before * direction
    return x
