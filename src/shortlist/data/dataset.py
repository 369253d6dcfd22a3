"""Dataset: what every reader returns: inputs, target, and the labels' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from shortlist.data.column_use import ColumnUse
from shortlist.data.encoder import Encoder, TextEncoder
from shortlist.data.images import Images
from shortlist.data.inputs import Inputs, as_inputs
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.table_rows import TableRows
from shortlist.data.texts import Texts
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import ShortlistError
from shortlist.labels import check_label_matrix
from shortlist.labels.label_set_inputs import as_positions, check_vocabulary
from shortlist.labels.label_sets import LabelSets
from shortlist.labels.sparse_labels import SparseLabels, is_sparse
from shortlist.options import errors_at


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Examples with their labels. Nothing in it changes: every operation returns a new one.

    Args:
        inputs: features (N, D), a float tensor, ``MappedRows`` of a file, a scipy CSR matrix or ``TableRows``; or
            ``Images``; or ``Texts``; or what a vertical room brings, such as ``scenes.Scenes``, whose images have the
            predicates that occur in them as labels. `data.inputs.Inputs` says what is asked of them.
        target: class indices, int64 (N,) with -1 unknown; or a label matrix, int8 (N, L) of 1 present, 0 absent,
            -1 unknown. ``LabelSets`` and sparse matrices become, and stay, ``SparseLabels``.
        vocabulary: the L labels' names.
        groups: the coarse group of each label, int64 (L,).
        group_names: the groups' names.
        truth: all right labels of each example, for evaluation only.
        ids: what the examples are called, such as file names.
        side: more that is known of each example: a class, int64 (N,), -1 for unknown; no label to be predicted.
        name: what the data set is called.
        corruptions: what was done to the labels since they were read, in order.
        columns: what each column is used for, where the data was read from a table.
        encoder: what made the features, where they are of images or texts and it is known.
        notes: what the reader decided that the files do not say.
        pictures: the images that features are of, where they are known; only for looking at.
        texts: the texts that features are of, or the inputs themselves where these are texts.
        common_scale: of a table whose columns were standardised, what they are to be multiplied by to share one scale
            (`Preprocessor.common_scale`), or 1 each; None of other data.
        skipped: examples that were left out because their images cannot be decoded: id or path -> reason.

    >>> data = Dataset(torch.eye(3), torch.tensor([0, 1, 1]), ("cat", "dog"))
    >>> data
    Dataset('data': 3 examples, 3 features, one of 2 labels each)
    >>> data.batch(torch.tensor([2]))
    (tensor([[0., 0., 1.]]), tensor([1]))
    >>> data.subset([0, 2]).target
    tensor([0, 1])
    """

    inputs: Any
    target: Any  # Tensor | SparseLabels; given as one of more forms
    vocabulary: tuple[str, ...]
    groups: Tensor | None = None
    group_names: tuple[str, ...] | None = None
    truth: LabelSets | None = None
    ids: tuple[str, ...] | None = None
    side: Tensor | None = None
    name: str = "data"
    corruptions: tuple[dict[str, Any], ...] = ()
    columns: ColumnUse | None = None
    encoder: Encoder | TextEncoder | None = None
    notes: tuple[str, ...] = ()
    pictures: Images | None = None
    texts: Texts | None = None
    common_scale: NDArray[np.float32] | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = check_vocabulary(self.vocabulary, len(self.vocabulary))
        object.__setattr__(self, "vocabulary", names)
        labels = self.num_labels
        if isinstance(self.inputs, Texts) and self.texts is None:
            object.__setattr__(self, "texts", self.inputs)
        object.__setattr__(self, "target", checked_target(self.target, labels))
        if self.groups is not None:
            self._check_groups(self.groups)
        for what in ("target", "truth", "ids", "side", "pictures", "texts"):
            values = getattr(self, what)
            if values is not None and len(values) != len(self):
                raise ShortlistError(f"{what} has {len(values)} rows for {len(self)} inputs")
        if self.truth is not None and self.truth.num_labels != labels:
            raise ShortlistError(f"truth has {self.truth.num_labels} labels, the vocabulary {labels}")

    def _check_groups(self, groups: Tensor) -> None:
        if groups.shape != (self.num_labels,) or groups.dtype != torch.int64:
            raise ShortlistError(
                f"groups must be int64 of shape ({self.num_labels},), got {tuple(groups.shape)} of {groups.dtype}"
            )
        if int(groups.min()) < 0:
            raise ShortlistError(f"groups must be 0 or more, got {int(groups.min())}")
        if self.group_names is not None and int(groups.max()) >= len(self.group_names):
            raise ShortlistError(f"groups go to {int(groups.max())}, but there are {len(self.group_names)} group_names")

    def __len__(self) -> int:
        return len(self._inputs)

    @cached_property
    def _inputs(self) -> Inputs:
        return as_inputs(self.inputs)

    @property
    def num_labels(self) -> int:
        return len(self.vocabulary)

    @property
    def is_single(self) -> bool:
        """Whether the target is one class index per example (otherwise it is a label matrix)."""
        return self.target.ndim == 1

    @property
    def kind(self) -> str:
        """``"features"``, ``"images"``, ``"texts"``, or the kind of a vertical room's inputs: ``"scenes"``."""
        return self._inputs.kind

    @property
    def in_shape(self) -> tuple[int, ...]:
        """The shape of one input: (D,) or (C, H, W), of texts (); of scenes see ``Scenes.shape``."""
        return self._inputs.shape

    @property
    def rows_each(self) -> int:
        """About how many rows of features the work on one example is like: how large batches are when scoring."""
        return self._inputs.rows_each

    @property
    def has_sparse_inputs(self) -> bool:
        """Whether batches of inputs are sparse tensors."""
        return bool(getattr(self._inputs, "are_sparse", False))

    @property
    def in_features(self) -> int:
        """How many numbers one input has."""
        return int(np.prod(self.in_shape))

    def batch(self, index: Tensor) -> tuple[Any, Any]:
        """Inputs (float32; sparse where they are, and wide) and target of these examples; for scenes see
        ``Scenes.batch``."""
        if isinstance(self.inputs, TableRows):
            raise ShortlistError(f"{self.name}: the columns of a table are no numbers yet: see Dataset.preprocessed")
        return self._inputs.with_target(index, self.target)

    def subset(self, index: Any) -> Dataset:
        """The examples at these positions, in this order; or those a bool mask or a slice selects."""
        rows = as_positions(index, len(self), "example")
        if rows.ndim != 1:
            raise ShortlistError(f"index must be positions in one dimension, a bool mask or a slice, got {index!r}")
        at = torch.from_numpy(rows)
        return replace(
            self,
            inputs=self._inputs.subset(rows),
            target=self.target[at],
            truth=None if self.truth is None else self.truth[rows],
            ids=None if self.ids is None else tuple(self.ids[row] for row in rows.tolist()),
            side=None if self.side is None else self.side[at],
            pictures=None if self.pictures is None else self.pictures.subset(rows),
            texts=None if self.texts is None else self.texts.subset(rows),
        )

    @property
    def images(self) -> Images | None:
        """What the examples look like: the inputs, or the images that these are the features of; None if not known.

        >>> data = Dataset(torch.eye(1), torch.tensor([0]), ("cat",), pictures=Images(np.zeros((1, 2, 2, 3), np.uint8)))
        >>> len(data.images), data.subset([]).images.shape
        (1, (3, 2, 2))
        """
        return self.inputs if isinstance(self.inputs, Images) else self.pictures

    def without_broken(self) -> Dataset:
        """Without the examples whose images were noted as broken, which are ``skipped`` then.

        >>> pictures = Images(("a.png", "b.png"), broken={"a.png": "cannot decode a.png"})
        >>> data = Dataset(torch.eye(2), torch.tensor([0, 0]), ("cat",), pictures=pictures).without_broken()
        >>> len(data), data.skipped
        (1, {'a.png': 'cannot decode a.png'})
        """
        images = self.images
        if images is None or not images.broken:
            return self
        reasons = [images.broken.get(path) for path in images.source]
        kept = [reason is None for reason in reasons]
        names = self.ids or images.source
        skipped = {name: reason for name, reason in zip(names, reasons, strict=True) if reason is not None}
        if not any(kept):
            raise ShortlistError(f"{self.name}: none of the {len(self)} images can be decoded: {reasons[0]}")
        return replace(self.subset(torch.tensor(kept)), skipped={**self.skipped, **skipped})

    @property
    def answers(self) -> Any:
        """What scores are measured against: the target; of scenes their relations."""
        return self._inputs.answers_or(self.target)

    def input_facts(self) -> dict[str, Any] | None:
        """What prediction has to know of the inputs, as JSON: how images are scaled, the object classes of scenes."""
        return self._inputs.facts()

    def normalised_for(self, backbone: Any) -> Dataset:
        """With images scaled as the backbone says in ``pixel_mean`` and ``pixel_std``, if it says so (pretrained ones
        do), and texts cut into tokens by its ``tokens``; otherwise as it is. Whatever runs a backbone on a data set
        prepares it here.

        >>> class Backbone:
        ...     pixel_mean, pixel_std = (0.0,), (1.0,)
        >>> pixels = np.full((1, 1, 1, 1), 255, dtype=np.uint8)
        >>> data = Dataset(Images(pixels, mean=(0.5,), std=(0.1,)), torch.tensor([0]), ("cat",))
        >>> data.normalised_for(Backbone()).batch(torch.tensor([0]))[0].item()
        1.0
        """
        if isinstance(self.inputs, Texts):
            return replace(self, inputs=replace(self.inputs, tokens=getattr(backbone, "tokens", None)))
        mean, std = getattr(backbone, "pixel_mean", None), getattr(backbone, "pixel_std", None)
        if not isinstance(self.inputs, Images) or mean is None or std is None:
            return self
        return replace(self, inputs=self.inputs.normalised(mean, std))

    def preprocessed(self, preprocessor: Preprocessor | TfIdf | None) -> Dataset:
        """With the columns of a table, or texts, as numbers, as the preprocessor was fitted to make them; other data as
        it is."""
        if isinstance(self.inputs, Texts) and isinstance(preprocessor, TfIdf):
            return replace(self, inputs=preprocessor.transform(self.inputs.source))
        if not isinstance(self.inputs, TableRows):
            return self
        if not isinstance(preprocessor, Preprocessor):
            raise ShortlistError(f"{self.name}: the columns of a table need a preprocessor to become numbers")
        columns = self.columns
        if columns is not None:
            columns = columns.without(preprocessor.columns_left_out)
        with errors_at(self.name):
            inputs = preprocessor.transform(self.inputs.frame)
        inputs = inputs if preprocessor.texts else torch.from_numpy(inputs)
        common = preprocessor.common_scale()
        common = np.ones(preprocessor.width, dtype=np.float32) if common is None else common
        return replace(self, inputs=inputs, columns=columns, common_scale=common)

    def label_counts(self) -> Tensor:
        """In how many examples each label is present.

        >>> Dataset(torch.eye(3), torch.tensor([1, 1, -1]), ("cat", "dog")).label_counts()
        tensor([0, 2])
        """
        if self.is_single:
            return torch.bincount(self.target[self.target >= 0], minlength=self.num_labels)
        return (self.target == 1).sum(0)

    def describe(self) -> dict[str, Any]:
        """Counts that say what is in the data set, as plain numbers.

        >>> Dataset(torch.eye(3), torch.tensor([1, 1, -1]), ("cat", "dog")).describe()["share_unknown"]
        0.3333333333333333
        """
        counts = self.label_counts()
        known = int((self.target != -1).sum())
        total = self.target.numel()
        described: dict[str, Any] = {
            "name": self.name,
            "examples": len(self),
            "kind": self.kind,
            "in_shape": list(self.in_shape),
            "labels": self.num_labels,
            "target": "indices" if self.is_single else "label-matrix",
            "share_unknown": (total - known) / total if total else 0.0,
            "cardinality": int(counts.sum()) / len(self) if len(self) else 0.0,
            "label_counts": dict(zip(self.vocabulary, counts.tolist(), strict=True)),
            "labels_never_present": int((counts == 0).sum()),
        }
        described |= self._inputs.counts()
        if self.groups is not None:
            described["groups"] = int(self.groups.max()) + 1
        if self.side is not None:
            described["side_classes"] = len(self.side[self.side >= 0].unique())
        if self.truth is not None:
            described["true_cardinality"] = float(self.truth.sizes.mean()) if len(self) else 0.0
        if self.columns is not None:
            described["columns"] = self.columns.as_json()
        if self.notes:
            described["notes"] = list(self.notes)
        if self.corruptions:
            described["corruptions"] = [dict(done) for done in self.corruptions]
        return described

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self._inputs.in_words(self.num_labels, self.is_single)})"


def checked_target(target: Any, num_labels: int) -> Tensor | SparseLabels:
    """Class indices, int64, or a label matrix, int8 or sparse; an error where it is neither."""
    if is_sparse(target):
        labels = SparseLabels.of(target, "cpu")
        if labels.num_labels != num_labels:
            raise ShortlistError(f"target has {labels.num_labels} labels, the vocabulary {num_labels}")
        return labels
    target = target if isinstance(target, Tensor) else torch.as_tensor(target)
    if target.ndim == 2 and target.shape[1] == num_labels:
        quick = target.dtype == torch.int8 and target.numel() > 0  # every subset comes through here
        if not quick or int(target.min()) < -1 or int(target.max()) > 1:
            check_label_matrix(target)
        return target.to(torch.int8)
    if target.ndim != 1 or target.is_floating_point() or target.dtype == torch.bool:
        raise ShortlistError(
            f"target must be class indices (N,), whole numbers, or a label matrix (N, {num_labels}), "
            f"got shape {tuple(target.shape)} of {target.dtype}"
        )
    target = target.to(torch.int64)
    bad = (target < -1) | (target >= num_labels)
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise ShortlistError(
            f"target[{row}] is {int(target[row])}: allowed are 0..{num_labels - 1}, or -1 for an unknown row"
        )
    return target


def default_names(num_labels: int) -> tuple[str, ...]:
    """Names for labels that have none: their numbers."""
    return tuple(map(str, range(num_labels)))
