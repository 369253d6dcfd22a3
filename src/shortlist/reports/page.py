"""The page: contents into its template, in the frame that all reports have, with everything it needs inside."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from shortlist import __version__
from shortlist.reports.drawing import label_graph

_FOR_THE_SCRIPT = ("words", "grid", "start", "models", "shots", "levels", "labels", "charts", "legend")


def render(contents: dict[str, Any], figures: Sequence[str]) -> str:
    """The whole HTML page. Names from data are escaped by the template; the script gets them as JSON text."""
    from markupsafe import Markup

    script = asset("page.js")
    wanted = {key: contents[key] for key in _FOR_THE_SCRIPT}
    wanted["models"] = [{**model, "average": _without_histograms(model["average"])} for model in contents["models"]]
    numbers = json.dumps(wanted, allow_nan=False, separators=(",", ":"))
    # inside a script element only "<" can end it; "\u003c" is the same character to JSON
    numbers = numbers.replace("<", "\\u003c")
    return in_frame(
        asset("page.html"),
        **contents,
        figures=figures,
        several_seeds=any(model["seeds"] > 1 for model in contents["models"]),
        script=Markup(script),
        script_hash=Markup(f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"),
        numbers=Markup(numbers),
        drawn=lambda graph: Markup(label_graph(graph).to_svg(in_page=True)),
    )


def in_frame(page: str, **known: Any) -> str:
    """A page by its template, which fills the blocks of ``frame.html``; what is not `Markup` is escaped."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    frame = DictLoader({"frame.html": asset("frame.html")})
    template = Environment(loader=frame, autoescape=True, undefined=StrictUndefined).from_string(page)
    return template.render(version=__version__, style=Markup(asset("style.css")), **known)


def _without_histograms(rule: dict[str, Any]) -> dict[str, Any]:
    """They are in the charts."""
    return {key: value for key, value in rule.items() if not key.endswith("histogram")}


def asset(name: str) -> str:
    return (files("shortlist.reports") / "assets" / name).read_text(encoding="utf-8")
