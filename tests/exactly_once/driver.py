"""A driver that dies at a step of a commit. `python -m tests.exactly_once.driver` runs it.

It reads its orders, pickled. At its last step it ends at once with status 9, like a machine that
loses its power. It writes errors as JSON.
"""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once.decision import Seen
from spark_kafka_source.exactly_once.worker import Worker
from spark_kafka_source.producer import Generation, PreparedTransaction
from tests.exactly_once.query import TIMEOUT_MS, Query, Run
from tests.exactly_once.steps import Step

DEAD = 9
TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a driver: to commit one micro-batch."""

    query: Query
    run_id: str
    batch_id: int
    winners: tuple[PreparedTransaction, ...]
    generation: Generation
    seen: Seen
    """What the executors saw."""
    dies_at: Step | None


@dataclass(frozen=True, slots=True)
class End:
    """The end of a driver: killed, an error, or success."""

    is_dead: bool
    error: str | None = None
    text: str = ""


def commit_in_process(
    run: Run, batch_id: int, winners: Sequence[PreparedTransaction], dies_at: Step | None
) -> End:
    """Run a driver in its own process. It commits a micro-batch, or dies at a step."""
    worker = run.worker
    assert worker is not None
    orders = Orders(
        run.query, run.run_id, batch_id, tuple(winners), worker.generation, worker.seen, dies_at
    )
    process = subprocess.run(
        [sys.executable, "-m", "tests.exactly_once.driver"],
        input=pickle.dumps(orders),
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if process.returncode == DEAD:
        return End(is_dead=True)
    assert process.returncode == 0, process.stderr.decode()
    return End(is_dead=False, **json.loads(process.stdout))


def main() -> None:
    """Commit, or die."""
    orders: Orders = pickle.load(sys.stdin.buffer)

    def reached(step: Step) -> None:
        if step is orders.dies_at:
            os._exit(DEAD)

    found: dict[str, str | None] = {"error": None, "text": ""}
    try:
        worker = Worker(orders.query.names, orders.run_id, orders.generation, TIMEOUT_MS)
        worker.seen = orders.seen
        Run(orders.query, orders.run_id, worker).commit(orders.batch_id, orders.winners, reached)
    except KafkaError as error:
        found = {"error": type(error).__name__, "text": str(error)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
