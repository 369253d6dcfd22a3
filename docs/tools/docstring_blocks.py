"""A griffe extension: our docstrings read as Markdown, and the options that modules take from their functions."""

import inspect
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from docstring_parts import readable
from griffe import Extension, Parameter, ParameterKind, Parameters

import shortlist.nn as nn


class DocstringBlocks(Extension):
    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)

    def on_function(self, *, func: Any, **_: Any) -> None:
        """The source of a module does not say its options: they are those of the function that decorates it."""
        if func.name == "__init__" and any("options_of(" in str(decorator.value) for decorator in func.decorators):
            options = inspect.signature(getattr(nn, func.parent.name)).parameters.values()
            func.parameters = Parameters(Parameter("self"), *[_parameter(option) for option in options])


def _parameter(option: inspect.Parameter) -> Parameter:
    words = inspect.formatannotation(option.annotation).replace("torch.Tensor", "Tensor")
    default = None if option.default is option.empty else repr(option.default)
    kind = getattr(ParameterKind, option.kind.name.lower())
    return Parameter(option.name, annotation=words, kind=kind, default=default)
