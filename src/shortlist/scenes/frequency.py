"""How often each predicate joins each pair of object classes in the training images: a strong baseline by itself."""

import torch
from torch import Tensor

from shortlist.scenes.containers import Scenes
from shortlist.scenes.matching import overlap

PRIOR_PAIRS = 1.0  # the weight of what holds for any two classes, in pairs
_FLOOR = 1e-3  # of Neural Motifs' shares


def log_frequencies(scenes: Scenes, prior_pairs: float = PRIOR_PAIRS) -> Tensor:
    """Log of the share of the pairs of two classes that have each predicate, float32 (classes * classes, predicates+1).

    The last column is the share without any relation. Shares are drawn towards those of all pairs, as if
    ``prior_pairs`` more of them had been seen: classes that never met get these alone, and no share is 0.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [5, 5, 9, 9]])
    >>> at = torch.tensor
    >>> man_wears_hat = Scenes(
    ...     boxes, at([0, 1]), at([0, 2]), at([[0, 1, 0]]), at([0, 1]), ("man", "hat"), 1, sizes=at([[10, 10]])
    ... )
    >>> log_frequencies(man_wears_hat).exp()  # man-man, man-hat, hat-man, hat-hat
    tensor([[0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500],
            [0.5000, 0.5000]])
    """
    classes, predicates = len(scenes.class_names), scenes.num_predicates
    batch, entries = scenes.batch(torch.arange(len(scenes)))
    kind = batch.classes[batch.subjects] * classes + batch.classes[batch.objects]
    related = torch.zeros(len(kind), dtype=torch.bool)
    related[entries[:, 0]] = True
    columns = predicates + 1
    cells = torch.cat([kind[entries[:, 0]] * columns + entries[:, 1], kind[~related] * columns + predicates])
    counts = torch.bincount(cells, minlength=classes * classes * columns).view(-1, columns).double()
    pairs = torch.bincount(kind, minlength=classes * classes).double()
    anywhere = (counts.sum(0) + 0.5) / (pairs.sum() + 1)
    shares = (counts + prior_pairs * anywhere) / (pairs + prior_pairs).unsqueeze(1)
    return shares.log().float()


def overlap_frequencies(scenes: Scenes) -> Tensor:
    """Neural Motifs' frequency bias: log(share + 0.001) of each predicate among what was counted of two classes, with
    background as one more class and "no relation" as the last column, float32 ((classes + 1)^2, predicates + 1).

    A relation counts as often as it is recorded. "No relation" counts once for each pair whose boxes overlap, related
    or not (for each pair of an image where none do), and once more for every two classes, so that those which never met
    have no relation.

    >>> boxes = torch.tensor([[0.0, 0, 10, 10], [5, 5, 9, 9]])
    >>> at = torch.tensor
    >>> man_wears_hat = Scenes(
    ...     boxes, at([0, 1]), at([0, 2]), at([[0, 1, 0]]), at([0, 1]), ("man", "hat"), 1, sizes=at([[10, 10]])
    ... )
    >>> overlap_frequencies(man_wears_hat).exp().view(3, 3, 2)[0, 1]  # 1 of 3, 2 of 3
    tensor([0.3343, 0.6677])
    """
    classes, columns = len(scenes.class_names) + 1, scenes.num_predicates + 1
    batch, _ = scenes.batch(torch.arange(len(scenes)))
    beside = overlap(batch.boxes[batch.subjects], batch.boxes[batch.objects])
    pairs = torch.tensor(batch.pair_counts)
    image = torch.arange(len(pairs)).repeat_interleave(pairs)
    beside |= torch.bincount(image[beside], minlength=len(pairs))[image] == 0
    kind = batch.classes[batch.subjects] * classes + batch.classes[batch.objects]
    subject, thing = scenes.classes[scenes.ends_of_relations()].T
    related = (subject * classes + thing) * columns + scenes.relations[:, 2]
    cells = torch.cat([related, kind[beside] * columns + columns - 1])
    counts = torch.bincount(cells, minlength=classes**2 * columns).view(-1, columns).double()
    counts[:, -1] += 1
    return (counts / counts.sum(1, keepdim=True) + _FLOOR).log().float()
