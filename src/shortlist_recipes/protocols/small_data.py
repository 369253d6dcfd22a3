"""How Berrada et al. 2018 train on shares of ImageNet."""

from shortlist_recipes.protocol import Field, Protocol

_TEXT = "Berrada et al. 2018, section 5.2"
_ADAMW = "AdamW, rate 2e-3 with a cosine, weight decay 1e-2"

PROTOCOLS = (
    Protocol(
        "Shares of ImageNet",
        _TEXT,
        (
            Field(
                "data",
                "ImageNet: 64,000 to 1.23 million training images, the official validation images as test data",
                {"cpu": "CIFAR-100: shares of 45,000 images (frozen features) and of 9,000 (images)"},
                {"data.train.reader": "image-folder", "data.test.reader": "image-folder"},
            ),
            Field(
                "held-out images",
                "50,000",
                {"cpu": "5,000 and 1,000"},
                {"data.validation": 50_000},
            ),
            Field(
                "images of each class",
                "as many of every class, held out and in each part of ImageNet",
                {"cpu": "in proportion to the classes, which are equal", "paper": "in proportion to the classes"},
                {"data.stratify": True},
                source=f"{_TEXT}; oval-group/smooth-topk, experiments/data/utils.py",
            ),
            Field(
                "network",
                "ResNet-18",
                {"cpu": "one hidden layer of 512 on features; a small convolutional network on images"},
                {"backbone.name": "resnet18"},
            ),
            Field(
                "augmentation",
                "smaller side resized to 256 pixels; random crops of 224 and flips",
                {"cpu": "features: none; images: crops of the image padded by 4 pixels, and flips"},
                {"augment.resize": 256, "augment.flip": True, "data.train.size": 224, "data.train.crop": True},
            ),
            Field(
                "optimizer",
                "SGD, Nesterov momentum 0.9",
                {"cpu": _ADAMW},
                {"optimizer.name": "sgd-nesterov", "optimizer.momentum": 0.9},
            ),
            Field(
                "learning rate of cross-entropy",
                "0.1",
                {"cpu": "2e-3"},
                {"optimizer.lr": 0.1},
                {"objective": "cross-entropy"},
            ),
            Field(
                "learning rate of smooth top-k",
                "1",
                {"cpu": "2e-3"},
                {"optimizer.lr": 1.0},
                {"objective": "smooth-topk"},
            ),
            Field(
                "weight decay of cross-entropy",
                "1e-4, for all weights",
                {"cpu": "1e-2, not for biases"},
                {"optimizer.weight_decay": 1e-4, "optimizer.decay_all": True},
                {"objective": "cross-entropy"},
            ),
            Field(
                "weight decay of smooth top-k",
                "2.5e-5, for all weights",
                {"cpu": "1e-2, not for biases"},
                {"optimizer.weight_decay": 2.5e-5, "optimizer.decay_all": True},
                {"objective": "smooth-topk"},
            ),
            Field(
                "schedule",
                "divided by ten at epochs 30, 60 and 90",
                {"cpu": "cosine"},
                {"schedule.name": "step", "schedule.at": (30, 60, 90)},
            ),
            Field("epochs", "120", {"cpu": "8 to 40 on features, 6 and 12 on images"}, {"epochs": 120}),
            Field("batch size", "256", {"cpu": "128 and 64"}, {"batch_size": 256}),
            Field("temperature", "0.1", {}, {"objective.tau": 0.1}, {"objective": "smooth-topk"}),
            Field(
                "selection",
                "the epoch with the best top-5 accuracy on validation data",
                {},
                {"stop.metric": "topk-accuracy@5"},
            ),
            Field(
                "crops in testing",
                "ten crops of 224 of 256 pixels; the probability to be among the five labels",
                {"cpu": "features: none; images: ten crops of the image padded by 4 pixels"},
                {"data.test.size": 224, "data.test.crop": True},
                source=f"{_TEXT}, and its table 2",
            ),
            Field("seeds", "not said", {"cpu": "3", "paper": "1"}),
        ),
        {"part": "images"},
    ),
)
