"""How to make a run again: its commands and its exact config."""

import json
from typing import Any

from shortlist.reports.data import RunResult
from shortlist.tasks import ScoredRun


def how_to_repeat(run: RunResult | ScoredRun, several: bool) -> dict[str, Any]:
    """``several``: of its name there are several seeds.

    >>> from types import SimpleNamespace
    >>> how_to_repeat(SimpleNamespace(name="lml", config={"epochs": 3}, commands=["train"], seed=2), True)
    {'name': 'lml, seed 2', 'config': 'epochs: 3\\n', 'commands': ['train']}
    """
    text = ""
    if run.config:
        import yaml

        # through JSON: tuples become lists and paths become text, which is what a config file holds
        text = yaml.safe_dump(json.loads(json.dumps(run.config, default=str)), sort_keys=False, allow_unicode=True)
    name = f"{run.name}, seed {run.seed}" if several and run.seed is not None else run.name
    return {"name": name, "config": text, "commands": list(run.commands)}
