"""Sections of a config: a few keys, or a name that decides which keys apply."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

from shortlist.errors import ShortlistError
from shortlist.named import name_alone


class Section(BaseModel):
    """A part of the config: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ByName(Section):
    """A section whose name decides which of its other keys apply, and what they are where nothing is said; the name
    may stand alone: ``schedule: cosine``."""

    known: ClassVar[dict[str, dict[str, Any]]]
    name: str

    @model_validator(mode="before")
    @classmethod
    def _options_of_the_name(cls, value: Any) -> Any:
        value = name_alone(value)
        if not isinstance(value, dict):
            return value
        said = {key: given for key, given in value.items() if given is not None}
        name = said.get("name", cls.model_fields["name"].default)
        if name not in list(cls.known):  # the error about the name says enough
            return said
        own = cls.known[name]
        for option in said:
            owners = [other for other, known in cls.known.items() if option in known]
            if owners and option not in own:
                raise ShortlistError(f"{option} belongs to {' and '.join(owners)}, not to {name}: remove it")
        return {**own, **said}


def own_values(known: dict[str, dict[str, Any]], option: str) -> str:
    """What an option is where the config says nothing, by name.

    >>> own_values({"sgd": {"lr": 0.1}, "adam": {"lr": 0.001}, "adamw": {"lr": 0.001}}, "lr")
    'not given: 0.1 for sgd, 0.001 for adam and adamw'
    """
    names: dict[Any, list[str]] = {}
    for name, options in known.items():
        if option in options:
            names.setdefault(options[option], []).append(name)
    words = [
        f"{' and '.join(map(str, value)) if isinstance(value, tuple) else f'{value:g}'} for "
        f"{' and '.join(filter(None, [', '.join(some[:-1]), some[-1]]))}"
        for value, some in names.items()
    ]
    return f"not given: {', '.join(words)}"
