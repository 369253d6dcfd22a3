"""How Amos et al. 2019 train Neural Motifs."""

from shortlist_recipes.protocol import Field, Protocol

_TEXT, _MOTIFS = "Amos et al. 2019, section 5.3", "rowanz/neural-motifs, which section 5.3 uses"
_PROGRAM = "locuslab/lml, neural-motifs/models/train_rels.py"

PROTOCOLS = (
    Protocol(
        "Predicate classification on Visual Genome",
        _MOTIFS,
        (
            Field(
                "data",
                "Visual Genome with the splits of Xu et al. 2017",
                {"cpu": "VRD: 500 images to train on, 250 for validation, 1,000 to test"},
                {"data.train.reader": "visual-genome"},
                source=_TEXT,
            ),
            Field(
                "network",
                "MotifNet-LeftRight: states of 512, pairs of 4,096",
                {"cpu": "states of 128, pairs of 256, no pixels"},
                {"backbone.name": "motifnet"},
                source=f"{_TEXT}; {_MOTIFS}",
            ),
            Field(
                "what the detector sees",
                "VGG-16 features, the last two layers trained on",
                {"cpu": "nothing", "paper": "read from a file, not trained on"},
            ),
            Field(
                "pairs in training",
                "all, but at most 256 for each image of a batch, drawn anew, of which a quarter may be related",
                {"cpu": "all", "paper": "all"},
                source="rowanz/neural-motifs, lib/fpn/proposal_assignments/proposal_assignments_gtbox.py",
            ),
            Field(
                "relations of a pair in training",
                "one of those recorded, for every method; the text says all with LML",
                {"cpu": "one for vanilla, all for the others", "paper": "one for vanilla, all for the others"},
                source=_PROGRAM,
            ),
            Field(
                "optimizer",
                "SGD, momentum 0.9, weight decay 1e-4, gradients clipped at 5",
                {"cpu": "AdamW, rate 2e-3"},
                {"optimizer.name": "sgd", "optimizer.momentum": 0.9}
                | {"optimizer.weight_decay": 1e-4, "optimizer.clip": 5.0},
            ),
            Field("what weight decay is for", "all weights", {"cpu": "not for biases"}, {"optimizer.decay_all": True}),
            Field("learning rate", "6e-3 for batches of 6", {"cpu": "2e-3"}, {"optimizer.lr": 6e-3}),
            Field(
                "schedule",
                "divided by ten where R@100 on validation images has not risen for three epochs",
                {"cpu": "cosine"},
                {"schedule.name": "plateau", "schedule.factor": 0.1, "schedule.patience": 3},
            ),
            Field(
                "epochs",
                "50; its script for all methods, scripts/train_predcls.sh, has 30",
                {"cpu": "4", "paper": "50 at most: training stops where 9 epochs were no better"},
                {"epochs": 50},
                source="locuslab/lml, README.md",
            ),
            Field(
                "selection",
                "the epoch with the best constrained R@100 on validation images",
                {"cpu": "by R@50"},
                {"stop.metric": "scene-recall@100"},
                source=_PROGRAM,
            ),
            Field("batch size", "6", {"cpu": "16"}, {"batch_size": 6}),
            Field("seeds", "not said", {"cpu": "3", "paper": "3"}, source=_TEXT),
        ),
        {"method": "LML-20"},
    ),
)
