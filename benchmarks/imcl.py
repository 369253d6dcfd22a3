"""IMCL: the pursuit beside its own matrix products, its memory, a training step beside one of logistic regression, and
what the gradient through the dictionary takes of memory.

python -m benchmarks.imcl
"""

from functools import partial

import torch
from torch import Tensor

from benchmarks.harness import Case, MemoryCase, SpeedCase, Step
from benchmarks.run import run_suite
from benchmarks.training_step import epoch_step
from shortlist.data import Dataset, Images
from shortlist.imcl import JointNonnegativePursuit
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.training.learner import Learner, encoding, features_of
from shortlist.training.settings import TrainSettings

GROUP = "IMCL"
MEMORY = "IMCL: memory, dictionary included"
STEP_MEMORY = "IMCL: memory of a training step of ResNet-18"
BATCH, K = 32, 3
Sizes = tuple[int, int, int]  # dictionary, labels, features
LIMIT = 4e9  # bytes
VOC = (1024, 512, 20)  # examples of an epoch here; features and labels as of VOC2012
IMAGES = (32, 3, 64, 64)  # of an optimizer step


def _problem(sizes: Sizes) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    atoms, labels, features = sizes
    generator = torch.Generator().manual_seed(0)
    shapes = ((BATCH, labels), (BATCH, features), (atoms, labels), (atoms, features))
    y, f, dictionary_y, dictionary_f = (torch.randn(shape, generator=generator) for shape in shapes)
    return y, f, dictionary_y, dictionary_f


def pursuit_step(sizes: Sizes) -> Step:
    problem, pursuit = _problem(sizes), JointNonnegativePursuit(K)
    return lambda: pursuit(*problem)


def products_step(sizes: Sizes) -> Step:
    """The products of every step: the whole dictionary with what is to be explained."""
    y, f, dictionary_y, dictionary_f = _problem(sizes)
    return lambda: [(dictionary_y @ y.T, dictionary_f @ f.T) for _ in range(K)]


def parts_step(sizes: Sizes, parts: int) -> Step:
    """As many searches in a dictionary of an equal part of the size."""
    problem, pursuit = _problem((sizes[0] // parts, *sizes[1:])), JointNonnegativePursuit(K)
    return lambda: [pursuit(*problem) for _ in range(parts)]


def everything_step(sizes: Sizes) -> Step:
    """The dictionary is made by the step itself, so that it counts."""
    return lambda: JointNonnegativePursuit(K)(*_problem(sizes))


def training_step(objective: str) -> Step:
    """Eight training steps by the loop itself, past the warm-up."""
    examples, features, labels = VOC
    generator = torch.Generator().manual_seed(0)
    target = (torch.rand(examples, labels, generator=generator) < 0.07).to(torch.int8)
    target = target.masked_fill(torch.rand(target.shape, generator=generator) < 0.6, -1)
    data = Dataset(torch.randn(examples, features, generator=generator).half(), target, tuple(map(str, range(labels))))
    settings = TrainSettings(epochs=10, batch_size=128, optimizer={"name": "adamw", "lr": 1e-3}, accelerator="cpu")
    made = build(objective, in_features=features, num_labels=labels, train_target=target)
    learner = Learner(build_backbone("identity", in_shape=(features,)), made)
    return epoch_step(learner, data, settings, done=9)  # warm-up included


def image_step(dictionary: str, batch: int, images: int = IMAGES[0]) -> Step:
    """The gradient of some images, in batches: the backbone trains, and each may find three of eight times as many."""
    generator = torch.Generator().manual_seed(0)
    known = torch.rand(8 * images, 20, generator=generator)
    target = torch.where(known < 0.07, 1, torch.where(known < 0.4, 0, -1)).to(torch.int8)
    pixels = torch.randint(256, (len(target), *IMAGES[2:], IMAGES[1]), generator=generator, dtype=torch.uint8)
    data = Dataset(Images(pixels.numpy()), target, tuple(map(str, range(20))))
    backbone = build_backbone("resnet18", in_shape=IMAGES[1:])
    options = {"per_label": None, "dictionary": dictionary}
    made = build("imcl", options, in_features=backbone.out_features, num_labels=20, train_target=target)
    learner = Learner(backbone, made)
    made.start_epoch(9, 10)  # past the warm-up
    made.remember(features_of(learner, data, torch.arange(len(data)), batch_size=batch))

    def step() -> None:
        with encoding(learner, data):
            for rows in torch.arange(images).split(batch):
                learner(*data.batch(rows), rows).backward()

    return step


def cases(quick: bool = False) -> list[Case]:
    """Every row of the table; `quick` shrinks the sizes."""
    searched: Sizes = (200, 30, 40) if quick else (10_000, 1000, 2048)
    long: Sizes = (500, 30, 40) if quick else (50_000, 500, 512)
    huge: Sizes = (500, 50, 40) if quick else (50_000, 5000, 2048)
    shape, whole = (BATCH, *searched), (huge[0], huge[1] + huge[2])
    goal = LIMIT / (4 * whole[0] * whole[1])
    found: list[Case] = [
        SpeedCase(GROUP, "pursuit", shape, K, partial(pursuit_step, searched), "its matrix products",
                  partial(products_step, searched), 1.5),
        SpeedCase(GROUP, "pursuit, 5 times the atoms", (BATCH, *long), K, partial(pursuit_step, long), "5 pursuits",
                  partial(parts_step, long, 5), 1.2),
        SpeedCase(GROUP, "training step", (128, *VOC[1:]), K, partial(training_step, "imcl"), "logistic regression",
                  partial(training_step, "binary"), 10.0),
        MemoryCase(MEMORY, "pursuit", whole, K, partial(everything_step, huge), partial(everything_step, (50, 5, 4)),
                   goal),
    ]  # fmt: skip
    images = 2 if quick else IMAGES[0]
    for dictionary, batch in (("remembered", images), ("encoded", images), ("encoded", images // 4 or 1)):
        name = f"{dictionary}, {images // batch} batches of {batch}" if batch < images else dictionary
        ours, warm_up = partial(image_step, dictionary, batch, images), partial(image_step, dictionary, 2, 2)
        found.append(MemoryCase(STEP_MEMORY, name, (images, *IMAGES[1:]), K, ours, warm_up, against="the images"))
    return found


main = partial(run_suite, "benchmarks.imcl", __doc__, cases)

if __name__ == "__main__":
    main()
