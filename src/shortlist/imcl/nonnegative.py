"""Nonnegative least squares for many small problems at once: the native kernel, or PyTorch from Gram matrices."""

import functools

import torch
from torch import Tensor

from shortlist.kernels import native_serves, ops

_FEW = 3  # atoms; up to here every support is tried, which takes fewer operations than to search for the right one
# An atom that is a mixture of the others, to the accuracy of a Gram matrix in double precision, is left out: where its
# distance from them is below the root of this (both searches), for atoms of length 1 and against a vector of length 1.
_SINGULAR = 1e-14


def fit(target: Tensor, dictionary: Tensor, picked: Tensor, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Each row of ``target`` as the nearest nonnegative combination of dictionary rows, and what is left of it.

    Args:
        target: (B, D), float32 or float64.
        dictionary: (N, D), any floating type.
        picked: (B, t) the rows of the dictionary that each one may use, -1 for none.
        start: (B, t) coefficients to start from: a minimum over the atoms it uses, zero for the rest.

    Returns the coefficients (B, t), in double precision, and the residual (B, D), in the target's type.

    >>> dictionary, target = torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([[1.0, -1.0]])
    >>> fit(target, dictionary, torch.tensor([[0, 1]]))
    (tensor([[1., 0.]], dtype=torch.float64), tensor([[ 0., -1.]]))
    """
    if dictionary.dtype != target.dtype or not dictionary.is_contiguous():  # a copy of what is used, not of all
        rows = picked.flatten().clamp(min=0)
        dictionary = dictionary.index_select(0, rows).to(target.dtype)
        picked = torch.where(picked < 0, -1, torch.arange(len(rows), device=picked.device).view_as(picked))
    if picked.shape[1] <= ops.FIT_ATOMS and native_serves(target):
        return ops.nonnegative_fit(target, dictionary, picked, _SINGULAR)
    used = (picked >= 0).unsqueeze(-1)
    atoms = dictionary.index_select(0, picked.flatten().clamp(min=0)).unflatten(0, picked.shape)
    exact, goal = torch.where(used, atoms, 0.0).double(), target.double()
    moments = (exact @ goal.unsqueeze(-1)).squeeze(-1)
    x = nonnegative_least_squares(exact @ exact.mT, moments, torch.linalg.vector_norm(goal, dim=1), start)
    return x, (goal - (x.unsqueeze(1) @ exact).squeeze(1)).to(target.dtype)


def nonnegative_least_squares(gram: Tensor, moments: Tensor, length: Tensor, start: Tensor | None = None) -> Tensor:
    """The x >= 0 that minimise ||v - sum_j x_j a_j||^2, one problem per row; exact, by active sets.

    Up to three atoms: the best of the least squares solutions on each support that have no negative coefficient. More:
    the method of Lawson and Hanson on all rows together. Atoms that are zero, or mixtures of others, stay out where
    they cannot help; then x is one of several minima.

    Args:
        gram: <a_i, a_j>, (M, t, t), best in double precision.
        moments: <a_j, v>, (M, t).
        length: ||v||, (M,): what is small beside it counts as zero.
        start: (M, t) coefficients to start from: a minimum over the atoms it uses, zero for the rest.

    >>> atoms, v = torch.tensor([[1.0, 0.0], [1.0, 1.0]]).double(), torch.tensor([1.0, -1.0]).double()
    >>> nonnegative_least_squares((atoms @ atoms.T)[None], (atoms @ v)[None], v.norm()[None])
    tensor([[1., 0.]], dtype=torch.float64)
    """
    norms = gram.diagonal(dim1=-2, dim2=-1).clamp(min=0).sqrt()
    usable = norms > 0
    scale = torch.where(usable, norms, 1.0)
    gram = gram / (scale.unsqueeze(-1) * scale.unsqueeze(-2))
    moments = moments / scale
    if gram.shape[-1] == 1:
        return moments.clamp(min=0) / scale
    if gram.shape[-1] <= _FEW:
        return _best_support(gram, moments) / scale
    x = torch.zeros_like(moments) if start is None else start * scale
    return _active_set(gram, moments, x, usable, _SINGULAR**0.5 * length.unsqueeze(-1)) / scale


# ---- few atoms


def _best_support(gram: Tensor, moments: Tensor) -> Tensor:
    """Solve for every set of atoms, by elimination written out over (M, sets) numbers, and keep the best."""
    atoms = gram.shape[-1]
    member, both = _supports(atoms, gram.dtype, gram.device)
    side = (moments.unsqueeze(-1) * member).unbind(1)  # (M, sets) per atom
    entries = gram.unsqueeze(-1) * both
    pivot: list[Tensor | float] = []
    lower: list[list[Tensor]] = []  # unit triangular factor: gram = lower diag(pivot) lower^T; ones on gram's diagonal
    z: list[Tensor] = []
    for i in range(atoms):
        lower.append([])
        here: Tensor | float = 1.0
        value = side[i]
        for j in range(i):
            scaled = entries[:, i, j]
            for h in range(j):
                scaled = scaled - lower[i][h] * lower[j][h] * pivot[h]
            lower[i].append(scaled / pivot[j])
            here = here - lower[i][j] * scaled
            value = value - lower[i][j] * z[j]
        pivot.append(here)
        z.append(value)
    x = [one / d for one, d in zip(z, pivot, strict=True)]
    for i in reversed(range(atoms)):
        for j in range(i + 1, atoms):
            x[i] = x[i] - lower[j][i] * x[j]
    found = torch.stack(x, -1)
    smallest = torch.stack([d for d in pivot if isinstance(d, Tensor)], -1).amin(-1)
    possible = (found.amin(-1) >= 0) & (smallest > _SINGULAR)
    gain = torch.where(possible, (found * torch.stack(side, -1)).sum(-1), 0.0)  # what it takes off the sum of squares
    gain, best = gain.max(-1, keepdim=True)
    chosen = found.gather(1, best.unsqueeze(-1).expand(-1, 1, atoms)).squeeze(1)
    return torch.where(gain > 0, chosen, 0.0) + 0.0  # no -0.0


@functools.cache
@torch.inference_mode(False)  # kept for callers of any mode
def _supports(atoms: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    """Every set of atoms but the empty one: its members, (t, sets), and its pairs of members, (t, t, sets)."""
    sets = torch.arange(1, 1 << atoms, device=device)
    member = ((sets >> torch.arange(atoms, device=device).unsqueeze(1)) & 1).to(dtype)
    return member, member.unsqueeze(0) * member.unsqueeze(1)


# ---- more


def _active_set(gram: Tensor, moments: Tensor, x: Tensor, usable: Tensor, slack: Tensor) -> Tensor:
    """Let the atom with the steepest slope in, solve for the atoms that are in, take out those that become negative."""
    inside = x > 0
    eye = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    for _ in range(6 * gram.shape[-1]):  # as many rounds as atoms, plus one for each that leaves again
        slope = moments - (gram * x.unsqueeze(-2)).sum(-1)
        slope = slope.masked_fill(inside | ~usable, 0.0)
        steepest, entering = slope.max(-1, keepdim=True)
        enters = steepest > slack
        if not bool(enters.any()):
            break
        inside = inside.scatter(-1, entering, inside.gather(-1, entering) | enters)
        x, inside = _minimum_inside(gram, moments, x, inside, eye)
    return x


def _minimum_inside(gram: Tensor, moments: Tensor, x: Tensor, inside: Tensor, eye: Tensor) -> tuple[Tensor, Tensor]:
    """The minimum over the atoms inside; those whose coefficient reaches zero on the way leave."""
    while True:
        both = inside.unsqueeze(-1) & inside.unsqueeze(-2)
        goal = torch.linalg.solve_ex(torch.where(both, gram, eye), torch.where(inside, moments, 0.0))[0]
        goal = torch.where(goal.isfinite(), goal, x)  # singular to the last bit: the one that came last leaves again
        blocked = inside & ~(goal > 0)
        if not bool(blocked.any()):
            return torch.where(inside, goal, 0.0), inside
        share = torch.where(blocked, x / (x - goal).clamp(min=torch.finfo(x.dtype).tiny), 1.0)
        step = share.amin(-1, keepdim=True)
        x = torch.where(inside, x + step * (goal - x), 0.0)
        inside = inside & ~(blocked & (share <= step))
        x = torch.where(inside, x, 0.0).clamp(min=0.0)
