"""Examples worth looking at: the most ambiguous (largest sets) and the most confused (surest of a wrong label)."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.errors import ShortlistError
from shortlist.reports.data import Image, ReportData, RunResult
from shortlist.reports.numbers import Examples, linked
from shortlist.reports.picture import image_kind
from shortlist.reports.words import percent

SHOWN = 12  # examples of each kind
_BARS = 5  # labels shown of each
_LONGEST = 400  # letters of a text
_LARGEST = 192  # pixels; larger pictures are made smaller, so that the page stays small


def pick(run: RunResult, k: float, data: ReportData, examples: Examples) -> dict[str, list[dict[str, Any]]]:
    """Cards of the most ambiguous and of the most confused examples, most of it first."""
    sets = run.average_k(k).predict(run.scores)
    compared = linked(run.scores, run.link)
    # equally large sets: the one with the least sure first label first
    ambiguous = np.lexsort((compared.max(1), -sets.sizes))
    margin = _margin(compared, run, examples)
    confused = np.argsort(margin, kind="stable")[: min(SHOWN, (margin < 0).sum())]
    card = _card_maker(sets, compared if run.probabilities else run.scores, run, data, examples)
    chosen = {"ambiguous": ambiguous[:SHOWN], "confused": confused}
    return {kind: [card(int(row)) for row in rows] for kind, rows in chosen.items()}


def image_uri(image: Image | None) -> str | None:
    """A picture as a data: address; JPEG and PNG bytes stay as they are unless they are large. None stays None.

    >>> image_uri(np.zeros((2, 2), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    if image is None:
        return None
    from PIL import Image as Pictures

    if isinstance(image, bytes):
        kind = image_kind(image)
        picture: Pictures.Image = Pictures.open(io.BytesIO(image))
        if max(picture.size) <= _LARGEST:
            return f"data:{kind};base64,{base64.b64encode(image).decode()}"
    else:
        array = np.asarray(image)
        if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)):
            raise ShortlistError(
                f"images must give PNG or JPEG bytes or a uint8 array of shape (H, W) or (H, W, 1, 3 or 4), "
                f"got {array.dtype} of shape {array.shape}"
            )
        picture = Pictures.fromarray(array.squeeze(2) if array.ndim == 3 and array.shape[2] == 1 else array)
    picture.thumbnail((_LARGEST, _LARGEST))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def shortened(text: str) -> str:
    """The beginning of a long text, as a page may show it; a blank one is said to be so.

    >>> shortened("  "), shortened("a" * 500)[-5:]
    ('(blank)', 'aa...')
    """
    text = text.strip()
    return (text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "...") or "(blank)"


def _margin(shown: NDArray[np.float32], run: RunResult, examples: Examples) -> NDArray[np.float64]:
    """The best right label's score minus the best wrong label's; inf where one of the two is missing."""
    right = examples.present.to_dense()
    wrong = ~right & examples.known[:, None] if run.is_single else run.target == 0
    margin = np.full(len(shown), np.inf)
    both = right.any(1) & wrong.any(1)
    best = [np.where(kind[both], shown[both], -np.inf).max(1).astype(np.float64) for kind in (right, wrong)]
    with np.errstate(invalid="ignore"):  # both -inf: nothing is said about either
        margin[both] = np.nan_to_num(best[0] - best[1], nan=np.inf, posinf=np.inf, neginf=-np.inf)
    return margin


def _known(data: ReportData, examples: Examples, row: int) -> str:
    """What is known of an example whose right labels are not all known: unknown is not absent."""
    unknown = int(examples.unknown[row].sum())
    if not unknown:
        return "" if len(examples.present[row]) else "no label is right"
    if unknown == data.shape[1]:
        return "label unknown" if data.is_single else "all labels unknown"
    others = f"{unknown} label{'s' if unknown > 1 else ''} unknown"
    return others if len(examples.present[row]) else f"no label known to be right, {others}"


def _card_maker(
    sets: Any, shown: NDArray[np.float32], run: RunResult, data: ReportData, examples: Examples
) -> Callable[[int], dict[str, Any]]:
    def card(row: int) -> dict[str, Any]:
        scores, inside = shown[row], set(sets[row])
        right = set(examples.present[row])
        order = np.argsort(-scores, kind="stable")[:_BARS].tolist()
        order += sorted(right - set(order), key=lambda label: -scores[label])[:2]  # shown wherever it stands
        finite = scores[np.isfinite(scores)]
        low = 0.0 if run.probabilities or not len(finite) else min(0.0, float(finite.min()))
        high = 1.0 if run.probabilities or not len(finite) else max(float(finite.max()), low + 1e-9)
        bars = [
            {
                "name": data.names[label],
                "score": percent(float(scores[label])) if run.probabilities else f"{scores[label]:.3g}",
                "width": round(100 * float(np.clip((scores[label] - low) / (high - low), 0, 1)), 1),
                "inside": label in inside,
                "right": label in right,
                "unknown": bool(examples.unknown[row, label]),
                "rank": int((scores > scores[label]).sum()) + 1,
            }
            for label in order
        ]
        return {
            "name": data.ids[row] if data.ids is not None else f"Example {row}",
            "image": None if data.images is None else image_uri(data.images(row)),
            "text": None if data.texts is None else shortened(data.texts[row]),
            "right": [data.names[label] for label in sorted(right)],
            "known": _known(data, examples, row),
            "truth": None if data.truth is None else [data.names[label] for label in data.truth[row]],
            "size": len(inside),
            "bars": bars,
        }

    return card
