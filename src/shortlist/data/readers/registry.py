"""Every reader by name."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from shortlist import verticals
from shortlist.data.ambiguous_numbers import ambiguous_numbers
from shortlist.data.dataset import Dataset
from shortlist.data.readers.cifar import read_cifar
from shortlist.data.readers.coco import read_coco
from shortlist.data.readers.coco_words import read_coco_words
from shortlist.data.readers.cub import read_cub
from shortlist.data.readers.features import read_features
from shortlist.data.readers.findings import DataError, Problem, thorough
from shortlist.data.readers.image_folder import read_image_folder
from shortlist.data.readers.image_table import read_image_table
from shortlist.data.readers.nus_wide import read_nus_wide
from shortlist.data.readers.open_images import read_open_images
from shortlist.data.readers.plantnet import read_plantnet
from shortlist.data.readers.stacked_images import read_stacked_images
from shortlist.data.readers.tables import TABLE_ENDINGS
from shortlist.data.readers.text_table import read_text_table
from shortlist.data.readers.voc import read_voc
from shortlist.errors import ShortlistError
from shortlist.registry import Registry

READERS: Registry[Callable[..., Dataset]] = Registry(
    "reader",
    {
        "ambiguous-numbers": ambiguous_numbers,
        "features": read_features,
        "text-table": read_text_table,
        "image-table": read_image_table,
        "image-folder": read_image_folder,
        "stacked-images": read_stacked_images,
        "cifar": read_cifar,
        "voc": read_voc,
        "coco": read_coco,
        "coco-words": read_coco_words,
        "nus-wide": read_nus_wide,
        "open-images": read_open_images,
        "cub": read_cub,
        "plantnet": read_plantnet,
        **verticals.READERS,
    },
)


def read(reader: str, *, allow_import: Sequence[str] = (), **options: Any) -> Dataset:
    """The data set that a reader makes of these options (see ``READERS`` for the names; or
    ``module:function``, where ``allow_import`` lists that module).

    >>> read("ambiguous-numbers", size=100, seed=1)
    Dataset('ambiguous-numbers': 100 examples, 128 features, one of 100 labels each)
    """
    return find_reader(reader, allow_import)(**options)


def problems(reader: str, *, allow_import: Sequence[str] = (), **options: Any) -> list[Problem]:
    """Everything that is wrong with the files a reader would read; empty when all is well.

    Unlike reading, this decodes every image, and compares them to find those that occur twice.

    >>> for problem in problems("features", path="nowhere.npz"):
    ...     print(problem)
    nowhere.npz: no such file in ...
    """
    return check(reader, allow_import=allow_import, **options)[1]


def check(
    reader: str, *, allow_import: Sequence[str] = (), **options: Any
) -> tuple[Dataset | None, list[Problem]]:
    """The data set that a reader makes of these options, or None and what is wrong, as ``problems`` finds it."""
    try:
        with thorough():
            return find_reader(reader, allow_import)(**options), []
    except DataError as error:
        return None, error.problems


def reader_for(path: str) -> str:
    """Which reader, with which options, may be meant by someone who names a file or folder instead.

    >>> reader_for("labels.csv")
    'features path=labels.csv, or text-table for texts, or image-table with labels=... for a table of images'
    """
    if os.path.isdir(path):
        return f"image-folder path={path}"
    if path.lower().endswith(TABLE_ENDINGS):
        return f"features path={path}, or text-table for texts, or image-table with labels=... for a table of images"
    return f"features path={path}"


def find_reader(reader: str, allow_import: Sequence[str] = (), place: str = "") -> Callable[..., Dataset]:
    """The reader of this name; who gives a path instead is told which reader may be meant."""
    if reader not in READERS and os.path.exists(reader):
        where = f"{place}: " if place else ""
        raise ShortlistError(f"{where}{reader!r} is no reader but a path: try {reader_for(reader)}")
    return READERS.find(reader, allow_import, place)
