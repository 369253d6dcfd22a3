"""What requests and answers look like."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Cell = str | int | float | bool | None  # of a table: a name, a number (3 may be a name, which 3.0 is not), or nothing


class Request(BaseModel):
    """Examples of one kind, one or many: rows, images or texts."""

    model_config = ConfigDict(extra="forbid")

    rows: Annotated[
        list[dict[str, Cell | list[Cell]] | list[float | None]] | None,
        Field(
            description="of a table, an object for each example: column -> value, or a list of them where cells hold "
            "several; else a list of features for each"
        ),
    ] = None
    images: Annotated[
        list[str] | None, Field(description="image files (JPEG, PNG, WebP, ...) in base64, or as data: addresses")
    ] = None
    texts: Annotated[list[str] | None, Field(description="texts, for runs on texts")] = None
    rule: Annotated[str | None, Field(description="which rule makes the sets; the usual one if not given")] = None
    k: Annotated[float | None, Field(description="the rule with another k, where it has one")] = None
    alpha: Annotated[float | None, Field(description="the rule with another alpha, where it has one")] = None


class Label(BaseModel):
    name: str
    probability: float | None = Field(None, description="after the link of the objective")
    score: float | None = Field(None, description="where the objective only ranks, instead of a probability")


class LabelSet(BaseModel):
    labels: list[Label] = Field(description="the labels in the set, the most probable one first")


class Rule(BaseModel):
    """How the sets were made."""

    name: str
    settings: str
    promise: str = Field(description="what holds for new examples like the calibration rows; empty where nothing does")
    calibrated_on: str | None = Field(None, description="what the calibration data is called")
    calibrated_at: str | None = Field(None, description="the day of the calibration")
    calibration_rows: int = Field(description="how many rows calibrated it; 0 where there was nothing to learn")


class Answer(BaseModel):
    sets: list[LabelSet]
    rule: Rule
    remarks: list[str] = Field(description="what was ignored, such as columns that the run does not know")


class Problem(BaseModel):
    error: str = Field(description="what was wrong, and what is allowed")


class Model(BaseModel):
    """What the run takes and gives."""

    run: str
    takes: str = Field(description="rows, features, images or texts")
    labels: list[str]
    columns: list[str] | None
    features: int | None
    rules: dict[str, Any] = Field(description="of each rule: promise, calibration, and k or alpha where it has one")
    usual_rule: str | None
    limits: dict[str, float]


class Health(BaseModel):
    status: str
