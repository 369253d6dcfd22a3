"""What the generated pages take from signatures and docstrings."""

import inspect
import re
import textwrap
from typing import Any

_LISTS = ("Args", "Attributes", "Options")
_TITLES = "|".join(("Formula", "Use it when", "Needs", "Reference", "Example", *_LISTS))
_BLOCK = re.compile(rf"^({_TITLES}):\n((?:(?:[ \t]+\S.*)?\n)+)", re.MULTILINE)
_DOCTEST = re.compile(r"^>>> .*\n(?:.*\S.*\n)*(?:\n+>>> .*\n(?:.*\S.*\n)*)*", re.MULTILINE)
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_NESTED = re.compile(r"^  (?=\S)", re.MULTILINE)  # Markdown wants four spaces within a list, docstrings have two
_ARGUMENT = re.compile(r"^(?=\S)([^:\n]+): ", re.MULTILINE)


def call(name: str, thing: Any) -> str:
    """The signature without its types."""
    signature = inspect.signature(thing)
    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    untyped = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    return name + str(signature.replace(parameters=untyped, return_annotation=inspect.Signature.empty))


def summary(thing: Any) -> str:
    """The first sentence of the docstring, without its full stop."""
    first = flat(inspect.cleandoc(thing.__doc__).split("\n\n")[0])
    return re.split(r"(?<!et al)[.](?= |$)", first)[0]


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def table(header: list[str], rows: list[list[str]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |".replace("  ", " ") for row in (header, *cells)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]]) + "\n"


def written_by(what: str) -> str:
    return f"<!-- Written by docs/tools/catalogue.py from {what}; edit those and run it again. -->"


def readable(docstring: str) -> str:
    """The docstring in Markdown.

    >>> print(readable("Twice.\\n\\nArgs:\\n    x, y: numbers.\\n\\n>>> twice(1)\\n2"))
    Twice.
    <BLANKLINE>
    **Args**
    <BLANKLINE>
    - `x, y`: numbers.
    <BLANKLINE>
    ```pycon
    >>> twice(1)
    2
    ```
    <BLANKLINE>
    """
    text = _BLOCK.sub(_paragraph, docstring.rstrip() + "\n")
    text = _DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
    parts = _FENCE.split(text)
    parts[::2] = [_NESTED.sub("    ", part) for part in parts[::2]]
    return "".join(parts)


def section(heading: str, thing: Any) -> str:
    """How it is called, and its docstring."""
    return f"{heading}\n\n`{call(thing.__name__, thing)}`\n\n{readable(inspect.cleandoc(thing.__doc__ or ''))}"


def _paragraph(found: re.Match[str]) -> str:
    title, body = found[1], textwrap.dedent(found[2]).strip("\n")
    if title == "Formula":
        return f"```text\n{body}\n```\n\n"
    if title == "Example":
        return f"{body}\n"
    if title in _LISTS:
        entries = _ARGUMENT.sub(r"- `\1`: ", body)
        return f"**{title}**\n\n{entries}\n\n"
    if title == "Needs":  # a line of its own
        body = body.replace("\n", ". ", 1)
    return f"**{title}** {body}\n\n"
