"""Lightning's ``Trainer`` ends with calibrated sets: a callback."""

import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from shortlist.distributed import gathered, world_size
from shortlist.errors import MissingFileError, ShortlistError
from shortlist.files import PathLike
from shortlist.loops.calibration import Calibration
from shortlist.optional import require
from shortlist.sets import SetRule

# one library under two names, and a Trainer wants callbacks of its own
_OLD = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
_Callback: Any = require("pytorch_lightning" if _OLD else "lightning.pytorch", "lightning").Callback


def scores_of_batch(module: Any, batch: Any, outputs: Any) -> tuple[Tensor, Tensor]:
    """Scores and target of a validation batch: what ``validation_step`` returned as "scores" and "target"; or else the
    module's answer to the first part of the batch, and its second part."""
    if isinstance(outputs, Mapping) and "scores" in outputs and "target" in outputs:
        return outputs["scores"], outputs["target"]
    if isinstance(batch, tuple | list) and len(batch) == 2:
        with torch.no_grad():
            return module(batch[0]), batch[1]
    raise ShortlistError(
        'return {"scores": ..., "target": ...} from validation_step, or give LightningSets(scores=...), a function of '
        "(module, batch, what validation_step returned)"
    )


class LightningSets(_Callback):  # type: ignore[misc]
    """Calibrates set rules on the validation data of every epoch, keeps them in each checkpoint, and logs their sets.

    Mean size and coverage are logged as ``sets/NAME/size`` and ``sets/NAME/coverage``; they are those of rules fitted
    on every other row and judged on the rest. ``rules`` has the rules that were fitted last, on all rows. A checkpoint
    has those of its own weights: `rules_in_checkpoint` reads them, and the callback has them again when a
    ``Trainer`` loads the checkpoint.

    Args:
        rules: set rules by name, such as ``{"average-k": shortlist.sets.AverageK(3)}``; else the usual two.
        k: of the usual rules.
        scores: (module, batch, what validation_step returned) -> (scores, target), where `scores_of_batch` does not
            fit.
    """

    def __init__(
        self,
        rules: Mapping[str, SetRule] | None = None,
        *,
        k: float | None = None,
        scores: Callable[[Any, Any, Any], tuple[Tensor, Tensor]] = scores_of_batch,
    ) -> None:
        super().__init__()
        self._calibration, self._scores = Calibration(rules, k), scores
        self._seen: list[tuple[Tensor, Tensor]] = []

    @property
    def rules(self) -> dict[str, SetRule]:
        return self._calibration.rules

    def on_validation_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._seen = []

    def on_validation_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        if trainer.sanity_checking or dataloader_idx > 0:
            return
        scores, target = self._scores(pl_module, batch, outputs)
        self._seen.append((scores.detach().float().cpu(), target.detach().cpu()))

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        seen = [pair for part in gathered(self._seen, world_size(None)) for pair in part]
        self._seen = []
        if trainer.sanity_checking or not seen:
            return
        scores, target = (torch.cat(parts) for parts in zip(*seen, strict=True))
        found = self._calibration.fit(scores, target)
        pl_module.log_dict({f"sets/{name}": value for name, value in found.items()}, rank_zero_only=True)

    def state_dict(self) -> dict[str, Any]:
        return {"rules": {name: rule.to_json() for name, rule in self.rules.items()}}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._calibration.rules = _read(state_dict)


def rules_in_checkpoint(path: PathLike) -> dict[str, SetRule]:
    """The rules that `LightningSets` kept in a checkpoint file. No code in the file is run."""
    try:
        kept = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise MissingFileError(f"there is no checkpoint {path}") from None
    except Exception as error:  # whatever unpickling bytes may end in
        own = re.search(r"GLOBAL ([\w.]+)", str(error))
        raise ShortlistError(
            f"{path} is no checkpoint that torch can read: {type(error).__name__}"
            if own is None
            else f"{path} also holds an object of the class {own[1]}, and no code in it is run: if you trust the file, "
            "allow the class with torch.serialization.add_safe_globals"
        ) from error
    callbacks = kept.get("callbacks") if isinstance(kept, dict) else None
    found = [state for key, state in (callbacks or {}).items() if str(key).startswith("LightningSets")]
    if not found or "rules" not in found[0]:
        raise ShortlistError(f"{path} has no set rules: it was not saved by a Trainer with the callback LightningSets")
    return _read(found[0])


def _read(state: Mapping[str, Any]) -> dict[str, SetRule]:
    return {name: SetRule.from_json(text) for name, text in state["rules"].items()}
