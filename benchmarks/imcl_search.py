"""IMCL's approximate search beside the exact one: which atoms it finds, how much it leaves unexplained, and its time.

    python -m benchmarks.imcl_search                                 # made data: 50,000 atoms of 5,000 labels
    python -m benchmarks.imcl_search --features FILE.npy --labels FILE.npy

prints a table. The features and labels (class indices, of which four fifths are then unknown) of any data may be given:
their last rows are the examples, the rest the dictionary.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import faiss
import numpy as np
import torch
from torch import Tensor

from shortlist.imcl import AtomIndex, JointNonnegativePursuit, PursuitResult, complete, squash
from shortlist.labels import from_indices

BATCH, K, LABEL_WEIGHT = 32, 3, 0.5
PROPOSED = (30, 90, 300)
PROBES = (8, 16, 32)
Problem = tuple[Tensor, Tensor, Tensor, Tensor]  # labels and features to explain, those of the dictionary


def made_data(atoms: int, labels: int, features: int, topics: int = 300) -> Problem:
    """Examples of one or two topics, each with 20 usual labels; nine of ten labels are unknown, and predicted."""
    generator = torch.Generator().manual_seed(0)
    usual = torch.rand(topics, labels, generator=generator).topk(20).indices
    directions = torch.randn(labels, features, generator=generator) / features**0.5
    y, f = torch.empty(atoms + BATCH, labels), torch.empty(atoms + BATCH, features)
    for rows in torch.arange(atoms + BATCH).split(4096):  # in parts, to save memory
        share = torch.full((len(rows), labels), 0.0005)
        for _ in range(2):
            topic = torch.randint(topics, (len(rows),), generator=generator)
            share.scatter_(1, usual[topic], 0.3)
        present = torch.rand(share.shape, generator=generator) < share
        noise = torch.randn(len(rows), features, generator=generator) / features**0.5
        f[rows] = (present.float() @ directions + noise).relu()
        scores = torch.logit(share) / 2 + torch.randn(share.shape, generator=generator) / 4
        unknown = torch.rand(share.shape, generator=generator) < 0.9
        y[rows] = complete(present.long().masked_fill(unknown, -1), squash(scores))
    return split(y, f)


def given_data(features: str, labels: str) -> Problem:
    """Label vectors of class indices: a fifth is known, the rest is predicted by the mean features of each class."""
    generator = torch.Generator().manual_seed(0)
    f = torch.from_numpy(np.load(features).astype(np.float32))
    target = from_indices(torch.from_numpy(np.load(labels)).long(), int(np.load(labels).max()) + 1)
    means = (target == 1).float().T @ f / (target == 1).sum(0).unsqueeze(1)
    scores = f @ means.T
    scores = 2 * (scores - scores.mean(1, keepdim=True)) / scores.std(1, keepdim=True) - 4
    unknown = torch.rand(target.shape, generator=generator) < 0.8
    return split(complete(target.masked_fill(unknown, -1), squash(scores)), f)


def split(y: Tensor, f: Tensor) -> Problem:
    mine, own = y[-BATCH:], f[-BATCH:]
    return mine / mine.norm(dim=1, keepdim=True), own / own.norm(dim=1, keepdim=True), y[:-BATCH], f[:-BATCH]


def recall(exact: PursuitResult, found: PursuitResult, first: int) -> float:
    """The share of the atoms that the exact search picks, of the first so many, that the other one picks among its."""
    pairs = zip(exact.indices[:, :first].tolist(), found.indices[:, :first].tolist(), strict=True)
    return sum(len({*a} & {*b} - {-1}) for a, b in pairs) / int((exact.indices[:, :first] >= 0).sum())


def left(found: PursuitResult) -> float:
    """What is minimised: the part of labels and features that the atoms do not explain, mean over examples."""
    parts = LABEL_WEIGHT * found.label_residual.square().sum(1) + found.feature_residual.square().sum(1)
    return float(parts.mean())


def seconds_of(step: Callable[[], Any]) -> float:
    """Of the processor, on one thread: other work on the machine disturbs that least."""
    start = time.process_time()
    step()
    return time.process_time() - start


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imcl_search", description=__doc__)
    parser.add_argument("--features")
    parser.add_argument("--labels")
    parser.add_argument("--sizes", type=int, nargs=3, default=(50_000, 5000, 2048), metavar=("ATOMS", "LABELS", "D"))
    options = parser.parse_args(arguments)
    problem = made_data(*options.sizes) if options.features is None else given_data(options.features, options.labels)
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    pursuit = JointNonnegativePursuit(K, LABEL_WEIGHT, 1.0)
    atoms, labels, features = len(problem[2]), problem[2].shape[1], problem[3].shape[1]
    print(f"{atoms:,} atoms of {labels:,} labels and {features:,} features, {BATCH} examples, one thread\n")
    exact = pursuit(*problem)
    took = min(seconds_of(lambda: pursuit(*problem)) for _ in range(3))
    print(f"exact: {1000 * took:.0f} ms, {left(exact):.4f} left unexplained", flush=True)
    made: list[AtomIndex] = []
    build = seconds_of(lambda: made.append(AtomIndex(*problem[2:], LABEL_WEIGHT, 1.0)))
    print(f"\nthe index takes {build:.1f} s to build\n")
    print("| proposed | cells looked through | search | first atom found | all atoms found | left unexplained |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for rows in PROPOSED:
        for probes in PROBES:
            index = made[0]
            index.rows, index.probes = rows, probes
            found = pursuit(*problem, index=index)
            took = min(seconds_of(lambda: pursuit(*problem, index=index)) for _ in range(2))  # noqa: B023
            shares = f"{recall(exact, found, 1):.0%} | {recall(exact, found, K):.0%}"
            print(f"| {rows} | {probes} | {1000 * took:.0f} ms | {shares} | {left(found):.4f} |", flush=True)


if __name__ == "__main__":
    main()
