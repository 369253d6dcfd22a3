"""The content of a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shortlist.data.readers.findings import Findings
from shortlist.files import PathLike


def read_json(path: PathLike, kind: type, findings: Findings) -> Any:
    """The content of a JSON file that holds a list or a dict; an empty one, and noted, if it cannot be read."""
    if not findings.file(path):
        return kind()
    try:
        content = json.loads(Path(path).read_bytes())
    except ValueError as error:  # UnicodeDecodeError is one too
        findings.add(path, f"is not JSON: {error}")
        return kind()
    except RecursionError:
        findings.add(path, "is not JSON that can be read: lists or objects stand too deep within one another")
        return kind()
    if not isinstance(content, kind):
        words: dict[type, str] = {list: "list", dict: "object"}
        found = words.get(type(content), type(content).__name__)
        findings.add(path, f"must be a JSON {words[kind]}, got {found}")
        return kind()
    return content
