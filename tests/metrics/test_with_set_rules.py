"""Metrics of scores agree with the sets that the set rules predict from them."""

import torch

from shortlist.metrics.functional import average_k_accuracy, set_coverage, set_size, top_k_accuracy
from shortlist.sets import AverageK, TopK

GENERATOR = torch.Generator().manual_seed(0)
HELD_OUT = torch.randn(300, 20, generator=GENERATOR)
SCORES = torch.randn(500, 20, generator=GENERATOR)
LABELS = torch.randint(-1, 20, (500,), generator=GENERATOR)


def test_top_k_accuracy_is_the_coverage_of_top_k_sets() -> None:
    sets = TopK(3).fit(HELD_OUT).predict(SCORES)
    assert set_size(sets) == 3
    torch.testing.assert_close(top_k_accuracy(SCORES, LABELS, 3), set_coverage(sets, LABELS))


def test_average_k_accuracy_is_the_coverage_of_average_k_sets() -> None:
    for link in ("softmax", "sigmoid", "none"):
        rule = AverageK(2.5, link=link).fit(HELD_OUT)
        torch.testing.assert_close(set_size(rule.predict(HELD_OUT)), torch.tensor(2.5))
        ours = average_k_accuracy(SCORES, LABELS, 2.5, calibration=HELD_OUT, link=link)
        torch.testing.assert_close(ours, set_coverage(rule.predict(SCORES), LABELS))
