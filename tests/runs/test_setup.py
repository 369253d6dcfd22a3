"""From a config to data parts and a model."""

import pytest
import torch

from shortlist.runs.config import parse_config
from shortlist.runs.setup import build_learner, check_same_labels, facts_of, read_parts

TEXT = "data: {train: {reader: ambiguous-numbers, size: 1000}}"


def test_parts_cut_from_the_training_data_are_disjoint_and_complete() -> None:
    parts = read_parts(parse_config(TEXT, ["data.validation=0.2", "data.calibration=150", "data.test=0.1"]))
    assert {name: len(data) for name, data in parts.items()} == {
        "train": 550, "validation": 200, "calibration": 150, "test": 100,
    }  # fmt: skip
    # features of this data set repeat (few drawings), so rows are compared with their labels and counted
    whole = read_parts(parse_config(TEXT, ["data.validation=null", "data.calibration=null"]))["train"]
    rows = torch.cat([torch.cat([data.inputs, data.target[:, None].float()], 1) for data in parts.values()])
    expected = torch.cat([whole.inputs, whole.target[:, None].float()], 1)
    assert sorted(rows.tolist()) == sorted(expected.tolist())


def test_the_same_config_gives_the_same_parts_and_another_seed_others() -> None:
    once, again, other = (read_parts(parse_config(TEXT, [f"seed={seed}"])) for seed in (0, 0, 1))
    assert torch.equal(once["calibration"].inputs, again["calibration"].inputs)
    assert not torch.equal(once["calibration"].inputs, other["calibration"].inputs)


def test_the_data_seed_holds_the_parts_while_the_run_seed_changes() -> None:
    once, other = (read_parts(parse_config(TEXT, ["data.seed=3", f"seed={seed}"])) for seed in (0, 1))
    assert torch.equal(once["train"].inputs, other["train"].inputs)


def test_use_takes_a_share_or_a_number_of_what_is_left_to_train_on() -> None:
    for use, size in (("0.5", 400), ("100", 100), ("1.0", 800)):
        assert len(read_parts(parse_config(TEXT, [f"data.use={use}"]))["train"]) == size


@pytest.mark.parametrize(
    "override", ["data.validation=1000", "data.validation=0.0001", "data.use=801", "data.test=1.5"]
)
def test_parts_that_cannot_be_cut_are_errors(override: str) -> None:
    with pytest.raises(ValueError, match="data"):
        read_parts(parse_config(TEXT, [override]))


def test_corruptions_change_the_parts_they_name_only() -> None:
    clean = read_parts(parse_config(TEXT))
    noise = "data.corruptions=[{name: symmetric-noise, p: 1.0}]"
    noisy = read_parts(parse_config(TEXT, [noise]))
    assert not bool((noisy["train"].target == clean["train"].target).any())
    assert torch.equal(noisy["validation"].target, clean["validation"].target)
    everywhere = noise.replace("p: 1.0", "p: 1.0, parts: [train, validation]")
    assert not bool(
        (read_parts(parse_config(TEXT, [everywhere]))["validation"].target == clean["validation"].target).any()
    )


def test_a_part_with_other_labels_than_the_training_data_is_an_error() -> None:
    data = read_parts(parse_config(TEXT))["train"]
    with pytest.raises(ValueError, match="it has 100 labels, the training data has 2"):
        check_same_labels(data, ("a", "b"), "data.test")
    with pytest.raises(ValueError, match="label 1 is '01', in the training data it is 'x'"):
        check_same_labels(data, ("00", "x", *data.vocabulary[2:]), "data.test")


def test_an_objective_that_cannot_use_the_target_proposes_others() -> None:
    config = parse_config(TEXT, ["objective.name=two-way"])
    data = read_parts(config)["train"]
    with pytest.raises(ValueError, match="use one of cross-entropy"):
        build_learner(config, facts_of(data), train_set=data)


def test_weights_depend_on_the_seed_alone_and_leave_the_callers_randomness_alone() -> None:
    config = parse_config(TEXT, ["backbone.name=mlp"])
    facts = facts_of(read_parts(config)["train"])
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = build_learner(config, facts).weights()
    assert torch.equal(torch.rand(3), expected)
    second = build_learner(config, facts).weights()
    assert all(torch.equal(first[name], second[name]) for name in first)
