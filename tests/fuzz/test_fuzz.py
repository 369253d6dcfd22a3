"""A short slice of the attack, and that it misses no function."""

import pytest

import shortlist.functional as F
from tests.fuzz.compare import failures
from tests.fuzz.functions import FUNCTIONS, draw_batch


def test_every_function_has_a_generator() -> None:
    assert set(FUNCTIONS) == set(F.__all__) - {"linear_loss"}  # which takes any of the others


@pytest.mark.parametrize("name", FUNCTIONS)
def test_native_twin_and_float64_agree(name: str) -> None:
    for number in range(40):
        batch = draw_batch(name, 0, number)
        found = failures(batch)
        assert not found, f"python -m tests.fuzz --only {name} --batch {number}: {found} of {batch.described()}"
