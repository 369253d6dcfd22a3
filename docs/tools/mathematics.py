"""LaTeX to inline SVG, drawn by matplotlib when the site is built: no script and no font is fetched by the reader."""

import html
import re
from functools import cache

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from matplotlib.path import Path
from matplotlib.textpath import text_to_path

_UNITS = text_to_path.FONT_SCALE  # per em
_LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}
_LENGTHS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 1}
# what pymdownx.arithmatex makes of $...$ and $$...$$; with the mark after it, which must not begin a line
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>([-,.;:)]*)', re.DOTALL)


def draw_formulas(page: str) -> str:
    """The HTML of a page with every formula drawn."""
    return _FORMULA.sub(lambda found: _drawn(html.unescape(found[3]), found[2] == "[", found[4]), page)


def _drawn(tex: str, display: bool, mark: str) -> str:
    drawn = svg(tex, display)
    return f'<span class="formula">{drawn}{mark}</span>' if mark else drawn


@cache
def svg(tex: str, display: bool) -> str:
    """One formula; `$$...$$` may have several lines, set below each other.

    A formula that matplotlib cannot read is an error that quotes it.
    """
    lines = [line.strip() for line in tex.strip().split("\n") if line.strip()]
    drawn = "".join(_line(line.replace(r"\frac", r"\dfrac") if display else line) for line in lines)
    return f'<div class="formula">{drawn}</div>' if display else drawn


def _line(tex: str) -> str:
    text, font = f"${tex}$", FontProperties(size=_UNITS, math_fontfamily="stix")
    try:
        box = MathTextParser("path").parse(text, 72, font)
    except ValueError as error:
        raise ValueError(f"the formula {tex} cannot be drawn: {error}") from None
    points, codes = text_to_path.get_text_path(font, text, ismath=True)
    ascent, depth = box.height - box.depth, box.depth
    ems = [f"{length / _UNITS:.3f}em" for length in (box.width, box.height, -depth)]
    return (
        f'<svg class="formula" role="img" aria-label="{html.escape(tex)}" style="width:{ems[0]};height:{ems[1]};'
        f'vertical-align:{ems[2]}" viewBox="0 {-ascent:.0f} {box.width:.0f} {box.height:.0f}">'
        f'<path d="{_commands(np.asarray(points), np.asarray(codes))}"/></svg>'
    )


def _commands(points: np.ndarray, codes: np.ndarray) -> str:
    """An SVG path: y points down there."""
    words, i = [], 0
    while i < len(codes):
        letter = _LETTERS[codes[i]]
        length = _LENGTHS[letter]
        pairs = "" if letter == "Z" else " ".join(f"{x:.0f} {-y:.0f}" for x, y in points[i : i + length])
        words.append(letter + pairs)
        i += length
    return "".join(words)
