"""For other people's training loops: `LightningSets` for Lightning; `trainer_loss`, `trainer_metrics` and `TrainerSets`
for Hugging Face's ``Trainer``. Each is loaded on first use, with the package that it is for."""

from typing import TYPE_CHECKING, Any

from shortlist.registry import imported

if TYPE_CHECKING:
    from shortlist.loops.lightning import LightningSets as LightningSets
    from shortlist.loops.lightning import rules_in_checkpoint as rules_in_checkpoint
    from shortlist.loops.trainer import trainer_loss as trainer_loss
    from shortlist.loops.trainer import trainer_metrics as trainer_metrics
    from shortlist.loops.trainer_sets import TrainerSets as TrainerSets
    from shortlist.loops.trainer_sets import rules_in as rules_in

_HOME = {
    "LightningSets": "shortlist.loops.lightning:LightningSets",
    "TrainerSets": "shortlist.loops.trainer_sets:TrainerSets",
    "rules_in": "shortlist.loops.trainer_sets:rules_in",
    "rules_in_checkpoint": "shortlist.loops.lightning:rules_in_checkpoint",
    "trainer_loss": "shortlist.loops.trainer:trainer_loss",
    "trainer_metrics": "shortlist.loops.trainer:trainer_metrics",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(sorted(__all__))}")
    value = imported(_HOME[name])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
