"""The images that graphs are drawn on."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from shortlist.data import Dataset
from shortlist.data.images import why_not_decoded
from shortlist.errors import ShortlistError
from shortlist.scenes.graphs import SceneGraph

_SAME_SHAPE = 0.02  # by how much the proportions of an image in another size may differ


class Pictures:
    """The images of a data set: those of a folder, or those that its reader was given (``images``), or none.

    Args:
        dataset: scenes.
        folder: where the images are, by the names that the data set has for them.
        longest: make them at most so many pixels wide and high; otherwise they are as in their files.
    """

    def __init__(self, dataset: Dataset, folder: Path | None = None, longest: int | None = None) -> None:
        self.dataset, self.folder, self.longest = dataset, folder, longest

    def under(self, graph: SceneGraph, row: int) -> tuple[bytes | None, SceneGraph]:
        """The image, and its graph in the image's size: boxes are in its pixels, unless the data says that they are in
        those of the image in another size (Visual Genome's boxes are). Of a detector's boxes those in a
        relation are left."""
        graph = graph if self.dataset.inputs.recorded is None else graph.related()
        path = self._path(graph, row)
        if path is None:
            return None, graph
        from PIL import Image

        try:
            with Image.open(path) as image:
                width, height = self.dataset.inputs.sizes[row].tolist()
                if min(width, height) <= 0 or abs(width / height * image.height / image.width - 1) > _SAME_SHAPE:
                    graph = replace(graph, width=image.width, height=image.height)
                if self.longest is None and image.format in ("PNG", "JPEG"):
                    return path.read_bytes(), graph
                file, shown = io.BytesIO(), image.convert("RGB")
                if self.longest is not None:
                    shown.thumbnail((self.longest, self.longest))
                shown.save(file, "JPEG", quality=85)
                return file.getvalue(), graph
        except (OSError, Image.DecompressionBombError) as error:
            raise ShortlistError(f"{path} cannot be drawn on: {why_not_decoded(error)}") from None

    def _path(self, graph: SceneGraph, row: int) -> Path | None:
        if self.folder is not None:
            path = self.folder / graph.image
            if not path.resolve().is_relative_to(self.folder.resolve()) or not path.is_file():
                raise ShortlistError(f"--images {self.folder}: there is no {graph.image} in it")
            return path
        pictures = self.dataset.pictures
        return None if pictures is None else Path(pictures.source[row])
