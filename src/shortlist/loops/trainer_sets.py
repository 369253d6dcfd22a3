"""Hugging Face's ``Trainer`` ends with calibrated sets: a callback that also has its ``compute_metrics``."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shortlist.errors import MissingFileError, ShortlistWarning
from shortlist.files import PathLike
from shortlist.loops.calibration import Calibration
from shortlist.loops.trainer import predicted, trainer_metrics
from shortlist.optional import require
from shortlist.sets import SetRule
from shortlist.sets.rule_files import load_rules, save_rules

_FOLDER = "rules"


class TrainerSets(require("transformers", "trainer").TrainerCallback):  # type: ignore[misc]
    """Calibrates set rules at every evaluation, keeps them with each checkpoint, and has the metrics logged.

    Give it to the ``Trainer`` twice, as ``compute_metrics=sets.compute_metrics`` and among the ``callbacks``. Every
    evaluation then fits the rules on the evaluation data, and mean size and coverage of the sets (of rules fitted on
    every other row, judged on the rest) are logged with the metrics. A checkpoint that is saved after an evaluation has
    the rules in its folder ``rules``; at the end of training those of the weights that the model has then (the best
    ones, with ``load_best_model_at_end``) are also in ``rules`` of the output folder. ``rules_in(folder)`` reads them.

    Args:
        rules: set rules by name, such as ``{"average-k": shortlist.sets.AverageK(3)}``; else the usual two.
        metrics: names of metrics, as for `trainer_metrics`.
        k: of the usual rules and metrics.
        link: of the usual metrics.
    """

    def __init__(
        self,
        rules: Mapping[str, SetRule] | None = None,
        *,
        metrics: Sequence[str] = (),
        k: float | None = None,
        link: str | None = None,
    ) -> None:
        self._calibration = Calibration(rules, k)
        self._metrics = trainer_metrics(metrics, k=k, link=link)
        self._step: int | None = None  # after which the rules were fitted

    @property
    def rules(self) -> dict[str, SetRule]:
        """The rules that were fitted last, or that belong to the best checkpoint, once training has ended."""
        return self._calibration.rules

    def compute_metrics(self, prediction: Any) -> dict[str, float]:
        """For ``Trainer(compute_metrics=...)``."""
        return self._metrics(prediction) | self._calibration.fit(*predicted(prediction))

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._step = state.global_step

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if not state.is_world_process_zero:
            return
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if self._step == state.global_step and self.rules:
            save_rules(checkpoint / _FOLDER, self.rules)
        else:
            warnings.warn(
                f"{checkpoint} has no set rules: nothing was evaluated at step {state.global_step}; let eval_strategy "
                "and save_strategy of the TrainingArguments be the same, and compute_metrics that of this callback",
                ShortlistWarning,
                stacklevel=2,
            )

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        best = state.best_model_checkpoint if args.load_best_model_at_end else None
        if best is not None and (Path(best) / _FOLDER).is_dir():
            self._calibration.rules = rules_in(best)
        elif best is not None or self._step != state.global_step or not self.rules:
            warnings.warn(
                "the sets are not calibrated for the weights at the end of training: nothing was evaluated with them; "
                "set eval_strategy of the TrainingArguments, or call trainer.evaluate() and then save(folder)",
                ShortlistWarning,
                stacklevel=2,
            )
            return
        if state.is_world_process_zero:
            self.save(args.output_dir)

    def save(self, folder: PathLike) -> None:
        """Write the rules beside a model: into the folder ``rules`` of this folder."""
        save_rules(Path(folder) / _FOLDER, self.rules)


def rules_in(folder: PathLike) -> dict[str, SetRule]:
    """The rules that were kept with a checkpoint or an output folder of the ``Trainer``."""
    if not (Path(folder) / _FOLDER).is_dir():
        raise MissingFileError(f"{folder} has no folder {_FOLDER!r}: it was not saved with the callback TrainerSets")
    return load_rules(Path(folder) / _FOLDER)
