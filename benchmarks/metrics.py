"""How fast are the metrics? Each is timed against the torch operation that does its heavy work, on the same scores.

    python benchmarks/metrics.py [--examples 10000] [--labels 1000]

The requirement: class-wise mean average precision takes at most twice one ``torch.argsort`` over the examples.
"""

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torchmetrics import Metric

from shortlist.metrics import MeanAveragePrecision, TopKAccuracy
from shortlist.metrics import functional as M
from shortlist.timing import fastest


def milliseconds(work: Callable[[], object]) -> float:
    """Best of several runs, after one to warm up."""
    return 1e3 * fastest([work], 0.0, turns=5)[0]


def of_batches(metric: Metric, scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    for rows in torch.arange(len(scores)).split(256):
        metric.update(scores[rows], target[rows])
    return metric.compute()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--labels", type=int, default=1_000)
    options = parser.parse_args()
    n, num_labels = options.examples, options.labels

    torch.manual_seed(0)
    scores = torch.randn(n, num_labels)
    labels = torch.randint(num_labels, (n,))
    by_class = scores.t().contiguous()
    argsort = milliseconds(lambda: scores.argsort(dim=0))
    argsort_contiguous = milliseconds(lambda: by_class.argsort(dim=-1))
    sort = min(argsort, argsort_contiguous)
    topk = milliseconds(lambda: scores.topk(5))
    print(f"{n} examples, {num_labels} labels, {torch.get_num_threads()} threads; milliseconds, best of 5")
    print(f"torch.argsort over the examples {argsort:9.1f}   of the transposed copy {argsort_contiguous:.1f}")
    print(f"torch.topk(5)                   {topk:9.1f}")

    for share in (0.005, 0.05, 0.5):
        target = (torch.rand(n, num_labels) < share).to(torch.int8)
        took = milliseconds(lambda target=target: M.mean_average_precision(scores, target))
        print(f"mAP@class, {share:5.1%} present       {took:9.1f}   {took / sort:.2f}x argsort (required: 2x)")
    target = torch.randint(-1, 2, (n, num_labels), dtype=torch.int8)
    took = milliseconds(lambda: M.mean_average_precision(scores, target))
    print(f"mAP@class, a third unknown      {took:9.1f}   {took / sort:.2f}x argsort (required: 2x)")

    target = (torch.rand(n, num_labels) < 0.005).to(torch.int8)
    rivals, precision = {"argsort": sort, "topk": topk}, partial(M.mean_average_precision, scores, target)
    others: dict[str, tuple[Callable[[], object], str]] = {
        "mAP@class, metric, batches of 256": (lambda: of_batches(MeanAveragePrecision(), scores, target), "argsort"),
        "mAP@class, 256 bins, sigmoid": (partial(precision, bins=256, link="sigmoid"), "argsort"),
        "mAP@sample": (partial(precision, average="sample"), "argsort"),
        "top-5 accuracy": (lambda: M.top_k_accuracy(scores, labels, k=5), "topk"),
        "top-5 accuracy, metric": (lambda: of_batches(TopKAccuracy(k=5), scores, labels), "topk"),
        "recall@5": (lambda: M.recall_at_k(scores, target, k=5), "topk"),
        "NDCG@5": (lambda: M.ndcg_at_k(scores, target, k=5), "topk"),
        "average-5 accuracy": (lambda: M.average_k_accuracy(scores, labels, k=5), "argsort"),
    }
    for name, (work, rival) in others.items():
        took = milliseconds(work)
        print(f"{name:33}{took:8.1f}   {took / rivals[rival]:.2f}x {rival}")


if __name__ == "__main__":
    main()
