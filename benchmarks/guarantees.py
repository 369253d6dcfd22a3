"""Rules with a promise against MAPIE and TorchCP's formulas, on the same probabilities: conformal sets, risk control of
several labels, and the memory that they take.

python -m benchmarks.guarantees
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from mapie.classification import SplitConformalClassifier
from mapie.risk_control import MultiLabelClassificationController
from sklearn.base import BaseEstimator, ClassifierMixin

from benchmarks.conformal_formulas import formula_sets
from benchmarks.harness import Case, MemoryCase, SpeedCase, Step
from benchmarks.run import run_suite
from shortlist.sets import Conformal, RiskControl

ALPHA = 0.1
RANDOMISED = ("aps", "raps", "saps", "top-k")


class Given(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose probabilities are its input."""

    def __init__(self, labels: int = 2) -> None:
        self.labels = labels
        self.classes_ = np.arange(labels)
        self.n_features_in_ = labels

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, x: Any, y: Any) -> "Given":
        return self

    def predict_proba(self, x: Any) -> Any:
        return x

    def predict(self, x: Any) -> Any:
        return x.argmax(-1)


def _single(rows: int, labels: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    p = torch.softmax(3 * torch.randn(rows, labels, generator=generator, dtype=torch.float64), dim=-1)
    return p.numpy(), torch.multinomial(p, 1, generator=generator)[:, 0].numpy()


def _several(rows: int, labels: int) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    p = torch.sigmoid(2 * torch.randn(rows, labels, generator=generator, dtype=torch.float64) - 4)
    return p.numpy(), (torch.rand(p.shape, generator=generator, dtype=torch.float64) < p).int().numpy()


def _ours(score: str, rows: int, labels: int) -> Step:
    p, target = _single(rows, labels)
    return lambda: Conformal(ALPHA, score, link="none").fit(p, target).predict(p)  # type: ignore[arg-type]


def _mapie(score: str, rows: int, labels: int) -> Step:
    p, target = _single(rows, labels)

    def step() -> None:
        rule = SplitConformalClassifier(Given(labels), 1 - ALPHA, conformity_score=score, prefit=True, random_state=0)
        rule.conformalize(p, target)
        rule.predict_set(p, conformity_score_params={"include_last_label": True} if score == "aps" else None)

    return step


def _logits(rows: int, labels: int) -> tuple[torch.Tensor, torch.Tensor]:
    p, target = _single(rows, labels)
    return torch.from_numpy(p).log().float(), torch.from_numpy(target)


def _ours_of_logits(score: str, rows: int, labels: int) -> Step:
    scores, target = _logits(rows, labels)
    seed = 0 if score in RANDOMISED else None
    return lambda: Conformal(ALPHA, score, seed=seed).fit(scores, target).predict(scores)  # type: ignore[arg-type]


def _formulas(score: str, rows: int, labels: int) -> Step:
    scores, target = _logits(rows, labels)
    return lambda: formula_sets(score, scores, target, scores, ALPHA)


def _our_risk(options: dict[str, Any], rows: int, labels: int) -> Step:
    p, target = _several(rows, labels)
    p, target = p.astype(np.float32), target.astype(np.int8)
    return lambda: RiskControl(link="none", **options).fit(p, target).predict(p)


def _mapie_risk(options: dict[str, Any], rows: int, labels: int) -> Step:
    p, target = _several(rows, labels)

    def step() -> None:
        rule = MultiLabelClassificationController(lambda x: x, target_level=1 - ALPHA, **options)
        rule.calibrate(p, target)
        rule.predict(p)

    return step


RECALL = {"risk": "recall", "alpha": ALPHA}


def cases(quick: bool = False) -> list[Case]:
    shape = (100, 50) if quick else (10_000, 1_000)
    # MAPIE holds a number for every row, label and each of 100 thresholds: mapie_risk.py measures larger shapes by hand
    small = (100, 50) if quick else (2_000, 300)
    found: list[Case] = []

    def speed(name: str, at: tuple[int, int], ours: Any, theirs: Any, goal: float, against: str = "MAPIE") -> None:
        found.append(SpeedCase("guarantees", name, at, None, partial(*ours, *at), against, partial(*theirs, *at), goal))

    def memory(name: str, at: tuple[int, int], ours: Any) -> None:
        step, warm_up = partial(*ours, *at), partial(*ours, 100, 50)
        found.append(MemoryCase("guarantees", name, at, None, step, warm_up, 2.0))

    speed("Conformal (lac)", shape, (_ours, "lac"), (_mapie, "lac"), 1.0)
    speed("Conformal (aps)", shape, (_ours, "aps"), (_mapie, "aps"), 1.0)
    for score in ("lac", "margin", *RANDOMISED):
        ours, theirs = (_ours_of_logits, score), (_formulas, score)
        speed(f"Conformal ({score}), of logits", shape, ours, theirs, 1.0, "TorchCP's formulas")
        memory(f"Conformal ({score}), of logits", shape, ours)
    risks: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("recall, CRC", RECALL, {"method": "crc", "risk": "recall"}),
        ("recall, RCPS", {**RECALL, "delta": 0.1}, {"method": "rcps", "risk": "recall", "confidence_level": 0.9}),
        (
            "precision, LTT",
            {"risk": "precision", "alpha": 0.6, "delta": 0.1},
            {"method": "ltt", "risk": "precision", "confidence_level": 0.9},
        ),
    ]
    for name, ours_of, theirs_of in risks:
        speed(f"RiskControl ({name})", small, (_our_risk, ours_of), (_mapie_risk, theirs_of), 1 / 20)
        memory(f"RiskControl ({name})", shape, (_our_risk, ours_of))
    return found


main = partial(run_suite, "benchmarks.guarantees", __doc__, cases)

if __name__ == "__main__":
    main()
