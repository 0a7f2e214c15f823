"""The command `doctor`, run like a user's command."""

import json

import pytest

from spark_kafka_source.command_line.main import main
from tests.doctor.rows import Examine, Row


@pytest.fixture
def examined(capsys: pytest.CaptureFixture[str]) -> Examine:
    """Return a function that runs `doctor` and returns its rows. It checks the exit code."""

    def examined(servers: str, *words: str, **config: str) -> list[Row]:
        given = [f"--config={name.replace('_', '.')}={value}" for name, value in config.items()]
        status = main(["doctor", "-b", servers, "--json", "--timeout", "8", *words, *given])
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert status == int(any(row["verdict"] == "wrong" for row in rows))
        return rows

    return examined
