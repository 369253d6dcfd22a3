"""Draw the pictures of the documentation: ``python docs/tools/pictures.py`` (``--demo``: also those of a demo run).

The demo's pictures need a minute of training, and chromium for the screenshots of its report.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import matplotlib as mpl
from matplotlib.figure import Figure

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
INK, GREY, PALE = "#26324d", "#8a93a6", "#dfe4ee"
BLUE, ORANGE, GREEN = "#3b5bdb", "#e8590c", "#2b8a3e"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "svg.hashsalt": "shortlist",  # the same picture is the same file
    "mathtext.fontset": "dejavusans",
}
_PATIENCE = 1800  # seconds for the demo, which takes one or two minutes where nothing else runs


def save(figure: Figure, name: str, folder: Path = PICTURES) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / name, metadata={"Date": None}, bbox_inches="tight", pad_inches=0.08)


def main() -> None:
    import gradients_picture
    import polytope_picture
    import set_sizes_picture

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--demo", action="store_true", help="also run the demo, and draw its set sizes and its report")
    with mpl.rc_context(STYLE):
        save(polytope_picture.draw(), "lml-polytope.svg")
        save(gradients_picture.draw(), "gradients.svg")
        if parser.parse_args().demo:
            import screenshots

            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "shortlist.cli", "demo", "--json", "--out", f"{folder}/demo"]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=_PATIENCE)
                result = json.loads(done.stdout)
                save(set_sizes_picture.draw(result), "set-sizes.svg")
                screenshots.take(Path(result["report"]), PICTURES)


if __name__ == "__main__":
    main()
