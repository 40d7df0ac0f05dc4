"""Files and arrays are read as upright RGB bytes; errors are one line."""

import os
import re

import numpy as np
import pytest
from annealed.vision import as_rgb, read_image
from annealed.vision.images import image_size
from PIL import Image
from skimage.data import astronaut

PHOTO = astronaut()[:40, 200:260]


def test_round_trip(tmp_path):
    Image.fromarray(PHOTO).save(tmp_path / "a.png")
    assert np.array_equal(read_image(tmp_path / "a.png"), PHOTO)
    Image.fromarray(PHOTO[:1, :1]).save(tmp_path / "one.png")
    assert read_image(str(tmp_path / "one.png")).shape == (1, 1, 3)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(tmp_path, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    # Stored pixels, such that undoing the orientation gives the photograph.
    stored = {
        1: PHOTO,
        2: PHOTO[:, ::-1],
        3: PHOTO[::-1, ::-1],
        4: PHOTO[::-1],
        5: PHOTO.swapaxes(0, 1),
        6: np.rot90(PHOTO, 1),
        7: PHOTO[::-1, ::-1].swapaxes(0, 1),
        8: np.rot90(PHOTO, -1),
    }[orientation]
    Image.fromarray(np.ascontiguousarray(stored)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(read_image(tmp_path / "a.png"), PHOTO)


def test_modes(tmp_path):
    grey = PHOTO[:, :, 1]
    three = np.repeat(grey[:, :, None], 3, axis=2)
    Image.fromarray(grey).save(tmp_path / "grey.png")
    assert np.array_equal(read_image(tmp_path / "grey.png"), three)
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "deep.png")
    assert np.array_equal(read_image(tmp_path / "deep.png"), three)
    Image.fromarray(grey.astype(np.float32) / 255).save(tmp_path / "float.tiff")
    assert np.array_equal(read_image(tmp_path / "float.tiff"), three)
    Image.fromarray(PHOTO).convert("CMYK").save(tmp_path / "cmyk.jpg", quality=95)
    assert np.abs(read_image(tmp_path / "cmyk.jpg").astype(int) - PHOTO).mean() < 5
    Image.fromarray(PHOTO).convert("P", palette=Image.Palette.ADAPTIVE).save(
        tmp_path / "palette.png"
    )
    assert np.abs(read_image(tmp_path / "palette.png").astype(int) - PHOTO).mean() < 10
    alpha = np.full((*grey.shape, 1), 255, np.uint8)
    alpha[:10] = 0
    Image.fromarray(np.concatenate([PHOTO, alpha], axis=2)).save(tmp_path / "alpha.png")
    blended = read_image(tmp_path / "alpha.png")
    assert (blended[:10] == 255).all()
    assert np.array_equal(blended[10:], PHOTO[10:])
    Image.fromarray(grey > 100).save(tmp_path / "bits.png")
    assert np.array_equal(read_image(tmp_path / "bits.png"), (three > 100) * np.uint8(255))


def test_damaged_files(tmp_path):
    Image.fromarray(np.tile(PHOTO, (4, 4, 1))).save(tmp_path / "whole.jpg")
    whole = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "head.jpg").write_bytes(whole[:30])
    Image.fromarray(PHOTO).save(tmp_path / "whole.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:900])
    (tmp_path / "text.png").write_text("this is not an image\n")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "folder.png").mkdir()
    for name, reason in (
        ("cut.jpg", "damaged"),
        ("head.jpg", "head"),
        ("cut.png", "damaged"),
        ("text.png", "not a readable image"),
        ("empty.png", "empty"),
        ("folder.png", "folder"),
        ("missing.png", "no such file"),
    ):
        with pytest.raises(ValueError, match=re.escape(reason)) as error:
            read_image(tmp_path / name)
        assert str(error.value).startswith(f"{tmp_path / name}: ")
        assert "\n" not in str(error.value)


def test_arrays():
    assert (
        as_rgb(PHOTO) is PHOTO
        or np.shares_memory(as_rgb(PHOTO), PHOTO)
        or np.array_equal(as_rgb(PHOTO), PHOTO)
    )
    assert np.array_equal(as_rgb(PHOTO[:, ::-1]), PHOTO[:, ::-1])
    assert as_rgb(PHOTO[:, ::-1]).flags.c_contiguous
    assert np.array_equal(as_rgb(PHOTO / 255), PHOTO)
    assert np.array_equal(as_rgb(PHOTO.astype(np.uint16) * 257), PHOTO)
    assert np.array_equal(as_rgb(PHOTO[:, :, :1]), as_rgb(PHOTO[:, :, 0]))
    half = as_rgb(np.array([[[0, 100, 200, 128]]], np.uint8))
    np.testing.assert_allclose(half, [[[127, 177, 227]]], atol=1)


@pytest.mark.parametrize(
    "image",
    [
        np.zeros(3),
        np.zeros((2, 2, 2), np.uint8),
        np.zeros((0, 5, 3), np.uint8),
        np.full((2, 2), 1.5),
        np.full((2, 2), np.nan),
        np.zeros((2, 2), np.int64),
        np.array([["a"]]),
    ],
)
def test_bad_arrays(image):
    with pytest.raises(ValueError, match=r"^image has"):
        as_rgb(image)


def test_grey_values_of_32_bits_are_refused(tmp_path):
    path = tmp_path / "deep.tif"
    Image.fromarray(np.full((4, 5), 200, np.int32)).save(path)
    with pytest.raises(ValueError, match=r"deep\.tif: 32-bit grey images.*expected 8 or 16"):
        read_image(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ValueError, match="not a regular file"):
        read_image(tmp_path / "pipe.png")


def test_no_other_program_is_started(tmp_path):
    (tmp_path / "page.eps").write_bytes(
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"
    )
    with pytest.raises(ValueError, match="not a readable image"):
        read_image(tmp_path / "page.eps")


def test_size_is_that_of_the_upright_image(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (30, 20)).save(tmp_path / "a.jpg", exif=exif)
    assert image_size(tmp_path / "a.jpg") == (20, 30) == read_image(tmp_path / "a.jpg").shape[1::-1]


def test_strips_are_the_whole_picture(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (600, 7, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_image(tmp_path / "a.png"), pixels)
