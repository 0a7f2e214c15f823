"""Python workers are killed in the middle of a read.

Spark tries the task again, and no row suffers.
"""

import json
from contextlib import closing
from pathlib import Path

import pytest

from tests.reliability.conftest import Trial
from tests.reliability.dying import FOUND, Orders
from tests.reliability.readers import by_confluent
from tools.reliability.child import TIMEOUT_SECONDS, SparkChild
from tools.traffic import Events, Writer

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

PARTITIONS, ROWS = 4, 5_000
SECONDS_A_KILL = 5


def test_workers_killed_in_mid_read(events: Events, tmp_path: Path, trial: Trial) -> None:
    fill(events)
    given = events.options() | {"kafka.max.partition.fetch.bytes": 2_000}
    options = {name: str(value) for name, value in given.items()}
    seed = trial.chance.randrange(1 << 32)
    orders = Orders(options, PARTITIONS, ROWS, str(tmp_path), seed, kills=trial.rounds)
    with closing(SparkChild("tests.reliability.dying")) as child:
        limit = TIMEOUT_SECONDS + 2 * trial.rounds * SECONDS_A_KILL
        status = child.run(orders.to_json(), limit)
    assert status == 0
    by_kind = json.loads(Path(tmp_path, FOUND).read_text())
    for kind, found in by_kind.items():
        trial.report(
            "3",
            f"{found['kills']} workers killed by SIGKILL in {found['reads']} reads by {kind}",
            f"rows lost: {found['lost']}; doubled: {found['doubled']}",
        )
    assert [(found["lost"], found["doubled"]) for found in by_kind.values()] == [(0, 0), (0, 0)]
    assert all(found["kills"] >= trial.rounds for found in by_kind.values())


def fill(events: Events) -> None:
    """Write rows that name their places, in batches so small that a read takes many fetches."""
    events.create(PARTITIONS)
    written = [
        (partition, offset, None, b"%d:%d" % (partition, offset))
        for partition in range(PARTITIONS)
        for offset in range(ROWS)
    ]
    # Without idempotence, a send that is tried again can come after those that followed it.
    settings = {"batch_num_messages": 50}
    with Writer(events.kafka.bootstrap_servers, **settings) as writer:
        for partition, _, _, value in written:
            writer.queue(events.name, value, partition=partition)
    assert by_confluent(events) == written
