"""How Berrada et al. 2018 and Amos et al. 2019 train on noisy CIFAR-100."""

from shortlist_recipes.protocol import Field, Protocol

_TEXT, _PROGRAM = "Berrada et al. 2018, section 5.1", "oval-group/smooth-topk"
_PIXELS_SGD = "the same, at epochs 12 and 18 of 24"

PROTOCOLS = (
    Protocol(
        "CIFAR-100 with label noise",
        _TEXT,
        (
            Field(
                "network",
                "DenseNet 40-40 with bottlenecks and reduction 0.5",
                {
                    "cpu": "one hidden layer of 512 on frozen features of EfficientNet-Lite0",
                    "pixels": "three 3x3 convolutions of stride 2, widths 64, 128 and 256, batch norm",
                },
                {"backbone.name": "densenet", "backbone.depth": 40, "backbone.growth": 40}
                | {"backbone.bottleneck": True, "backbone.reduction": 0.5},
                source=f"{_PROGRAM}, experiments/models/densenet.py; the text says DenseNet 40-40 of Huang et al. 2017",
            ),
            Field(
                "parameters",
                "1.94 million",
                {"cpu": "0.18 million", "pixels": "0.40 million"},
                {"parameters": 1_941_620},
                source="counted, with 100 labels",
            ),
            Field(
                "training images",
                "45,000",
                {"cpu": "20,000", "pixels": "9,000"},
                {"data.use": 1.0},
                source=f"{_TEXT}; {_PROGRAM}, experiments/cli.py",
            ),
            Field("held-out images", "5,000", {"pixels": "1,000"}, {"data.validation": 5000}),
            Field(
                "noise",
                "with probability p a label is drawn anew within its block of five consecutive labels",
                {},
                {"data.corruptions.0.name": "noise-within-groups", "data.corruptions.0.block": 5},
                source=f"{_PROGRAM}, experiments/data/utils.py; the text says within its coarse class, which is run as "
                "well",
            ),
            Field(
                "validation labels",
                "clean",
                {},
                {"data.corruptions.0.parts": ("train",)},
                source=f"{_PROGRAM}, experiments/data/main.py; the text does not say",
            ),
            Field(
                "augmentation",
                "flips; crops of 32 pixels of the image padded by 4",
                {"cpu": "none", "pixels": "none, so that 24 epochs are enough to learn labels by heart"},
                {"augment.padding": 4, "augment.flip": True},
            ),
            Field(
                "optimizer",
                "SGD, Nesterov momentum 0.9, weight decay 1e-4",
                {"cpu": "AdamW, weight decay 1e-2"},
                {"optimizer.name": "sgd-nesterov", "optimizer.momentum": 0.9, "optimizer.weight_decay": 1e-4},
                source="Huang et al. 2017, which section 5.1 follows",
            ),
            Field(
                "what weight decay is for",
                "all weights",
                {"cpu": "all but biases"},
                {"optimizer.decay_all": True},
                source=f"{_PROGRAM}, experiments/utils.py",
            ),
            Field(
                "learning rate",
                "0.1, divided by ten at epochs 150 and 225",
                {"cpu": "2e-3 with a cosine", "pixels": _PIXELS_SGD},
                {"optimizer.lr": 0.1, "schedule.name": "step", "schedule.at": (150, 225)},
                source="Huang et al. 2017; Berrada et al. 2018, figure 2",
            ),
            Field(
                "epochs",
                "300",
                {"cpu": "12", "pixels": "24"},
                {"epochs": 300},
                source=f"Huang et al. 2017; {_PROGRAM}, experiments/cli.py",
            ),
            Field(
                "batch size",
                "64",
                {"cpu": "256"},
                {"batch_size": 64},
                source=f"Huang et al. 2017; {_PROGRAM}, experiments/cli.py",
            ),
            Field("temperature of smooth top-k", "1", {}, {"objective.tau": 1.0}, {"objective": "smooth-topk"}),
            Field(
                "selection",
                "the epoch with the best top-5 accuracy on validation data",
                {},
                {"stop.metric": "topk-accuracy@5"},
            ),
            Field("seeds of cross-entropy", "3", {"pixels": "2"}, {"seeds": 3}, {"objective": "cross-entropy"}),
            Field("seeds of smooth top-k", "3", {"pixels": "2"}, {"seeds": 3}, {"objective": "smooth-topk"}),
            Field(
                "seeds of LML",
                "4",
                {"pixels": "2"},
                {"seeds": 4},
                {"objective": "lml"},
                source="Amos et al. 2019, section 5.2",
            ),
            Field(
                "seeds of truncated entropy",
                "4",
                {"pixels": "not run"},
                {"seeds": 4},
                {"objective": "truncated-entropy"},
                source="Amos et al. 2019, section 5.2",
            ),
        ),
        {"part": "losses", "form": "blocks of five, clean validation"},
    ),
)
