"""The multi-label, partial-label and average-K losses from their formulas: loops over rows and labels in float64.

Each oracle takes a float64 matrix of scores and a target and returns the mean reduction; its gradient comes from
autograd through the loops. They share nothing with the package but PyTorch's scalar functions.
"""

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

Row = list[int]


def softplus(t: Tensor) -> Tensor:
    return torch.clamp(t, min=0) + torch.log1p(torch.exp(-t.abs()))


def log_p(s: Tensor) -> Tensor:
    return -softplus(-s)


def log_not_p(s: Tensor) -> Tensor:
    return -softplus(s)


def log_sum_exp(terms: Iterable[Tensor]) -> Tensor:
    return torch.logsumexp(torch.stack(list(terms)), 0)


def where_equal(row: Tensor, value: int) -> Row:
    return [j for j in range(len(row)) if float(row[j]) == value]


def mean(terms: list[Tensor], scores: Tensor) -> Tensor:
    return sum(terms, scores.sum() * 0) / max(len(terms), 1)


def over_rows_with_present(scores: Tensor, target: Tensor, row_loss: Callable[[Tensor, Row, Row], Tensor]) -> Tensor:
    losses = []
    for s, y in zip(scores, target, strict=True):
        present, absent = where_equal(y, 1), where_equal(y, 0)
        if present:
            losses.append(row_loss(s, present, absent))
    return mean(losses, scores)


def pair(s: Tensor, present: Row, absent: Row, t_p: float, t_n: float, margin: float) -> Tensor:
    if not present or not absent:
        return s.sum() * 0
    hard_absent = t_n * log_sum_exp(s[n] / t_n for n in absent)
    hard_present = t_p * log_sum_exp(-s[p] / t_p for p in present)
    return softplus(hard_absent + hard_present + margin)


def two_way(
    scores: Tensor, target: Tensor, *, t_p: float = 4.0, t_n: float = 1.0, margin: float = 0.0, way: str = "both"
) -> Tensor:
    def one_way(s: Tensor, y: Tensor) -> Tensor:
        return over_rows_with_present(s, y, lambda row, P, N: pair(row, P, N, t_p, t_n, margin))

    sample, by_class = one_way(scores, target), one_way(scores.T, target.T)
    return {"sample": sample, "class": by_class, "both": sample + by_class}[way]


def lsep(scores: Tensor, target: Tensor) -> Tensor:
    def row_loss(s: Tensor, present: Row, absent: Row) -> Tensor:
        zero = s[0] * 0  # the 1 in log(1 + sum)
        return log_sum_exp([zero, *(s[n] - s[p] for p in present for n in absent)])

    return over_rows_with_present(scores, target, row_loss)


def multilabel_softmax(scores: Tensor, target: Tensor) -> Tensor:
    def row_loss(s: Tensor, present: Row, absent: Row) -> Tensor:
        normaliser = log_sum_exp(s[j] for j in present + absent)
        return sum(normaliser - s[p] for p in present) / len(present)

    return over_rows_with_present(scores, target, row_loss)


def harmonic(r: int) -> float:
    return math.fsum(1.0 / i for i in range(1, r + 1))


def warp_exact(scores: Tensor, target: Tensor) -> Tensor:
    def row_loss(s: Tensor, present: Row, absent: Row) -> Tensor:
        total = s.sum() * 0
        for p in present:
            hinges = [1 - s[p] + s[n] for n in absent if 1 - s[p] + s[n] > 0]
            if hinges:
                total = total + harmonic(len(hinges)) / len(hinges) * sum(hinges)
        return total

    return over_rows_with_present(scores, target, row_loss)


def rml(scores: Tensor, target: Tensor, *, ramp: float = -0.8, label_weight: float = 1.0) -> Tensor:
    def bounded(t: Tensor) -> Tensor:
        return torch.minimum(torch.full_like(t, 1 - ramp), torch.clamp(1 - t, min=0))

    def row_loss(s: Tensor, present: Row, absent: Row) -> Tensor:
        total = label_weight * (sum(bounded(s[p]) for p in present) + sum(bounded(-s[n]) for n in absent))
        for p in present:
            rank = sum(bool(s[p] - s[n] < 1) for n in absent)
            if rank:
                total = total + harmonic(rank) / rank * sum(bounded(s[p] - s[n]) for n in absent)
        return total

    return over_rows_with_present(scores, target, row_loss)


def binary(scores: Tensor, target: Tensor, *, pos_weight: Tensor | float = 1.0) -> Tensor:
    terms = []
    for i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        w = pos_weight[j] if isinstance(pos_weight, Tensor) else pos_weight
        if target[i, j] == 1:
            terms.append(-w * log_p(scores[i, j]))
        elif target[i, j] == 0:
            terms.append(-log_not_p(scores[i, j]))
    return mean(terms, scores)


def partial_binary(scores: Tensor, target: Tensor, *, boost: float = 5.0) -> Tensor:
    rows = []
    for s, y in zip(scores, target, strict=True):
        present, absent = where_equal(y, 1), where_equal(y, 0)
        if present or absent:
            slope = (1 - boost) / (1 - 0.1)
            g = slope * (len(present + absent) / len(s)) + (1 - slope)
            rows.append(-g / len(s) * (sum(log_p(s[p]) for p in present) + sum(log_not_p(s[n]) for n in absent)))
    return mean(rows, scores)


def asymmetric_term(s: Tensor, present: bool, gamma: float, clip: float, detach_focus: bool) -> Tensor:
    if present:
        focus, log_right = torch.exp(gamma * log_not_p(s)), log_p(s)
    elif clip == 0:
        focus, log_right = torch.exp(gamma * log_p(s)), log_not_p(s)
    else:
        pm = torch.sigmoid(s) - clip
        if pm <= 0:
            return s * 0
        focus, log_right = pm**gamma, torch.log(1 - pm)
    return -(focus.detach() if detach_focus else focus) * log_right


def asymmetric(
    scores: Tensor,
    target: Tensor,
    *,
    gamma_neg: float = 4.0,
    gamma_pos: float = 1.0,
    clip: float = 0.05,
    detach_focus: bool = False,
) -> Tensor:
    terms = []
    for i, j in torch.cartesian_prod(*map(torch.arange, scores.shape)).tolist():
        if target[i, j] >= 0:
            present = bool(target[i, j] == 1)
            gamma = gamma_pos if present else gamma_neg
            terms.append(asymmetric_term(scores[i, j], present, gamma, clip, detach_focus))
    return mean(terms, scores)


def partial_selective(
    scores: Tensor,
    target: Tensor,
    *,
    prior: Tensor | None = None,
    prior_threshold: float = 0.05,
    likelihood_topk: int = 5,
    mode: str = "selective",
    gamma_neg: float = 1.0,
    gamma_pos: float = 0.0,
    gamma_unknown: float = 2.0,
    clip: float = 0.0,
) -> Tensor:
    terms = []
    for s, y in zip(scores, target, strict=True):
        unknown = where_equal(y, -1)
        likely = sorted(unknown, key=lambda j: (-s[j].item(), j))[:likelihood_topk]
        for j in range(len(s)):
            if y[j] != -1:
                gamma = gamma_pos if y[j] == 1 else gamma_neg
                terms.append(asymmetric_term(s[j], bool(y[j] == 1), gamma, clip, False))
                continue
            frequent = prior is not None and float(prior[j]) > prior_threshold
            ignored = mode == "ignore" or (mode == "selective" and (j in likely or frequent))
            if not ignored:
                terms.append(asymmetric_term(s[j], False, gamma_unknown, clip, False))
    return mean(terms, scores)


def assume_negative(
    scores: Tensor, target: Tensor, *, weighted: bool = True, label_smoothing: float = 0.0
) -> Tensor:
    rows, e = [], label_smoothing / 2
    for s, y in zip(scores, target.tolist(), strict=True):
        if y < 0:
            continue
        weight = 1 / (len(s) - 1) if weighted else 1.0
        loss = -(1 - e) * log_p(s[y]) - e * log_not_p(s[y])
        for j in range(len(s)):
            if j != y:
                loss = loss - weight * ((1 - e) * log_not_p(s[j]) + e * log_p(s[j]))
        rows.append(loss)
    return mean(rows, scores)


def expected_positive(
    scores: Tensor, target: Tensor, k: float, *, beta: float = 0.01, normalize: bool = False
) -> Tensor:
    known = [(s, y) for s, y in zip(scores, target.tolist(), strict=True) if y >= 0]
    if not known:
        return scores.sum() * 0
    labels = scores.shape[1]
    positive = sum(-log_p(s[y]) for s, y in known) / len(known)
    expected = sum(torch.sigmoid(s[j]) for s, _ in known for j in range(labels)) / len(known)
    if normalize:
        return positive / labels + beta * ((expected - k) / labels) ** 2
    return positive + beta * (expected - k) ** 2


def average_k(
    set_scores: Tensor, proposal_scores: Tensor, target: Tensor, k: float, *, alpha: float = 1.0
) -> Tensor:
    rows = [i for i, y in enumerate(target.tolist()) if y >= 0]
    if not rows:
        return (set_scores + proposal_scores).sum() * 0
    share = torch.stack([proposal_scores[i] - torch.logsumexp(proposal_scores[i], 0) for i in rows])
    entries = [(a, i, j) for a, i in enumerate(rows) for j in range(set_scores.shape[1]) if j != int(target[i])]
    entries.sort(key=lambda e: -share[e[0], e[2]].item())  # stable: ties stay in row, then label order
    m = math.floor((k - 1) * len(rows) + 0.5)
    loss = sum(-share[a, int(target[i])] - log_p(set_scores[i, int(target[i])]) for a, i in enumerate(rows)) / len(rows)
    if entries[:m]:
        loss = loss + alpha * sum(-log_p(set_scores[i, j]) for _, i, j in entries[:m]) / m
    if entries[m:]:
        loss = loss + alpha * sum(-log_not_p(set_scores[i, j]) for _, i, j in entries[m:]) / len(entries[m:])
    return loss


def warp_exact_pairs(scores: Tensor, target: Tensor) -> Tensor:
    """`warp_exact` over all pairs of a row at once, for rows too long for loops."""
    rows = []
    for s, y in zip(scores, target, strict=True):
        hinges = (1 - s[y == 1][:, None] + s[y == 0][None, :]).clamp(min=0)
        ranks = (hinges > 0).sum(1)
        weights = torch.tensor([harmonic(int(r)) / max(int(r), 1) for r in ranks], dtype=s.dtype)
        rows.append((weights * hinges.sum(1)).sum())
    return torch.stack(rows).mean()
