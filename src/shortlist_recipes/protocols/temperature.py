"""How Berrada et al. 2018 vary the temperature on CIFAR-100 and the margin on ImageNet."""

from shortlist_recipes.protocol import Field, Protocol

_TEXT, _IMAGENET = "Berrada et al. 2018, section 3.3", "Berrada et al. 2018, sections 5.2 and D.2.2"
_HUANG = "Huang et al. 2017, which section 3.3 follows"
_FEATURES = "one hidden layer of 512 on frozen features"

PROTOCOLS = (
    Protocol(
        "Temperature, on CIFAR-100",
        _HUANG,
        (
            Field(
                "network",
                "DenseNet 40-12 with bottlenecks and reduction 0.5",
                {"cpu": _FEATURES},
                {"backbone.name": "densenet", "backbone.depth": 40, "backbone.growth": 12}
                | {"backbone.bottleneck": True, "backbone.reduction": 0.5},
                source="oval-group/smooth-topk, experiments/models/densenet.py; the text says DenseNet 40-12",
            ),
            Field(
                "parameters",
                "0.19 million",
                {"cpu": "0.18"},
                {"parameters": 188_092},
                source="counted, with 100 labels",
            ),
            Field(
                "training images",
                "45,000",
                {"cpu": "20,000"},
                {"data.validation": 5000},
                source="oval-group/smooth-topk, experiments/cli.py; table 6 says testing accuracy, its text validation",
            ),
            Field(
                "augmentation",
                "flips; crops of 32 pixels of the image padded by 4",
                {"cpu": "none"},
                {"augment.padding": 4, "augment.flip": True},
            ),
            Field(
                "optimizer",
                "SGD, Nesterov momentum 0.9, weight decay 1e-4 for all weights",
                {"cpu": "the same, decay not for biases"},
                {"optimizer.name": "sgd-nesterov", "optimizer.momentum": 0.9}
                | {"optimizer.weight_decay": 1e-4, "optimizer.decay_all": True},
            ),
            Field(
                "learning rate",
                "0.1, divided by ten at epochs 150 and 225",
                {"cpu": "0.1, divided by ten at epochs 4 and 6"},
                {"optimizer.lr": 0.1, "schedule.at": (150, 225)},
                source=f"{_HUANG}; figure 2a",
            ),
            Field("epochs", "300", {"cpu": "8"}, {"epochs": 300}),
            Field("batch size", "64", {}, {"batch_size": 64}),
            Field("k", "5", {}, {"objective.k": 5}, source=_TEXT),
            Field(
                "figure 2a",
                "top-5 error on training data by epoch",
                {"paper": "after each epoch, on 10,000 training images without augmentation"}
                | {"cpu": "after each epoch, on 10,000 training images"},
                source=_TEXT,
            ),
            Field("seeds", "not said", {"cpu": "3", "paper": "1"}, source=_TEXT),
        ),
        {"part": "temperature"},
    ),
    Protocol(
        "Margin, on ImageNet",
        _IMAGENET,
        (
            Field("network", "ResNet-18", {"cpu": _FEATURES}, {"backbone.name": "resnet18"}),
            Field(
                "images",
                "ImageNet, smaller side resized to 256 pixels; random crops of 224 and flips; 50,000 held out",
                {"cpu": "20,000 of CIFAR-100, frozen features"},
                {"augment.resize": 256, "augment.flip": True, "data.validation": 50_000},
            ),
            Field(
                "rate and weight decay of k = 1",
                "0.1 and 1e-4",
                {},
                {"optimizer.lr": 0.1, "optimizer.weight_decay": 1e-4},
                {"k": 1},
            ),
            Field(
                "rate and weight decay of k = 5",
                "1 and 2.5e-5",
                {"cpu": "0.1 and 1e-4"},
                {"optimizer.lr": 1.0, "optimizer.weight_decay": 2.5e-5},
                {"k": 5},
            ),
            Field(
                "schedule",
                "120 epochs, divided by ten at 30, 60 and 90",
                {"cpu": "8 epochs, divided by ten at 4 and 6"},
                {"epochs": 120, "schedule.at": (30, 60, 90)},
            ),
            Field("batch size", "256", {"cpu": "64"}, {"batch_size": 256}),
            Field("temperature with k = 1", "1", {}, {"objective.tau": 1.0}, {"k": 1}),
            Field("temperature with k = 5", "0.1", {}, {"objective.tau": 0.1}, {"k": 5}),
            Field(
                "accuracy",
                "on validation data, one crop",
                {"cpu": "on validation and on test data", "paper": "on validation and on test data"},
            ),
        ),
        {"part": "margin"},
    ),
)
