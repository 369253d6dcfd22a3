"""Scene graphs: a training step with LML against the softmax step, and recall against one top-k per image.

python -m benchmarks.scenes
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import Case, SpeedCase, Step
from benchmarks.run import run_suite
from shortlist.metrics import functional as M
from shortlist.objectives import build
from shortlist.scenes import RelationScorer, Scenes

STEP, RECALL = "Scene graphs: a training step", "Scene graphs: recall of an evaluation"
PREDICATES, CLASSES, RELATIONS = 50, 150, 12  # as in Visual Genome; relations per image
K = 20


def made_scenes(counts: Sequence[int]) -> Scenes:
    """Images of these many objects."""
    generator = torch.Generator().manual_seed(0)
    objects = torch.tensor(counts)
    total = int(objects.sum())
    corner = torch.rand(total, 2, generator=generator) * 80
    each = torch.rand(len(counts) * RELATIONS, 2, generator=generator)
    number = objects.repeat_interleave(RELATIONS)
    subject = (each[:, 0] * number).long()
    other = (subject + 1 + (each[:, 1] * (number - 1)).long()) % number
    predicate = torch.randint(PREDICATES, (len(number),), generator=generator)
    return Scenes(
        boxes=torch.cat([corner, corner + 1 + torch.rand(total, 2, generator=generator) * 19], 1),
        classes=torch.randint(CLASSES, (total,), generator=generator),
        object_offsets=torch.cat([torch.zeros(1, dtype=torch.int64), objects.cumsum(0)]),
        relations=torch.stack([subject, other, predicate], 1),
        relation_offsets=torch.arange(len(counts) + 1) * RELATIONS,
        class_names=tuple(map(str, range(CLASSES))),
        num_predicates=PREDICATES,
        sizes=torch.full((len(counts), 2), 100),
    )


def training_step(name: str, options: dict[str, Any], counts: Sequence[int]) -> Step:
    """From a batch of images to new weights."""
    torch.manual_seed(0)
    scenes = made_scenes(counts)
    scorer = RelationScorer(scenes.shape)
    scorer.start_from(scenes)
    objective = build(name, options, in_features=scorer.out_features, num_labels=PREDICATES)
    optimizer = torch.optim.SGD([*scorer.parameters(), *objective.parameters()], lr=1e-6, fused=True)
    rows = torch.arange(len(scenes))

    def step() -> None:
        batch, entries = scenes.batch(rows)
        objective.loss(scorer(batch), entries).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _scores(images: int, pairs: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(images * pairs, PREDICATES, generator=generator)
    pair = torch.arange(images).repeat_interleave(RELATIONS) * pairs
    pair = pair + torch.randint(pairs, pair.shape, generator=generator)
    relations = torch.stack([pair, torch.randint(PREDICATES, pair.shape, generator=generator)], 1)
    return scores, relations, torch.arange(images + 1) * pairs


def recall_step(images: int, pairs: int, k: int, constrained: bool) -> Step:
    scores, relations, offsets = _scores(images, pairs)
    return lambda: M.scene_recall_at_k(scores, relations, k, offsets=offsets, constrained=constrained)


def top_k_step(images: int, pairs: int, k: int) -> Step:
    """The least there is to do: the k best candidates of every image."""
    rows = _scores(images, pairs)[0].view(images, -1)
    return lambda: rows.topk(k, dim=-1)


def cases(quick: bool = False) -> list[Case]:
    """Every row of the table; `quick` shrinks the sizes."""
    objects, images, pairs = (4, 10, 12) if quick else (20, 10_000, 380)
    ragged = [2, 3, 4, 5] if quick else [2, 8, 14, 18, 22, 26, 32, 38]
    batches = {"images alike": [objects] * 8, f"images of {ragged[0]} to {ragged[-1]} objects": ragged}
    found: list[Case] = []
    for name, counts in batches.items():
        candidates = sum(count * (count - 1) for count in counts) * PREDICATES
        vanilla = partial(training_step, "scene-softmax", {}, counts)
        for objective, goal in (("scene-lml", 1.15), ("scene-truncated-entropy", 1.15)):
            ours = partial(training_step, objective, {"k": K}, counts)
            title = f"{objective}, {name}"
            shape = (len(counts), candidates // len(counts))
            found.append(SpeedCase(STEP, title, shape, K, ours, "scene-softmax", vanilla, goal))
    for k in (20, 100):
        theirs = partial(top_k_step, images, pairs, k)
        for constrained in (True, False):
            ours = partial(recall_step, images, pairs, k, constrained)
            title = "constrained" if constrained else "unconstrained"
            shape = (images, pairs * PREDICATES)
            found.append(SpeedCase(RECALL, f"recall, {title}", shape, k, ours, "torch.topk", theirs, 1.5))
    return found


main = partial(run_suite, "benchmarks.scenes", __doc__, cases)

if __name__ == "__main__":
    main()
