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
