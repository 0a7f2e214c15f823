"""A user's features over Spark Connect: a client that talks to Spark by gRPC only."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.matrix.test_smoke import FROM_SPARK_4_2, committed, exactly
from tests.spark.sink.written import texts
from tools.traffic import Events

for each in ("pandas", "grpc_status"):
    pytest.importorskip(each, reason="Spark Connect needs it: see the extra `matrix`")

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PROGRAM = Path(__file__).with_name("connect_program.py")
ROWS = ["0:0", "0:1", "0:2", "1:0", "1:1"]


def run(**asked: Any) -> dict[str, Any]:
    """Run the program. Return what it saw."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(asked)],
        env=environment,
        cwd=asked["files"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_what_works_in_a_session_works_over_connect(
    kafka: LocalKafka, topic: str, tmp_path: Path
) -> None:
    events = Events(kafka, topic)
    events.fill(3, 2)
    copy = events.another("copy")
    copy.create(2)
    source = events.options() | {"kafka.group.id": events.name}
    found = run(source=source, copy=exactly(copy), files=str(tmp_path))
    error = found.pop("error")
    assert found == {"batch": ROWS, "foreachBatch": 5, "lag": 0}
    assert "Option 'startingofsets'" in error, "Spark Connect hands over names in lower case"
    assert "Did you mean 'startingOffsets'?" in error
    written = texts(copy)
    assert len(written) == 6 and sorted(set(written)) == ROWS
    if FROM_SPARK_4_2:  # Before 4.2, Spark reports a micro-batch when it plans the next one.
        assert committed(events) == [3, 2]
