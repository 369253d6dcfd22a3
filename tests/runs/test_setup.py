"""From a config to data parts and a model."""

from pathlib import Path

import pytest
import torch

from shortlist import runs
from shortlist.errors import ShortlistWarning
from shortlist.runs.config import parse_config
from shortlist.runs.prepare import prepare
from shortlist.runs.setup import build_learner, check_like, facts_of, read_parts, repeated, resolve

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


def table(path: Path) -> str:
    """Sixty rows of twelve patients, a day after the other, the last ones first."""
    lines = [f"{row / 7:.4f},{row % 11},{row % 2},{row // 5},{99 - row}" for row in range(60)]
    path.write_text("a,b,y,patient,day\n" + "\n".join(lines) + "\n")
    train = f"{{reader: features, path: {path}, num_labels: 2, other_columns: [patient, day]}}"
    return f"data: {{train: {train}, preprocess: none}}"


def test_a_column_of_the_table_keeps_groups_together(tmp_path: Path) -> None:
    text = table(tmp_path / "all.csv")
    parts = read_parts(parse_config(text, ["data.groups=patient", "data.test=0.2"]))
    patients = [set((data.inputs[:, 0] * 7).round().long().div(5, rounding_mode="floor").tolist())
                for data in parts.values()]  # fmt: skip
    assert sum(map(len, patients)) == 12
    assert set.union(*patients) == set(range(12))
    assert sum(map(len, parts.values())) == 60


def test_parts_by_time_are_the_latest_in_order(tmp_path: Path) -> None:
    overrides = ["data.time=day", "data.test=10", "data.validation=5", "data.calibration=5", "data.use=30"]
    parts = read_parts(parse_config(table(tmp_path / "all.csv"), overrides))
    found = {name: sorted((data.inputs[:, 0] * 7).round().long().tolist()) for name, data in parts.items()}
    assert found["test"] == list(range(10))
    assert found["calibration"] == list(range(10, 15))
    assert found["validation"] == list(range(15, 20))
    assert found["train"] == list(range(20, 50))


def test_a_column_of_another_file_is_found_by_the_examples_names(tmp_path: Path) -> None:
    text = table(tmp_path / "all.csv").replace("num_labels", "ids_key: day, num_labels")
    lines = [f"{99 - row},{row // 30}" for row in reversed(range(60))]
    (tmp_path / "sites.csv").write_text("day,site\n" + "\n".join(lines) + "\n")
    columns = f"data.groups={{path: {tmp_path / 'sites.csv'}, key: site, ids: day}}"
    parts = read_parts(parse_config(text, [columns, "data.validation=0.5", "data.calibration=null"]))
    assert sorted((parts["train"].inputs[:, 0] * 7).round().long().tolist()) in (
        list(range(30)), list(range(30, 60))
    )  # fmt: skip


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["data.groups=patent"], "data.groups: .*there is no column 'patent'"),
        (["data.groups=patient", "data.train.other_columns=[]"], r"""set data.train.other_columns='\["patient"\]'"""),
        (["data.groups=patient", "data.train.reader=ambiguous-numbers"], "data.groups"),
        (["data.groups=patient", "data.time=day"], "data: parts are cut by groups or by time, not by both"),
    ],
)
def test_columns_that_are_not_there_or_have_another_use_are_errors(
    tmp_path: Path, overrides: list[str], message: str
) -> None:
    text = table(tmp_path / "all.csv")
    if "data.train.reader=ambiguous-numbers" in overrides:
        text, overrides = TEXT, overrides[:1]
    with pytest.raises(ValueError, match=message):
        read_parts(parse_config(text, overrides))


def test_the_same_file_as_two_parts_is_an_error(tmp_path: Path) -> None:
    test = f"{{reader: features, path: {tmp_path}/./all.csv, num_labels: 2, other_columns: [patient, day]}}"
    config = parse_config(table(tmp_path / "all.csv"), [f"data.test={test}"])
    with pytest.raises(ValueError, match=r"data.test is the same data as data.train"):
        resolve(config)


def test_the_same_example_in_two_parts_is_named(tmp_path: Path) -> None:
    text = table(tmp_path / "all.csv")
    assert repeated(parse_config(text), read_parts(parse_config(text))) == []
    lines = (tmp_path / "all.csv").read_text().splitlines()
    (tmp_path / "other.csv").write_text("\n".join([lines[0], *lines[3:5]]) + "\n")
    test = f"{{reader: features, path: {tmp_path}/other.csv, num_labels: 2, other_columns: [patient, day]}}"
    config = parse_config(text, [f"data.test={test}", "data.validation=null", "data.calibration=null"])
    with pytest.warns(ShortlistWarning, match=r"data: 2 of the examples in test are in train too \(row 0 = row 2, "):
        runs.train(config, tmp_path / "run", overrides=["epochs=1"])
    (tmp_path / "all.csv").write_text("\n".join([lines[0], *lines[1:3] * 10]) + "\n")
    config = parse_config(text, ["data.preprocess=auto"])
    (message, *_) = repeated(config, read_parts(config))
    assert "2 of the examples in validation are in train too" in message
    assert message.endswith("a column of groups (data.groups) would keep them together")
    by_group = parse_config(text, ["data.preprocess=auto", "data.groups=patient"])  # advice that is followed already
    assert "data.groups" not in str(repeated(by_group, read_parts(config)))


def test_rows_that_only_look_alike_once_prepared_are_not_the_same(tmp_path: Path) -> None:
    rows = [f"{number % 2},user {number},{'ab'[number % 2]}" for number in range(60)]  # each user once: left out
    (tmp_path / "all.csv").write_text("\n".join(["x,user,label", *rows]))
    source = {"reader": "features", "path": str(tmp_path / "all.csv"), "labels_key": "label"}
    with pytest.warns(ShortlistWarning, match="'user'"):
        ready = prepare({"data": {"train": source, "test": 0.3}})
    assert ready.parts["train"].in_shape == (1,)
    assert ready.repeats == ()


def test_data_that_is_made_up_may_repeat_itself() -> None:
    assert repeated(parse_config(TEXT), read_parts(parse_config(TEXT))) == []


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
        check_like(data, {"vocabulary": ("a", "b")}, "data.test")
    with pytest.raises(ValueError, match="label 1 is '01', in the training data it is 'x'"):
        check_like(data, {"vocabulary": ("00", "x", *data.vocabulary[2:])}, "data.test")


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
