"""Runs that were damaged, edited or opened twice: each is a message that names the file, never a traceback."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import shortlist as sl
from shortlist import ShortlistError
from shortlist.runs.config import parse_config, read_yaml
from shortlist.runs.lock import locked
from shortlist.runs.run import Run
from shortlist.training.loop import Quiet

CONFIG = {
    "data": {"train": {"reader": "ambiguous-numbers", "size": 200}},
    "epochs": 2,
    "batch_size": 50,
    "accelerator": "cpu",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(sl.runs.train(CONFIG, tmp_path_factory.mktemp("runs") / "run")["run"])


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained run that a test may damage."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def flip(file: Path, place: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(len(content) * place)] ^= 0x10
    file.write_bytes(bytes(content))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def weights_of(run: Path) -> list[Path]:
    return list((run / "checkpoints").glob("*.safetensors"))


def state_of(run: Path) -> Path:
    return next((run / "checkpoints").glob("*.pt"))


# ---- damage


def test_a_table_s_run_without_its_preprocessing_is_refused(tmp_path: Path) -> None:
    rows = "\n".join(f"{place % 7 * 1000},{place % 3},{'ab'[place % 2]}" for place in range(60))
    (tmp_path / "table.csv").write_text(f"length,width,y\n{rows}\n")
    run = Path(sl.runs.fit(tmp_path / "table.csv", tmp_path / "run")["run"])
    (run / "preprocessing.json").unlink()
    with pytest.raises(ShortlistError, match=r"there is no file .*preprocessing.json: is the run complete"):
        sl.runs.predict(run, tmp_path / "table.csv")


def test_a_run_cannot_be_made_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ShortlistError, match=r"cannot be made: .*file is a file"):
        sl.runs.train(CONFIG, tmp_path / "file" / "new" / "run")


@pytest.mark.parametrize("damage", [cut, lambda file: flip(file, 0.99), lambda file: flip(file, 0.001)])
def test_damaged_weights_are_named(run: Path, damage: Callable[[Path], None]) -> None:
    for file in weights_of(run):
        damage(file)
    with pytest.raises(ShortlistError, match=r"epoch-000\d\.safetensors: .*damaged"):
        sl.runs.evaluate(run, "validation")


def test_weights_without_a_checksum_are_those_of_an_earlier_version(run: Path) -> None:
    from safetensors.torch import load_file, save_file

    before = Run(run).weights()
    for file in weights_of(run):
        save_file(load_file(file), file)
    after = Run(run).weights()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("damage", [cut, lambda file: flip(file, 0.5), Path.unlink])
def test_a_damaged_optimizer_state_says_what_still_works(run: Path, damage: Callable[[Path], None]) -> None:
    damage(state_of(run))
    with pytest.raises(ShortlistError, match=r"epoch-0002\.pt is missing or damaged.*still serve to predict"):
        sl.runs.train(resume=run)
    assert sl.runs.evaluate(run, "validation")["examples"] == 20


def test_records_that_are_cut_short_or_no_json_are_named(run: Path) -> None:
    file = run / "metrics.jsonl"
    lines = file.read_text().splitlines()
    file.write_text(lines[0] + "\n")
    with pytest.raises(ShortlistError, match=r"metrics\.jsonl ends after 1 records, there were 2 epochs"):
        Run(run).records()
    file.write_text(f"{lines[0]}\n{lines[1][:20]}\n")
    with pytest.raises(ShortlistError, match=r"metrics\.jsonl, line 2: this is not JSON"):
        Run(run).records()


@pytest.mark.parametrize(
    "content",
    ["[]", '{"last": "2"}', '{"last": 0}', '{"best": 1}', '{"last": 2, "best": []}', "{", "[" * 100_000],
)
def test_a_damaged_checkpoint_file_is_named(run: Path, content: str) -> None:
    (run / "checkpoint.json").write_text(content)
    with pytest.raises(ShortlistError, match=r"checkpoint\.json"):
        Run(run).weights()


@pytest.mark.parametrize(
    ("key", "value"),
    [("in_shape", 1e300), ("vocabulary", None), ("vocabulary", ["a", []]), ("class_counts", "x"), ("single", 3),
     ("class_counts", [10**30]), ("num_examples", -1), ("columns", ["a", {}]), ("images", [])],
)  # fmt: skip
def test_damaged_facts_are_named_with_their_key(run: Path, key: str, value: Any) -> None:
    file = run / "facts.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    with pytest.raises(ShortlistError, match=rf"facts\.json: {key}: "):
        sl.load_run(run)


@pytest.mark.parametrize("content", ["[]", "{}", "3"])
def test_facts_of_another_kind_are_named(run: Path, content: str) -> None:
    (run / "facts.json").write_text(content)
    with pytest.raises(ShortlistError, match=r"facts\.json"):
        sl.load_run(run)


# ---- configs


def test_a_config_that_is_no_text_is_named(run: Path) -> None:
    (run / "config.yaml").write_bytes(b"\xff\xfe\x00\xd8" + (run / "config.yaml").read_bytes())
    with pytest.raises(ShortlistError, match=r"config\.yaml: not YAML"):
        sl.load_run(run)
    with pytest.raises(ShortlistError, match=r"config\.yaml: not YAML"):
        sl.runs.train(run / "config.yaml", run / "again")


class Counted(str):
    """A text that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_the_keys_of_a_config_are_not_compared_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or else thirty thousand keys, a file of 300 kB, take half a minute."""
    construct = yaml.SafeLoader.construct_scalar
    monkeypatch.setattr(yaml.SafeLoader, "construct_scalar", lambda loader, node: Counted(construct(loader, node)))
    monkeypatch.setattr(Counted, "comparisons", 0)
    assert len(read_yaml("".join(f"a{number}: b\n" for number in range(400)), "config")) == 400
    assert Counted.comparisons < 4000


def test_a_key_given_twice_is_found_among_thousands() -> None:
    text = "".join(f"a{number}: 1\n" for number in range(5_000))
    with pytest.raises(ShortlistError, match="the key 'a4999' is given twice"):
        read_yaml(text + "a4999: 1\n", "config")


def test_a_config_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(ShortlistError, match="nested too deeply"):
        parse_config("[" * 3_000)
    with pytest.raises(ShortlistError, match="holds itself"):
        parse_config("data: &a {train: *a}")


def test_a_config_that_unfolds_is_refused() -> None:
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 12)]
    with pytest.raises(ShortlistError, match="unfolds to more than"):
        parse_config("\n".join(["a0: &a0 [1, 2]", *levels]))


@pytest.mark.parametrize("references", [2, 1000])
def test_a_config_whose_merged_keys_unfold_is_refused(references: int) -> None:
    levels = [f"a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * references)}]}}" for level in range(1, 60)]
    with pytest.raises(ShortlistError, match="unfolds to more than"):
        parse_config("\n".join(["a0: &a0 {x: 1}", *levels]))


def test_keys_may_be_merged_from_a_mapping_that_changes_merged_keys_itself() -> None:
    text = "a: &a {size: 1}\nb: {c: {d: &d {<<: *a, size: 2}}}\ne: {<<: *d}"
    assert read_yaml(text, "config") == {"a": {"size": 1}, "b": {"c": {"d": {"size": 2}}}, "e": {"size": 2}}


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ("batch_size: 50", "batch_size: 60", "batch_size was 50 and is 60"),
        ("seed: 0", "seed: 1", "seed was 0 and is 1"),
        ("size: 200", "size: 300", "data.train.size was 200 and is 300"),
        ("name: cross-entropy", "name: binary", "objective.name was 'cross-entropy' and is 'binary'"),
    ],
)
def test_an_edited_config_is_not_resumed(run: Path, before: str, after: str, key: str) -> None:
    file = run / "config.yaml"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))
    with pytest.raises(ShortlistError, match="was edited since training began") as caught:
        sl.runs.train(resume=run)
    assert key in str(caught.value)


def test_more_epochs_may_be_asked_of_a_run(run: Path) -> None:
    file = run / "config.yaml"
    file.write_text(file.read_text().replace("epochs: 2", "epochs: 3"))
    assert sl.runs.train(resume=run)["epochs"] == 3


# ---- two processes, and a restarted one


def test_a_run_that_is_being_trained_is_not_resumed(run: Path) -> None:
    with locked(run), pytest.raises(ShortlistError, match="is being trained by process"):
        sl.runs.train(resume=run)
    assert sl.runs.train(resume=run)["epochs"] == 2


class StopsAfterOneEpoch(Quiet):
    def epoch(self, record: dict[str, object]) -> None:
        raise RuntimeError("the machine is gone")


def test_the_command_that_torchrun_restarts_goes_on_with_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-7")
    with pytest.raises(RuntimeError, match="the machine is gone"):
        sl.runs.train(CONFIG, tmp_path / "run", progress=StopsAfterOneEpoch())
    with pytest.raises(ShortlistError, match="is a run already"):
        sl.runs.train(CONFIG, tmp_path / "run")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert sl.runs.train(CONFIG, tmp_path / "run")["epochs"] == 2
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-8")
    with pytest.raises(ShortlistError, match="is a run already"):
        sl.runs.train(CONFIG, tmp_path / "run")
    assert len(Run(tmp_path / "run").records()) == 2
