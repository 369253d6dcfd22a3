"""Made-up scenes for the tests."""

import numpy as np
import torch

from shortlist.data import Dataset
from shortlist.scenes import Scenes, scene_dataset

CLASSES, PREDICATES = ("man", "hat", "dog", "tree"), ("on", "wears", "near")


def made_scenes(counts=(3, 5, 0, 1, 3, 2), seed=0, relations=2, features=0, words=0) -> Dataset:
    """Images of these many objects, with about ``relations`` relations per object, some recorded twice."""
    random = np.random.default_rng(seed)
    objects = sum(counts)
    corner = random.uniform(0, 80, (objects, 2))
    boxes = np.concatenate([corner, corner + random.uniform(2, 20, (objects, 2))], 1)
    found, ends = [], [0]
    for count in counts:
        for _ in range(relations * count if count > 1 else 0):
            subject, thing = random.choice(count, 2, replace=False)
            found.append([subject, thing, random.integers(len(PREDICATES))])
        ends.append(len(found))
    scenes = Scenes(
        boxes=torch.from_numpy(boxes).float(),
        classes=torch.from_numpy(random.integers(0, len(CLASSES), objects)),
        object_offsets=torch.from_numpy(np.concatenate([[0], np.cumsum(counts)])),
        relations=torch.tensor(found, dtype=torch.int64).reshape(-1, 3),
        relation_offsets=torch.tensor(ends),
        class_names=CLASSES,
        num_predicates=len(PREDICATES),
        sizes=torch.full((len(counts), 2), 100),
        features=torch.from_numpy(random.normal(size=(objects, features))).float() if features else None,
        word_vectors=torch.from_numpy(random.normal(size=(len(CLASSES), words))).float() if words else None,
    )
    return scene_dataset(scenes, [f"{row}.jpg" for row in range(len(counts))], PREDICATES, "made-up")


def learnable_scenes(images=60, seed=0) -> Dataset:
    """Where the predicate follows from the classes and from which of the two is further left: a model can learn it."""
    data = made_scenes(tuple(np.random.default_rng(seed).integers(2, 5, images)), seed, relations=0)
    scenes, found, ends = data.inputs, [], [0]
    for image in range(images):
        first, last = scenes.object_offsets[image : image + 2].tolist()
        for subject in range(last - first):
            for thing in range(last - first):
                if subject != thing and scenes.classes[first + subject] < scenes.classes[first + thing]:
                    is_left = bool(scenes.boxes[first + subject, 0] < scenes.boxes[first + thing, 0])
                    found.append([subject, thing, int(is_left)])
        ends.append(len(found))
    changed = Scenes(**{**scenes.__dict__, "relations": torch.tensor(found), "relation_offsets": torch.tensor(ends)})
    return scene_dataset(changed, data.ids, PREDICATES, "learnable")
