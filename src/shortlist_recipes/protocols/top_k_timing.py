"""How Berrada et al. 2018 measure time and stability."""

from shortlist_recipes.protocol import Field, Protocol

_TIME = "Berrada et al. 2018, section C.1"

PROTOCOLS = (
    Protocol(
        "Time",
        _TIME,
        (
            Field("k", "5", {}, {"k": 5}),
            Field("batch size", "256", {}, {"batch": 256}),
            Field("machine", "a Titan Xp", {"cpu": "one core", "paper": "the machine's graphics card"}),
            Field(
                "time",
                "the mean of 50 runs",
                {"cpu": "the fastest of those in 0.7 seconds", "paper": "the fastest of those in 2 seconds"},
            ),
        ),
        {"part": "n"},
    ),
)
