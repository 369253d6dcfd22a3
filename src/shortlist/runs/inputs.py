"""What a user has to predict on -> a data set as the run was trained on: arrays, frames, images, files and folders."""

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.data import Dataset, Encoder, Images, TextEncoder, Texts
from shortlist.data.column_use import listed
from shortlist.data.frame_columns import frame_of
from shortlist.data.images import as_pixels
from shortlist.data.preprocessing import Preprocessor
from shortlist.data.readers.features import read_inputs
from shortlist.data.readers.findings import may_be_empty
from shortlist.data.readers.image_folder import IMAGE_ENDINGS, files_under, names_image, names_within, other_files
from shortlist.data.readers.image_table import listed_images, root_of_new
from shortlist.data.readers.tables import name_of, names_table
from shortlist.data.readers.text_table import read_texts
from shortlist.data.table_rows import TableRows
from shortlist.data.tf_idf import TfIdf
from shortlist.errors import ShortlistError, ShortlistWarning, renamed
from shortlist.optional import require
from shortlist.runs.written import as_written

_FORMS = "arrays, tensors, data frames, paths, images, or lists of dicts (rows of a table), of paths or of images"


@dataclass(frozen=True)
class Inputs:
    """What a run takes, and what it does to it before the model sees it.

    Args:
        in_shape: of one prepared input: (features,) or (channels, height, width).
        vocabulary: the labels' names.
        columns: the names of a table's columns, in the order in which an array has them.
        preprocessor: makes numbers of these columns.
        pixels: of a run on images, how they are scaled: ``mean``, ``std`` and ``crop``.
        encoder: what made the features that the run was trained on, where they are of images or texts and it is known.
        options: of the reader of the training data.
        left_out: columns of the training table that are no features, which nobody has to be told again.
        texts: of a run on texts, what is known of those that it was trained on.
        root_is_new: whether the ``root`` of the options is that of the new images, not that of the training data.
    """

    in_shape: tuple[int, ...]
    vocabulary: tuple[str, ...]
    columns: tuple[str, ...] | None = None
    preprocessor: Preprocessor | TfIdf | None = None
    pixels: Mapping[str, Any] | None = None
    encoder: Encoder | TextEncoder | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    texts: Mapping[str, Any] | None = None
    root_is_new: bool = False

    def dataset(self, X: Any, broken: dict[str, str] | None = None) -> Dataset:
        """The inputs with every label unknown. ``broken``: where images that cannot be decoded are noted, path ->
        reason; without it the first one is an error."""
        if isinstance(X, Dataset):
            return X
        if isinstance(X, str | os.PathLike):
            return replace(self, options=as_written(Path(X), self.options)).of_path(Path(X), broken)
        if self.takes_texts:
            return self._of_texts(X)
        if (frame := frame_of(X)) is not None:
            return self._of_frame(frame)
        if _is_image(X):
            return self._of_images([X], broken)
        if self.takes_images and isinstance(X, Tensor) and X.dtype == torch.uint8:
            X = X.cpu().numpy()
        if self.takes_images and hasattr(X, "tolist") and getattr(X, "ndim", 0) == 1:
            X = X.tolist()  # paths in a series or an array
        if isinstance(X, list | tuple) and X and all(_is_image(x) or isinstance(x, str | os.PathLike) for x in X):
            return self._of_images(X, broken)
        return self._of_array(X)

    @property
    def takes_images(self) -> bool:
        return self.pixels is not None or isinstance(self.encoder, Encoder)

    @property
    def takes_texts(self) -> bool:
        return self.texts is not None or isinstance(self.encoder, TextEncoder)

    @property
    def counts_words(self) -> bool:
        """Whether texts, or some columns, become numbers by the words in them."""
        return self.takes_texts or (isinstance(self.preprocessor, Preprocessor) and bool(self.preprocessor.texts))

    def mention_ignored(self, ignored: Iterable[str], what: str) -> None:
        """A warning of the columns of a table that are new to the run, which does not use them."""
        names = [repr(name) for name in ignored if name not in self.left_out]
        if names:
            said = f"{what}: columns that were not there in training are ignored: {listed(names)}"
            warnings.warn(said, ShortlistWarning, stacklevel=3)

    @property
    def pixel_scale(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, int]]:
        """Of a run that takes images: mean and standard deviation of each channel, and the size of an image."""
        if isinstance(self.encoder, Encoder):
            return self.encoder.mean, self.encoder.std, self.encoder.size
        assert self.pixels is not None, "asked for only where the run takes images"
        mean, std = (tuple(self.pixels[key]) for key in ("mean", "std"))
        return mean, std, (self.in_shape[1], self.in_shape[2])

    @property
    def resizing(self) -> dict[str, Any]:
        """Of a run that takes images: how another program resizes them as the run does (see ``Images``)."""
        images = self._images(())
        return {"filter": "bicubic", "crop": images.crop, **({"zoom": images.zoom} if images.crop else {})}

    # ---- numbers and names

    def _of_array(self, X: Any) -> Dataset:
        if hasattr(X, "tocsr") and self.preprocessor is not None and self.columns is not None:
            X = X.toarray()  # the columns of a table
        if hasattr(X, "tocsr"):
            return self._unlabelled(X.tocsr().astype(np.float32))
        if not isinstance(X, Tensor):
            try:
                X = np.asarray(X)
            except ValueError as error:
                raise ShortlistError(f"inputs are {_FORMS}; these rows differ in their lengths: {error}") from None
            if X.dtype == np.uint8 and X.ndim in (3, 4) and self.takes_images:
                pixels = X[None] if X.ndim == 3 else X
                if pixels.shape[3] not in (3, 4):
                    raise ShortlistError(
                        f"pixels (uint8) have the shape {X.shape}, wanted is (images, height, width, 3), or that of one"
                    )
                return self._of_images([require("PIL.Image").fromarray(one) for one in pixels], None)
        if X.ndim != 2:
            wanted = "(rows, columns)" if len(self.in_shape) == 1 else f"(images, {', '.join(map(str, self.in_shape))})"
            pixels = "; pixels are of uint8, (images, height, width, 3)" if self.takes_images else ""
            raise ShortlistError(
                f"inputs have the shape {tuple(X.shape)}, the run wants {wanted}, or other {_FORMS}{pixels}"
            )
        if self.preprocessor is not None and self.columns is not None:
            values = X.detach().cpu() if isinstance(X, Tensor) else X
            values = values.float() if isinstance(X, Tensor) and X.dtype == torch.bfloat16 else values
            values = np.asarray(values)
            if values.shape[1] != len(self.columns):
                raise ShortlistError(
                    f"there are {values.shape[1]} columns, the run was trained on {len(self.columns)}: "
                    f"{listed([repr(name) for name in self.columns])}"
                )
            return self._of_frame(require("pandas").DataFrame(values, columns=list(self.columns)))
        if not isinstance(X, Tensor) and X.dtype.kind not in "biuf":
            raise ShortlistError(f"inputs are {_FORMS}; got an array of {X.dtype}")
        if not isinstance(X, Tensor):
            X = np.require(X, X.dtype.newbyteorder("="), ["W"])  # torch knows the order of bytes of this machine alone
        return self._unlabelled(torch.as_tensor(X).to(torch.float32))

    def _of_frame(self, frame: Any) -> Dataset:
        names = [str(name) for name in frame.columns]
        columns = self.columns
        if self.pixels is not None or (columns is None and len(names) != self.in_shape[0]):
            raise ShortlistError(
                f"a frame of {len(names)} columns is not what the run takes: "
                + ("images, or a list of their paths" if self.takes_images else f"{self.in_shape[0]} features")
            )
        frame = frame.set_axis(names, axis=1)
        if columns is not None:
            missing = [name for name in columns if name not in names]
            if missing:
                there = f"the columns are {listed([repr(name) for name in names])}{renamed(missing, names)}"
                raise ShortlistError(f"there is no column {listed([repr(name) for name in missing])}: {there}")
            known = {*columns, *_other_columns(self.options)}
            self.mention_ignored([name for name in names if name not in known], "the frame")
        ids_key = self.options.get("ids_key")
        ids = tuple(map(str, frame[ids_key])) if ids_key in names else None
        chosen = frame if columns is None else frame[list(columns)]
        if self.preprocessor is not None:
            return self._unlabelled(TableRows(chosen), ids=ids)
        try:
            values = chosen.to_numpy(dtype=np.float32)
        except ValueError as error:
            raise ShortlistError(f"the columns of the frame must be numbers: {error}") from None
        return self._unlabelled(torch.from_numpy(np.require(values, requirements=["C", "W"])), ids=ids)

    # ---- texts

    def _of_texts(self, X: Any) -> Dataset:
        """A frame with the column of texts, or texts in a list, an array or a series."""
        column, ids = self.options.get("text_column", "text"), None
        frame = frame_of(X)
        if frame is not None:
            X = frame
            if column not in X.columns:
                there = listed([repr(name) for name in X.columns])
                raise ShortlistError(f"there is no column {column!r} with the texts: the columns are {there}")
            ids_key = self.options.get("ids_key")
            ids = tuple(map(str, X[ids_key])) if ids_key in X.columns else None
            X = ["" if text is None or text != text else text for text in X[column]]
        texts = tuple(X) if isinstance(X, list | tuple) else tuple(X.tolist()) if hasattr(X, "tolist") else (X,)
        wrong = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
        if wrong is not None:
            raise ShortlistError(
                f"the run takes texts, a list of them, a frame with the column {column!r}, or the path of a table; "
                f"text {wrong} is {type(texts[wrong]).__name__}"
            )
        return self._unlabelled(Texts(texts), ids=ids)

    # ---- images

    def _of_images(self, images: Sequence[Any], broken: dict[str, str] | None) -> Dataset:
        if all(isinstance(image, str | os.PathLike) for image in images):
            paths = [os.fspath(image) for image in images]
            return self._unlabelled(self._images(tuple(paths), broken), ids=tuple(paths))
        if any(isinstance(image, str | os.PathLike) for image in images):
            raise ShortlistError("give a list of paths or a list of images, not both in one")
        size, crop = self._images(()).size, self._images(()).crop
        return self._unlabelled(self._images(np.stack([as_pixels(image, size, crop) for image in images])))

    def _images(self, source: Any, broken: dict[str, str] | None = None) -> Images:
        if isinstance(self.encoder, Encoder):
            return self.encoder.images(source, broken)
        if self.pixels is None:
            raise ShortlistError(
                f"the run was trained on {self.in_shape[0]} features, and what makes them of images is not known: give "
                f"features (runs on features by shortlist data features or shortlist fit know their encoder)"
            )
        if self.in_shape[0] != 3:
            raise ShortlistError(f"the run takes images of {self.in_shape[0]} channels, these have 3")
        mean, std, size = self.pixel_scale
        return Images(source, size, self.pixels["crop"], mean=mean, std=std, broken=broken)

    # ---- files

    def of_path(self, path: Path, broken: dict[str, str] | None) -> Dataset:
        """Of a file that is written as the options say: features, the images of a folder in the order of their names,
        those that a table lists in its column ``path``, or one image. A table may have no rows."""
        with may_be_empty():
            return self._of_path(path, broken)

    def _of_path(self, path: Path, broken: dict[str, str] | None) -> Dataset:
        if not os.path.exists(path):  # also of a name that no file can have
            of_texts = ': texts are given in a list, ["..."]' if self.takes_texts else ""
            raise ShortlistError(f"there is no file or folder {str(path)[:200]}{of_texts}")
        if self.takes_texts:
            texts, row_names, use = read_texts(path, self.options)
            self.mention_ignored({} if use is None else use.ignored, str(path))
            return self._unlabelled(texts, ids=row_names, name=name_of(path), columns=use)
        is_image = path.suffix.lower() in IMAGE_ENDINGS and path.is_file()
        if is_image or path.is_dir():
            inside = [path] if is_image else files_under(path)
            files = list(filter(names_image, inside))
            for said in other_files(inside):
                warnings.warn(f"{path}: {said}", ShortlistWarning, stacklevel=2)
            ids = names_within(path.parent if is_image else path, files)
        elif names_table(path) and self.takes_images:
            root = self.options.get("root") if self.root_is_new else root_of_new(path, self.options)
            column = self.options.get("path_column", "path")
            how = self.options.get("delimiter"), self.options.get("encoding")
            names, files = listed_images(path, column, root, *how)
            ids = tuple(names)
        elif self.pixels is not None:
            raise ShortlistError(f"{path}: no images there; known endings: {', '.join(sorted(IMAGE_ENDINGS))}")
        else:
            inputs, row_names, use = read_inputs(path, self._options_of(path))
            self.mention_ignored({} if use is None else use.ignored, str(path))
            if self.preprocessor is not None and not isinstance(inputs, TableRows):
                inputs = self._of_array(inputs).inputs  # arrays, or a sparse table
            return self._unlabelled(inputs, ids=row_names, name=name_of(path), columns=use)
        if not files and not names_table(path):
            raise ShortlistError(f"{path}: no images there; known endings: {', '.join(sorted(IMAGE_ENDINGS))}")
        return self._unlabelled(self._images(tuple(map(str, files)), broken), ids=ids, name=name_of(path))

    def _options_of(self, path: Path) -> dict[str, Any]:
        """How a file of features is read: a table has the columns that the run was trained with, as they were read
        then."""
        options = dict(self.options)
        if names_table(path):
            if self.columns is not None and options.get("input_columns") is None:
                options["input_columns"] = list(self.columns)
            options.setdefault("as_table", self.preprocessor is not None)
            if isinstance(self.preprocessor, Preprocessor):
                options["name_columns"] = self.preprocessor.name_columns
        return options

    def _unlabelled(self, inputs: Any, **known: Any) -> Dataset:
        count = len(inputs) if isinstance(inputs, Images | Texts) else int(inputs.shape[0])
        return Dataset(inputs, torch.full((count,), -1), self.vocabulary, **known)


def _other_columns(options: Mapping[str, Any]) -> set[str]:
    """The columns of the training table that are known and no features: labels, ids and others."""
    keys = {value for key, value in options.items() if key.endswith("_key") and key != "inputs_key"}
    lists = [options.get(key) or () for key in ("label_columns", "other_columns")]
    return keys | {"y"} | {name for names in lists for name in names}


def _is_image(x: Any) -> bool:
    """Whether it is a Pillow image, without importing Pillow."""
    return hasattr(x, "convert") and hasattr(x, "getexif")
