"""Image files and arrays."""

import numpy as np
import pytest
from PIL import Image

from shortlist.data import Images
from shortlist.data.images import decode
from shortlist.errors import ShortlistError
from tests.data.readers.made_files import image, truncated

RED, WHITE = [255, 0, 0], [255, 255, 255]


def test_files_are_decoded_in_order_however_many_threads_do_it(tmp_path):
    paths = [str(image(tmp_path / f"{shade}.png", (shade, 0, 0))) for shade in range(0, 200, 10)]
    pixels = Images(paths, size=(2, 3)).pixels(list(range(19, -1, -1)))
    assert pixels.shape == (20, 2, 3, 3)
    assert pixels[:, 0, 0, 0].tolist() == list(range(190, -1, -10))


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "CMYK", "1", "I;16"])
def test_every_mode_becomes_three_channels(tmp_path, mode):
    path = tmp_path / ("x.tif" if mode in ("CMYK", "I;16") else "x.png")
    (Image.new("I;16", (4, 2)) if mode == "I;16" else Image.new("RGB", (4, 2), "red").convert(mode)).save(path)
    assert decode(path).shape == (2, 4, 3)


def test_16_bits_are_scaled_to_8(tmp_path):
    Image.fromarray(np.array([[0, 257, 32896, 65535]], dtype=np.uint16)).save(tmp_path / "x.png")
    assert decode(tmp_path / "x.png")[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize("pixels", [np.array([[0, 70000]], dtype=np.int32), np.array([[0.0, 0.5]], dtype=np.float32)])
def test_pixels_that_8_bits_cannot_hold_are_refused(tmp_path, pixels):
    Image.fromarray(pixels).save(tmp_path / "x.tif")
    with pytest.raises(ShortlistError, match=r"x\.tif: its pixels are from 0 to"):
        decode(tmp_path / "x.tif")


def test_what_is_transparent_is_white(tmp_path):
    picture = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    picture.putpixel((1, 0), (0, 0, 0, 0))
    picture.save(tmp_path / "x.png")
    assert decode(tmp_path / "x.png").tolist() == [[RED, WHITE]]


def test_a_photograph_is_turned_upright(tmp_path):
    picture = Image.new("RGB", (4, 2), "white")
    exif = picture.getexif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    picture.save(tmp_path / "x.jpg", exif=exif)
    assert decode(tmp_path / "x.jpg").shape == (4, 2, 3)


def test_stretching_keeps_the_edges_and_cropping_the_middle(tmp_path):
    wide = np.zeros((40, 120, 3), dtype=np.uint8)
    wide[:, 40:80] = 255
    Image.fromarray(wide).save(tmp_path / "x.png")
    stretched, cropped = decode(tmp_path / "x.png", (12, 12)), decode(tmp_path / "x.png", (12, 12), crop=True)
    assert stretched[:, [0, -1]].max() == 0
    assert stretched[:, 6].min() == 255
    assert cropped.min() == 255


def test_a_file_that_is_no_image_is_called_that(tmp_path):
    (tmp_path / "x.png").write_bytes(b"hello")
    with pytest.raises(ValueError, match=r"x.png: it is no image that Pillow reads, or damaged at its beginning$"):
        decode(tmp_path / "x.png")


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "gif"])
def test_a_truncated_image_is_an_error_that_names_the_file(tmp_path, suffix):
    path = truncated(tmp_path / f"half.{suffix}")
    with pytest.raises(ValueError, match=rf"cannot decode the image .*half.{suffix}: "):
        decode(path)


def test_a_missing_file_and_one_that_is_no_image_are_errors_that_name_it(tmp_path):
    with pytest.raises(ValueError, match=r"no such image: .*x.png"):
        Images([str(tmp_path / "x.png")]).batch([0])
    (tmp_path / "x.png").write_text("hello")
    with pytest.raises(ValueError, match=r"cannot decode the image .*x.png"):
        Images([str(tmp_path / "x.png")]).batch([0])


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (np.zeros((2, 3, 3), dtype=np.uint8), {}, r"\(N, H, W, C\)"),
        (np.zeros((2, 3, 3, 3)), {}, "uint8"),
        (np.zeros((2, 3, 3, 1), dtype=np.uint8), {}, "each of 1 channels"),
        (["a.png"], {"size": (0, 3)}, "size must be at least 1"),
        (["a.png"], {"std": (1, 1, 0)}, "std above 0"),
        ("a.png", {}, "single string"),
    ],
)
def test_wrong_options_are_refused(source, options, message):
    with pytest.raises(ValueError, match=message):
        Images(source, **options)
