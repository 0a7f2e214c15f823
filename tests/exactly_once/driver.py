"""A driver that dies at a step of a commit. `python -m tests.exactly_once.driver` runs it.

It reads its orders as JSON. At its last step it ends at once with status 9, like a machine that
loses its power. It writes errors as JSON.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.exactly_once import BatchId, Seen, Worker
from spark_kafka_source.exactly_once.decision import DecisionId
from spark_kafka_source.producer import Generation, PreparedTransaction, ProducerId
from tests.exactly_once.query import TIMEOUT_MS, Query, Run
from tests.exactly_once.steps import Step

DEAD = 9
TIMEOUT_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a driver: to commit one micro-batch."""

    servers: str
    topic: str
    partitions: int
    prefix: str
    query_id: str
    run_id: str
    batch_id: int
    winners: list[tuple[str, int, int, int]]
    """Transactional id, producer id, epoch and how many partitions."""
    generation: int
    seen: Any
    """What the executors saw: the control id's producer, and the last decision."""
    dies_at: str | None


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
    query, worker = run.query, run.worker
    assert worker is not None
    orders = Orders(
        query.servers,
        query.topic,
        query.partitions,
        query.prefix,
        query.query_id,
        run.run_id,
        batch_id,
        [(each.transactional_id, *each.producer, each.partition_count) for each in winners],
        worker.generation.value,
        (worker.seen.control, [*worker.seen.decisions]),
        dies_at.name if dies_at else None,
    )
    process = subprocess.run(
        [sys.executable, "-m", "tests.exactly_once.driver"],
        input=json.dumps(asdict(orders)),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    if process.returncode == DEAD:
        return End(is_dead=True)
    assert process.returncode == 0, process.stderr
    return End(is_dead=False, **json.loads(process.stdout))


def _seen(control: Any, decisions: Any) -> Seen:
    producer = None if control is None else ProducerId(*control)
    ids = (DecisionId(BatchId(**batch), *rest) for batch, *rest in decisions)
    return Seen(producer, frozenset(ids))


def main() -> None:
    """Commit, or die."""
    orders = Orders(**json.loads(sys.stdin.read()))
    query = Query(orders.servers, orders.topic, orders.partitions, orders.prefix, orders.query_id)
    winners = [
        PreparedTransaction(name, ProducerId(producer_id, epoch), count)
        for name, producer_id, epoch, count in orders.winners
    ]

    def reached(step: Step) -> None:
        if step.name == orders.dies_at:
            os._exit(DEAD)

    found: dict[str, str | None] = {"error": None, "text": ""}
    try:
        worker = Worker(query.names, query.names.space, Generation(orders.generation), TIMEOUT_MS)
        worker.seen = _seen(*orders.seen)
        Run(query, orders.run_id, worker).commit(orders.batch_id, winners, reached)
    except KafkaError as error:
        found = {"error": type(error).__name__, "text": str(error)}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
