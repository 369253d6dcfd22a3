"""What the training loop reads: optimizer, schedule, batches, precision, devices, seed, when to stop."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from shortlist.errors import ShortlistError
from shortlist.options import name_alone

Precision = Literal["32-true", "16-mixed", "bf16-mixed", "64-true"]


class Section(BaseModel):
    """A part of the config: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NamedSection(Section):
    """A section with a name, which may stand alone: ``schedule: cosine``."""

    _name_alone = model_validator(mode="before")(name_alone)


# each optimizer's own learning rate, where none is given
RATES = {"sgd-nesterov": 0.1, "adamw": 1e-3}


def _usual_rate(given: dict[str, Any]) -> float:
    return RATES.get(given.get("name", ""), 0.1)  # an unknown name is an error of its own


class OptimizerSettings(NamedSection):
    """Which optimizer, and its options.

    >>> OptimizerSettings().lr, OptimizerSettings(name="adamw").lr
    (0.1, 0.001)
    """

    name: Literal["sgd-nesterov", "adamw"] = Field(default="sgd-nesterov", description="which optimizer")
    lr: float = Field(
        default_factory=_usual_rate,
        gt=0,
        description="learning rate at the start; if not given, "
        + ", ".join(f"{rate:g} for {name}" for name, rate in RATES.items()),
    )
    momentum: float = Field(default=0.9, gt=0, lt=1, description="of sgd-nesterov")
    betas: tuple[float, float] = Field(default=(0.9, 0.999), description="of adamw")
    weight_decay: float = Field(default=0.0, ge=0, description="how strongly weights are drawn to zero")


class ScheduleSettings(NamedSection):
    name: Literal["constant", "step", "cosine"] = Field(
        default="constant", description="how the rate falls: not at all, in steps, or along a cosine to zero"
    )
    at: tuple[PositiveInt, ...] = Field(default=(), description="step: the epochs before which the rate is multiplied")
    factor: float = Field(default=0.1, gt=0, lt=1, description="step: by how much")

    @model_validator(mode="after")
    def _steps_have_epochs(self) -> "ScheduleSettings":
        if self.name == "step" and not self.at:
            raise ShortlistError("a step schedule needs the epochs at which to step, such as at: [30, 60]")
        if self.name != "step" and self.at:
            raise ShortlistError(f"at belongs to the step schedule, not to {self.name}")
        return self


class StopSettings(Section):
    """Which metric on the validation data chooses the best epoch, and when training stops early."""

    metric: str | None = Field(default=None, description="None: what the objective is for; e.g. topk-accuracy@5")
    patience: PositiveInt | None = Field(default=None, description="stop after so many epochs without a better one")


class AugmentSettings(Section):
    """Changes of training images, drawn anew for every epoch."""

    padding: int = Field(default=0, ge=0, description="move by up to so many pixels: pad, and crop at a random place")
    flip: bool = Field(default=False, description="mirror half of the images left to right")


class TrainSettings(Section):
    """Everything the loop needs to know besides data and model.

    >>> TrainSettings(epochs=3, optimizer={"name": "adamw", "lr": 1e-3}).optimizer.lr
    0.001
    """

    epochs: PositiveInt = Field(default=10, description="passes over the training data")
    batch_size: PositiveInt = Field(default=128, description="examples per batch, over all devices together")
    accumulate: PositiveInt = Field(default=1, description="batches per optimizer step")
    optimizer: OptimizerSettings = Field(default=OptimizerSettings(), description="how weights are changed")
    schedule: ScheduleSettings = Field(default=ScheduleSettings(), description="how the learning rate changes")
    stop: StopSettings = Field(default=StopSettings(), description="which epoch is best, and when to stop early")
    metrics: tuple[str, ...] = Field(default=(), description="further metrics of every epoch; none: the usual ones")
    augment: AugmentSettings = Field(default=AugmentSettings(), description="changes of training images")
    precision: Precision = Field(default="32-true", description="bits of a number; mixed: half where it will do")
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = Field(
        default="auto", description="where to compute; auto: a graphics card where there is one"
    )
    devices: PositiveInt = Field(default=1, description="processes that share every batch")
    seed: int = Field(default=0, ge=0, description="of everything that is drawn at random")
