"""The picture of speed, which the README and the start page show, says what its table says."""

from tools.benchmarks.bars import PICTURE, picture, scans


def test_the_picture_of_the_scans_is_drawn_from_the_table() -> None:
    assert PICTURE.read_text() == picture(scans())


def test_the_picture_has_colours_for_the_dark() -> None:
    assert "prefers-color-scheme: dark" in PICTURE.read_text()
