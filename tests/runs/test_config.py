"""Configs: YAML and overrides, and errors that name the key, its place and the nearest right one."""

from pathlib import Path

import pytest

from shortlist.runs.config import apply_override, as_config, load_config, parse_config
from shortlist.runs.setup import resolve

TEXT = "data: {train: {reader: ambiguous-numbers, size: 100}}"

# override -> what the error must say
WRONG = {
    "epohcs=3": ["epohcs: there is no such key; did you mean 'epochs'?", "batch_size"],
    "data.trian=3": ["data.trian: there is no such key; did you mean 'train'?"],
    "optimizer.lrr=3": ["optimizer.lrr:", "did you mean 'lr'?"],
    "optimizer.lr=fast": ["optimizer.lr: input should be a valid number", "got 'fast'"],
    "optimizer.lr=-1": ["optimizer.lr: input should be greater than 0, got -1"],
    "data.train.sise=3": ["data.train.sise:", "did you mean 'size'?"],
    "data.train.size=[1]": ["data.train.size: input should be a valid integer, got [1]"],
    "data.train.reader=ambigous-numbers": [
        "data.train.reader: there is no reader",
        "did you mean 'ambiguous-numbers'?",
    ],
    "data.train={reader: features}": ["data.train: path must be given"],
    "data.validation={raeder: features}": ["data.validation.reader must be given", "'raeder'"],
    "data.corruptions=[{name: symetric-noise, p: 0.1}]": [
        "data.corruptions.0.name:",
        "did you mean 'symmetric-noise'?",
    ],
    "data.corruptions=[{name: symmetric-noise}]": ["data.corruptions.0: p must be given"],
    "data.corruptions=[{name: symmetric-noise, p: 1, parts: [tset]}]": ["data.corruptions.0.parts.0:", "'test'"],
    "backbone.name=mpl": ["backbone.name: there is no backbone 'mpl'; did you mean 'mlp'?"],
    "backbone={name: mlp, hiden: [3]}": ["backbone.hiden:", "did you mean 'hidden'?"],
    "objective.name=smooth-topkk": ["objective.name: there is no objective 'smooth-topkk'; did you mean"],
    "objective={name: smooth-topk, tua: 1.0}": ["objective.tua: there is no such key", "did you mean 'tau'?"],
    "objective.name=os:system": ["objective.name: ", "--allow-import os"],
    "rules=[{name: averge-k, k: 2}]": ["rules.0.name: there is no rule", "did you mean 'average-k'?"],
    "rules=[{name: average-k, k: 2, lnk: none}]": ["rules.0.lnk:", "did you mean 'link'?"],
    "rules=[{name: conformal, alpha: 2}]": ["rules.0: alpha"],
    "rules=3": ["rules: input should be a valid tuple, got 3"],
    "schedule.name=step": ["schedule: a step schedule needs the epochs"],
    "stop.metric=topk-acuracy@5": ["stop.metric: there is no metric", "did you mean 'topk-accuracy'?"],
    "metrics=[topk-accuracy]": ["metrics: the metric 'topk-accuracy' needs a whole number after @"],
    "epochs.x=3": ["epochs is 5, it has no keys"],
    "rules.0.k=3": ["a list of 0"],
    "epochs": ["an override is key=value"],
    "epochs=[": ["epochs=[: not YAML"],
}


@pytest.mark.parametrize("override", WRONG)
def test_a_wrong_key_or_value_is_named_with_its_place(override: str) -> None:
    text = TEXT + "\nepochs: 5\nrules: []"
    with pytest.raises(ValueError) as error:  # noqa: PT011  (what it says is checked below)
        resolve(parse_config(text, [override]))
    for part in WRONG[override]:
        assert part in str(error.value)


def test_all_problems_are_in_one_error() -> None:
    with pytest.raises(ValueError, match=r"(?s)seed: .*epohcs: "):
        parse_config(TEXT, ["epohcs=3", "seed=x"])


def test_overrides_reach_into_sections_lists_and_options() -> None:
    text = TEXT + "\nrules: [{name: top-k, k: 5}]"
    config = parse_config(text, ["rules.0.k=3", "optimizer.lr=1e-3", "schedule={name: step, at: [2]}", "data.test=20"])
    assert (config.rules[0].options, config.optimizer.lr, config.schedule.at) == ({"k": 3}, 0.001, (2,))
    assert config.data.test == 20


def test_a_later_override_wins() -> None:
    content: dict[str, object] = {}
    for override in ("a.b=1", "a.b=2", "a.c=x=y"):
        apply_override(content, override)
    assert content == {"a": {"b": 2, "c": "x=y"}}


def test_the_resolved_config_read_back_is_the_same() -> None:
    config = resolve(parse_config(TEXT, ["objective.name=smooth-topk", "data.validation={reader: ambiguous-numbers}"]))
    assert config.objective.options == {"k": 5, "tau": 1.0, "alpha": 1.0}
    assert resolve(parse_config(config.to_yaml())) == config


def test_a_key_given_twice_is_an_error() -> None:
    with pytest.raises(ValueError, match="'epochs' is given twice"):
        parse_config("epochs: 1\nepochs: 2")


def test_a_missing_file_and_a_file_that_is_no_mapping_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no config file .*nothing\.yaml"):
        load_config(tmp_path / "nothing.yaml")
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(ValueError, match=r"list\.yaml: a config is a mapping"):
        load_config(tmp_path / "list.yaml")


def test_an_empty_config_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    with pytest.raises(ValueError, match="data must be given"):
        load_config(tmp_path / "empty.yaml")


def test_an_anchor_can_be_merged_and_changed() -> None:
    text = "data:\n  train: &a {reader: ambiguous-numbers, size: 9}\n  test: {<<: *a, size: 3}"
    data = parse_config(text).data
    assert (data.train.options, data.test.options) == ({"size": 9}, {"size": 3})  # type: ignore[union-attr]


def test_a_name_alone_stands_for_an_objective_a_backbone_or_a_rule() -> None:
    changes = ["objective=smooth-topk", "objective.k=3", "backbone=mlp", "rules=[top-k, conformal]", "rules.0.k=2"]
    config = parse_config(TEXT, changes)
    assert (config.objective.name, config.objective.options, config.backbone.name) == ("smooth-topk", {"k": 3}, "mlp")
    assert [(rule.name, rule.options) for rule in config.rules] == [("top-k", {"k": 2}), ("conformal", {})]


def test_a_name_alone_stands_for_an_optimizer_or_a_schedule() -> None:
    text = "data: {train: {reader: ambiguous-numbers}}\nschedule: cosine"
    config = parse_config(text, ["optimizer=adamw", "optimizer.weight_decay=0.1"])
    assert (config.schedule.name, config.optimizer.name, config.optimizer.weight_decay) == ("cosine", "adamw", 0.1)


def test_each_optimizer_has_its_own_learning_rate() -> None:
    text = "data: {train: {reader: ambiguous-numbers}}"
    assert parse_config(text).optimizer.lr == 0.1
    assert parse_config(text, ["optimizer.name=adamw"]).optimizer.lr == 1e-3
    assert parse_config(text, ["optimizer.name=adamw", "optimizer.lr=0.1"]).optimizer.lr == 0.1


def test_a_part_that_is_a_path_alone_is_read_as_train_is() -> None:
    train = {"reader": "features", "path": "a.csv", "labels_key": "kind"}
    data = as_config({"data": {"train": train, "calibration": "0.2"}}, ["data.test=b.csv"]).data
    assert (data.test.options, data.calibration) == ({"path": "b.csv", "labels_key": "kind"}, 0.2)
    assert as_config(as_config({"data": {"train": train, "test": "b.csv"}})).data.test == data.test
