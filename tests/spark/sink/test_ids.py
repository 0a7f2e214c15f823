"""Transactional ids do not pile up: a run in new processes goes on with those of the former one."""

from contextlib import suppress

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.spark.sink.written import texts, to
from tests.spark_session import Start
from tools.traffic import TIMEOUT_SECONDS, Events, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.reliability_full]

RUNS, TASKS = 8, 4
# Each of the session's two cores has a worker that reads and one that writes. Each may write, and
# may run all tasks.
MOST_AT_ONCE = 4
DAEMON = "pyspark.daemon"


def kill_the_workers() -> None:
    """Kill the Python workers of this process's Spark, so that the next tasks have new ones."""
    workers = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # Idle ones end by themselves.
            parent = each.parent()
            if parent is not None and DAEMON in parent.cmdline():
                each.kill()
                workers.append(each)
    psutil.wait_procs(workers, TIMEOUT_SECONDS)


def ids(events: Events, prefix: str) -> set[str]:
    """Return the ids of a prefix's tasks, as Kafka's own tool lists them."""
    listed = events.kafka.tool("transactions", "list").splitlines()
    found = {each.split()[0] for each in listed if each.startswith(f"{prefix}.")}
    return found - {f"{prefix}.control"}


def test_each_start_goes_on_with_the_ids_of_the_former_one(
    spark: SparkSession, events: Events, start: Start
) -> None:
    """With AvailableNow, each start is another run, and Spark has no worker from the former one."""
    events.create(TASKS)
    target = events.another("target")
    target.create(2)
    prefix = events.name.replace(".", "-")
    options = to(target, deliveryGuarantee="exactly-once", transactionalIdPrefix=prefix)
    expected: list[str] = []
    for run in range(RUNS):
        for partition in range(TASKS):
            events.write([f"{run}:{partition}"], partition)
            expected.append(f"{run}:{partition}")
        frame = stream(spark, events.options()).select("value")
        writing = frame.writeStream.format("pykafka").options(**options).trigger(availableNow=True)
        assert start(writing).awaitTermination(TIMEOUT_SECONDS)
        kill_the_workers()
    assert texts(target) == expected
    assert TASKS <= len(ids(target, prefix)) <= MOST_AT_ONCE * TASKS
