"""How Kobayashi 2023 trains on MSCOCO and NUS-WIDE."""

from shortlist_recipes.protocol import Field, Protocol

_PROGRAM = "tk1980/TwoWayMultiLabelLoss"
_PARSER, _TRANSFORMS = f"{_PROGRAM}, utils/parser.py", f"{_PROGRAM}, utils/transforms.py"

PROTOCOLS = (
    Protocol(
        "MSCOCO and NUS-WIDE",
        _PARSER,
        (
            Field(
                "data",
                "MSCOCO 2014 and NUS-WIDE without the images that have no label",
                {"cpu": "features of VOC2012, corel5k and bibtex"},
                {"data.calibration": None},
                source="supplement, section C",
            ),
            Field(
                "held-out images",
                "none: the figures are of the last epoch on the official validation images",
                {"cpu": "15 % of the training data", "paper": "a tenth of the training data chooses the epoch"},
                source=f"{_PROGRAM}, main.py",
            ),
            Field(
                "network",
                "ResNet-50 trained on ImageNet",
                {"cpu": "one hidden layer of 512, dropout 0.5, on features"},
                {"backbone.name": "resnet50"},
                source=f"supplement, tables B and C; {_PARSER}",
            ),
            Field(
                "augmentation",
                "random crops of 8 to 100 % of the area resized to 224 pixels, flips, jitter of brightness, contrast "
                "and saturation by 0.4, lighting 0.1",
                {"cpu": "none"},
                {"augment.area": (0.08, 1.0), "augment.flip": True, "augment.lighting": 0.1}
                | {"augment.jitter.brightness": 0.4, "augment.jitter.contrast": 0.4, "augment.jitter.saturation": 0.4},
                source=_TRANSFORMS,
            ),
            Field(
                "images in testing",
                "smaller side resized to 256 pixels, the middle 224",
                {"cpu": "none"},
                {"data.test.size": 224, "data.test.crop": True},
                source=_TRANSFORMS,
            ),
            Field(
                "optimizer",
                "SGD, Nesterov momentum 0.9, weight decay 1e-4 for all weights",
                {"cpu": "AdamW, weight decay 1e-2"},
                {"optimizer.name": "sgd-nesterov", "optimizer.momentum": 0.9}
                | {"optimizer.weight_decay": 1e-4, "optimizer.decay_all": True},
            ),
            Field(
                "learning rate",
                "0.01 for the last layer and 0.001 for the backbone, cosine",
                {"cpu": "for each loss the best of four on validation data, cosine"},
                {"optimizer.lr": 0.01, "optimizer.backbone_lr": 0.1, "schedule.name": "cosine"},
            ),
            Field("epochs", "40", {"cpu": "10 to 20"}, {"epochs": 40}),
            Field("batch size", "512", {"cpu": "128"}, {"batch_size": 512}),
            Field("precision", "mixed", {"cpu": "single"}, {"precision": "16-mixed"}, source=f"{_PROGRAM}, train.py"),
            Field(
                "temperature of present labels", "4", {}, {"objective.positive_temperature": 4.0}, {"loss": "two-way"}
            ),
            Field("seeds", "not said", {"cpu": "3", "paper": "1"}, source="supplement"),
        ),
        {"part": "losses"},
    ),
)
