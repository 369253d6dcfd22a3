"""The LML layer inside a model: exported, it is made of PyTorch's own operators."""

from pathlib import Path

import pytest
import torch
from torch import nn

import shortlist as sl


def some_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 10), sl.nn.LML(k=3)).eval()


@pytest.mark.parametrize("differentiated", [True, False])
def test_an_exported_layer_has_no_operator_of_this_package(differentiated: bool) -> None:
    model, x = some_model(), torch.randn(7, 5)
    with torch.set_grad_enabled(differentiated):
        exported = torch.export.export(model, (torch.randn(4, 5),), dynamic_shapes=({0: torch.export.Dim("rows")},))
    assert not [node for node in exported.graph.nodes if "shortlist" in str(node.target)]
    torch.testing.assert_close(exported.module()(x), model(x))


def test_the_layer_is_written_as_onnx(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model, x = some_model(), torch.randn(4, 5)
    torch.onnx.export(model, (x,), tmp_path / "model.onnx", dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (p,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(p), model(x).detach())
