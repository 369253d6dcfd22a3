"""The embedded data set."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from shortlist.data import ambiguous_numbers

DIGITS = load_digits()


def halves(features):
    """The two 8 x 8 digits of each image, as rows of 64 grey levels."""
    pixels = features.reshape(-1, 8, 2, 8) * 16
    return pixels[:, :, 0].reshape(-1, 64).numpy(), pixels[:, :, 1].reshape(-1, 64).numpy()


def test_every_number_is_one_of_its_readings_and_the_shares_are_exact():
    data = ambiguous_numbers(4000)
    assert data.truth.contains(data.target.numpy()).all()
    assert np.bincount(data.truth.sizes).tolist() == [0, 2000, 1000, 0, 1000]
    assert data.truth.sizes.mean() == 2
    other = ambiguous_numbers(100, shares=(0.2, 0.8, 0.0))
    assert np.bincount(other.truth.sizes).tolist() == [0, 20, 80]


def test_an_unambiguous_number_shows_two_drawings_of_its_digits():
    data = ambiguous_numbers(300, shares=(1, 0, 0))
    drawn = {drawing.tobytes(): digit for drawing, digit in zip(DIGITS.data, DIGITS.target, strict=True)}
    for tens, units, number in zip(*halves(data.inputs.double()), data.target.tolist(), strict=True):
        assert 10 * drawn[tens.tobytes()] + drawn[units.tobytes()] == number


def test_an_ambiguous_digit_is_the_average_of_drawings_of_its_two_readings():
    data = ambiguous_numbers(12, shares=(0, 0, 1))
    tens, _ = halves(data.inputs.double())
    for image, readings in zip(tens, data.truth, strict=True):
        one, other = sorted({reading // 10 for reading in readings})
        first, second = DIGITS.data[DIGITS.target == one], DIGITS.data[DIGITS.target == other]
        averages = (first[:, None] + second[None]) / 2
        assert (averages == image).all(-1).any()


def test_four_readings_are_all_combinations_of_two_tens_and_two_units():
    for readings in ambiguous_numbers(200, shares=(0, 0, 1)).truth:
        tens, units = {r // 10 for r in readings}, {r % 10 for r in readings}
        assert sorted(10 * t + u for t in tens for u in units) == readings


def test_of_two_readings_half_differ_in_the_tens_and_half_in_the_units():
    truth = ambiguous_numbers(4000, shares=(0, 1, 0)).truth
    in_tens = sum(one // 10 != other // 10 for one, other in truth)
    assert in_tens == pytest.approx(2000, abs=4 * 1000**0.5)


def test_each_reading_is_recorded_equally_often():
    data = ambiguous_numbers(20_000, shares=(0, 0, 1))
    place = [readings.index(label) for readings, label in zip(data.truth, data.target.tolist(), strict=True)]
    counts = np.bincount(place, minlength=4)
    # chi squared with 3 degrees of freedom is above 16.3 once in a thousand
    assert ((counts - 5000) ** 2 / 5000).sum() < 16.3


def test_every_label_occurs_equally_often_up_to_chance():
    counts = ambiguous_numbers(20_000).label_counts().numpy()
    # 99 degrees of freedom: above 148 once in a thousand
    assert ((counts - 200) ** 2 / 200).sum() < 148


def test_the_same_seed_gives_the_same_images_and_another_one_others():
    one, same, other = (ambiguous_numbers(50, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.inputs, same.inputs)
    assert torch.equal(one.target, same.target)
    assert one.truth == same.truth
    assert not torch.equal(one.inputs, other.inputs)


def test_no_drawing_is_in_two_parts():
    seen = {}
    for part in ("train", "val", "test"):
        data = ambiguous_numbers(6000, part=part, shares=(1, 0, 0))
        seen[part] = {half.tobytes() for side in halves(data.inputs.double()) for half in side}
    assert not seen["train"] & seen["val"]
    assert not seen["train"] & seen["test"]
    assert not seen["val"] & seen["test"]
    assert len(seen["train"]) > 1000


def test_images_show_the_same_as_features():
    features, images = ambiguous_numbers(20), ambiguous_numbers(20, form="images")
    assert images.in_shape == (1, 8, 16)
    shown = images.inputs.source.reshape(20, 128)
    assert np.array_equal(shown, np.round(features.inputs.numpy() * 255).astype(np.uint8))
    assert torch.equal(features.target, images.target)


def test_the_tens_digit_is_the_group():
    data = ambiguous_numbers(10)
    assert data.groups.tolist() == [number // 10 for number in range(100)]
    assert data.vocabulary[7] == "07"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "size must be"),
        ({"size": 2.5}, "size must be"),
        ({"shares": (0.5, 0.6, 0.1)}, "sum to 1"),
        ({"shares": (1.5, -0.5, 0)}, "sum to 1"),
        ({"part": "dev"}, "part must be one of"),
        ({"form": "pixels"}, "form must be"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ambiguous_numbers(**{"size": 10, **options})


def test_all_readings_can_be_the_target():
    data = ambiguous_numbers(200, labels="all")
    assert torch.equal(data.target, torch.from_numpy(data.truth.to_dense().astype("int8")))
    assert torch.equal(data.inputs, ambiguous_numbers(200).inputs)
    with pytest.raises(ValueError, match="labels must be one of 'one', 'all'"):
        ambiguous_numbers(200, labels="some")
