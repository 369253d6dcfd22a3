"""Augmentation against an image-by-image reading of what it should do."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from shortlist.data import Draws, Images, augment, enlarged
from shortlist.data.randaugment import OPERATIONS

EVERYTHING = {
    "size": (9, 10),
    "area": (0.2, 1.0),
    "flip": True,
    "rand_operations": 2,
    "jitter": {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1},
    "lighting": 0.1,
}


def some_images(count, height=12, width=11):
    return torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(0))


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
    # mirrored after the crop: the same outcomes
    outcomes = torch.stack(every_outcome(image, padding, flip))
    count = 200 * len(outcomes)
    images = augment(image.expand(count, 2, 4, 5), Draws(1, 0, torch.arange(count)), padding=padding, flip=flip)
    same = (images[:, None] == outcomes[None]).flatten(2).all(2)
    assert same.any(1).all()
    times = same.sum(0)
    assert times.min() > 130  # five standard deviations below 200
    assert times.max() < 270


def test_a_smaller_size_is_cropped_from_anywhere_in_the_image():
    images = torch.arange(20.0).view(1, 1, 4, 5).expand(300, 1, 4, 5)
    found = augment(images, Draws(0, 0, torch.arange(300)), size=(3, 3))
    corners = found[:, 0, 0, 0]
    assert sorted(corners.unique().tolist()) == [0, 1, 2, 5, 6, 7]
    assert torch.equal(found - corners.view(-1, 1, 1, 1), (found[:1] - corners[0]).expand_as(found))
    with pytest.raises(ValueError, match="does not fit"):
        augment(images, Draws(0, 0, torch.arange(300)), size=(5, 5))


def test_a_box_of_the_whole_area_is_the_whole_image_and_smaller_ones_are_linear_in_the_pixels():
    images = some_images(4, 8, 8)
    draws = Draws(0, 0, torch.arange(4))
    whole = augment(images, draws, area=(1.0, 1.0), ratio=(1.0, 1.0))
    torch.testing.assert_close(whole, images, rtol=0, atol=1e-5)
    count = 2000
    ramp = (torch.arange(64.0) + 0.5).view(1, 1, 1, 64).expand(count, 1, 64, 64)  # what a pixel says is where it is
    found = augment(ramp, Draws(3, 1, torch.arange(count)), area=(0.25, 0.25), ratio=(0.5, 2.0), size=(32, 32))
    width = (found[:, 0, 0, 16] - found[:, 0, 0, 15]) * 32
    assert width.min() >= 64 * 0.25**0.5 * 0.5**0.5 - 0.01
    assert width.max() <= 64 * 0.25**0.5 * 2**0.5 + 0.01
    assert abs(width.log().mean() - np.log(32)) < 0.03
    left = found[:, 0, 0, 16] - width / 64 - width / 2
    assert left.min() > -0.1
    assert (left + width).max() < 64.1
    assert left.std() > 5


@pytest.mark.parametrize("options", [{"padding": 2, "flip": True}, EVERYTHING], ids=["padding", "everything"])
def test_an_example_is_changed_the_same_in_every_batch_and_order_and_other_epochs_and_seeds_differ(options):
    images = some_images(24)
    rows = torch.arange(24) * 7 + 3
    whole = augment(images, Draws(5, 2, rows), **options)
    for size in (1, 5, 24):
        order = torch.randperm(24, generator=torch.Generator().manual_seed(size))
        parts = [augment(images[some], Draws(5, 2, rows[some]), **options) for some in order.split(size)]
        assert torch.equal(torch.cat(parts), whole[order])
    for other in (Draws(6, 2, rows), Draws(5, 3, rows), Draws(5, 2, rows + 1)):
        assert not torch.equal(augment(images, other, **options), whole)


def test_the_input_is_not_modified():
    images = some_images(8)
    before = images.clone()
    augment(images, Draws(0, 0, torch.arange(8)), **EVERYTHING)
    augment(images, Draws(0, 0, torch.arange(8)), padding=1, flip=True)
    assert torch.equal(images, before)


def test_turning_one_change_on_leaves_the_draws_of_the_others():
    images, draws = torch.randn(32, 1, 6, 6), Draws(7, 0, torch.arange(32))
    flipped, plain = augment(images, draws, padding=2, flip=True), augment(images, draws, padding=2)
    same = (flipped == plain).flatten(1).all(1)
    mirrored = (flipped == plain.flip(3)).flatten(1).all(1)
    assert (same | mirrored).all()
    assert 0 < int(same.sum()) < 32


# ---- colours


def picture():
    """A photograph of sorts, as 8 bit and as numbers from 0 to 1."""
    down, across = np.mgrid[0:32, 0:40]
    pixels = np.stack([40 + 3 * across, 200 - 4 * down, 90 + 40 * np.sin(across / 3) * np.cos(down / 4)], 2)
    pixels[20:24, 20:24] = 250  # with an edge
    pixels = pixels.clip(0, 255).astype(np.uint8)
    return Image.fromarray(pixels), torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255


def as_tensor(image):
    return torch.from_numpy(np.array(image)).permute(2, 0, 1)[None] / 255


FILL = torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)
OUTSIDE = tuple(int(255 * value) for value in (0.5, 0.4, 0.3))


def affine(image, matrix):
    """Pillow's, which takes pixels from where the matrix says, counted from the middle."""
    a, b, c, d, e, f = matrix
    x, y = image.width / 2, image.height / 2
    data = (a, b, c + x - a * x - b * y, d, e, f + y - d * x - e * y)
    return image.transform(image.size, Image.Transform.AFFINE, data, Image.Resampling.BILINEAR, fillcolor=OUTSIDE)


PEERS = {
    "identity": lambda image, s: image,
    "shear-x": lambda image, s: affine(image, (1, -0.3 * s, 0, 0, 1, 0)),
    "shear-y": lambda image, s: affine(image, (1, 0, 0, -0.3 * s, 1, 0)),
    "translate-x": lambda image, s: affine(image, (1, 0, -round(s * 150 / 331 * image.width), 0, 1, 0)),
    "translate-y": lambda image, s: affine(image, (1, 0, 0, 0, 1, -round(s * 150 / 331 * image.height))),
    "rotate": lambda image, s: image.rotate(30 * s, Image.Resampling.BILINEAR, fillcolor=OUTSIDE),
    "brightness": lambda image, s: ImageEnhance.Brightness(image).enhance(1 + 0.9 * s),
    "colour": lambda image, s: ImageEnhance.Color(image).enhance(1 + 0.9 * s),
    "contrast": lambda image, s: ImageEnhance.Contrast(image).enhance(1 + 0.9 * s),
    "sharpness": lambda image, s: ImageEnhance.Sharpness(image).enhance(1 + 0.9 * s),
    "posterize": lambda image, s: ImageOps.posterize(image, 8 - round(4 * abs(s))),
    "solarize": lambda image, s: ImageOps.solarize(image, 255 * (1 - abs(s))),
    "autocontrast": lambda image, s: ImageOps.autocontrast(image),
    "equalize": lambda image, s: ImageOps.equalize(image),
}


@pytest.mark.parametrize("strength", [-0.7, 0.4])
@pytest.mark.parametrize("name", list(OPERATIONS))
def test_every_operation_of_randaugment_does_what_pillow_does(name, strength):
    image, pixels = picture()
    ours = OPERATIONS[name](pixels, torch.tensor([strength]), FILL)
    theirs = as_tensor(PEERS[name](image, strength))
    # theirs is rounded to 8 bits on the way; along the edge of what comes in they mix colours otherwise
    off = (ours - theirs).abs().amax(1)
    assert off.median() <= 2.01 / 255
    assert (off > 3.01 / 255).float().mean() <= (0.1 if name in ("rotate", "shear-x", "shear-y") else 0.0)
    if name not in ("identity", "autocontrast"):
        assert (ours - pixels).abs().max() > 0.01


def test_operations_are_drawn_evenly_in_both_directions():
    draws = Draws(0, 0, torch.arange(14000))
    times = torch.bincount(draws.whole("operation 0", 14))
    assert times.min() > 850
    assert times.max() < 1150
    assert abs((draws.uniform("direction 0") < 0.5).float().mean() - 0.5) < 0.02


def test_jitter_draws_factors_within_the_range_and_keeps_pixels_between_0_and_1():
    grey = torch.full((500, 3, 2, 2), 0.5)
    kept = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
    found = augment(grey, Draws(0, 0, torch.arange(500)), jitter={"brightness": 0.4}, **kept)[:, 0, 0, 0] / 0.5
    assert 0.6 <= found.min() < 0.62
    assert 1.38 < found.max() <= 1.4
    _, pixels = picture()
    wild = {"brightness": 2.0, "contrast": 2.0, "saturation": 2.0, "hue": 0.5}
    found = augment(pixels.expand(50, -1, -1, -1), Draws(0, 0, torch.arange(50)), jitter=wild, **kept)
    assert found.min() >= 0
    assert found.max() <= 1


def test_lighting_moves_all_pixels_of_an_image_along_the_principal_colours():
    count = 20000
    grey = torch.full((count, 3, 1, 1), 0.5)
    kept = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}
    moves = augment(grey, Draws(0, 0, torch.arange(count)), lighting=0.1, **kept)[:, :, 0, 0].double() - 0.5
    spread = torch.linalg.eigvalsh(moves.T @ moves / count).sqrt().flip(0)
    torch.testing.assert_close(spread, torch.tensor([0.02175, 0.00188, 0.00045], dtype=torch.double), rtol=0.03, atol=0)


# ---- what is refused


def test_wrong_images_are_refused():
    draws = Draws(0, 0, torch.arange(1))
    with pytest.raises(ValueError, match="images must have"):
        augment(torch.zeros(3, 8, 8), draws)
    with pytest.raises(ValueError, match="draws for 1"):
        augment(torch.zeros(2, 3, 8, 8), draws)
    with pytest.raises(ValueError, match="padding must be"):
        augment(torch.zeros(1, 3, 8, 8), draws, padding=-1)
    with pytest.raises(ValueError, match="need images of 3 channels, these have 1"):
        augment(torch.zeros(1, 1, 8, 8), draws, lighting=0.1)


def test_files_are_decoded_larger_and_keep_their_proportions_where_they_did(tmp_path):
    down, across = np.mgrid[0:40, 0:80]
    Image.fromarray(np.stack([across * 3, down * 6, across * 0], 2).astype(np.uint8)).save(tmp_path / "a.png")
    images = Images.from_files([tmp_path / "a.png"], 16, crop=True)
    larger = enlarged(images, 20)
    assert larger.shape == (3, 20, 20)
    step = np.diff(larger[0][10, :, 0].astype(float)).mean() / 3
    assert step == pytest.approx(2, abs=0.1)  # 40 rows in 20: the shorter side fills the square
    stretched = enlarged(Images.from_files([tmp_path / "a.png"], 16, crop=False), 20)[0]
    assert np.diff(stretched[10, :, 0].astype(float)).mean() / 3 == pytest.approx(4, abs=0.1)
    with pytest.raises(ValueError, match=r"augment.resize must be at least the size of the images, 16, got 12"):
        enlarged(images, 12)
    with pytest.raises(ValueError, match=r"augment.resize is for image files"):
        enlarged(Images(np.zeros((1, 4, 4, 3), dtype=np.uint8)), 8)
