"""The pursuit against its definition on thousands of problems, ordinary and degenerate."""

import numpy as np
import pytest
import torch

import shortlist as sl
from shortlist.imcl import JointNonnegativePursuit
from shortlist.imcl import pursuit as pursuit_file
from tests.imcl.oracles import check

BATCH = 12


def plain(random, n, columns):
    return random.normal(size=(n, columns))


def with_zero_rows(random, n, columns):
    rows = random.normal(size=(n, columns))
    rows[random.random(n) < 0.4] = 0.0
    return rows


def with_duplicates(random, n, columns):
    rows = random.normal(size=(n, columns))
    return rows[random.integers(0, max(1, n // 2), n)] * random.choice([0.5, 1.0, 2.0], (n, 1))


def never_negative(random, n, columns):
    return np.abs(random.normal(size=(n, columns)))


def mostly_opposed(random, n, columns):
    return -np.abs(random.normal(size=(n, columns)))


def few_directions(random, n, columns):
    """Rows that are mixtures of two: everything picked after these is useless."""
    return random.normal(size=(n, 2)) @ random.normal(size=(2, columns))


def label_vectors(random, n, columns):
    return np.where(random.random((n, columns)) < 0.3, 1.0, -0.5)


KINDS = [plain, with_zero_rows, with_duplicates, never_negative, mostly_opposed, few_directions, label_vectors]


def problem(kind, seed):
    random = np.random.default_rng(seed)
    n, L, D = random.integers(1, 14), random.integers(1, 9), random.integers(1, 9)
    dictionaries = kind(random, n, L), kind(random, n, D)
    targets = [random.normal(size=(BATCH, columns)) for columns in (L, D)]
    if kind is not plain and seed % 2:
        targets = [np.abs(target) for target in targets]
    exclude = random.integers(-1, n, BATCH)
    k = int(random.integers(1, 7))
    pursuit = JointNonnegativePursuit(k, *random.random(2), threshold=float(random.choice([0.0, 1e-6, 0.1])))
    return pursuit, targets, dictionaries, exclude


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_is_the_definition_on_random_problems(kind, path):
    for seed in range(40):
        pursuit, targets, dictionaries, exclude = problem(kind, seed)
        found = pursuit(*map(torch.from_numpy, (*targets, *dictionaries, exclude)))
        for row in range(BATCH):
            check(found, row, [target[row] for target in targets], dictionaries, pursuit, exclude[row])


def test_it_is_the_definition_in_single_precision(path):
    random = np.random.default_rng(0)
    targets = [random.normal(size=(200, columns)).astype(np.float32) for columns in (12, 30)]
    dictionaries = [random.normal(size=(60, columns)).astype(np.float32) for columns in (12, 30)]
    pursuit = JointNonnegativePursuit(k=4)
    found = pursuit(*map(torch.from_numpy, (*targets, *dictionaries)))
    assert found.label_coefficients.dtype == torch.float32
    exact = [array.astype(np.float64) for array in dictionaries]
    for row in range(200):
        check(found, row, [target[row].astype(np.float64) for target in targets], exact, pursuit, tolerance=1e-6)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_residuals_never_grow_as_more_rows_are_allowed(kind):
    random = np.random.default_rng(1)
    targets = [torch.from_numpy(random.normal(size=(50, columns))) for columns in (6, 8)]
    dictionaries = [torch.from_numpy(kind(random, 20, columns)) for columns in (6, 8)]
    before = [target.norm(dim=1) for target in targets]
    for k in range(1, 7):
        found = JointNonnegativePursuit(k)(*targets, *dictionaries)
        now = [found.label_residual.norm(dim=1), found.feature_residual.norm(dim=1)]
        assert all(bool((a <= b * (1 + 1e-12)).all()) for a, b in zip(now, before, strict=True))
        before = now


def test_more_rows_extend_what_fewer_rows_found():
    random = np.random.default_rng(2)
    problem = [torch.from_numpy(random.normal(size=shape)) for shape in ((30, 6), (30, 8), (20, 6), (20, 8))]
    few, many = JointNonnegativePursuit(2)(*problem), JointNonnegativePursuit(5)(*problem)
    assert torch.equal(few.indices, many.indices[:, :2])


def test_row_0_is_found_where_it_is_best():
    target = torch.tensor([[1.0, 2.0]])
    labels, features = target * torch.tensor([[1.0], [0.0], [0.0]]), -target.repeat(3, 1)
    found = JointNonnegativePursuit(k=1)(target, target, labels, features)
    assert found.indices.tolist() == [[0]]
    torch.testing.assert_close(found.label_coefficients, torch.ones(1, 1))
    assert found.feature_coefficients.tolist() == [[0.0]]


def test_equal_gains_go_to_the_lower_row():
    atom = torch.tensor([[1.0, 2.0, 0.5]])
    found = JointNonnegativePursuit(k=3)(atom, atom, atom.repeat(5, 1), atom.repeat(5, 1))
    assert found.indices.tolist() == [[0, -1, -1]]


def test_a_row_that_explains_nothing_is_not_picked_even_without_a_threshold():
    here, dictionary = -torch.ones(1, 2), torch.ones(3, 2)
    found = JointNonnegativePursuit(k=2, threshold=0.0)(here, here, dictionary, dictionary)
    assert found.indices.tolist() == [[-1, -1]]
    assert torch.equal(found.label_residual, -torch.ones(1, 2))


def test_an_excluded_row_is_not_used_and_others_are_free_to_use_it():
    dictionary, here = torch.eye(3), torch.eye(3)[[1, 1]]
    found = JointNonnegativePursuit(k=1)(here, here, dictionary, dictionary, exclude=torch.tensor([1, 0]))
    assert found.indices.tolist() == [[-1], [1]]


def test_an_empty_dictionary_and_an_empty_batch_find_nothing():
    pursuit = JointNonnegativePursuit(k=2)
    found = pursuit(torch.ones(3, 4), torch.ones(3, 5), torch.ones(0, 4), torch.ones(0, 5))
    assert found.indices.tolist() == [[-1, -1]] * 3
    assert torch.equal(found.feature_residual, torch.ones(3, 5))
    nothing = pursuit(torch.ones(0, 4), torch.ones(0, 5), torch.ones(6, 4), torch.ones(6, 5))
    assert [tuple(part.shape) for part in nothing] == [(0, 2), (0, 2), (0, 2), (0, 4), (0, 5)]


@pytest.mark.parametrize("entries", [1, 200, 1 << 17])
def test_blocks_make_no_difference(monkeypatch, entries):
    random = np.random.default_rng(3)
    problem = [torch.from_numpy(random.normal(size=shape)) for shape in ((5, 6), (5, 8), (300, 6), (300, 8))]
    exclude = torch.tensor([0, 63, 64, 299, -1])
    whole = JointNonnegativePursuit(4)(*problem, exclude)
    monkeypatch.setattr(pursuit_file, "_BLOCK_ENTRIES", entries)
    parts = JointNonnegativePursuit(4)(*problem, exclude)
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single_and_returned_in_half(dtype):
    torch.manual_seed(0)
    half = [torch.randn(shape).to(dtype) for shape in ((6, 5), (6, 7), (30, 5), (30, 7))]
    found, expected = JointNonnegativePursuit()(*half), JointNonnegativePursuit()(*(x.float() for x in half))
    assert torch.equal(found.indices, expected.indices)
    assert torch.equal(found.label_coefficients, expected.label_coefficients.to(dtype))
    assert torch.equal(found.feature_residual, expected.feature_residual.to(dtype))


def test_inputs_stay_as_they_are_and_nothing_is_differentiated():
    torch.manual_seed(0)
    given = [torch.randn(shape, requires_grad=True) for shape in ((6, 5), (6, 7), (30, 5), (30, 7))]
    before = [x.detach().clone() for x in given]
    found = JointNonnegativePursuit()(*given)
    assert all(torch.equal(x, y) for x, y in zip(given, before, strict=True))
    assert not any(part.requires_grad for part in found)


def test_scaling_an_atom_scales_only_its_coefficient():
    torch.manual_seed(0)
    y, f, dy, df = (torch.randn(shape).double() for shape in ((6, 5), (6, 7), (30, 5), (30, 7)))
    scale = torch.logspace(-60, 60, 30, dtype=torch.float64).unsqueeze(1)
    plain, scaled = JointNonnegativePursuit()(y, f, dy, df), JointNonnegativePursuit()(y, f, dy * scale, df / scale)
    assert torch.equal(plain.indices, scaled.indices)
    torch.testing.assert_close(plain.label_residual, scaled.label_residual)
    torch.testing.assert_close(plain.label_coefficients, scaled.label_coefficients * scale[plain.indices].squeeze(-1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": torch.ones(3, 5)}, "labels and features must have as many rows"),
        ({"dictionary_features": torch.ones(9, 5)}, "dictionary_labels and dictionary_features must have as many rows"),
        ({"dictionary_labels": torch.ones(8, 3)}, "labels and dictionary_labels must have as many columns"),
        ({"features": torch.ones(2, 6)}, "features and dictionary_features must have as many columns"),
        ({"labels": torch.ones(2, 4, dtype=torch.int64)}, "labels must be floating point"),
        ({"exclude": torch.tensor([0, 8])}, r"exclude holds 8: allowed are the dictionary's rows 0\.\.7, and -1"),
        ({"exclude": torch.tensor([0.0, 1.0])}, "exclude must hold one dictionary row"),
        ({"labels": torch.full((2, 4), float("nan"))}, "labels must be finite numbers.*row 0"),
        ({"dictionary_features": torch.full((8, 5), float("inf"))}, "dictionary_features must be finite"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_so(change, message):
    given = {"labels": torch.ones(2, 4), "features": torch.ones(2, 5), "dictionary_labels": torch.ones(8, 4)}
    given |= {"dictionary_features": torch.ones(8, 5), **change}
    with pytest.raises(ValueError, match=message):
        JointNonnegativePursuit()(**given)


@pytest.mark.parametrize("options", [{"k": 0}, {"k": 1.5}, {"label_weight": -1.0}, {"threshold": float("nan")}])
def test_options_out_of_range_are_errors(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        JointNonnegativePursuit(**options)


def test_it_is_found_at_the_public_name():
    assert sl.imcl.JointNonnegativePursuit is JointNonnegativePursuit


@pytest.mark.parametrize("size", [1e-25, 1e20])
def test_the_scale_of_what_is_explained_changes_only_its_coefficients(size, path):
    torch.manual_seed(0)
    y, f, dy, df = (torch.randn(shape) for shape in ((6, 5), (6, 7), (30, 5), (30, 7)))
    pursuit = JointNonnegativePursuit(threshold=0.0)
    plain, scaled = pursuit(y, f, dy, df), pursuit(y * size, f * size, dy, df)
    assert torch.equal(plain.indices, scaled.indices)
    torch.testing.assert_close(plain.label_coefficients * size, scaled.label_coefficients, rtol=1e-5, atol=0.0)


def test_the_threshold_is_an_absolute_gain(path):
    here, dictionary = torch.tensor([[1e-4], [1e-2]]), torch.ones(1, 1)
    found = JointNonnegativePursuit(k=1, threshold=1e-6)(here, here, dictionary, dictionary)
    assert found.indices.tolist() == [[-1], [0]]
