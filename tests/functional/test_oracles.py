"""The oracles against one another: a wrong oracle would make every other test worthless."""

import math

import numpy as np
import pytest
import torch

from tests import oracles
from tests.oracles import all_labels, mp

GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_tables_of_prefixes_and_suffixes_equal_enumeration(n: int, scale: float) -> None:
    a = [mp.mpf(x) for x in GENERATOR.normal(size=n) * scale]
    for k in range(1, n + 1):
        table, enumeration = oracles.subset_sum(a, k), oracles.subset_sum_by_enumeration(a, k)
        assert abs(table.log - enumeration.log) < 1e-14
        np.testing.assert_allclose(table.inside, enumeration.inside, rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(table.outside, enumeration.outside, rtol=1e-13, atol=1e-40)


def test_subsets_of_equal_labels_are_counted_by_the_binomial_coefficient() -> None:
    result = oracles.subset_sum([mp.mpf(0)] * 2000, 500)
    assert abs(result.log - mp.log(mp.mpf(math.comb(2000, 500)))) < 1e-12
    np.testing.assert_allclose(result.inside, 0.25, rtol=1e-12)
    np.testing.assert_allclose(result.outside, 0.75, rtol=1e-12)


def test_sums_reach_over_the_whole_float64_range() -> None:
    values = (1.7e308, 3e300, 0.5, 0.25, -1.7e308)
    a = [mp.mpf(x) for x in values]
    for k in range(1, 6):
        table, enumeration = oracles.subset_sum(a, k), oracles.subset_sum_by_enumeration(a, k)
        assert abs(table.log / enumeration.log - 1) < 1e-14
        np.testing.assert_allclose(table.inside, enumeration.inside, rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(table.outside, enumeration.outside, rtol=1e-13, atol=1e-40)
    # two labels that are certain, one of two others: what the certain ones weigh cancels
    loss, gradient = oracles.smooth_topk(values, 2, 3, 1.0, 0.0, all_labels(values))
    assert loss == pytest.approx(math.log1p(math.exp(-0.25 / 3)), rel=1e-12)
    assert gradient == pytest.approx([0, 0, -gradient[3], gradient[3], 0], abs=1e-15)
    exact = oracles.lml(values, 3, all_labels(values)).loss([3])
    assert exact[0] == pytest.approx(math.log1p(math.exp(0.125)), rel=1e-12)


def test_marginals_of_a_long_row_sum_to_k() -> None:
    result = oracles.subset_sum([mp.mpf(x) for x in GENERATOR.normal(size=1000) * 20], 100)
    assert result.inside.sum() == pytest.approx(100, rel=1e-12)
    np.testing.assert_allclose(result.inside + result.outside, 1, rtol=1e-12)


@pytest.mark.parametrize("tau", [10.0, 1.0, 0.01])
def test_smooth_topk_equals_its_definition_as_two_log_sums(tau: float) -> None:
    scores = tuple(GENERATOR.normal(size=6))
    loss, gradient = oracles.smooth_topk(scores, 2, 3, tau, 1.0, all_labels(scores))

    def definition(*s: object) -> object:  # eq. 9 of seed 003, to the letter
        subsets = list(oracles.combinations(range(6), 3))
        weights = {c: mp.fsum(s[j] for j in c) / 3 / mp.mpf(tau) for c in subsets}
        every = mp.fsum(mp.exp(w + (1 / mp.mpf(tau) if 2 not in c else 0)) for c, w in weights.items())
        return mp.mpf(tau) * mp.log(every / mp.fsum(mp.exp(w) for c, w in weights.items() if 2 in c))

    assert loss == pytest.approx(float(definition(*map(mp.mpf, scores))), rel=1e-13)
    for j in range(6):
        partial = mp.diff(definition, tuple(map(mp.mpf, scores)), tuple(int(i == j) for i in range(6)))
        assert gradient[j] == pytest.approx(float(partial), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("row", [(1.5, -0.3, 0.2, 0.9, -2.0), (40.0, 0.0, 0.0, -3.0), (1e5, -1e5, 0.0), (3.0,) * 3])
def test_lml_solves_its_equation_and_its_gradients_are_the_derivatives(row: tuple[float, ...]) -> None:
    k, n = 2, len(row)
    exact = oracles.lml(row, k, all_labels(row))
    with mp.workdps(50):
        lack = mp.fsum(oracles._sigmoid(-t) for t in sorted(exact.t)[-k:])
        have = mp.fsum(oracles._sigmoid(t) for t in sorted(exact.t)[:-k])
        assert abs(have / lack - 1) < 1e-35
        nu = exact.t[0] - mp.mpf(row[0])
        assert all(abs(t - mp.mpf(s) - nu) < 1e-30 for t, s in zip(exact.t, row, strict=True))
    step = 2.0**-20
    loss, gradient = exact.loss([1])
    for j in range(n):
        up, down = ([s + sign * step * (i == j) for i, s in enumerate(row)] for sign in (1, -1))
        slope = [a - b for a, b in zip(*(oracles.lml(tuple(s), k, all_labels(row)).y for s in (up, down)), strict=True)]
        g = GENERATOR.normal(size=n)
        assert exact.vjp(g)[j] == pytest.approx(float(np.dot(g, slope)) / (2 * step), abs=1e-8)
        above, below = (oracles.lml(tuple(s), k, all_labels(row)).loss([1])[0] for s in (up, down))
        assert gradient[j] == pytest.approx((above - below) / (2 * step), abs=1e-9 * max(1, loss))


def test_lml_has_the_published_loss_of_the_saturated_row() -> None:
    row = (40.0, 0.0, 0.0)
    assert oracles.lml(row, 1, all_labels(row)).loss([2])[0] == pytest.approx(20.35, abs=5e-3)


def test_truncated_entropy_at_k_1_is_cross_entropy_for_every_present_label() -> None:
    scores = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss, gradient = oracles.truncated_entropy(tuple(scores.tolist()), [4], 1, tuple(range(6)))
    assert loss == pytest.approx(float(torch.nn.functional.cross_entropy(scores, torch.tensor(4))), rel=1e-14)
    assert gradient == pytest.approx((torch.softmax(scores, 0) - torch.eye(6)[4]).numpy(), rel=1e-12)


def test_noised_order_statistic_has_its_known_mean_for_two_equal_labels() -> None:
    mean, deviation, who = oracles.noised_kth((0.0, 0.0), 1, 1.0)
    assert mean == pytest.approx(1 / math.sqrt(math.pi), abs=1e-3)
    assert deviation == pytest.approx(math.sqrt(1 - 1 / math.pi), abs=1e-3)
    assert who == pytest.approx([0.5, 0.5], abs=1e-3)
