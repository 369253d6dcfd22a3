"""Augmentation against an image-by-image reading of what it should do."""

import pytest
import torch

from shortlist.data import augment


def every_outcome(image, padding, flip):
    """All the images that one may become."""
    _, height, width = image.shape
    found = []
    for picture in (image, image.flip(2)) if flip else (image,):
        padded = torch.nn.functional.pad(picture, (padding,) * 4)
        for top in range(2 * padding + 1):
            for left in range(2 * padding + 1):
                found.append(padded[:, top : top + height, left : left + width])
    return found


@pytest.mark.parametrize(("padding", "flip"), [(0, True), (1, False), (2, True)])
def test_every_image_becomes_one_of_its_outcomes_and_every_outcome_occurs(padding, flip):
    image = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0))
    outcomes = torch.stack(every_outcome(image, padding, flip))
    count = 200 * len(outcomes)
    images = augment(image.expand(count, 2, 4, 5), padding=padding, flip=flip,
                     generator=torch.Generator().manual_seed(1))  # fmt: skip
    same = (images[:, None] == outcomes[None]).flatten(2).all(2)
    assert same.any(1).all()
    times = same.sum(0)
    assert times.min() > 130  # five standard deviations below 200
    assert times.max() < 270


def test_images_of_a_batch_are_changed_one_by_one_and_the_input_is_not_modified():
    images = torch.randn(64, 3, 8, 8)
    before = images.clone()
    changed = augment(images, generator=torch.Generator().manual_seed(0))
    assert torch.equal(images, before)
    for row in range(4):
        assert any(torch.equal(changed[row], outcome) for outcome in every_outcome(images[row], 4, True))


def test_the_same_generator_state_gives_the_same_images():
    images = torch.randn(8, 3, 6, 6)
    one, same = (augment(images, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(one, same)


def test_flipping_or_not_does_not_change_how_far_images_move():
    images = torch.randn(32, 1, 6, 6)
    flipped = augment(images, generator=torch.Generator().manual_seed(7))
    plain = augment(images, flip=False, generator=torch.Generator().manual_seed(7))
    same = (flipped == plain).flatten(1).all(1)
    mirrored = (flipped == plain.flip(3)).flatten(1).all(1)
    assert (same | mirrored).all()
    assert 0 < int(same.sum()) < 32


@pytest.mark.parametrize(("shape", "padding"), [((3, 8, 8), 4), ((1, 3, 8, 8), -1)])
def test_wrong_shapes_and_paddings_are_refused(shape, padding):
    with pytest.raises(ValueError, match=r"images must have|padding must be"):
        augment(torch.zeros(shape), padding=padding)
