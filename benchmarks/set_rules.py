"""The set rules against the torch operation that does the heavy part, and a stream of 10^9 scores in bounded memory.

python -m benchmarks.set_rules
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from benchmarks.harness import Case, MemoryCase, SpeedCase, Step
from benchmarks.run import run_suite
from shortlist.sets import AverageK, Conformal, PointwiseError, SetRule, TopK

K = 5
STREAM_MEMORY = 200e6  # bytes a stream of 10^9 scores may take


def _linked(rows: int, labels: int) -> Tensor:
    return torch.softmax(3 * torch.randn(rows, labels, generator=torch.Generator().manual_seed(0)), dim=-1)


def _fit(rows: int, labels: int) -> Step:
    scores = _linked(rows, labels)
    return lambda: AverageK(K, link="none").fit(scores)


def _kthvalue(rows: int, labels: int) -> Step:
    scores = _linked(rows, labels).flatten()
    return lambda: torch.kthvalue(scores, len(scores) - K * rows + 1)


def _predict(rule: SetRule, rows: int, labels: int) -> Step:
    p = _linked(rows, labels)
    scores = torch.log(p)
    rule.fit(scores, torch.multinomial(p, 1, generator=torch.Generator().manual_seed(1))[:, 0])  # of a right model
    return lambda: rule.predict(scores)


def _torch(operation: Callable[[Tensor], object], rows: int, labels: int) -> Step:
    scores = torch.log(_linked(rows, labels))
    return lambda: operation(scores)


def _stream(rows: int, labels: int) -> Iterator[Tensor]:
    """Fresh scores, about a million at a time."""
    generator = torch.Generator().manual_seed(0)
    batch = max(1, min(rows, 1_000_000 // labels))
    return (torch.randn(batch, labels, generator=generator) for _ in range(rows // batch))


def _fit_stream(link: str, rows: int, labels: int) -> Step:
    return lambda: AverageK(K, link=link).fit(_stream(rows, labels))  # type: ignore[arg-type]


def _generate(rows: int, labels: int) -> Step:
    def step() -> None:
        for _ in _stream(rows, labels):
            pass

    return step


def cases(quick: bool = False) -> list[Case]:
    n, stream = (100, 1_000) if quick else (10_000, 100_000)
    found: list[Case] = []

    def speed(name: str, shape: tuple[int, int], ours, against, reference, goal=None) -> None:  # type: ignore[no-untyped-def]
        found.append(SpeedCase("set rules", name, shape, K, ours, against, reference, goal))

    shape = (n, 1_000)
    speed("AverageK.fit", shape, partial(_fit, *shape), "torch.kthvalue", partial(_kthvalue, *shape), 1.2)
    for shape in ((n, 100), (n, 1_000), (n // 10, 100_000)):
        topk = partial(_torch, partial(torch.topk, k=K), *shape)
        speed("TopK.predict", shape, partial(_predict, TopK(K), *shape), "torch.topk", topk, 1.3)
    shape = (n, 1_000)
    sort = partial(_torch, torch.sort, *shape)
    for rule in (AverageK(K), Conformal(), Conformal(score="aps"), PointwiseError(0.1)):
        name = f"{type(rule).__name__}.predict" + (" (aps)" if getattr(rule, "score", "") == "aps" else "")
        # only the values are sorted, without their labels
        goal_of = 0.5 if name.endswith("(aps)") or isinstance(rule, PointwiseError) else None
        speed(name, shape, partial(_predict, rule, *shape), "torch.sort", sort, goal_of)
    shape = (stream, 1_000)
    for link, ratio in (("softmax", 3), ("none", 3), ("sigmoid", None)):
        name = f"AverageK.fit, a stream, {link}"
        speed(name, shape, partial(_fit_stream, link, *shape), "torch.randn", partial(_generate, *shape), ratio)
    shape = (10 * stream, 1_000)
    memory = STREAM_MEMORY / (4 * shape[0] * shape[1])
    ours, warm_up = partial(_fit_stream, "softmax", *shape), partial(_fit_stream, "softmax", 1_000, 1_000)
    found.append(MemoryCase("set rules", "AverageK.fit, a stream", shape, K, ours, warm_up, memory))
    return found


main = partial(run_suite, "benchmarks.set_rules", __doc__, cases)

if __name__ == "__main__":
    main()
