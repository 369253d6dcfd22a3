"""Runs the notebooks in examples/ and writes what their cells print and draw into them: python docs/tools/notebooks.py

Plain Python, cell by cell in one namespace, in a folder that is thrown away: it needs no Jupyter.
"""

import base64
import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of its cells; an exception names the cell where a file would be."""
    import matplotlib

    matplotlib.use("Agg")
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            for number, cell in enumerate(code, start=1):
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
                cell["execution_count"] = number
                cell["outputs"] = [*_printed(said.getvalue()), *_drawn()]
        finally:
            os.chdir(before)
    return content


def _printed(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def _drawn() -> list[dict[str, Any]]:
    from matplotlib import pyplot

    found = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", dpi=70, bbox_inches="tight")
        png = base64.b64encode(file.getvalue()).decode()
        found.append({"data": {"image/png": png}, "metadata": {}, "output_type": "display_data"})
    pyplot.close("all")
    return found


def main() -> None:
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        content = run(path)
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(f"{path.name}: {len(content['cells'])} cells", file=sys.stderr)


if __name__ == "__main__":
    main()
