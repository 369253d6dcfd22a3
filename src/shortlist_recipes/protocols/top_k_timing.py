"""How Berrada et al. 2018 measure time and stability."""

from shortlist_recipes.protocol import Field, Protocol

_TIME = "Berrada et al. 2018, section C.1"

PROTOCOLS = (
    Protocol(
        "Time",
        (
            Field("k", "5", _TIME, {}, {"k": 5}),
            Field("batch size", "256", _TIME, {}, {"batch": 256}),
            Field("machine", "a Titan Xp", _TIME, {"cpu": "one core", "paper": "the machine's graphics card"}),
            Field(
                "time",
                "the mean of 50 runs",
                _TIME,
                {"cpu": "the fastest of those in 0.7 seconds", "paper": "the fastest of those in 2 seconds"},
            ),
        ),
        {"part": "n"},
    ),
)
