"""What works on Sail, a server of Spark Connect without a JVM. Skipped where it is not installed.

.venv-spark-4.1/bin/python -m pip install pysail
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.matrix.test_smoke import exactly
from tests.spark.sink.written import texts, to
from tools.traffic import Events

for each in ("pandas", "grpc_status"):
    pytest.importorskip(each, reason="Spark Connect needs it: see the extra `matrix`")
pytest.importorskip("pysail", reason="it has 170 MB, so no extra brings it: pip install pysail")

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

PROGRAM = Path(__file__).with_name("sail_program.py")
ROWS = ["0:0", "0:1", "0:2", "1:0", "1:1"]


def run(**asked: Any) -> dict[str, Any]:
    """Run the program. Return what it saw."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), json.dumps(asked)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=asked["files"],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_batches_work_and_a_stream_is_a_batch(
    kafka: LocalKafka, topic: str, tmp_path: Path
) -> None:
    events = Events(kafka, topic)
    events.fill(3, 2)
    plain, exact, streamed = (events.another(each) for each in ("plain", "exact", "streamed"))
    for copy in (plain, exact, streamed):
        copy.create(2)
    found = run(
        source=events.options(),
        copies=[to(plain), exactly(exact)],
        streamed=to(streamed),
        files=str(tmp_path),
    )
    assert found == {"batch": ROWS, "filtered": 2}
    assert texts(plain) == texts(exact) == ROWS
    # A stream that goes on from its checkpoint would write each row once: see docs/platforms.md.
    assert texts(streamed) == sorted(ROWS * 2)
