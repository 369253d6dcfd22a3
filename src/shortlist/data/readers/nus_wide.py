"""NUS-WIDE: photographs with 81 concepts."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.checks import check_choice
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.text_lines import text_lines
from shortlist.files import PathLike


def read_nus_wide(
    path: PathLike,
    *,
    part: Literal["train", "test"] = "train",
    images: PathLike | None = None,
    size: int = 224,
    crop: bool = False,
    labelled_only: bool = False,
) -> Dataset:
    """NUS-WIDE as it is distributed: lists of concepts and images, and one file of 0 and 1 per concept.

    ``ConceptsList/Concepts81.txt``, ``ImageList/TrainImagelist.txt`` and
    ``Groundtruth/TrainTestLabels/Labels_CONCEPT_Train.txt``; ``Concepts81.txt`` and ``TrainTestLabels`` may also lie in
    ``path`` itself.

    Args:
        path: the folder with these folders in it.
        part: "train" or "test".
        images: the folder that the image list starts from; ``Flickr`` in ``path`` when not given.
        size, crop: how images are resized, as for ``read_image_folder``.
        labelled_only: leave out the images without any of the 81 concepts.

    Example:
        ```yaml
        data:
          train: {reader: nus-wide, path: NUS-WIDE, labelled_only: true}
          test: {reader: nus-wide, path: NUS-WIDE, part: test, labelled_only: true}
        backbone: efficientnet-lite0
        objective: two-way
        ```
    """
    check_choice(part, "part", ("train", "test"))
    findings = Findings()
    root, word = Path(path), part.capitalize()
    concept_list = root / "Concepts81.txt"
    concept_list = concept_list if concept_list.is_file() else root / "ConceptsList" / "Concepts81.txt"
    concepts = [name for _, name in text_lines(concept_list, findings)]
    image_list = root / "ImageList" / f"{word}Imagelist.txt"
    folder = root / "Flickr" if images is None else Path(images)
    names = []
    for line, name in text_lines(image_list, findings):
        names.append(name.replace("\\", "/"))  # the lists were made on Windows
        findings.image(folder / names[-1], image_list, line, "line")
    labels = root / "Groundtruth" / "TrainTestLabels"
    labels = labels if labels.is_dir() else root / "TrainTestLabels"
    columns = [_column(labels / f"Labels_{concept}_{word}.txt", len(names), findings) for concept in concepts]
    findings.stop_if_any()
    data = Dataset(
        Images.from_files((folder / name for name in names), size, crop),
        torch.from_numpy(np.stack(columns, axis=1)),
        tuple(concepts),
        ids=tuple(names),
        name=f"nus-wide-{part}",
    )
    return data.subset((data.target == 1).any(1)) if labelled_only else data


def _column(file: Path, count: int, findings: Findings) -> NDArray[np.int8]:
    """One concept's labels, a 0 or 1 on each line."""
    labels = []
    for line, text in text_lines(file, findings):
        labels.append(int(text == "1"))
        if text not in ("0", "1"):
            findings.add(file, f"label {text!r}: allowed are 1 (present) and 0 (absent)", line, "line")
    if file.is_file() and len(labels) != count:
        findings.add(file, f"has {len(labels)} labels, but there are {count} images")
    return np.array(labels, dtype=np.int8)
