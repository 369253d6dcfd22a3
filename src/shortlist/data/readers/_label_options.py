"""What a reader is told about labels, and what it makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from shortlist.checks import check_choice
from shortlist.errors import ShortlistError
from shortlist.labels.sparse_labels import SparseLabels

Coding = Literal["label-matrix", "signed", "nan", "marks", "chexpert", "one-hot"]
Known = Literal["present", "absent", "unknown"]
Uncertain = Known | Mapping[str, Known]
CODINGS: Mapping[str, str] = {
    "label-matrix": "1 (present), 0 (absent), -1 (unknown)",
    "signed": "1 (present), -1 (absent), 0 (unknown)",
    "nan": "1 (present), 0 (absent), blank (unknown)",
    "marks": "any mark (present), blank or 0 (absent), -1 (unknown)",
    "chexpert": "1 (present), 0 (absent), -1 (uncertain), blank (unknown)",
    "one-hot": "1 (the label of the example), 0 (the others), -1 (unknown)",
}


@dataclass(frozen=True)
class Given:
    """What the options of a reader say about its labels (see ``read_features``)."""

    vocabulary: Sequence[str] | None = None
    num_labels: int | None = None
    coding: Coding = "label-matrix"
    uncertain: Uncertain = "unknown"
    separator: str | None = None
    rest: Literal["absent", "unknown"] = "absent"
    unknown_names: Sequence[str] = ()
    numbers_are_indices: bool = False  # whatever the labels are called; otherwise 7 means the label '7' if there is one
    of_table: bool = False  # where NaN is a blank, which is an unknown class

    def __post_init__(self) -> None:
        check_choice(self.coding, "coding", CODINGS)
        check_choice(self.rest, "rest", ("absent", "unknown"))
        if self.uncertain != "unknown" and self.coding != "chexpert":
            raise ShortlistError("uncertain says what -1 means in coding='chexpert': give both of them")
        if self.separator == "":
            raise ShortlistError("separator must be a text that stands between names, such as '|'")


@dataclass(frozen=True)
class Labels:
    target: Tensor | SparseLabels
    vocabulary: tuple[str, ...]
    notes: tuple[str, ...] = ()  # what was decided that the file does not say
