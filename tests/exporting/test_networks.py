"""What PyTorch's exporter makes of a network."""

import pytest
import torch
from torch import nn

from shortlist.errors import ShortlistError
from shortlist.exporting.networks import network_model
from shortlist.models import build_backbone
from shortlist.objectives import build
from shortlist.runs.predictor import Predictor
from shortlist.training.learner import Learner


def test_a_network_that_would_take_only_so_many_rows_is_refused() -> None:
    backbone: nn.Module = build_backbone("mlp", in_shape=(8,), hidden=[4])
    objective = build("cnn-rnn", {}, in_features=4, num_labels=3, class_counts=torch.tensor([5, 5, 5]))
    predictor = Predictor(Learner(backbone, objective), ["a", "b", "c"], link="sigmoid", single=False)
    with pytest.raises(ShortlistError, match="the number of rows"):
        network_model(predictor, torch.zeros(2, 8), "features")
