"""Arguments of the command line, and errors that do not repeat secrets."""

import subprocess
import sys

import pytest

from spark_kafka_source.command_line.arguments import parse
from spark_kafka_source.version import VERSION

IMPORTS = """
import sys
from spark_kafka_source.command_line import arguments, main
assert not {"pyarrow", "numpy"} & sys.modules.keys(), "help would wait"
from spark_kafka_source.command_line import groups, produce, tail, topics
assert not {"pyspark", "pandas"} & sys.modules.keys(), "every command would wait"
"""


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["groups"],
        ["groups", "reset", "g"],
        ["groups", "reset", "g", "--to-latest", "--to-earliest"],
        ["groups", "reset", "g", "--shift-by", "x"],
        ["groups", "list", "--confg", "sasl.password=hunter2"],
        ["groups", "list", "--conf=sasl.password=hunter2"],
        ["topics", "--config", "a.b=c", "--nonsense=hunter2"],
        ["tail", "t", "-n", "0"],
        ["tail", "t", "--from", "latest", "--group", "g"],
        ["tail", "t", "--value", "avro"],
        ["produce"],
        ["produce", "t", "--key-separator", ""],
        ["local-broker", "--brokers", "10"],
        ["local-broker", "--port", "x"],
        ["local-broker", "--topic", "a/b"],
        ["local-broker", "--topic", "a:0"],
        ["local-broker", "-b", "localhost:9092"],
    ],
)
def test_what_cannot_be_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    assert "error:" in shown
    assert "hunter2" not in shown
    assert "_positive" not in shown


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (["topics", "create", "t", "--partitions", "99999999999"], 2_147_483_647),
        (["topics", "create", "t", "--partitions", "9" * 5_000], 2_147_483_647),
        (["local-broker", "--port", "0"], 65_535),
        (["local-broker", "--port", "65536"], 65_535),
    ],
    ids=["too many", "far too many", "no port", "beyond the ports"],
)
def test_a_number_out_of_bounds_is_told_its_bounds(
    words: list[str], most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(words)
    assert f"a whole number from 1 to {most} is needed" in capsys.readouterr().err


def test_numbers_below_0_are_no_options() -> None:
    assert parse(["tail", "t", "--from", "-5"]).begin == "-5"
    assert parse(["groups", "reset", "g", "--shift-by", "-5"]).shift_by == -5
    assert parse(["groups", "lag", "-b", "a:1"]).bootstrap_servers == "a:1"


def test_the_version() -> None:
    command = [sys.executable, "-m", "spark_kafka_source", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == (f"spark-kafka-source {VERSION}\n", "")


def test_a_command_imports_no_more_than_it_needs() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, timeout=60)
