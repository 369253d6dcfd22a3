"""Wrong values on a device are raised by the next call that the device has got to, and nothing waits for it.

By a device that is pretended (`tests.pretend_device`): it has got as far as the test says.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from shortlist import device_flags, kernels
from shortlist.errors import ShortlistError
from tests.pretend_device import DEVICE, moved, pretending

RIGHT, WRONG = torch.tensor([0, 2, -1]), torch.tensor([0, 7, 1])


def loss(target: Tensor = RIGHT) -> None:
    F.truncated_entropy_loss(moved(torch.zeros(3, 5)), moved(target), 2)


def matrix_loss(value: int = 1) -> None:
    F.partial_binary_loss(moved(torch.zeros(3, 5)), moved(torch.full((3, 5), value, dtype=torch.int8)))


def average_k_loss(target: Tensor = RIGHT) -> None:
    F.average_k_loss(moved(torch.zeros(3, 5)), moved(torch.zeros(3, 5)), moved(target), 2.0)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    device_flags._devices.known.clear()
    with kernels.use("torch"), pretending(0, waits=False) as mode:
        monkeypatch.setattr(device_flags._Copy, "event_of", staticmethod(lambda _: mode.event()))
        monkeypatch.setattr(torch.accelerator, "current_stream", lambda _: None)
        yield mode
    device_flags._devices.known.clear()


@pytest.mark.parametrize(
    ("call", "wrong", "told"),
    [
        (loss, WRONG, "truncated_entropy was given, in its call 2, 7, a target value that is not allowed"),
        (matrix_loss, 3, "partial_binary was given, in its call 2, 3, a target value that is not allowed"),
        (average_k_loss, WRONG, "average_k was given, in its call 2, 7, a target value that is not allowed"),
    ],
    ids=["class indices", "label matrix", "both heads"],
)
def test_the_next_call_raises_once_the_device_has_finished(
    call: Callable[..., None], wrong: Any, told: str, device: Any
) -> None:
    call()
    call(wrong)
    device.finish()
    with pytest.raises(ShortlistError, match=told):
        call()
    call()
    device.finish()
    call()  # told once


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"label_smoothing": 0.1}, "^binary was given, in its call 1, at flat position 0, a target value"),
        ({"pos_weight": -torch.ones(5)}, "^binary was given, in its call 1, at flat position 0, a weight"),
    ],
)
def test_what_is_looked_at_before_a_call_begins_is_its_own(options: dict[str, Any], told: str, device: Any) -> None:
    matrix_loss()
    target = torch.full((3, 5), 3 if "label_smoothing" in options else 1, dtype=torch.int8)
    options = {name: moved(value) if isinstance(value, Tensor) else value for name, value in options.items()}
    F.binary_loss(moved(torch.zeros(3, 5)), moved(target), **options)
    device.finish()
    with pytest.raises(ShortlistError, match=told):
        matrix_loss()
    matrix_loss()


def test_a_flag_that_is_not_there_yet_is_not_waited_for(device: Any) -> None:
    loss(WRONG)
    for _ in range(3):
        loss()
    device.finish(copies=1)
    with pytest.raises(ShortlistError, match="in its call 1"):
        loss()


def test_a_host_that_stays_ahead_of_its_device_is_told_all_the_same(device: Any) -> None:
    """By more calls than copies may be under way; the device finishes one for each call."""
    for _ in range(20):
        loss()
    loss(WRONG)

    def later() -> None:
        for _ in range(2 * device_flags._COPIES):
            device.finish(copies=1)
            loss()

    with pytest.raises(ShortlistError, match="in its call 21"):
        later()
    assert len(device.sent) - device.finished <= device_flags._COPIES


def test_copies_that_were_sent_before_an_error_was_raised_do_not_raise_it_again(device: Any) -> None:
    loss(WRONG)
    loss()
    loss()
    device.finish(copies=1)
    with pytest.raises(ShortlistError):
        loss()
    device.finish()
    loss()
    device.finish()
    loss()


def test_nor_do_they_where_the_flag_itself_was_set(device: Any) -> None:
    """A weight sets it: unlike the ranges of targets, it is in every copy until somebody has raised it."""
    weight = moved(torch.tensor([1.0, -1.0, 1.0]))
    F.truncated_entropy_loss(moved(torch.zeros(3, 5)), moved(RIGHT), 2, sample_weight=weight)
    loss()
    loss()
    device.finish(copies=1)
    with pytest.raises(ShortlistError, match="a weight that is not allowed"):
        loss()
    device.finish()
    loss()
    device.finish()
    loss()


def test_check_tells_of_the_last_call_and_of_nothing_twice(device: Any) -> None:
    loss(WRONG)
    device.waits, device.most = True, 1 << 16
    with pytest.raises(ShortlistError, match="in its call 1"):
        kernels.check()
    kernels.check()
    device.finish()
    loss()


def test_a_call_sends_one_copy_and_asks_one_event(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loss()
    device.finish()
    asked, made = [], device.event
    monkeypatch.setattr(type(made()), "query", lambda event: asked.append(event) is None)
    before = len(device.sent)
    loss()
    assert len(asked) == 1
    assert len(device.sent) == before + 1
    assert device_flags._devices[DEVICE].idle == []  # the memory of the one that has arrived was used


def test_nothing_is_sent_or_asked_while_a_graph_is_captured(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loss(WRONG)
    device.finish()
    monkeypatch.setattr(device_flags._devices[DEVICE], "silent", lambda: True)
    before = len(device.sent)
    loss()
    assert len(device.sent) == before
    monkeypatch.setattr(device_flags._devices[DEVICE], "silent", bool)
    with pytest.raises(ShortlistError, match="in its call 1"):
        loss()


def test_where_a_backend_has_no_events_check_tells(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: Any) -> None:
        raise RuntimeError("no events")

    monkeypatch.setattr(device_flags._Copy, "event_of", staticmethod(none))
    loss(WRONG)
    device.finish()
    loss()
    device.waits, device.most = True, 1 << 16
    with pytest.raises(ShortlistError, match="in its call 1"):
        kernels.check()
