"""What the training loop reads: optimizer, schedule, batches, precision, devices, seed, when to stop."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

Precision = Literal["32-true", "16-mixed", "bf16-mixed", "64-true"]


class Section(BaseModel):
    """A part of the config: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OptimizerSettings(Section):
    name: Literal["sgd-nesterov", "adamw"] = Field(default="sgd-nesterov", description="which optimizer")
    lr: float = Field(default=0.1, gt=0, description="learning rate at the start")
    momentum: float = Field(default=0.9, gt=0, lt=1, description="of sgd-nesterov")
    betas: tuple[float, float] = Field(default=(0.9, 0.999), description="of adamw")
    weight_decay: float = Field(default=0.0, ge=0)


class ScheduleSettings(Section):
    name: Literal["constant", "step", "cosine"] = "constant"
    at: tuple[PositiveInt, ...] = Field(default=(), description="step: the epochs before which the rate is multiplied")
    factor: float = Field(default=0.1, gt=0, lt=1, description="step: by how much")

    @model_validator(mode="after")
    def _steps_have_epochs(self) -> "ScheduleSettings":
        if self.name == "step" and not self.at:
            raise ValueError("a step schedule needs the epochs at which to step, such as at: [30, 60]")
        if self.name != "step" and self.at:
            raise ValueError(f"at belongs to the step schedule, not to {self.name}")
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

    epochs: PositiveInt = 10
    batch_size: PositiveInt = Field(default=128, description="examples per batch, over all devices together")
    accumulate: PositiveInt = Field(default=1, description="batches per optimizer step")
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    stop: StopSettings = StopSettings()
    metrics: tuple[str, ...] = Field(default=(), description="further metrics of every epoch; none: the usual ones")
    augment: AugmentSettings = AugmentSettings()
    precision: Precision = "32-true"
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    devices: PositiveInt = Field(default=1, description="processes that share every batch")
    seed: int = Field(default=0, ge=0)
