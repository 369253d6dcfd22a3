"""Set rules fitted on the scores of validation data, and what they are worth."""

import copy
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from shortlist.checks import IGNORE_INDEX, check_indices, check_label_matrix, holds_shares
from shortlist.errors import ShortlistError
from shortlist.labels.counts import cardinality, usual_k
from shortlist.links import usual_link
from shortlist.metrics.functional import set_coverage, set_size, vote_coverage
from shortlist.metrics.inputs import as_tensor
from shortlist.sets import AverageK, Conformal, SetRule


class Calibration:
    """Rules to fit, by name, and those that were fitted last (``rules``).

    Without any, ``average-k`` has k labels on average (the usual number, or as many as rows have) and ``conformal``
    promises 90 %.

    >>> calibration = Calibration({"average-k": AverageK(2)})
    >>> scores, target = torch.randn(40, 5), torch.arange(40) % 5
    >>> sorted(calibration.fit(scores, target)), calibration.rules["average-k"].rows
    (['average-k/coverage', 'average-k/size'], 40)
    """

    def __init__(self, rules: Mapping[str, SetRule] | None = None, k: float | None = None) -> None:
        if rules is not None and (
            not isinstance(rules, Mapping) or not all(isinstance(rule, SetRule) for rule in rules.values())
        ):
            raise ShortlistError(
                'rules must be set rules by name, such as {"average-k": shortlist.sets.AverageK(3)}, got '
                f"{type(rules).__name__}"
            )
        if k is not None and not k > 0:
            raise ShortlistError(f"k must be above 0, got {k}")
        self.wanted, self.k = None if rules is None else dict(rules), k
        self.rules: dict[str, SetRule] = {}

    def fit(self, scores: Any, target: Any) -> dict[str, float]:
        """Fit every rule on all rows whose label is known. What is returned, mean size and coverage of each rule, is
        honest: a rule fitted on every other row is judged on the rest."""
        scores, target = known_rows(scores, target)
        if len(scores) < 2:
            raise ShortlistError(
                f"{len(scores)} rows of the validation data have a known label: sets need at least 2 to be calibrated"
            )
        wanted = self.wanted
        if wanted is None:
            single = is_single(target)
            k = self.k or (usual_k(scores.shape[1]) if single else max(cardinality(target), 0.5))
            link = usual_link(single)
            labels: Literal["single", "multi", "votes"] = "single" if target.ndim == 1 else "multi"
            wanted = {
                "average-k": AverageK(min(k, scores.shape[1]), link=link),
                "conformal": Conformal(0.1, labels="votes" if are_shares(target) else labels, link=link),
            }
        found, fitted = {}, {}
        coverage = vote_coverage if are_shares(target) else set_coverage
        for name, rule in wanted.items():
            sets = _fitted(rule, scores[::2], target[::2]).predict(scores[1::2])
            found[f"{name}/size"] = float(set_size(sets))
            found[f"{name}/coverage"] = float(coverage(sets, target[1::2]))
            fitted[name] = _fitted(rule, scores, target)
        self.rules = fitted
        return found


def known_rows(scores: Any, target: Any) -> tuple[Tensor, Tensor]:
    """The rows of which something is known, (rows, labels), with their target: class indices, a label matrix (whole
    numbers) or shares of votes (floats)."""
    scores, target = as_tensor(scores, "scores").cpu(), as_tensor(target, "target").cpu()
    scores = scores if scores.dtype in (torch.float32, torch.float64) else scores.float()
    if scores.ndim < 2:
        raise ShortlistError(f"scores must have the shape (..., labels), got {tuple(scores.shape)}")
    labels = scores.shape[-1]
    if target.shape == scores.shape:
        matrix = torch.where(target == IGNORE_INDEX, -1, target)
        if not holds_shares(matrix):
            check_label_matrix(scores, matrix)
            matrix = matrix.to(torch.int8)
        matrix = matrix.reshape(-1, labels)
        known = (matrix != -1).any(-1)
        return scores.reshape(-1, labels)[known], matrix[known]
    index = check_indices(scores, target).reshape(-1)
    return scores.reshape(-1, labels)[index >= 0], index[index >= 0]


def are_shares(target: Tensor) -> bool:
    """Whether the target of `known_rows` holds shares of votes."""
    return target.is_floating_point()


def is_single(target: Tensor) -> bool:
    """Whether the target of `known_rows` has one label a row, be it known or voted on."""
    return target.ndim == 1 or are_shares(target)


def _fitted(rule: SetRule, scores: Tensor, target: Tensor) -> SetRule:
    return copy.deepcopy(rule).fit(scores, target if rule.needs_target else None)
