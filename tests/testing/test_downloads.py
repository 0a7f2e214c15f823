"""The progress of a download: told to callers that ask, shown in few lines, else only logged."""

import io
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_kafka_source.testing import kafka_jars, resolve
from spark_kafka_source.testing.downloads import DownloadLine
from tests.testing.fake_java import FakeJava

MEGABYTE = 1_000_000
PACKAGE = "spark_kafka_source"
# Ivy downloads to its cache, then copies.
DOWNLOADS = """
while [ "$1" != -cache ]; do shift; done
mkdir -p "$2/a" && head -c 3000000 /dev/zero >"$2/a/thing-1.0.jar.part"
touch "$folder/thing-1.0.jar"
"""


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *amounts: int, expected: int = 40 * MEGABYTE) -> list[str]:
    with DownloadLine("things", stream) as line:
        for each in amounts:
            line(each, expected)
    return stream.getvalue().splitlines()


def test_a_terminal_has_one_line() -> None:
    lines = shown(Screen(), 0, 10 * MEGABYTE, 41 * MEGABYTE)
    # Each begins where the one before did.
    assert [each.removesuffix("\x1b[K") for each in lines] == [
        "",
        "Downloading things, once: 0 of about 40 MB",
        "Downloading things, once: 10 of about 40 MB",
        "Downloading things, once: 41 of about 41 MB",
        "Downloaded things: 41 MB",
    ]


def test_elsewhere_there_are_few_lines() -> None:
    lines = shown(io.StringIO(), *range(0, 41 * MEGABYTE, 100_000))
    assert lines == [
        *(f"Downloading things, once: {each} of about 40 MB" for each in range(0, 41, 10)),
        "Downloaded things: 41 MB",
    ]
    unknown = shown(io.StringIO(), *range(0, 41 * MEGABYTE, 100_000), expected=0)
    assert unknown[1] == "Downloading things, once: 20 MB"
    assert len(unknown) == 4


def test_without_a_download_there_is_no_line() -> None:
    assert shown(Screen()) == []


def test_a_download_that_fails_is_not_done() -> None:
    screen = Screen()
    with pytest.raises(KeyboardInterrupt), DownloadLine("things", screen) as line:
        line(1, 0)
        raise KeyboardInterrupt
    assert screen.getvalue().endswith("once: 0 MB\x1b[K\n")
    assert "Downloaded" not in screen.getvalue()


def test_a_caller_is_told_the_bytes_of_this_download(
    fake_java: FakeJava, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = tmp_path / "cache" / "ivy" / "old.jar"
    old.parent.mkdir(parents=True)
    old.write_bytes(bytes(MEGABYTE))
    fake_java.write(DOWNLOADS)
    told: list[tuple[int, int]] = []
    kafka_jars(progress=lambda found, expected: told.append((found, expected)))
    assert told[-1][0] == 3 * MEGABYTE
    assert {expected for _, expected in told} == {64 * MEGABYTE}
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
    count = len(told)
    kafka_jars(progress=lambda found, expected: told.append((found, expected)))
    assert len(told) == count


def test_a_library_caller_gets_no_prints(fake_java: FakeJava, tmp_path: Path) -> None:
    fake_java.write(DOWNLOADS)
    program = """
import logging
from spark_kafka_source.testing import kafka_jars
logging.getLogger("spark_kafka_source").addHandler(logging.NullHandler())
kafka_jars()
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_a_caller_without_a_line_is_told_by_the_log(
    fake_java: FakeJava, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_kafka_source.testing.downloads._LOG_SECONDS", 0)
    caplog.set_level(logging.INFO)
    fake_java.write(DOWNLOADS)
    resolve(["org.example:thing:1.0"])
    # Py4J tells at this level of connections of the tests' Spark.
    messages = [each.message for each in caplog.records if each.name.startswith(PACKAGE)]
    assert messages[0].startswith("Downloading org.example:thing:1.0, once, to ")
    assert messages[-1] == "Downloaded 3 MB"
