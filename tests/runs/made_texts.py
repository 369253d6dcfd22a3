"""Small files of comments whose mood follows from their words."""

from pathlib import Path

import numpy as np
import pandas as pd

MOODS = {"joy": ("happy", "great", "lovely"), "anger": ("hate", "awful", "terrible"), "fear": ("scared", "afraid")}


def comments(rows: int = 150, seed: int = 0) -> pd.DataFrame:
    """Ids, comments that all differ, and one mood of three."""
    random = np.random.default_rng(seed)
    moods = random.choice(list(MOODS), rows)
    said = [f"well, i am {random.choice(MOODS[mood])} about all {random.integers(10**9)} of them" for mood in moods]
    return pd.DataFrame({"id": [f"c{row:03}" for row in range(rows)], "comment": said, "mood": moods})


def write_comments(path: Path, rows: int = 150, seed: int = 0) -> Path:
    comments(rows, seed).to_csv(path, index=False)
    return path


def tickets(rows: int = 200, seed: int = 0) -> pd.DataFrame:
    """A number, a category and two texts, one of them blank at times; each says something of the kind."""
    random = np.random.default_rng(seed)
    kinds = random.choice(list(MOODS), rows)
    filler = [f"word{number}" for number in range(60)]

    def text(kind: str, words: int) -> str:
        told = [random.choice(MOODS[kind])] if random.random() < 0.7 else []
        return " ".join(random.permutation([*random.choice(filler, words), *told]))

    frame = pd.DataFrame({"age": (random.normal(40, 10, rows) + 8 * (kinds == "joy")).round(1)})
    frame["plan"] = np.where(random.random(rows) < 0.5, np.where(kinds == "fear", "team", "pro"), "free")
    frame["subject"] = [None if random.random() < 0.05 else text(kind, 3) for kind in kinds]
    frame["body"] = [text(kind, 9) for kind in kinds]
    frame["kind"] = kinds
    return frame
