"""What the training loop reads, with every default: optimizers and their learning rates, schedules, batches, precision,
devices, seed, when to stop."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from shortlist.errors import ShortlistError
from shortlist.objectives.imbalance import Imbalance
from shortlist.training.sections import ByName, Section, own_values

# several names; one may stand alone
Names = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
# a number, or none (in a file also: auto), which follows from the size of the data
Automatic = Annotated[PositiveInt | None, BeforeValidator(lambda value: None if value == "auto" else value)]
Precision = Literal["32-true", "16-mixed", "bf16-mixed", "64-true"]

# what an optimizer takes besides weight decay, and its own value where the config says nothing
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"lr": 0.1, "momentum": 0.0},
    "sgd-nesterov": {"lr": 0.1, "momentum": 0.9},
    "adam": {"lr": 1e-3, "betas": (0.9, 0.999)},
    "adamw": {"lr": 1e-3, "betas": (0.9, 0.999)},
    "adamw-rows": {"lr": 1e-3, "betas": (0.9, 0.999)},
    "rmsprop": {"lr": 1e-3, "momentum": 0.0, "decay": 0.99, "eps": 1e-8},
    "lbfgs": {"lr": 1.0},  # the length of a step before it is tried
}
SCHEDULES: dict[str, dict[str, Any]] = {
    "constant": {},
    "step": {"at": (), "factor": 0.1},
    "cosine": {},
    "plateau": {"factor": 0.1, "patience": 3},
}


class OptimizerSettings(ByName):
    """How weights are changed. Weight decay leaves biases, norm layers and other one-dimensional weights alone, unless
    ``decay_all`` says otherwise.

    >>> OptimizerSettings(name="adam").lr
    0.001
    """

    known: ClassVar[dict[str, dict[str, Any]]] = OPTIMIZERS

    name: Literal["sgd", "sgd-nesterov", "adam", "adamw", "adamw-rows", "rmsprop", "lbfgs"] = Field(
        default="sgd-nesterov",
        description="which optimizer; adamw-rows is adamw with one step size for all weights of a label, for linear "
        "models of columns of which few tell; lbfgs fits a linear model to all rows at once",
    )
    lr: float = Field(
        default=OPTIMIZERS["sgd-nesterov"]["lr"], gt=0, description=f"learning rate; {own_values(OPTIMIZERS, 'lr')}"
    )
    momentum: float | None = Field(default=None, ge=0, lt=1, description=own_values(OPTIMIZERS, "momentum"))
    betas: tuple[float, float] | None = Field(default=None, description=own_values(OPTIMIZERS, "betas"))
    decay: float | None = Field(
        default=None, ge=0, lt=1, description=f"of the mean of squared gradients; {own_values(OPTIMIZERS, 'decay')}"
    )
    eps: float | None = Field(
        default=None, gt=0, description=f"added to the root of that mean; {own_values(OPTIMIZERS, 'eps')}"
    )
    weight_decay: float | None = Field(
        default=None,
        ge=0,
        description="how strongly weights are drawn to zero, for lbfgs scikit-learn's 1 / C; not given: 0, for lbfgs "
        "chosen by three folds",
    )
    decay_all: bool = Field(
        default=False, description="biases, norm layers and tables, too, as in most published programs"
    )
    backbone_lr: float = Field(
        default=1.0,
        ge=0,
        description="the backbone's learning rate as a multiple of lr; 0 freezes it, its batch-norm statistics too",
    )
    clip: float | None = Field(
        default=None, gt=0, description="the largest norm of the gradient; a longer one is scaled down to it"
    )

    @model_validator(mode="after")
    def _nesterov_has_momentum(self) -> "OptimizerSettings":
        if self.name == "sgd-nesterov" and not self.momentum:
            raise ShortlistError("sgd-nesterov needs a momentum above 0; sgd can do without")
        return self


class ScheduleSettings(ByName):
    """How the learning rate changes: not at all, in steps, along a cosine to zero, or whenever the watched metric has
    not become better for some epochs."""

    known: ClassVar[dict[str, dict[str, Any]]] = SCHEDULES

    name: Literal["constant", "step", "cosine", "plateau"] = Field(default="constant", description="which schedule")
    at: tuple[PositiveInt, ...] | None = Field(
        default=None, description="step: the epochs before which the rate is multiplied"
    )
    factor: float | None = Field(
        default=None, gt=0, lt=1, description=f"what the rate is multiplied by; {own_values(SCHEDULES, 'factor')}"
    )
    patience: PositiveInt | None = Field(
        default=None, description=f"plateau: the epochs to wait for a better one; {own_values(SCHEDULES, 'patience')}"
    )
    warm_up: float = Field(default=0.0, ge=0, description="epochs (or a part of one) in which the rate rises from zero")

    @model_validator(mode="after")
    def _steps_have_epochs(self) -> "ScheduleSettings":
        if self.name == "step" and not self.at:
            raise ShortlistError("a step schedule needs the epochs at which to step, such as at: [30, 60]")
        return self


class StopSettings(Section):
    """Which metric on the validation data chooses the best epoch, and when training stops early."""

    metric: str | None = Field(
        default=None, description="such as topk-accuracy@5; none: the metric that suits the objective"
    )
    patience: PositiveInt | None = Field(default=None, description="stop after so many epochs without a better one")


class JitterSettings(Section):
    """How much colours may change: 0.4 means by a factor from 0.6 to 1.4; the hue by a share of the circle. It needs
    the extra ``augment``."""

    brightness: float = Field(default=0.0, ge=0, description="how much all colours may become lighter or darker")
    contrast: float = Field(default=0.0, ge=0, description="how much colours may differ from the image's mean grey")
    saturation: float = Field(default=0.0, ge=0, description="how much colours may differ from their own grey")
    hue: float = Field(default=0.0, ge=0, le=0.5, description="how far colours may move around the circle of colours")


class RandAugmentSettings(Section):
    """Operations drawn from a list of fourteen: rotate, shear, translate, brightness, contrast and so on. It needs the
    extra ``augment``."""

    operations: PositiveInt = Field(default=2, description="how many operations on each image")
    magnitude: float = Field(default=9.0, ge=0, le=30, description="how strong they are, from 0 to 30")


class AugmentSettings(Section):
    """Changes of training images, drawn anew for every epoch from the seed, the epoch and the example: batches, workers
    and resuming change nothing."""

    padding: int = Field(default=0, ge=0, description="move by up to so many pixels: pad, and crop at a random place")
    flip: bool = Field(default=False, description="mirror half of the images left to right")
    resize: PositiveInt | None = Field(
        default=None, description="make image files so large, more than the data's size, and crop from that at random"
    )
    area: tuple[float, float] | None = Field(
        default=None, description="crop a box of such a share of the image and resize it, such as [0.08, 1]"
    )
    ratio: tuple[float, float] = Field(default=(0.75, 4 / 3), description="width by height of these boxes")
    jitter: JitterSettings = Field(default=JitterSettings(), description="changes of colour")
    lighting: float = Field(
        default=0.0, ge=0, description="noise along the principal colours of photographs, such as 0.1"
    )
    randaugment: RandAugmentSettings | None = Field(default=None, description="RandAugment; none: off, {}: as usual")

    @model_validator(mode="after")
    def _ranges(self) -> "AugmentSettings":
        for key, span, most in (("area", self.area, 1.0), ("ratio", self.ratio, float("inf"))):
            if span is not None and not 0 < span[0] <= span[1] <= most:
                upper = "" if most > 1 else " up to 1"
                raise ShortlistError(f"{key} goes from a number above 0 to a larger one{upper}, got {list(span)}")
        if self.area is not None and self.padding:
            raise ShortlistError("boxes of a random area lie within the image: remove padding or area")
        return self


class TrainSettings(Section):
    """Everything the loop needs to know besides data and model.

    >>> TrainSettings(epochs=3, optimizer={"name": "adamw", "lr": 1e-3}).optimizer.lr
    0.001
    """

    epochs: Automatic = Field(
        default=None, description="passes over the training data; none or auto: 1,000 steps, within 10 to 100 epochs"
    )
    batch_size: Automatic = Field(
        default=None,
        description="examples per batch, over all devices together; none or auto: a fiftieth of them, within 8 to 128",
    )
    accumulate: PositiveInt = Field(default=1, description="batches per optimizer step")
    optimizer: OptimizerSettings = Field(default=OptimizerSettings(), description="how weights are changed")
    schedule: ScheduleSettings = Field(default=ScheduleSettings(), description="how the learning rate changes")
    imbalance: Imbalance = Field(
        default="none",
        description="what is done about rare labels: weights by their counts, their log prior added to the scores in "
        "training alone, or examples drawn so that every label comes as often",
    )
    ema: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="decay of a moving average of the weights, such as 0.999, which validates and predicts; none: off",
    )
    stop: StopSettings = Field(default=StopSettings(), description="which epoch is best, and when to stop early")
    metrics: tuple[str, ...] = Field(default=(), description="further metrics of every epoch; none: the usual ones")
    augment: AugmentSettings = Field(default=AugmentSettings(), description="changes of training images")
    precision: Precision = Field(default="32-true", description="bits of a number; mixed: half where it will do")
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = Field(
        default="auto", description="where to compute; auto: a graphics card where there is one"
    )
    devices: PositiveInt = Field(default=1, description="processes that share every batch")
    workers: int = Field(
        default=0,
        ge=0,
        description="processes (on each device) that decode image files ahead; 0: threads, faster on few cores",
    )
    checkpoint_minutes: float | None = Field(
        default=10.0, gt=0, description="how often a run is saved within a long epoch; none: only after every epoch"
    )
    loggers: Annotated[tuple[Literal["tensorboard", "csv"], ...], Names] = Field(
        default=(),
        description="for which other programs the numbers of metrics.jsonl are written, each into a folder of the run "
        "that has its name; tensorboard needs the extra of that name",
    )
    seed: int = Field(default=0, ge=0, description="the seed of everything that is drawn at random")

    @model_validator(mode="after")
    def _warm_up_ends(self) -> Self:
        check_warm_up(self)
        return self


def check_warm_up(settings: TrainSettings) -> None:
    """Raise a ValueError where the warm-up would last as long as the training."""
    if settings.epochs is not None and settings.schedule.warm_up >= settings.epochs:
        raise ShortlistError(
            f"schedule.warm_up must be less than the {settings.epochs} epochs there are, "
            f"got {settings.schedule.warm_up:g}"
        )
