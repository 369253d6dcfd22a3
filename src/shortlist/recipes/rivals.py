"""The published algorithms and the peers from PyPI, to measure against where they are at hand.

The published algorithms are in the repository's ``benchmarks/rivals``, which is not part of the installed package: they
are found in the current directory, or beside the sources of an editable installation.
"""

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import shortlist
from shortlist.errors import ShortlistError

Loss = Callable[[Tensor, Tensor], Tensor]
ABSENT = (
    "The published algorithms were not measured: they are in benchmarks/rivals of the repository, which is not part of "
    "the installed package. Run the recipe from the root of a clone."
)
_MODULE = Path("benchmarks") / "rivals" / "smooth_topk.py"


def root() -> Path | None:
    """The repository's root, if it is here."""
    places = (Path.cwd(), Path(str(shortlist.__file__)).resolve().parents[2])
    return next((place for place in places if (place / _MODULE).is_file()), None)


def are_here() -> bool:
    return root() is not None


def published(algorithm: str, k: int, tau: float = 1.0) -> Loss:
    """SA or DC, differentiated by autograd (AD) or by the paper's own backward (CB); or LML by bracketing."""
    if algorithm == "LML bracketing":
        project = _rival("bracketing").lml_by_bracketing

        def lml(scores: Tensor, target: Tensor) -> Tensor:
            chances = project(scores, k, points=10)  # what its paper takes on a CPU
            return -torch.log(chances.gather(1, target[:, None]) + 1e-8).mean()

        return lml
    name, _, backward = algorithm.partition(" ")
    summed = {
        "SA": lambda: _rival("summation").summation,
        "DC": lambda: _rival("divide_and_conquer").divide_and_conquer,
    }
    function, sums = _rival("smooth_topk").smooth_topk_loss, summed[name]()
    return lambda scores, target: function(
        scores, target, k, algorithm=sums, custom_backward=backward == "(CB)", tau=tau
    )


def peer(package: str, n: int, k: int) -> Loss:
    """difftopk's smooth top-k loss, or pytopk's noised one with five draws."""
    with contextlib.redirect_stdout(io.StringIO()):  # difftopk prints that an optional package is missing
        module = import_module(package)
    made: Any = (
        module.SmoothTopKLoss(n, k) if package == "difftopk" else module.BalNoisedTopK(k, epsilon=1.0, n_sample=5)
    )
    found: Loss = made
    return found


def _rival(name: str) -> Any:
    place = root()
    if place is None:
        raise ShortlistError(ABSENT)
    with _importable(place):
        return import_module(f"benchmarks.rivals.{name}")


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
