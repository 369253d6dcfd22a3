"""A griffe extension: mkdocstrings reads our docstrings as Markdown."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from docstring_parts import readable
from griffe import Extension


class DocstringBlocks(Extension):
    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)
