"""One row at a time: what the answer of a `Predictor` or a `SetClassifier` costs beside the model's own forward pass.

A set costs about 10 microseconds for each call, whatever the model: the link, one native function and the answer.

python -m benchmarks.latency

The table counts each one's fastest call; the lines below it are the median call and the slowest of a hundred.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import shortlist as sl
from benchmarks.harness import THREADS, Case, SpeedCase, Step
from benchmarks.run import run_suite
from shortlist.models import build_backbone

GOAL = 1.3
FEATURES, LABELS = 128, 100
RULES = ["average-k:k=5", "top-k:k=5", "conformal:alpha=0.1", "conformal:alpha=0.1,score=aps"]


def _network(width: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, LABELS)).eval()


def _residual(size: int) -> nn.Module:
    backbone = build_backbone("resnet18", in_shape=(3, size, size))
    return nn.Sequential(backbone, nn.Linear(int(backbone.out_features), LABELS)).eval()  # type: ignore[arg-type]


class _Model:
    """A model and its Predictor, with one row to ask about."""

    def __init__(self, network: Callable[[], nn.Module], shape: tuple[int, ...], rows: int) -> None:
        self.network = network()
        torch.manual_seed(0)
        inputs = torch.randn(rows, *shape)
        self.predictor = sl.calibrate(self.network, (inputs, torch.arange(rows) % LABELS), rule=RULES)
        self.row = inputs[:1]

    def forward(self) -> Step:
        def step() -> object:
            with torch.no_grad():
                return self.network(self.row)

        return step

    def scores(self) -> Step:
        return lambda: self.predictor.scores(self.row)

    def sets(self, place: int) -> Step:
        rule = list(self.predictor.rules)[place]
        return lambda: self.predictor.predict_sets(self.row, rule)


def _step(step: Callable[[_Model], Step], model: Callable[[], _Model]) -> Step:
    return step(model())


def _digits(rows: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    random = np.random.default_rng(0)
    return random.normal(size=(rows, 64)), np.arange(rows) % 10


def _set_classifier(rows: int) -> Step:
    X, y = _digits(rows)
    model = sl.SetClassifier(k=2, random_state=0).fit(X, y)
    return lambda: model.predict_sets(X[:1])


def _scikit_learn(rows: int) -> Step:
    X, y = _digits(rows)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=100)).fit(X, y)
    return lambda: model.predict_proba(X[:1])


def cases(quick: bool = False) -> list[Case]:
    rows, size = (200, 32) if quick else (2000, 64)
    models = {
        f"MLP of {FEATURES}-512-512-{LABELS}": (partial(_network, 512), (FEATURES,), rows),
        f"ResNet-18 on {size} x {size}": (partial(_residual, size), (3, size, size), 200),
    }
    steps: dict[str, Callable[[_Model], Step]] = {"scores": _Model.scores}
    steps |= {f"predict_sets ({rule})": partial(_Model.sets, place=place) for place, rule in enumerate(RULES)}
    found: list[Case] = []
    for name, (network, shape, count) in models.items():
        model = cache(partial(_Model, network, shape, count))  # made once, where it is measured
        forward = partial(_step, _Model.forward, model)
        for what, step in steps.items():
            title, ours = f"Predictor.{what}, {name}", partial(_step, step, model)
            found.append(SpeedCase("one row", title, (1, *shape), None, ours, "forward", forward, GOAL))
    ours, theirs, against = (lambda: _set_classifier(rows)), (lambda: _scikit_learn(rows)), "scikit-learn's pipeline"
    found.append(SpeedCase("one row", "SetClassifier.predict_sets", (1, 64), 2, ours, against, theirs, GOAL))
    return found


def _quantiles(steps: Mapping[str, Step], seconds: float) -> dict[str, tuple[float, float]]:
    """Microseconds of the median call, and of the slowest of a hundred, of steps that take turns of a few calls."""
    calls: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(100):
            step()
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for name, step in steps.items():
            step()
            for _ in range(20):
                began = time.perf_counter()
                step()
                calls[name].append(time.perf_counter() - began)
    return {name: tuple(1e6 * np.quantile(times, (0.5, 0.99))) for name, times in calls.items()}


def spread(seconds: float) -> str:
    """The median and the slow calls of the small model, of its sets and of a SetClassifier."""
    torch.set_num_threads(THREADS)
    model = _Model(partial(_network, 512), (FEATURES,), 2000)
    steps = {"forward": model.forward(), "Predictor.scores": model.scores()}
    steps |= {f"Predictor.predict_sets ({rule})": model.sets(place) for place, rule in enumerate(RULES)}
    steps |= {"SetClassifier.predict_sets": _set_classifier(2000), "scikit-learn's pipeline": _scikit_learn(2000)}
    found = _quantiles(steps, seconds)
    own = found["forward"]
    return "\n".join(
        f"{name:56} median {median:6.1f} us ({median / own[0]:.2f} of the forward pass), p99 {slow:7.1f} us"
        f" ({slow / own[1]:.2f})"
        for name, (median, slow) in found.items()
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = run_suite("benchmarks.latency", __doc__, cases, arguments)
    if not options.only:
        print("\n" + spread(0.2 if options.quick else 20.0))


if __name__ == "__main__":
    main()
