"""Votes become shares; answers about two labels become votes."""

import numpy as np
import pytest
import torch
from scipy import sparse

from shortlist.labels import from_pair_answers, from_votes

COUNTS = [[3, 1, 0], [0, 0, 0], [0, 0, 2]]
SHARES = [[0.75, 0.25, 0], [-1, -1, -1], [0, 0, 1]]


@pytest.mark.parametrize(
    "counts",
    [COUNTS, np.array(COUNTS, np.uint8), np.array(COUNTS, np.float64), torch.tensor(COUNTS), sparse.csr_matrix(COUNTS)],
    ids=["lists", "uint8", "float64", "torch", "sparse"],
)
def test_counts_of_any_kind_become_shares(counts: object) -> None:
    shares = from_votes(counts)
    assert isinstance(shares, torch.Tensor if isinstance(counts, torch.Tensor) else np.ndarray)
    assert np.array_equal(np.asarray(shares), SHARES)


def test_float64_stays_and_the_rest_is_float32() -> None:
    assert from_votes(torch.tensor(COUNTS)).dtype == torch.float32
    assert from_votes(torch.tensor(COUNTS, dtype=torch.float64)).dtype == torch.float64


@pytest.mark.parametrize(("bad", "said"), [(-1, "-1"), (float("nan"), "nan"), (float("inf"), "inf")])
def test_the_first_impossible_count_is_named(bad: float, said: str) -> None:
    for counts in (np.array([[1.0, 0.0], [bad, bad]]), torch.tensor([[1.0, 0.0], [bad, bad]])):
        with pytest.raises(ValueError, match=rf"votes\[1, 0\] is {said}"):
            from_votes(counts)


def test_huge_weights_are_shares_too() -> None:
    assert from_votes(np.array([[1e308, 1e308, 0.0]])).tolist() == [[0.5, 0.5, 0]]
    assert from_votes(torch.tensor([[3e38, 3e38, 0.0]])).tolist() == [[0.5, 0.5, 0]]


@pytest.mark.parametrize("counts", [3, "abc", np.zeros((2, 0)), np.array([["a"]]), [[1, 2], [3]]])
def test_what_is_no_table_of_counts_is_refused(counts: object) -> None:
    with pytest.raises(ValueError, match="votes are numbers, one for each label"):
        from_votes(counts)


@pytest.mark.parametrize(
    ("both", "neither", "votes"),
    [
        ("half", "none", [1.5, 2.5, 0, 0]),
        ("each", "none", [2, 3, 0, 0]),
        ("none", "none", [1, 2, 0, 0]),
        ("none", "others", [1, 2, 2, 2]),
    ],
)
def test_both_and_neither_become_what_is_asked_for(both: str, neither: str, votes: list[float]) -> None:
    found = from_pair_answers([[1, 2, 4, 1]], [0], [1], 4, both=both, neither=neither)  # type: ignore[arg-type]
    assert found.tolist() == [votes]


def test_the_same_label_twice_gets_both_votes() -> None:
    assert from_pair_answers([[1, 2, 3, 2]], [1], [1], 3, neither="others").tolist() == [[1.5, 5, 1.5]]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answers": [[1, 2, 3]]}, "columns given, guessed, neither, both"),
        ({"answers": [[1, 2, 3, -1]]}, r"votes\[0, 3\] is -1"),
        ({"given": [4]}, r"given\[0\] is 4: allowed are 0\.\.3"),
        ({"guessed": [0, 1]}, "guessed holds one class index for each of 1 rows"),
        ({"both": "all"}, "both must be one of 'half', 'each', 'none'"),
        ({"neither": "unknown"}, "neither must be one of 'none', 'others'"),
    ],
)
def test_wrong_answers_are_refused(change: dict[str, object], said: str) -> None:
    call: dict[str, object] = {"answers": [[1, 0, 0, 0]], "given": [0], "guessed": [1], "num_labels": 4}
    with pytest.raises(ValueError, match=said):
        from_pair_answers(**(call | change))  # type: ignore[arg-type]
