"""Every command on tiny data, through the real command line: results, files, JSON, exit codes, messages."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from shortlist import LabelSets, load_run
from shortlist.data import ambiguous_numbers
from shortlist.runs.run import Run
from shortlist.sets import AverageK, Conformal, TopK
from tests.cli.command import Result, run_here

CONFIG = """
data:
  train: {reader: ambiguous-numbers, size: 800}
  test: {reader: ambiguous-numbers, size: 200, part: test}
objective: {name: smooth-topk, k: 3}
optimizer: {lr: 1.0}
epochs: 3
batch_size: 6
accelerator: cpu
"""


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG)
    return lambda *arguments: run_here(capsys, *arguments)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained and calibrated run; tests that change it copy it first."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "config.yaml").write_text(CONFIG)
    from shortlist.cli import main

    for arguments in (
        ["train", f"{folder}/config.yaml", "--out", f"{folder}/run", "-q"],
        ["calibrate", f"{folder}/run"],
    ):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert not end.value.code
    return folder / "run"


def refused(result: Result, message: str) -> None:
    """Wrong input: exit code 2, one message on standard error, nothing on standard output, no traceback."""
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert "Traceback" not in result.err
    assert message in result.err


# ---- train


def test_train_writes_a_run_and_tells_the_result(cli) -> None:  # type: ignore[no-untyped-def]
    result = cli("train", "config.yaml", "epochs=2", "--out", "run")
    assert result.code == 0
    assert "smooth-topk" in result.out
    assert "topk-accuracy@3" in result.out
    assert [line.split("  ")[0] for line in result.err.splitlines()[:2]] == ["epoch 1/2", "epoch 2/2"]
    assert "shortlist calibrate run" in result.err
    run = Run("run")
    assert run.config.epochs == 2
    assert len(run.records()) == 2


def test_train_makes_a_directory_of_its_own_for_every_run(cli) -> None:  # type: ignore[no-untyped-def]
    for expected in ("runs/config", "runs/config-2"):
        assert cli("train", "config.yaml", "epochs=1", "--json").json["run"] == expected


def test_train_prints_json_and_nothing_else(cli) -> None:  # type: ignore[no-untyped-def]
    result = cli("train", "config.yaml", "epochs=1", "--json")
    assert result.err == ""
    found = result.json
    assert (found["objective"], found["epochs"], found["metric"]) == ("smooth-topk", 1, "topk-accuracy@3")
    assert found["best"]["epoch"] == 1


def test_train_can_be_quiet(cli) -> None:  # type: ignore[no-untyped-def]
    assert cli("train", "config.yaml", "epochs=1", "--quiet").err == ""


def test_print_config_prints_the_complete_config_and_does_nothing(cli) -> None:  # type: ignore[no-untyped-def]
    result = cli("train", "config.yaml", "optimizer.lr=1e-2", "--print-config")
    found = yaml.safe_load(result.out)
    assert found["optimizer"]["lr"] == 0.01
    assert found["objective"] == {"name": "smooth-topk", "k": 3, "tau": 1.0, "alpha": 1.0}
    assert not Path("runs").exists()
    Path("complete.yaml").write_text(result.out)
    assert cli("train", "complete.yaml", "--print-config").out == result.out


def test_dry_run_tries_a_step_and_writes_nothing(cli) -> None:  # type: ignore[no-untyped-def]
    found = cli("train", "config.yaml", "--dry-run", "--json").json
    assert (found["train examples"], found["test examples"], found["labels"]) == (640, 200, 100)
    assert found["weights"] == 128 * 100 + 100
    assert found["loss of the first batch"] > 0
    assert not Path("runs").exists()


@pytest.mark.parametrize("epochs", [1, 20])
def test_dry_run_tries_a_step_of_imcl_past_its_warm_up(cli, epochs) -> None:  # type: ignore[no-untyped-def]
    target = torch.randint(-1, 2, (40, 4), generator=torch.Generator().manual_seed(0))
    np.savez("data.npz", X=np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32), y=target.numpy())
    train = "{reader: features, path: data.npz}"
    text = f"data: {{train: {train}, validation: null, calibration: null}}\nobjective: imcl\nepochs: {epochs}\n"
    Path("imcl.yaml").write_text(text)
    found = cli("train", "imcl.yaml", "--dry-run", "--json")
    assert found.json["loss of the first batch"] > 0, found.err


def test_weights_that_are_gone_are_an_error_that_says_so(cli) -> None:  # type: ignore[no-untyped-def]
    cli("train", "config.yaml", "epochs=1", "--out", "run", "-q")
    for file in Path("run/checkpoints").iterdir():
        file.unlink()
    refused(cli("calibrate", "run"), "the weights of run are gone")


def test_a_table_with_or_without_its_labels_is_predicted(cli) -> None:  # type: ignore[no-untyped-def]
    random = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{int(a > 0)},{'' if a > 1 else int(b > 0)}" for a, b in random.normal(size=(60, 2))]
    Path("table.csv").write_text("\n".join(["a,b,up,right", *rows]))
    Path("new.csv").write_text("\n".join(["a,b", *(row.rsplit(",", 2)[0] for row in rows)]))
    train = "{reader: features, path: table.csv, label_columns: [up, right]}"
    Path("table.yaml").write_text(f"data: {{train: {train}}}\nobjective: two-way\nepochs: 2\n")
    assert cli("train", "table.yaml", "--out", "run", "-q").code == 0
    assert cli("calibrate", "run").code == 0
    for number, data in enumerate(("table.csv", "new.csv")):
        assert cli("predict", "run", data, "-o", f"{number}.jsonl", "--json").json["examples"] == 60
    assert Path("0.jsonl").read_text() == Path("1.jsonl").read_text()


def test_images_listed_in_a_table_are_predicted_by_a_run_on_a_folder(cli) -> None:  # type: ignore[no-untyped-def]
    from PIL import Image

    for number in range(12):
        folder = Path("images") / ("dark" if number % 2 else "light")
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 255 * (number % 2)).save(folder / f"{number}.png")
    config = "data: {train: {reader: image-folder, path: images, size: 8}, calibration: null}\nepochs: 1\n"
    Path("images.yaml").write_text(config)
    assert cli("train", "images.yaml", "--out", "run", "-q").code == 0
    Path("listed.csv").write_text("path,label\nimages/light/0.png,light\nimages/dark/1.png,dark\n")
    for options in ([], ["labels=name"]):
        found = cli("predict", "run", "listed.csv", *options, "--rule", "top-k:k=1", "-o", "sets.jsonl", "--json")
        assert found.json["examples"] == 2, found.err
    assert cli("evaluate", "run", "listed.csv", "labels=name", "--json").json["examples"] == 2


def test_resume_continues_a_run_to_the_same_bits(cli) -> None:  # type: ignore[no-untyped-def]
    cli("train", "config.yaml", "--out", "whole", "-q")
    cli("train", "config.yaml", "--out", "part", "epochs=1", "-q")
    Path("part/config.yaml").write_text(Path("whole/config.yaml").read_text())  # as if stopped after one epoch
    assert cli("train", "--resume", "part", "-q").code == 0
    whole, part = Run("whole").weights("last"), Run("part").weights("last")
    assert all(torch.equal(whole[name], part[name]) for name in whole)


def test_wrong_input_to_train_is_refused(cli) -> None:  # type: ignore[no-untyped-def]
    refused(cli("train"), "give a config file, or --resume RUN")
    refused(cli("train", "nowhere.yaml"), "there is no config file nowhere.yaml")
    refused(cli("train", "config.yaml", "optimizer.lrr=1"), "optimizer.lrr: there is no such key; did you mean 'lr'?")
    refused(cli("train", "config.yaml", "objective={name: two-way}"), "use one of cross-entropy")
    refused(cli("train", "--resume", "nowhere"), "nowhere is not a run")
    refused(cli("train", "config.yaml", "--resume", "nowhere"), "--resume continues a run as it is")
    Path("taken").mkdir()
    Path("taken/file").touch()
    refused(cli("train", "config.yaml", "--out", "taken"), "taken exists and is not an empty directory")
    assert not Path("runs").exists()


def test_an_unknown_option_is_a_usage_error(cli) -> None:  # type: ignore[no-untyped-def]
    result = cli("train", "config.yaml", "--epochs", "3")
    assert result.code == 2
    assert "--epochs" in result.err


def test_code_of_the_users_own_runs_only_when_allowed(cli, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    Path("my_objective.py").write_text(
        "import torch\nfrom shortlist.objectives import LinearObjective\n"
        "class Mine(LinearObjective):\n"
        "    name, accepts, link, monitor = 'mine', ('indices',), 'softmax', 'topk-accuracy'\n"
        "    def score_loss(self, scores, target):\n"
        "        return torch.nn.functional.cross_entropy(scores, target)\n"
    )
    monkeypatch.syspath_prepend(".")
    arguments = ("train", "config.yaml", "objective={name: my_objective:Mine}", "epochs=1", "--out", "run", "--json")
    refused(cli(*arguments), "--allow-import my_objective")
    assert cli(*arguments, "--allow-import", "my_objective").code == 0
    refused(cli("evaluate", "run", "test"), "--allow-import my_objective")
    assert cli("evaluate", "run", "test", "--allow-import", "my_objective").code == 0


# ---- calibrate, predict, evaluate: of a run


def test_calibrate_fits_the_usual_rules_on_the_calibration_part(trained: Path) -> None:
    rules = Run(trained).rules()
    assert list(rules) == ["average-k-3", "conformal-0.1", "top-k-3"]
    assert all(rule.is_fitted and rule.num_labels == 100 for rule in rules.values())


def test_calibrate_fits_the_rules_asked_for(cli, trained: Path) -> None:  # type: ignore[no-untyped-def]
    found = cli(
        "calibrate", trained, "--rule", "average-k:k=2", "--rule", "penalized:cost=0.1", "-o", "mine", "--json"
    ).json
    assert sorted(path.name for path in Path("mine").iterdir()) == ["average-k-2.json", "penalized-0.1.json"]
    assert found["rules"]["average-k-2"]["size"] == pytest.approx(2.0, abs=0.02)


def test_predict_writes_the_sets_of_a_part(cli, trained: Path) -> None:  # type: ignore[no-untyped-def]
    result = cli("predict", trained, "test", "-o", "sets.parquet", "--json")
    sets = LabelSets.from_parquet("sets.parquet")
    assert (result.json["rule"], result.json["examples"]) == ("average-k-3", 200)
    assert result.json["mean size"] == pytest.approx(sets.sizes.mean())
    assert sets.vocabulary == ambiguous_numbers(10).vocabulary
    cli("predict", trained, "test", "-o", "sets.jsonl", "--rule", "top-k:k=2")
    assert set(LabelSets.from_jsonl("sets.jsonl", vocabulary=sets.vocabulary).sizes.tolist()) == {2}


def test_predict_says_what_empty_conformal_sets_mean(cli) -> None:  # type: ignore[no-untyped-def]
    target = np.arange(60) % 3
    np.save("labels.npy", target)
    np.save("sure.npy", 8 * np.eye(3, dtype=np.float32)[target])
    np.save("unsure.npy", np.zeros((4, 3), np.float32))
    cli("calibrate", "--scores", "sure.npy", "--labels", "labels.npy", "--rule", "conformal:alpha=0.1", "-o", "rules")
    given = ("predict", "--scores", "unsure.npy", "--rules", "rules", "-o", "sets.csv")
    assert "4 sets are empty: no label of such a row is likely enough at alpha=0.1" in cli(*given).err
    assert cli(*given, "--json").json["empty"] == 4
    assert cli("predict", "--scores", "sure.npy", *given[3:], "--json").json["notes"] == []


def test_predict_needs_no_labels(cli, trained: Path) -> None:  # type: ignore[no-untyped-def]
    data = ambiguous_numbers(200, part="test")
    np.save("inputs.npy", data.inputs.numpy())
    assert cli("predict", trained, "inputs.npy", "-o", "a.parquet").code == 0
    cli("predict", trained, "test", "-o", "b.parquet")
    assert LabelSets.from_parquet("a.parquet") == LabelSets.from_parquet("b.parquet")
    np.save("narrow.npy", data.inputs[:, :5].numpy())
    refused(
        cli("predict", trained, "narrow.npy", "-o", "c.parquet"), "inputs have the shape (5,), the run wants (128,)"
    )
    assert not Path("c.parquet").exists()


def test_evaluate_measures_scores_and_sets(cli, trained: Path) -> None:  # type: ignore[no-untyped-def]
    found = cli("evaluate", trained, "test", "--json", "-o", "result.json").json
    assert found == json.loads(Path("result.json").read_text())
    assert (found["examples"], found["objective"], found["link"]) == (200, "smooth-topk", "softmax")
    assert found["rules"]["top-k-3"]["size"] == 3.0
    assert found["rules"]["top-k-3"]["coverage"] == pytest.approx(found["metrics"]["topk-accuracy@3"])
    columns = ["size", "coverage", "precision", "recall", "f1", "exact", "truth-coverage", "truth-exact"]
    assert list(found["rules"]["average-k-3"]) == list(found["intervals"]["average-k-3"]) == columns
    for name, values in found["rules"].items():
        ends = found["intervals"][name]
        assert all(ends[column][0] <= value <= ends[column][1] for column, value in values.items())
    assert [wish["rule"] for wish in found["advice"]][:3] == ["top-k-3", "average-k-3", "conformal-0.1"]
    assert found["warnings"] == []
    table = cli("evaluate", trained, "test", "--metric", "topk-accuracy@7").out
    assert "topk-accuracy@7" in table
    assert "smooth-topk" in table


def test_evaluate_warns_where_the_judging_data_had_another_use(cli, trained: Path) -> None:  # type: ignore[no-untyped-def]
    result = cli("evaluate", trained, "validation")
    assert "warning: The examples that judge here also chose the epoch" in result.err
    assert "If you want always the same number of labels: top-k-3: 3 labels every time" in result.out
    assert "also calibrated average-k-3, conformal-0.1:" in cli("evaluate", trained, "calibration").err
    assert "trained on the examples" in cli("evaluate", trained, "train").err
    Path("few.yaml").write_text("{reader: ambiguous-numbers, size: 50, part: test}")
    assert "Only 50 examples judge" in cli("evaluate", trained, "few.yaml").err


def test_evaluate_reads_other_data_by_a_file_that_names_it(cli, trained: Path) -> None:  # type: ignore[no-untyped-def]
    Path("data.yaml").write_text("{reader: ambiguous-numbers, size: 50, part: val}")
    assert cli("evaluate", trained, "data.yaml", "--json").json["examples"] == 50
    assert cli("evaluate", trained, "data.yaml", "size=70", "--json").json["examples"] == 70


def test_wrong_input_to_a_runs_commands_is_refused(cli, trained: Path) -> None:  # type: ignore[no-untyped-def]
    refused(cli("calibrate"), "give either a run directory, or --scores")
    refused(cli("calibrate", trained, "--rule", "averge-k:k=2"), "did you mean 'average-k'?")
    refused(cli("calibrate", trained, "--part", "tset"), "there is no 'tset'")
    refused(cli("calibrate", trained, "--link", "softmax"), "--link goes with --scores")
    refused(cli("predict", trained), "give the DATA")
    refused(cli("predict", trained, "nowhere.npy"), "there is no 'nowhere.npy'")
    refused(
        cli("predict", trained, "test", "--rule", "top-k-9"), "there is no fitted rule 'top-k-9'; there are average-k-3"
    )
    refused(cli("predict", trained, "test", "-o", "sets.txt"), ".csv, .parquet or .jsonl")
    refused(cli("predict", trained, "test", "-o", "missing/sets.parquet"), "there is no folder")
    refused(cli("predict", trained, "test", "--rule", "average-k:k=3"), "is not fitted: fit it with")
    refused(cli("evaluate", trained, "test", "size=3"), "cannot change it")
    refused(cli("evaluate", trained, "test", "--metric", "acuracy@3"), "there is no metric")


def test_evaluate_before_calibrate_says_what_to_do(cli) -> None:  # type: ignore[no-untyped-def]
    cli("train", "config.yaml", "epochs=1", "--out", "run", "-q")
    assert "shortlist calibrate run" in cli("evaluate", "run", "test").err
    refused(cli("predict", "run", "test"), "fit some with shortlist calibrate")


# ---- calibrate, predict, evaluate: of any other model's scores


@pytest.fixture
def other_model(tmp_path: Path) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(300, 12)).astype(np.float32)
    labels = (scores + generator.gumbel(size=scores.shape)).argmax(1)
    np.save(tmp_path / "s.npy", scores)
    np.save(tmp_path / "y.npy", labels)
    return scores, labels


def test_scores_of_another_model_are_calibrated_predicted_and_evaluated(cli, other_model) -> None:  # type: ignore[no-untyped-def]
    scores, labels = other_model
    given = ("--scores", "s.npy", "--labels", "y.npy")
    assert cli("calibrate", *given, "--out", "rules").code == 0
    expected = {
        "average-k-5": AverageK(5).fit(scores),
        "conformal-0.1": Conformal(0.1).fit(scores, labels),
        "top-k-5": TopK(5),
    }
    for name, rule in expected.items():
        cli("predict", "--scores", "s.npy", "--rules", "rules", "--rule", name, "-o", "sets.parquet")
        assert LabelSets.from_parquet("sets.parquet") == rule.predict(scores)
    found = cli("evaluate", *given, "--rules", "rules", "--json").json
    assert found["metrics"]["topk-accuracy@1"] == pytest.approx((scores.argmax(1) == labels).mean())
    for name, rule in expected.items():
        assert found["rules"][name]["coverage"] == pytest.approx(rule.predict(scores).contains(labels).mean())
    assert "given scores" in cli("evaluate", *given).out


def test_the_truth_beside_scores_has_votes_or_all_right_labels(cli, other_model, trained) -> None:  # type: ignore[no-untyped-def]
    scores, _ = other_model
    chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    rng = np.random.default_rng(0)
    votes = np.stack([rng.multinomial(4, chance / chance.sum()) for chance in chances.astype(float)])
    np.save("votes.npy", votes)
    np.save("right.npy", votes > 0)
    given = ("--scores", "s.npy", "--labels", "y.npy")
    rule = ("--rule", "conformal:labels=votes,alpha=0.2", "--out", "rules")
    fitted = cli("calibrate", "--scores", "s.npy", "--truth", "votes.npy", *rule, "--json").json
    assert fitted["rules"]["conformal-0.2"]["truth-coverage"] == pytest.approx(0.8, abs=0.01)
    assert "drawn from the votes" in fitted["promises"]["conformal-0.2"]
    judged = cli("evaluate", *given, "--rules", "rules", "--truth", "votes.npy", "--json").json
    assert judged["rules"]["conformal-0.2"]["truth-coverage"] == fitted["rules"]["conformal-0.2"]["truth-coverage"]
    low, high = judged["intervals"]["conformal-0.2"]["truth-coverage"]
    assert low < 0.8 < high
    right = cli("evaluate", *given, "--rules", "rules", "--truth", "right.npy", "--json").json["rules"]["conformal-0.2"]
    sets = Conformal(0.2, labels="votes").fit(scores, votes).predict(scores)
    exact = [set(one) == set(np.flatnonzero(row)) for one, row in zip(sets, votes, strict=True)]
    assert right["truth-exact"] == pytest.approx(np.mean(exact))
    assert cli("report", *given, "--truth", "right.npy", "--out", "page").code == 0
    refused(cli("report", *given, "--truth", "votes.npy", "--out", "page"), "a report shows all right labels")
    refused(cli("calibrate", *given, *rule), "conformal is fitted on votes: give them as the truth")
    refused(cli("evaluate", *given, "--truth", "y.npy"), "the truth has the shape of the scores, (300, 12), got (300,)")
    refused(cli("evaluate", trained, "test", "--truth", "votes.npy"), "--truth goes with --scores")


def test_the_link_of_other_scores_can_be_given(cli, other_model) -> None:  # type: ignore[no-untyped-def]
    cli("calibrate", "--scores", "s.npy", "--link", "none", "--rule", "average-k:k=2", "--out", "rules")
    cli("predict", "--scores", "s.npy", "--rules", "rules/average-k-2.json", "-o", "sets.parquet")
    assert LabelSets.from_parquet("sets.parquet") == AverageK(2, link="none").fit(other_model[0]).predict(
        other_model[0]
    )


def test_wrong_input_with_other_scores_is_refused(cli, other_model, trained: Path) -> None:  # type: ignore[no-untyped-def]
    refused(cli("calibrate", "--scores", "s.npy", "--labels", "y.npy"), "say where the rules go: --out DIR")
    refused(cli("calibrate", "--scores", "s.npy", "--out", "r"), "without --labels say which rule to fit")
    refused(cli("calibrate", "--scores", "s.npy", "--link", "probit", "--out", "r"), "--link must be one of 'softmax'")
    refused(cli("calibrate", trained, "--scores", "s.npy"), "give either a run directory, or --scores")
    refused(cli("evaluate", "--scores", "s.npy"), "give both")
    refused(cli("evaluate", "--scores", "s.npy", "--labels", "nowhere.npy"), "there is no file nowhere.npy")
    refused(
        cli("predict", "--scores", "s.npy", "--rules", "nowhere", "-o", "a.parquet"), "there are no rules in nowhere"
    )
    refused(cli("predict", "--scores", "s.npy", "--rule", "top-k:k=2"), "say where the sets go")
    assert not Path("r").exists()


# ---- data and bench


def test_data_check_lists_problems_and_exits_with_1(cli) -> None:  # type: ignore[no-untyped-def]
    np.savez("good.npz", X=np.eye(3, dtype="f4"), y=[0, 1, 1])
    np.savez("bad.npz", X=np.array([[1.0], [np.nan], [np.inf]]), y=[0, 1, 7])
    good = cli("data", "check", "features", "path=good.npz", "num_labels=2")
    assert (good.code, good.out, good.err) == (0, "", "labels in 3 examples: '1' 2, '0' 1\nno problems\n")
    bad = cli("data", "check", "features", "path=bad.npz", "num_labels=2")
    assert bad.code == 1
    assert [line.split(":")[0] for line in bad.out.splitlines()] == [
        "bad.npz, row 1",
        "bad.npz, row 2",
        "bad.npz, row 2",
    ]
    assert len(cli("data", "check", "features", "path=bad.npz", "num_labels=2", "--json").json["problems"]) == 3


def test_data_describe_counts(cli) -> None:  # type: ignore[no-untyped-def]
    found = cli("data", "describe", "config.yaml", "--json").json
    assert (found["examples"], found["labels"], found["target"]) == (800, 100, "indices")
    assert "800" in cli("data", "describe", "ambiguous-numbers", "size=800").out
    refused(cli("data", "describe", "featurs"), "did you mean 'features'?")
    refused(cli("data", "describe", "ambiguous-numbers", "sise=3"), "did you mean 'size'?")


def test_data_features_runs_a_backbone_once_and_writes_what_the_features_reader_reads(cli) -> None:  # type: ignore[no-untyped-def]
    arguments = ("data", "features", "ambiguous-numbers", "size=40", "--backbone", "identity", "-o", "f.npz", "-q")
    assert cli(*arguments).code == 0
    options = ["path=f.npz", "vocabulary_key=names", "groups_key=groups", "group_names_key=group_names"]
    found = cli("data", "describe", "features", *options, "--json").json
    assert (found["examples"], found["in_shape"], found["labels"], found["groups"]) == (40, [128], 100, 10)
    assert torch.equal(torch.from_numpy(np.load("f.npz")["X"]).float(), ambiguous_numbers(40).inputs)
    refused(cli(*arguments[:-2], "f.txt"), "features are written as .npz")


def test_bench_compares_the_losses_and_describes_the_machine(cli) -> None:  # type: ignore[no-untyped-def]
    found = cli("bench", "--quick", "--only", "topk", "--json").json
    assert list(found["milliseconds"]) == ["cross-entropy", "smooth-topk", "topk-hinge", "noised-topk"]
    assert min(found["milliseconds"].values()) > 0
    printed = cli("bench", "--quick", "--only", "lml").out
    assert "1.0x" in printed
    assert f"processor: {found['machine']['processor']}" in printed
    refused(cli("bench", "--only", "nothing"), "matches no loss")


# ---- images


def test_images_are_trained_on_and_predicted_from_a_folder_without_labels(cli) -> None:  # type: ignore[no-untyped-def]
    from PIL import Image

    generator = np.random.default_rng(0)
    for label, level in (("dark", 40), ("light", 200)):
        Path("images", label).mkdir(parents=True)
        for number in range(30):
            pixels = (generator.integers(-30, 30, (8, 8, 3)) + level).astype(np.uint8)
            Image.fromarray(pixels).save(f"images/{label}/{number}.png")
    Path("images.yaml").write_text(
        "data: {train: {reader: image-folder, path: images, size: 8}, calibration: 10, validation: 10}\n"
        "augment: {padding: 1, flip: true}\nbackbone: {name: densenet, depth: 10, growth: 4}\n"
        "epochs: 3\nbatch_size: 8\naccelerator: cpu\noptimizer: {lr: 0.05}"
    )
    assert cli("train", "images.yaml", "--out", "run", "-q").code == 0
    assert cli("calibrate", "run", "--rule", "average-k:k=1").code == 0
    assert cli("predict", "run", "images", "-o", "sets.jsonl").code == 0
    names = [json.loads(line)["id"] for line in Path("sets.jsonl").read_text().splitlines()]
    sets = LabelSets.from_jsonl("sets.jsonl", vocabulary=load_run("run").label_names)
    assert len(names) == len(sets) == 60
    right = [name.split("/")[0] in found for name, found in zip(names, sets.names, strict=True)]
    assert sum(right) > 50
    Path("empty").mkdir()
    refused(cli("predict", "run", "empty", "-o", "sets.jsonl"), "no images there")
