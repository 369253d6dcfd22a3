"""Scene graphs: which relations hold between the objects of an image, answered with k of them.

Data: `Scenes` (readers ``vrd``, ``vrd-pairs`` and ``visual-genome``). Models: the backbones ``motifnet`` and
``relations-light``, the objectives ``scene-softmax``, ``scene-lml`` and ``scene-truncated-entropy``. Results:
`metrics.SceneRecallAtK`, and `SceneGraph` as JSON or as a picture.
"""

from typing import TYPE_CHECKING, Any

from shortlist.scenes.containers import Relations, SceneBatch, Scenes, scene_dataset
from shortlist.scenes.drawing import to_png, to_svg
from shortlist.scenes.frequency import log_frequencies
from shortlist.scenes.graphs import SceneGraph, predicted_graphs, read_graphs, recorded_graphs, write_graphs
from shortlist.scenes.losses import draw_predicates, lml_losses, softmax_losses, truncated_entropy_losses
from shortlist.scenes.matching import RecordedGraph, ScoredGraph
from shortlist.scenes.motifnet import MotifNet
from shortlist.scenes.objectives import SceneLML, SceneObjective, SceneSoftmax, SceneTruncatedEntropy
from shortlist.scenes.pair_sampling import sample_pairs
from shortlist.scenes.readers.placed_shapes import placed_shapes
from shortlist.scenes.readers.visual_genome import read_visual_genome
from shortlist.scenes.readers.vrd import read_vrd, read_vrd_pairs
from shortlist.scenes.recorded import recorded_images, seen_triples
from shortlist.scenes.regions import RegionFeatures, region_features, roi_align
from shortlist.scenes.scorer import PairFeatures, RelationScorer

if TYPE_CHECKING:
    from shortlist.scenes.graph_recall import SceneGraphRecall as SceneGraphRecall

__all__ = [
    "MotifNet",
    "PairFeatures",
    "RecordedGraph",
    "RegionFeatures",
    "RelationScorer",
    "Relations",
    "SceneBatch",
    "SceneGraph",
    "SceneGraphRecall",
    "SceneLML",
    "SceneObjective",
    "SceneSoftmax",
    "SceneTruncatedEntropy",
    "Scenes",
    "ScoredGraph",
    "draw_predicates",
    "lml_losses",
    "log_frequencies",
    "placed_shapes",
    "predicted_graphs",
    "read_graphs",
    "read_visual_genome",
    "read_vrd",
    "read_vrd_pairs",
    "recorded_graphs",
    "recorded_images",
    "region_features",
    "roi_align",
    "sample_pairs",
    "scene_dataset",
    "seen_triples",
    "softmax_losses",
    "to_png",
    "to_svg",
    "truncated_entropy_losses",
    "write_graphs",
]


def __getattr__(name: str) -> Any:
    if name != "SceneGraphRecall":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    from shortlist.scenes.graph_recall import SceneGraphRecall  # needs torchmetrics

    return SceneGraphRecall
