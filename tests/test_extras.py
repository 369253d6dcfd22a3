"""Each extra of pyproject.toml brings what its feature needs: the feature runs with no other package installed."""

import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

TRAIN = """
import numpy as np, shortlist as sl
rng = np.random.default_rng(0)
classes = rng.integers(0, 3, 240)
x = (rng.normal(size=(240, 4)) + 2 * np.eye(4)[classes]).round(3)
rows = [",".join(map(str, [*row, f"class {label}"])) for row, label in zip(x, classes)]
open("flowers.csv", "w").write("\\n".join(["a,b,c,d,label", *rows]))
data = {"train": {"reader": "features", "path": "flowers.csv", "labels_key": "label"}, "test": 40}
config = {"data": data, "objective": "cross-entropy", "epochs": 2, "batch_size": 16}
"""
TEXT = """
import transformers, tokenizers, shortlist as sl
open("said.csv", "w").write("\\n".join(["text,label", *["so happy,joy", "so sad,grief"] * 40]))
made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"?": 0, "so": 1, "happy": 2, "sad": 3}, unk_token="?"))
made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
sizes = dict(vocab_size=4, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained("tiny")
made.save("tiny/tokenizer.json")
data = {"train": {"reader": "text-table", "path": "said.csv"}}
config = {"data": data, "backbone": "hf:tiny", "objective": "cross-entropy", "epochs": 1, "batch_size": 16}
"""
# extra -> what a user does with it
FEATURES = {
    "": "import torch, shortlist as sl\n"
    "scores = torch.randn(4, 6, requires_grad=True)\n"
    "sl.functional.smooth_topk_loss(scores, torch.tensor([0, 1, 2, 3]), k=2).backward()\n"
    "assert sl.sets.AverageK(2).fit(scores.detach()).predict(scores.detach()).sizes.sum() == 8\n"
    "assert sl.nn.LML(2)(scores).sum(-1).allclose(torch.tensor(2.0))",
    "metrics": "import torch, shortlist as sl\n"
    "metric = sl.metrics.TopKAccuracy(k=2)\n"
    "metric.update(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([1]))\n"
    "assert metric.compute() == 1",
    "train": TRAIN + "sl.runs.train(config, 'run')\nsl.runs.evaluate('run', 'test')\n"
    "sl.runs.predict('run', 'flowers.csv', rule='top-k:k=2')",
    "train,tensorboard": TRAIN + "sl.runs.train(config | {'loggers': ['tensorboard']}, 'run')",
    "export": TRAIN + "sl.runs.export(sl.runs.train(config, 'run')['run'], out='model.onnx', rule='top-k:k=2')",
    "serve": TRAIN + "from shortlist.serving.app import make_app\nimport uvicorn\n"
    "make_app(sl.load_run(sl.runs.train(config, 'run')['run']), 'flowers')",
    "text": TEXT + "sl.runs.train(config, 'run')\nassert sl.load_run('run').scores(['so happy']).shape == (1, 2)",
    "tune": TRAIN + "config |= {'optimizer': {'lr': {'search': 'log', 'low': 0.01, 'high': 0.1}}}\n"
    "assert sl.runs.tune(config, 'tuned', trials=1)['config']",
    "lightning": "import torch, shortlist as sl\n"
    "from shortlist.loops import LightningSets\n"
    "import lightning\n"
    "lightning.Trainer(callbacks=[LightningSets()], logger=False, enable_progress_bar=False)",
    "trainer": "import torch, shortlist as sl\n"
    "from shortlist.loops import TrainerSets\n"
    "from types import SimpleNamespace\n"
    "from transformers import Trainer, TrainingArguments\n"
    "sets = TrainerSets({'top-k': sl.sets.TopK(2)})\n"
    "trainer = Trainer(torch.nn.Linear(2, 2), TrainingArguments('out', report_to=[], use_cpu=True), callbacks=[sets])\n"
    "assert sets.compute_metrics(SimpleNamespace(predictions=torch.randn(9, 4), label_ids=torch.arange(9) % 4))",
    "ray": TRAIN + "sl.runs.train(config, 'run')\nimport ray.data\n"
    "sl.runs.Ray(workers=1)",
    "report": "import torch\nfrom shortlist import reports\n"
    "scores, labels = torch.randn(40, 6), torch.arange(40) % 6\n"
    "reports.write(reports.from_scores(scores, labels), 'report')",
    "all": TRAIN + "sl.runs.train(config, 'run')\nsl.runs.calibrate('run')\nsl.runs.report('run')",
    "augment": "import torch\nfrom shortlist.data import colour\nfrom shortlist.data.draws import Draws\n"
    "colour.jittered(torch.rand(2, 3, 8, 8), Draws(0, 1, torch.arange(2)), hue=0.1, saturation=0.2, contrast=0.2)",
    "gpu": "import os\nos.environ['TRITON_INTERPRET'] = '1'\nimport torch, shortlist as sl\n"
    "scores = torch.randn(2, 6, requires_grad=True)\n"
    "with sl.kernels.use('triton'):\n"
    "    sl.functional.topk_hinge_loss(scores, torch.tensor([0, 1]), k=2).backward()",
    "search": "import torch, shortlist as sl\n"
    "y, f = torch.eye(50), torch.randn(50, 8)\n"
    "assert 7 in sl.imcl.AtomIndex(y, f, rows=20).candidates(y[7:8], f[7:8])",
    "backbone": "import shortlist as sl\nsl.models.build_backbone('efficientnet-lite0', in_shape=(3, 64, 64))",
}
SERVE_THE_REST = {"dev", "docs", "peers"}  # for people who work on the package
NOT_HERE = {"timm"}  # it needs a torchvision for this torch: tests/models has a stand-in


@cache
def distributions() -> dict[str, metadata.Distribution]:
    return {canonicalize_name(found.metadata["Name"]): found for found in metadata.distributions()}


@cache
def top_level(name: str) -> dict[str, Path]:
    """The files and folders that a distribution puts beside those of others; reading their list takes a while."""
    found = distributions()[name]
    tops = {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}
    return {top: Path(str(found.locate_file(top))).resolve() for top in tops}


def brought_by(requirements: list[str]) -> set[str]:
    """Names of the distributions that an installation of these requirements brings."""
    known = distributions()
    brought: set[str] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in ("", *requirement.extras):
            if f"{name}[{wanted}]" in brought or (name not in known and name != "shortlist"):
                continue
            brought.add(f"{name}[{wanted}]")
            more = _of_this_project(wanted) if name == "shortlist" else known[name].requires or []
            waiting += [(Requirement(text), wanted) for text in more]
    return {name.partition("[")[0] for name in brought}


def _of_this_project(extra: str) -> list[str]:
    return PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]


def test_every_extra_for_users_is_tried_here() -> None:
    tried = {extra for extras in FEATURES for extra in extras.split(",")} - {""}
    assert tried == {*PROJECT["optional-dependencies"]} - SERVE_THE_REST - NOT_HERE


def installed(names: set[str], folder: Path) -> None:
    """The folder as if these distributions alone had been installed into it."""
    for name in names & {*distributions()}:
        for top, place in top_level(name).items():
            if not (folder / top).exists():
                (folder / top).symlink_to(place)


@pytest.mark.parametrize("extra", FEATURES, ids=lambda extra: extra or "none")
def test_an_extra_brings_what_its_feature_needs(extra: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    installed(brought_by([f"shortlist[{extra}]" if extra else "shortlist"]) - {"shortlist"}, site)
    assert (site / "torch").exists()
    assert not (site / "pytest").exists()
    code = f"import sys\nsys.path += {[str(ROOT / 'src'), str(site)]}\n{FEATURES[extra]}"
    command = [sys.executable, "-I", "-S", "-c", code]  # without the packages that are really installed
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
