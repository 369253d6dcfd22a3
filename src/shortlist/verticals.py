"""Vertical rooms, such as ``scenes/``: each brings its own inputs, readers, backbones, objectives, metrics and report.

No other room imports a vertical one. Their registries list what it brings by name, from here, and import it when it is
first asked for; ``shortlist.tasks`` finds its task object.
"""

# name -> "module:thing"; the kind of inputs that a vertical room brings is the name of its task
TASKS = {"scenes": "shortlist.scenes.task:SceneTask"}
READERS = {
    "vrd": "shortlist.scenes.readers.vrd:read_vrd",
    "vrd-pairs": "shortlist.scenes.readers.vrd:read_vrd_pairs",
    "visual-genome": "shortlist.scenes.readers.visual_genome:read_visual_genome",
    "placed-shapes": "shortlist.scenes.readers.placed_shapes:placed_shapes",
}
BACKBONES = {
    "motifnet": "shortlist.scenes.motifnet:MotifNet",
    "relations-light": "shortlist.scenes.scorer:RelationScorer",
    "relations": "shortlist.scenes.scorer:RelationScorer",  # its name before there was MotifNet
}
OBJECTIVES = {
    "scene-softmax": "shortlist.scenes.objectives:SceneSoftmax",
    "scene-lml": "shortlist.scenes.objectives:SceneLML",
    "scene-truncated-entropy": "shortlist.scenes.objectives:SceneTruncatedEntropy",
}
METRICS = {  # task -> name -> a function of scores, answers and k
    "scenes": {
        "scene-recall": "shortlist.scenes.named_metrics:recall",
        "scene-recall-unconstrained": "shortlist.scenes.named_metrics:recall_unconstrained",
        "scene-mean-recall": "shortlist.scenes.named_metrics:mean_recall",
        "scene-mean-recall-unconstrained": "shortlist.scenes.named_metrics:mean_recall_unconstrained",
        "scene-zero-shot-recall": "shortlist.scenes.named_metrics:zero_shot_recall",
        "scene-zero-shot-recall-unconstrained": "shortlist.scenes.named_metrics:zero_shot_recall_unconstrained",
        "scene-recall-public": "shortlist.scenes.named_metrics:recall_public",
        "scene-recall-public-unconstrained": "shortlist.scenes.named_metrics:recall_public_unconstrained",
        "scene-mean-recall-public": "shortlist.scenes.named_metrics:mean_recall_public",
        "scene-mean-recall-public-unconstrained": "shortlist.scenes.named_metrics:mean_recall_public_unconstrained",
    }
}
METRIC_CLASSES = {"SceneRecallAtK": "shortlist.scenes.recall_metric:SceneRecallAtK"}
METRIC_FUNCTIONS = {
    "scene_mean_recall_at_k": "shortlist.scenes.recall:scene_mean_recall_at_k",
    "scene_recall_at_k": "shortlist.scenes.recall:scene_recall_at_k",
}
