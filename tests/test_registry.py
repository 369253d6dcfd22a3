"""Names of one's own in the place of ours: of an installed package, by its entry points, and as module:name."""

import json
import sys
from pathlib import Path

import pytest

from shortlist.data import READERS
from shortlist.errors import ShortlistError
from shortlist.metrics.named import find_metric
from shortlist.objectives import OBJECTIVES
from shortlist.registry import Registry, import_allowed
from shortlist.sets import SetRule
from tests.cli.command import run_here

MODULE = '''"""What a package of one's own adds."""

import json
from dataclasses import dataclass

import torch
from torch import nn

from shortlist.data import Dataset, relabelled
from shortlist.objectives import LinearObjective
from shortlist.sets import Block, SetRule


def read_wedges(*, size: int = 60) -> Dataset:
    target = torch.arange(size) % 3
    return Dataset(torch.eye(3)[target], target, ("ant", "bee", "cat"), name="wedges")


def turned(dataset: Dataset, *, by: int = 1, seed: int = 0) -> Dataset:
    return relabelled(dataset, (dataset.target + by) % dataset.num_labels, "turned", by=by, seed=seed)


class Doubled(nn.Module):
    def __init__(self, in_shape, *, bias: bool = True) -> None:
        super().__init__()
        self.layer = nn.Linear(in_shape[0], 2 * in_shape[0], bias=bias)
        self.out_features = self.layer.out_features

    def forward(self, inputs):
        return self.layer(inputs)


class Squared(LinearObjective):
    name, accepts, link, monitor = "squared", ("indices",), "softmax", "share-of-first"

    @dataclass(frozen=True)
    class Config:
        scale: float = 1.0

    def score_loss(self, scores, target):
        return self.config.scale * (scores - nn.functional.one_hot(target.long(), self.num_labels)).square().mean()


class WithinGap(SetRule):
    def __init__(self, gap: float) -> None:
        self.gap = gap

    def sets_of(self, block):
        inside = block.scores >= block.scores.max(axis=1, keepdims=True) - self.gap
        return inside.sum(axis=1), inside.nonzero()[1]


def share_of_first(scores, target, k: int):
    return (scores.topk(k).indices == 0).any(1).double().mean()


class Recipe:
    def run(self, scale, folder, data, say):
        folder.mkdir(parents=True)
        (folder / "table.json").write_text(json.dumps({"findings": [f"It holds at scale {scale}."]}))
        return folder / "index.md"


RECIPE = Recipe()
'''
# kind -> its name among the entry points, and in the module
ADDED = {
    "reader": ("wedges", "read_wedges"),
    "corruption": ("turned", "turned"),
    "backbone": ("doubled", "Doubled"),
    "objective": ("squared", "Squared"),
    "rule": ("within-gap", "WithinGap"),
    "metric": ("share-of-first", "share_of_first"),
    "recipe": ("at-home", "RECIPE"),
}
CONFIG = """
data:
  train: {{reader: "{reader}"}}
  corruptions: [{{name: "{corruption}", by: 2}}]
backbone: {{name: "{backbone}", bias: false}}
objective: {{name: "{objective}", scale: 2.0}}
rules: [{{name: "{rule}", gap: 0.5}}]
metrics: ["{metric}@1"]
stop: {{metric: "{metric}@2"}}
epochs: 2
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "at_home.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("at_home", None)


def install(folder: Path, name: str, listed: dict[str, tuple[str, str]]) -> None:
    """A package beside ours that is installed, as importlib.metadata sees it."""
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    entries = (f"[shortlist.{kind}s]\n{entry} = at_home:{attribute}\n" for kind, (entry, attribute) in listed.items())
    (facts / "entry_points.txt").write_text("\n".join(entries))


@pytest.fixture
def own_package(own_module):
    install(own_module, "at-home", ADDED)
    return own_module


def every_command(capsys, names, *allow):
    """Train, calibrate, predict and evaluate with a thing of each kind; what evaluate found."""
    Path("config.yaml").write_text(CONFIG.format(**names))
    for arguments in (
        ["data", "check", names["reader"], "size=30"],
        ["train", "config.yaml", "--out", "run", "-q"],
        ["calibrate", "run"],
        ["predict", "run", "validation", "--rule", f"{names['rule']}:gap=9", "--out", "sets.jsonl"],
        ["recipe", names["recipe"], "--scale", "smoke", "--out", "out"],
    ):
        sys.modules.pop("at_home", None)  # as in a process of its own
        done = run_here(capsys, *arguments, *allow)
        assert done.code == 0, done.err
    assert "It holds at scale smoke." in done.out
    metric = f"{names['metric']}@2"
    found = run_here(capsys, "evaluate", "run", "validation", "--metric", metric, "--json", *allow)
    assert found.code == 0, found.err
    return found.json


@pytest.mark.usefixtures("own_package")
def test_an_installed_package_adds_one_of_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    found = every_command(capsys, {kind: name for kind, (name, _) in ADDED.items()})
    assert list(found["metrics"]) == ["share-of-first@2"]
    assert list(found["rules"]) == ["within-gap-0.5"]
    assert "What a package of one's own adds." in run_here(capsys, "recipe", "--list").out


@pytest.mark.usefixtures("own_module")
def test_module_and_name_does_for_each_kind_where_the_module_is_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    names = {kind: f"at_home:{name}" for kind, (_, name) in ADDED.items()}
    found = every_command(capsys, names, "--allow-import", "at_home")
    assert list(found["metrics"]) == ["at_home:share_of_first@2"]
    assert list(found["rules"]) == ["WithinGap-0.5"]


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("reader", ["train", "ours.yaml", "data.train.reader=at_home:NAME"]),
        ("corruption", ["train", "ours.yaml", "data.corruptions=[at_home:NAME]"]),
        ("backbone", ["train", "ours.yaml", "backbone=at_home:NAME"]),
        ("objective", ["train", "ours.yaml", "objective=at_home:NAME"]),
        ("rule", ["train", "ours.yaml", "rules=[at_home:NAME]"]),
        ("metric", ["train", "ours.yaml", "metrics=[at_home:NAME]"]),
        ("recipe", ["recipe", "at_home:NAME"]),
    ],
)
def test_module_and_name_is_refused_and_not_imported_where_it_is_not_allowed(
    capsys: pytest.CaptureFixture[str], kind: str, arguments: list[str]
) -> None:
    Path("ours.yaml").write_text("data: {train: {reader: ambiguous-numbers}}")
    name = ADDED[kind][1]
    refused = run_here(capsys, *(argument.replace("NAME", name) for argument in arguments))
    assert refused.code == 2
    assert f"{kind} 'at_home:{name}' would run code" in refused.err
    assert "at_home" not in sys.modules


def test_a_rule_in_a_file_is_found_again_where_its_module_is_allowed(own_module: Path) -> None:
    (own_module / "at_work.py").write_text(MODULE)  # which nothing has imported yet
    text = json.dumps({"rule": "at_work:WithinGap", "settings": {"gap": 0.5}, "num_labels": None, "state": None})
    with pytest.raises(ValueError, match=r"'at_work:WithinGap' would run code.* --allow-import at_work"):
        SetRule.from_json(text)
    assert "at_work" not in sys.modules
    rule = SetRule.from_json(text, allow_import=["at_work"])
    assert repr(rule) == "WithinGap(gap=0.5)"
    assert json.loads(rule.to_json())["rule"] == "at_work:WithinGap"


@pytest.mark.usefixtures("own_package")
def test_unknown_names_are_answered_with_those_of_installed_packages_too() -> None:
    with pytest.raises(ValueError, match=r"no reader 'wedge'; did you mean 'wedges'\?; there are ambiguous"):
        READERS.find("wedge")
    with pytest.raises(ValueError, match="did you mean 'share-of-first'"):
        find_metric("share-of-frist@2")


def test_a_name_that_two_packages_give_to_different_things_is_an_error(own_package: Path) -> None:
    install(own_package, "other", {"reader": ("wedges", "turned")})
    with pytest.raises(ValueError, match="'wedges' is listed twice by installed packages, as at_home:"):
        READERS.find("wedges")


def test_what_is_found_must_be_of_its_kind(own_module: Path) -> None:
    install(own_module, "wrong", {"rule": ("turned", "turned"), "objective": ("round", "Squared")})
    with pytest.raises(ValueError, match="the objective 'round' is Squared, whose name is 'squared'"):
        OBJECTIVES.find("round")
    with pytest.raises(ValueError, match=r"must be a subclass of shortlist\.sets\.SetRule"):
        SetRule.from_json('{"rule": "at_home:turned", "settings": {}, "num_labels": null, "state": null}')


def test_without_any_recipes_the_command_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.cli.recipe.RECIPES", Registry("nobody's"))
    result = run_here(capsys, "recipe", "--list")
    assert result.code == 2
    assert "no recipes are installed" in result.err


@pytest.mark.parametrize("name", ["at_home:json.loads", "at_home:json", "at_home:__loader__.get_source"])
@pytest.mark.usefixtures("own_module")
def test_a_name_does_not_lead_out_of_the_module_that_was_allowed(name: str) -> None:
    with pytest.raises(ShortlistError, match=r"must be what the module 'at_home' defines: .* leads out of it"):
        import_allowed(name, ["at_home"], f"backbone {name!r}")
