"""A network as nodes, by PyTorch's own exporter."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.exporting.nodes import PLAIN_OPSET
from shortlist.optional import require

ROWS = "rows"  # the first dimension of every input, of any size


def network_model(network: nn.Module, example: Tensor, name: str) -> Any:
    """The ONNX model of a network with one input, which is called ``name``, and one output, ``scores``. The number of
    rows is left open."""
    require("onnxscript", "export")  # what the exporter of PyTorch needs
    was_training = network.training
    try:
        with _without_remarks(), torch.no_grad():
            made = torch.onnx.export(
                network.eval(),
                (example,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim(ROWS)},),
                input_names=[name],
                output_names=["scores"],
                opset_version=PLAIN_OPSET,
                verbose=False,
            )
    except (torch.onnx.OnnxExporterError, RuntimeError, TypeError, NotImplementedError) as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0][:300]
        raise ShortlistError(f"PyTorch cannot export this network to ONNX, so nothing is written: {reason}") from error
    finally:
        network.train(was_training)
    assert made is not None
    model = made.model_proto
    if not model.graph.input[0].type.tensor_type.shape.dim[0].dim_param:
        raise ShortlistError(
            "PyTorch's exporter fixes the number of rows that this network takes, so nothing is written: its code asks "
            "how many there are"
        )
    return model


@contextmanager
def _without_remarks() -> Iterator[None]:
    """The exporter remarks on packages that are not there and on deprecations inside PyTorch: nobody here can act."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`isinstance\\(treespec", FutureWarning)
            yield
    finally:
        logger.setLevel(level)


class FromPixels(nn.Module):
    """A network on pixels as an image file has them: uint8 (rows, height, width, channels)."""

    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.tensor(mean).mul_(255).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std).mul_(255).view(-1, 1, 1))

    def forward(self, pixels: Tensor) -> Tensor:
        scaled = (pixels.permute(0, 3, 1, 2).to(torch.float32) - self.mean) / self.std
        return self.network(scaled)
