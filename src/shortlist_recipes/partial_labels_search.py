"""Tune objectives of the recipe partial-labels on validation data: ``python -m ...search voc2012 0.9 [OBJECTIVE ...]``.

Prints one line for every training, and for every objective what it chose, as `_partial_labels_choice.CHOSEN` has it.
"""

import sys

from shortlist.errors import MissingFileError, ShortlistError
from shortlist_recipes._partial_labels_choice import BEGINS_WITH, OPTIMIZERS, OWN_OPTIONS, Setting
from shortlist_recipes.cells import train_model
from shortlist_recipes.partial_labels import MAP, OBJECTIVES, config
from shortlist_recipes.sources import data_folder

SEED = 100  # none of the table's


def best_setting(data: str, missing: float, objective: str) -> tuple[float, Setting]:
    """The best of the optimizers, and then of the objective's own options."""

    def tried(setting: Setting) -> float:
        try:
            trained = train_model(config("cpu", data_folder(), data, missing, objective, SEED, setting))
        except MissingFileError:
            raise
        except ShortlistError as error:  # the loss became nan, say: this setting is no good
            print(f"{data} {missing} {objective}: {error} {setting}", flush=True)
            return 0.0
        found = float(max(record[MAP] for record in trained.history.records))
        print(f"{data} {missing} {objective}: {100 * found:.2f} {setting}", flush=True)
        return found

    begin = BEGINS_WITH[data].get(objective, {})
    plain = [(tried((optimizer, begin)), (optimizer, begin)) for optimizer in OPTIMIZERS[data]]
    optimizer = max(plain, key=lambda pair: pair[0])[1][0]
    own = [(optimizer, begin | options) for options in OWN_OPTIONS.get(objective, ())]
    return max([*plain, *((tried(setting), setting) for setting in own)], key=lambda pair: pair[0])


def main(data: str, missing: str, *objectives: str) -> None:
    for objective in objectives or OBJECTIVES:
        value, setting = best_setting(data, float(missing), objective)
        print(f"chosen at {data}, {missing}: {objective!r}: {setting},  # {100 * value:.1f} %", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
