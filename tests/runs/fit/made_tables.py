"""Tables that the tests of fit write."""

import numpy as np
import pandas as pd


def write(name: str, frame: pd.DataFrame) -> None:
    frame.to_csv(name, index=False)


def leaves(rows: int = 150) -> pd.DataFrame:
    """Ids, numbers, categories and text; the species follows from the length and the shore."""
    random = np.random.default_rng(0)
    length, shore = random.normal(10, 3, rows).round(2), random.choice(["north", "south"], rows)
    frame = pd.DataFrame({"leaf_id": [f"leaf {row}" for row in range(rows)], "length": length, "shore": shore})
    frame["note"] = [f"seen on the {row}th day of a long journey through the woods" for row in range(rows)]
    frame["species"] = np.where(shore == "north", np.where(length > 10, "oak", "elm"), "birch")
    return frame
