"""How Berrada et al. 2018 measure time and stability, and Amos et al. 2019 time."""

from shortlist_recipes.protocol import Field, Protocol

_TIME, _K = "Berrada et al. 2018, section B.3.2", "Amos et al. 2019, section 5.1"
_OURS = {"cpu": "the fastest of those in 0.7 seconds", "paper": "the fastest of those in 2 seconds"}
_MACHINE = {"cpu": "one core", "paper": "the machine's graphics card"}

PROTOCOLS = (
    Protocol(
        "Time against the number of labels",
        _TIME,
        (
            Field("k", "5", {}, {"k": 5}),
            Field("batch size", "256", {}, {"batch": 256}),
            Field("machine", "a Titan Xp", _MACHINE),
            Field("time", "the mean of 50 runs", _OURS),
        ),
        {"part": "n"},
    ),
    Protocol(
        "Time against k",
        _K,
        (
            Field("batch size", "256", {}, {"batch": 256}),
            Field("labels", "not said", {"cpu": "1,000", "paper": "1,000"}),
            Field("machine", "a GTX 1080 Ti", _MACHINE),
            Field("time", "50 trials", _OURS),
        ),
        {"part": "k"},
    ),
    Protocol(
        "Stability",
        "Berrada et al. 2018, section B.3.3",
        (
            Field(
                "scores",
                "of a trained ResNet-18, 128 images of ImageNet",
                {scale: "of a linear classifier, 128 images of CIFAR-100" for scale in ("cpu", "paper")},
            ),
            Field(
                "stable",
                "no overflow in the forward pass",
                {scale: "loss and gradient are finite" for scale in ("cpu", "paper")},
            ),
        ),
        {"part": "stability"},
    ),
)
