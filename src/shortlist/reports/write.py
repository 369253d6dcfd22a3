"""Writing a report: everything is made first, then put in its place, the page last."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from shortlist.files import PathLike, write_folder
from shortlist.reports.contents import contents
from shortlist.reports.data import ReportData
from shortlist.reports.figures import draw_figures
from shortlist.reports.page import render
from shortlist.text import visible


def write(data: ReportData, directory: PathLike) -> Path:
    """Write ``index.html``, which needs no other file and no network, and ``figures/`` (PNG and SVG) beside it.

    Nothing is written unless all of it could be made. A new directory appears whole; in an existing one the files of
    an earlier report are replaced, the page last, and other files are left alone. Returns the path of the page.

    >>> import numpy as np, tempfile
    >>> from shortlist.reports import from_scores
    >>> data = from_scores(np.eye(3, dtype="float32"), np.arange(3), ["cat", "dog", "owl"], k=1)
    >>> page = write(data, tempfile.mkdtemp())
    >>> page.name, sorted(file.name for file in (page.parent / "figures").iterdir())[:2]
    ('index.html', ['accuracy.png', 'accuracy.svg'])
    """
    found = contents(data)
    figures = draw_figures(found)
    return put(directory, render(found, list(figures)), figures)


def put(directory: PathLike, page: str, figures: Mapping[str, bytes]) -> Path:
    """Put a page and its figures in their place, the page last."""
    folder = Path(os.path.realpath(directory))
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = {f"figures/{name}": figure for name, figure in figures.items()}
    write_folder(folder, {**files, "index.html": visible(page).encode()})
    return folder / "index.html"
