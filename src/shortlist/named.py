"""A name and its options, as a config gives them."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, model_validator


def name_alone(value: Any) -> Any:
    """The name alone, without options, as a section with a name."""
    return {"name": value} if isinstance(value, str) else value


class Named(BaseModel):
    """A name and its options, side by side: ``{name: smooth-topk, k: 5}``; or the name alone."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    _name_alone = model_validator(mode="before")(name_alone)

    @classmethod
    def of(cls, name: str, **options: Any) -> Self:
        return cls.model_validate({"name": name, **options})

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})
