"""Requests that wait together are one batch, and each gets its own scores."""

import asyncio
import threading

import pytest
import torch

from shortlist.serving.batches import Batches


def test_requests_that_come_while_the_model_is_busy_go_through_it_together() -> None:
    sizes, free = [], threading.Event()

    def score(inputs: torch.Tensor) -> torch.Tensor:
        if not sizes:
            free.wait(5)
        sizes.append(len(inputs))
        return 2 * inputs

    async def ask() -> list[torch.Tensor]:
        batches = Batches(score, most_rows=4, waiting=100)
        asked = [asyncio.create_task(batches.scores(torch.full((rows, 1), float(rows)))) for rows in (1, 2, 1, 3, 1)]
        await asyncio.sleep(0.01)
        free.set()
        return await asyncio.gather(*asked)

    found = asyncio.run(ask())
    assert [len(scores) for scores in found] == [1, 2, 1, 3, 1]
    assert all((scores == 2 * len(scores)).all() for scores in found)
    assert sizes == [1, 3, 4]


def test_an_error_of_the_model_reaches_all_who_asked_and_the_next_are_answered() -> None:
    def score(inputs: torch.Tensor) -> torch.Tensor:
        if inputs.min() < 0:
            raise ValueError("below 0")
        return inputs

    async def ask() -> torch.Tensor:
        batches = Batches(score, most_rows=4, waiting=100)
        with pytest.raises(ValueError, match="below 0"):
            await batches.scores(-torch.ones(1, 1))
        return await batches.scores(torch.ones(1, 1))

    assert asyncio.run(ask()).item() == 1
