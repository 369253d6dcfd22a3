"""How Kobayashi 2023 evaluates features by linear classifiers."""

from shortlist_recipes.protocol import Field, Protocol

_TEXT, _NOT_SAID = "supplement, section B", "not said in the supplement"

PROTOCOLS = (
    Protocol(
        "Linear classifiers on frozen features",
        _TEXT,
        (
            Field(
                "network",
                "ResNet-50, trained on ImageNet with each loss",
                {"cpu": "one hidden layer of 256 on frozen features of CIFAR-100, trained on 50 of its classes"},
                {"backbone.name": "resnet50", "data.train.reader": "image-folder"},
            ),
            Field(
                "training of the network",
                _NOT_SAID,
                {
                    "cpu": "5 epochs of AdamW, rate 3e-3 with a cosine",
                    "paper": "as the author's program trains on MSCOCO: batches of 512, random crops of 8 to 100 % of "
                    "the area, flips, jitter, lighting; but from random weights, 100 epochs, rate 0.2 with a cosine",
                },
            ),
            Field(
                "data sets",
                "aircraft, caltech101, cars, CUB, DTD, flowers, food101, pets, SUN",
                {"cpu": "the other 50 classes of CIFAR-100, and their 20 coarse classes"},
                {"data.calibration": None},
                source="supplement, table A",
            ),
            Field(
                "classifier",
                "one linear layer, L-BFGS",
                {"cpu": "the same, at most 50 steps", "paper": "the same, until it converges (at most 10,000 steps)"},
            ),
            Field(
                "regularisation",
                "45 strengths from 1e-6 to 1e5; the best on test data is reported",
                {
                    "cpu": "chosen on validation data, beside the best on test data",
                    "paper": "chosen on a fifth of the training data, beside the best on test data",
                },
            ),
            Field("seeds", _NOT_SAID, {"cpu": "3", "paper": "1"}),
        ),
    ),
)
