"""How Kobayashi 2023 trains on MSCOCO and NUS-WIDE."""

from shortlist_recipes.protocol import Field, Protocol

_PROGRAM = "tk1980/TwoWayMultiLabelLoss"
_PARSER, _TRANSFORMS = f"{_PROGRAM}, utils/parser.py", f"{_PROGRAM}, utils/transforms.py"

PROTOCOLS = (
    Protocol(
        "MSCOCO and NUS-WIDE",
        (
            Field(
                "data",
                "MSCOCO 2014 and NUS-WIDE without the images that have no label",
                "supplement, section C",
                {"cpu": "features of VOC2012, corel5k and bibtex"},
                {"data.calibration": None},
            ),
            Field(
                "held-out images",
                "none: the figures are of the last epoch on the official validation images",
                f"{_PROGRAM}, main.py",
                {"cpu": "15 % of the training data", "paper": "a tenth of the training data chooses the epoch"},
            ),
            Field(
                "network",
                "ResNet-50 trained on ImageNet",
                f"supplement, tables B and C; {_PARSER}",
                {"cpu": "one hidden layer of 512, dropout 0.5, on features"},
                {"backbone.name": "resnet50"},
            ),
            Field(
                "augmentation",
                "random crops of 8 to 100 % of the area resized to 224 pixels, flips, jitter of brightness, contrast "
                "and saturation by 0.4, lighting 0.1",
                _TRANSFORMS,
                {"cpu": "none"},
                {"augment.area": (0.08, 1.0), "augment.flip": True, "augment.lighting": 0.1}
                | {"augment.jitter.brightness": 0.4, "augment.jitter.contrast": 0.4, "augment.jitter.saturation": 0.4},
            ),
            Field(
                "images in testing",
                "smaller side resized to 256 pixels, the middle 224",
                _TRANSFORMS,
                {"cpu": "none"},
                {"data.test.size": 224, "data.test.crop": True},
            ),
            Field(
                "optimizer",
                "SGD, Nesterov momentum 0.9, weight decay 1e-4 for all weights",
                _PARSER,
                {"cpu": "AdamW, weight decay 1e-2"},
                {"optimizer.name": "sgd-nesterov", "optimizer.momentum": 0.9}
                | {"optimizer.weight_decay": 1e-4, "optimizer.decay_all": True},
            ),
            Field(
                "learning rate",
                "0.01 for the last layer and 0.001 for the backbone, cosine",
                _PARSER,
                {"cpu": "for each loss the best of four on validation data, cosine"},
                {"optimizer.lr": 0.01, "optimizer.backbone_lr": 0.1, "schedule.name": "cosine"},
            ),
            Field("epochs", "40", _PARSER, {"cpu": "10 to 20"}, {"epochs": 40}),
            Field("batch size", "512", _PARSER, {"cpu": "128"}, {"batch_size": 512}),
            Field("precision", "mixed", f"{_PROGRAM}, train.py", {"cpu": "single"}, {"precision": "16-mixed"}),
            Field(
                "temperature of present labels",
                "4",
                _PARSER,
                {},
                {"objective.positive_temperature": 4.0},
                {"loss": "two-way"},
            ),
            Field("seeds", "not said", "supplement", {"cpu": "3", "paper": "1"}),
        ),
        {"part": "losses"},
    ),
)
