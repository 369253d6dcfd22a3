"""Lightning's Trainer itself, on a model of one layer: sets that are logged and stay with the checkpoint."""

from argparse import Namespace
from pathlib import Path
from typing import Any

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import shortlist as sl
from shortlist.loops import LightningSets, rules_in_checkpoint

X = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
Y = X[:, :5].argmax(1)
LOADER = DataLoader(TensorDataset(X, Y), batch_size=16)


class Model(lightning.LightningModule):
    def __init__(self, told: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.loss, self.told = nn.Linear(6, 5), sl.nn.SmoothTopKLoss(k=2), told

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)

    def training_step(self, batch: Any, index: int) -> Tensor:
        return self.loss(self(batch[0]), batch[1])

    def validation_step(self, batch: Any, index: int) -> Any:
        scores = self(batch[0])
        self.log("accuracy", sl.metrics.functional.top_k_accuracy(scores, batch[1], 1))
        return {"scores": scores, "target": batch[1]} if self.told else None

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.05)


def trainer(folder: Path, *callbacks: Any, epochs: int = 2, **options: Any) -> lightning.Trainer:
    return lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", devices=1, callbacks=list(callbacks), default_root_dir=folder,
        enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=1,
        **{"logger": False, **options},
    )  # fmt: skip


def test_every_checkpoint_has_the_rules_of_its_own_weights(tmp_path: Path) -> None:
    sets = LightningSets({"average-k": sl.sets.AverageK(2), "conformal": sl.sets.Conformal(0.2)})
    saved = ModelCheckpoint(tmp_path, filename="{epoch}", save_top_k=-1)
    logger = CSVLogger(tmp_path, name="log", version="")
    model = Model()
    made = trainer(tmp_path, saved, sets, logger=logger)
    made.fit(model, LOADER, LOADER)
    logged = (tmp_path / "log" / "metrics.csv").read_text().splitlines()
    for name in ("sets/average-k/size", "sets/average-k/coverage", "sets/conformal/size", "sets/conformal/coverage"):
        assert name in logged[0]
    assert made.callback_metrics["sets/average-k/size"] == pytest.approx(2, abs=0.7)
    for epoch in (0, 1):
        file = tmp_path / f"epoch={epoch}.ckpt"
        model.load_state_dict(torch.load(file, weights_only=True)["state_dict"])
        with torch.no_grad():
            chosen = rules_in_checkpoint(file)["average-k"].predict(model(X))
        assert chosen.sizes.mean() == 2  # exactly, on the rows that it was fitted on: these weights' scores
    assert sets.rules["conformal"].rows == len(X)


def test_a_resumed_trainer_has_the_rules_again(tmp_path: Path) -> None:
    sets = LightningSets(k=2)
    made = trainer(tmp_path, sets, epochs=1)
    made.fit(Model(told=True), LOADER, LOADER)
    made.save_checkpoint(tmp_path / "last.ckpt")
    again = LightningSets(k=2)
    trainer(tmp_path, again, epochs=1).fit(Model(), LOADER, LOADER, ckpt_path=tmp_path / "last.ckpt")
    assert {name: rule.to_json() for name, rule in again.rules.items()} == {
        name: rule.to_json() for name, rule in sets.rules.items()
    }


def test_batches_of_another_form_are_read_by_a_function_of_ones_own(tmp_path: Path) -> None:
    with pytest.raises(sl.ShortlistError, match=r"LightningSets\(scores=\.\.\.\)"):
        LightningSets()._scores(Model(), {"x": X, "y": Y}, None)
    sets = LightningSets(scores=lambda module, batch, outputs: (module(batch[0]), batch[1].flip(0)))
    trainer(tmp_path, sets).validate(Model(), LOADER, verbose=False)
    assert sorted(sets.rules) == ["average-k", "conformal"]


def test_a_checkpoint_without_rules_is_refused(tmp_path: Path) -> None:
    made = trainer(tmp_path, epochs=1, enable_checkpointing=False)
    made.fit(Model(), LOADER)
    made.save_checkpoint(tmp_path / "plain.ckpt")
    with pytest.raises(sl.ShortlistError, match="has no set rules: it was not saved by"):
        rules_in_checkpoint(tmp_path / "plain.ckpt")
    with pytest.raises(sl.MissingFileError, match="there is no checkpoint"):
        rules_in_checkpoint(tmp_path / "nothing.ckpt")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"hello", "is no checkpoint that torch can read"),
        (b"", "is no checkpoint that torch can read"),
        ([1, 2], "has no set rules"),
        ({"callbacks": None}, "has no set rules"),
        ({"callbacks": {"LightningSets": {}}}, "has no set rules"),
        ({"hyper_parameters": Namespace(width=3)}, r"class argparse\.Namespace.*add_safe_globals"),
    ],
)
def test_what_is_no_checkpoint_with_rules_is_told_by_one_line(content: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "some.ckpt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path)
    with pytest.raises(sl.ShortlistError, match=said):
        rules_in_checkpoint(path)
