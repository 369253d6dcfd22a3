"""Scene graphs: which relations hold between the objects of an image, answered with k of them.

Data: `Scenes` (readers ``vrd``, ``vrd-pairs`` and ``visual-genome``). Model: the backbone ``relations`` and the
objectives ``scene-softmax``, ``scene-lml`` and ``scene-truncated-entropy``. Results: `metrics.SceneRecallAtK`, and
`SceneGraph` as JSON or as a picture.
"""

from shortlist.data.scenes import Relations, SceneBatch, Scenes
from shortlist.scenes.drawing import to_png, to_svg
from shortlist.scenes.frequency import log_frequencies
from shortlist.scenes.graphs import SceneGraph, predicted_graphs, read_graphs, recorded_graphs, write_graphs
from shortlist.scenes.losses import draw_predicates, lml_losses, softmax_losses, truncated_entropy_losses
from shortlist.scenes.scorer import PairFeatures, RelationScorer

__all__ = [
    "PairFeatures",
    "RelationScorer",
    "Relations",
    "SceneBatch",
    "SceneGraph",
    "Scenes",
    "draw_predicates",
    "lml_losses",
    "log_frequencies",
    "predicted_graphs",
    "read_graphs",
    "recorded_graphs",
    "softmax_losses",
    "to_png",
    "to_svg",
    "truncated_entropy_losses",
    "write_graphs",
]
