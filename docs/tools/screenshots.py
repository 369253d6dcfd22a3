"""Pictures of the demo's report in a real browser, small enough to keep in the repository."""

import base64
import io
import sys
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.reports.browser import Browser

# section of the report -> file, and how much of the section is shown
SECTIONS = {
    "headline": ("report-results.webp", 552),
    "explore": ("report-sets.webp", 724),
    "examples": ("report-examples.webp", 572),
}
_WIDTH = 1200  # pixels
_BOX = """
(async () => {
  const section = document.getElementById('NAME');
  section.scrollIntoView();
  await new Promise(done => setTimeout(done, 500));  // its images load when they come into view
  const box = section.getBoundingClientRect();
  return {x: 0, y: box.y + window.scrollY - 12, height: box.height + 12};
})()
"""


def take(report: Path, folder: Path) -> None:
    """The sections of the report that Start here explains, each to a file of its own."""
    with Browser() as browser:
        browser.open(report, width=_WIDTH, height=900)
        for section, (name, most) in SECTIONS.items():
            box = browser.run(_BOX.replace("NAME", section))
            clip = {**box, "width": _WIDTH, "height": min(box["height"], most), "scale": 1}
            picture = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
            with Image.open(io.BytesIO(base64.b64decode(picture["data"]))) as image:
                image.convert("RGB").save(folder / name, lossless=True, method=6)
