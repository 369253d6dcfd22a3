"""Links: what makes the scores of different rows comparable.

A threshold over raw logits compares numbers that mean nothing across rows; after softmax (one label per example) or
sigmoid (any number of labels) they mean the same in every row.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.device_arrays import DeviceArray, as_given, as_torch, on_host
from shortlist.errors import ShortlistError

Link = Literal["softmax", "sigmoid", "none"]
LINKS = ("softmax", "sigmoid", "none")
SCALINGS = ("temperature", "vector", "isotonic")


@dataclass(frozen=True, repr=False)
class ScaledLink:
    """A link to calibrated probabilities, as ``sl.sets.fit_scaling`` finds it on held-out rows; rules take it as their
    ``link``.

    "temperature": base(scale * scores), one scale for all labels. "vector": base(scale * scores + shift), a scale and a
    shift for each label. "isotonic": a rising map of base(scores), piecewise linear between ``knots``: for sigmoid one
    for each label; for softmax one for all, and rows are made to sum to 1 again.

    >>> sharper = ScaledLink("temperature", "softmax", scale=(2.0,))
    >>> link_rows(np.array([[1.0, 0.0]]), sharper).round(3), sharper
    (array([[0.881, 0.119]]), ScaledLink(temperature of softmax, 2))
    """

    kind: Literal["temperature", "vector", "isotonic"]
    base: Literal["softmax", "sigmoid"]
    scale: tuple[float, ...] = ()
    shift: tuple[float, ...] = ()
    knots: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...] = ()  # (from, to), for all labels or for each

    def __post_init__(self) -> None:
        values = np.array([*self.scale, *self.shift, *(v for knot in self.knots for side in knot for v in side)])
        rising = all(len(a) == len(b) > 0 and list(a) == sorted(a) and list(b) == sorted(b) for a, b in self.knots)
        parts = {"temperature": len(self.scale) == 1, "vector": 0 < len(self.scale) == len(self.shift)}
        if self.kind not in SCALINGS or self.base not in ("softmax", "sigmoid") or not np.isfinite(values).all():
            raise ShortlistError(f"a scaling is one of {', '.join(SCALINGS)} of softmax or sigmoid, got {self.kind!r}")
        if not parts.get(self.kind, bool(self.knots)) or not rising or min(self.scale, default=1.0) <= 0:
            raise ShortlistError(f"the numbers of the {self.kind} scaling do not fit together")

    def __repr__(self) -> str:
        number = f", {self.scale[0]:.4g}" if self.kind == "temperature" else ""
        return f"ScaledLink({self.kind} of {self.base}{number})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it; a rule's ``link`` takes it back."""
        return asdict(self)

    def rows(self, scores: NDArray[Any], first_row: int = 0) -> NDArray[Any]:
        """The probabilities of a block of rows, in its own type."""
        labels = scores.shape[-1]
        for count in (len(self.shift), len(self.knots) if len(self.knots) > 1 else 0):
            if count not in (0, labels):
                raise ShortlistError(f"the scaling of the link has {count} labels, these scores have {labels}")
        if self.kind != "isotonic":
            kind = scores.dtype.type
            scaled = scores * np.array(self.scale, kind)
            return link_rows(scaled + np.array(self.shift, kind) if self.shift else scaled, self.base, first_row)
        p = link_rows(scores, self.base, first_row)
        if len(self.knots) == 1:
            mapped = np.interp(p, *self.knots[0])
        else:
            mapped = np.stack([np.interp(p[:, label], *knot) for label, knot in enumerate(self.knots)], axis=1)
        if self.base == "softmax":
            total = mapped.sum(-1, keepdims=True)
            mapped = np.where(total > 0, mapped / np.where(total > 0, total, 1), p)
        return mapped.astype(scores.dtype)


AnyLink = Link | ScaledLink


def rule_link(link: Any) -> AnyLink:
    """The link of a rule: a name, a ``ScaledLink``, or what its ``to_dict`` gave."""
    if isinstance(link, ScaledLink):
        return link
    if isinstance(link, Mapping):
        knots = tuple((tuple(map(float, a)), tuple(map(float, b))) for a, b in link.get("knots", ()))
        scale, shift = (tuple(map(float, link.get(part, ()))) for part in ("scale", "shift"))
        return ScaledLink(link["kind"], link["base"], scale, shift, knots)
    return check_link(link)


def check_link(link: str, name: str = "link") -> Link:
    if link not in LINKS:
        raise ShortlistError(f"{name} must be one of {', '.join(map(repr, LINKS))}, got {link!r}")
    return link  # type: ignore[return-value]


def usual_link(single: bool) -> Link:
    """The link where nothing else is known: softmax for class indices, sigmoid for a label matrix."""
    return "softmax" if single else "sigmoid"


def link_tensor(scores: Tensor, link: str) -> Tensor:
    """Linked scores on their own device, and differentiable.

    >>> link_tensor(torch.zeros(1, 4), "softmax")
    tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """
    check_link(link)
    if link == "none":
        return scores
    if link == "sigmoid":
        return scores.sigmoid()
    linked = scores.softmax(-1)
    bad = torch.isnan(linked).any(-1)
    if bool(bad.any()):
        _raise_undefined(scores[bad][0].detach().cpu().numpy(), int(bad.nonzero()[0, 0]))
    return linked


def link_rows(scores: NDArray[Any], link: AnyLink, first_row: int = 0) -> NDArray[Any]:
    """Linked scores of a block of rows, in its own type (float32 or float64), without NaN.

    A row's result is the same, bit for bit, in any block: a prediction must not depend on the rest of its batch.
    """
    if isinstance(link, ScaledLink):
        return link.rows(scores, first_row)
    if link == "softmax":
        linked = as_given(as_torch(scores).softmax(-1), scores)
    elif link == "sigmoid":
        linked = _sigmoid(scores)
    else:
        linked = scores
    # one NaN in a row makes all of its softmax NaN: of a single row any entry tells
    alike = link == "softmax" and len(linked) == 1
    if linked.size and (worst := linked.item(0) if alike else linked.max()) != worst:
        row = int(np.isnan(linked).any(-1).argmax())
        _raise_undefined(on_host(scores[row]), first_row + row)
    return linked


def link_entries(
    scores: NDArray[Any], link: AnyLink, rows: NDArray[Any], labels: NDArray[Any], first_row: int = 0
) -> NDArray[Any]:
    """``link_rows(scores, link)[rows, labels]``; of a sigmoid no other entries are computed.

    >>> link_entries(np.array([[0.0, 1.0, 2.0]]), "sigmoid", np.array([0]), np.array([0]))
    array([0.5])
    """
    if link != "sigmoid":
        return link_rows(scores, link, first_row)[rows, labels]
    _check_no_nan(scores, first_row)
    return _sigmoid(scores[rows, labels])


def high_entries(
    scores: NDArray[Any], link: AnyLink, least: float, first_row: int = 0
) -> tuple[NDArray[np.int64], NDArray[Any]] | None:
    """Flat positions, ascending, of every entry whose linked score reaches ``least`` (and of a few that nearly do), and
    their linked scores; None where it is no quicker to look for them than to link all."""
    if link != "sigmoid" or not least > _LEAST or not scores.size or isinstance(scores, DeviceArray):
        return None
    _check_no_nan(scores, first_row)
    nearly = min(least, 1.0) * (1 - _NEARLY)
    at = np.flatnonzero(scores >= scores.dtype.type(math.log(nearly / (1 - nearly))))
    return None if 8 * len(at) > scores.size else (at, _sigmoid(scores.reshape(-1)[at]))


_LEAST, _NEARLY = 1e-30, 1e-4  # far from numbers without all their digits; far more than is lost by rounding


def _check_no_nan(scores: NDArray[Any], first_row: int) -> None:
    if scores.size and (worst := scores.max()) != worst:
        raise_nan(scores, first_row)


def _sigmoid(x: NDArray[Any]) -> NDArray[Any]:
    """1 / (1 + e^-x) for x >= 0 and e^x / (1 + e^x) below: no overflow, and small probabilities keep their digits.

    In numpy, because torch.sigmoid rounds differently at the end of a tensor: a row would depend on its batch.
    In place, because fresh memory costs more than the arithmetic.
    """
    e = np.abs(x)
    np.exp(np.negative(e, out=e), out=e)
    result = (x >= 0).astype(x.dtype)
    np.maximum(result, e, out=result)  # 1 or e, as e <= 1
    e += 1
    result /= e
    return result


def raise_nan(scores: NDArray[Any], first_row: int) -> None:
    row, label = np.argwhere(np.isnan(scores))[0].tolist()
    raise ShortlistError(f"scores must not hold NaN: row {first_row + row}, label {label} is NaN")


def _raise_undefined(row: NDArray[Any], number: int) -> None:
    """Why this row is NaN after its link."""
    if np.isnan(row).any():
        raise_nan(row[None], number)
    held = "+inf" if np.isposinf(row).any() else "-inf for every label"
    raise ShortlistError(f"softmax of scores row {number} is undefined: it holds {held}")
