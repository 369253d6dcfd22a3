"""Where a recipe's data is, and reading it once: cells take seconds, reading must not take longer."""

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.runs import setup
from shortlist.runs.config import DataConfig, RunConfig, Source


def data_folder(given: PathLike | None = None) -> Path:
    """The folder of the data sets: the given one, else ``$SHORTLIST_SHARED/data``, else ``../shared/data``."""
    if given is not None:
        return Path(given)
    shared = os.environ.get("SHORTLIST_SHARED")
    return Path(shared) / "data" if shared else Path("..") / "shared" / "data"


def check_data(recipe: str, scale: str, needs: Mapping[str, str], folder: Path) -> None:
    """Raise a ValueError that says what is missing, and where it was looked for."""
    missing = [f"  {name}: {what}" for name, what in needs.items() if not (folder / name).exists()]
    if missing:
        raise ShortlistError(
            f"the recipe {recipe} at scale {scale} needs data that is not in {folder}:\n"
            + "\n".join(missing)
            + "\ngive the folder with --data DIR, or set SHORTLIST_SHARED to the folder that holds data/"
        )


def parts_of(config: RunConfig) -> Mapping[str, Dataset]:
    """The config's data as `shortlist.runs.setup.read_parts` gives it, kept for the next cells.

    >>> data = {"train": {"reader": "ambiguous-numbers", "size": 200}, "test": 50}
    >>> config = RunConfig.model_validate({"data": data})
    >>> parts_of(config)["test"] is parts_of(config)["test"]
    True
    """
    seed = config.seed if config.data.seed is None else config.data.seed
    return _parts(config.data.model_dump_json(), seed)


@lru_cache(maxsize=2)
def _parts(data: str, seed: int) -> Mapping[str, Dataset]:
    config = RunConfig(data=DataConfig.model_validate_json(data), seed=seed)
    return setup.read_parts(config, read=_read)


def _read(source: Source, place: str) -> Dataset:
    return _read_once(json.dumps(source.model_dump(mode="json"), sort_keys=True), place)


@lru_cache(maxsize=8)
def _read_once(source: str, place: str) -> Dataset:
    return setup.read_source(Source.model_validate_json(source), place)
