"""Tune every objective of the recipe partial-labels on validation data: ``python -m ...search voc2012 0.9 FILE``.

Prints one line for every training, and writes what it chose to FILE, as `_partial_labels_choice.CHOSEN` has it.
"""

import pprint
import sys
from pathlib import Path

from shortlist_recipes._partial_labels_choice import OPTIMIZERS, OWN_OPTIONS, Setting
from shortlist_recipes.cells import train_model
from shortlist_recipes.partial_labels import MAP, OBJECTIVES, config
from shortlist_recipes.sources import data_folder

SEED = 100  # none of the table's


def best_setting(data: str, missing: float, objective: str) -> tuple[float, Setting]:
    """The best of the optimizers, and then of the objective's own options."""

    def tried(setting: Setting) -> float:
        trained = train_model(config("cpu", data_folder(), data, missing, objective, SEED, setting))
        found = float(max(record[MAP] for record in trained.history.records))
        print(f"{data} {missing} {objective}: {100 * found:.2f} {setting}", flush=True)
        return found

    found = [(tried((optimizer, {})), place) for place, optimizer in enumerate(OPTIMIZERS)]
    value, place = max(found, key=lambda pair: (pair[0], -pair[1]))
    best: Setting = (OPTIMIZERS[place], {})
    for options in OWN_OPTIONS.get(objective, ()):
        if (other := tried((OPTIMIZERS[place], options))) > value:
            value, best = other, (OPTIMIZERS[place], options)
    return value, best


def main(data: str, missing: float, file: Path) -> None:
    settings = {objective: best_setting(data, missing, objective)[1] for objective in OBJECTIVES}
    file.write_text(pprint.pformat({(data, missing): settings}, width=118, sort_dicts=False) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))
