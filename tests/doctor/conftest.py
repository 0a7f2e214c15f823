"""The command `doctor`, run as a user runs it."""

import json

import pytest

from spark_kafka_source.command_line.main import main
from tests.doctor.rows import Examine, Row


@pytest.fixture
def examined(capsys: pytest.CaptureFixture[str]) -> Examine:
    """The rows of a run, whose exit code must say whether one of them is wrong."""

    def examined(servers: str, *words: str, **config: str) -> list[Row]:
        given = [f"--config={name.replace('_', '.')}={value}" for name, value in config.items()]
        status = main(["doctor", "-b", servers, "--json", "--timeout", "8", *words, *given])
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert status == int(any(row["verdict"] == "wrong" for row in rows))
        return rows

    return examined
