"""What is guessed of files."""

from dataclasses import dataclass, field
from typing import Any

# folders, tables and cells that are called as parts of the data -> what fit calls them
PARTS = {"train": "train", "training": "train", "val": "calibration", "valid": "calibration",
         "validation": "calibration", "dev": "calibration", "test": "test", "testing": "test"}  # fmt: skip


@dataclass
class Guess:
    """A reader with its options, whether it reads images or texts, and what was guessed, to be told; of the parts that
    are in the same file (``x_test``), the options that are others."""

    source: dict[str, Any]
    images: bool = False
    texts: bool = False
    notes: list[str] = field(default_factory=list)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
