"""Work of a Python worker before each task."""

import gc
import io
import logging
import platform
import re
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest
from pyspark import TaskContext

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.net import Address
from spark_kafka_source.producer import ProducerConfig
from spark_kafka_source.spark import python_worker
from spark_kafka_source.spark.python_worker import RACK, FrozenImports, in_this_rack


def test_imports_are_frozen_once_and_again_after_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[int] = []
    imports = FrozenImports()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(sys.modules)))
    imports.freeze()
    imports.freeze()
    assert len(frozen) == 1
    monkeypatch.setitem(sys.modules, "one_more", ModuleType("one_more"))
    imports.freeze()
    assert len(frozen) == 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that gives memory back")
def test_what_a_task_frees_is_kept_for_its_next_fetch() -> None:
    """The test uses its own process, because an earlier freed block would change the result."""
    run = subprocess.run([sys.executable, "-c", PAGE_FAULTS], capture_output=True, check=True)
    before, after = map(int, run.stdout.split())
    assert before > 1000
    assert after < 100


PAGE_FAULTS = """
import gc, resource
from spark_kafka_source.records.freed_memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        held = [bytearray(3 << 20), bytearray(1 << 20)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults())
keep_freed_memory()
faults()
print(faults())
"""


def test_a_log_of_sparks_process_has_time_level_and_query(monkeypatch: pytest.MonkeyPatch) -> None:
    log = python_worker._WorkerLog()
    log.query, log.stream = "topic='t'", io.StringIO()
    record = logging.makeLogRecord(
        {"levelname": "WARNING", "name": "spark_kafka_source.net", "msg": "late", "created": 0.0}
    )
    log.handle(record)  # pytest has a log of its own, as a user may have.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    log.handle(record)
    properties = {"sql.streaming.queryId": "1f2e"}
    task = SimpleNamespace(
        getLocalProperty=properties.get,
        stageId=lambda: 4,
        partitionId=lambda: 2,
        attemptNumber=lambda: 1,
    )
    monkeypatch.setattr(TaskContext, "get", lambda: task)
    log.handle(record)
    properties.clear()
    log.handle(record)
    lines = re.sub(r"(?m)^\d\d/\d\d/\d\d \d\d:\d\d:\d\d ", "", log.stream.getvalue()).splitlines()
    of_tasks = ("topic='t'", "query 1f2e, stage 4, task 2.1", "stage 4, task 2.1")
    assert lines == [f"WARNING spark_kafka_source.net: [{each}] late" for each in of_tasks]


@pytest.mark.parametrize(
    ("option", "variable", "expected"),
    [("", "", ""), ("", "here", "here"), ("one", "here", "one"), ("one", "", "one")],
)
def test_the_rack_is_the_options_or_the_executors(
    monkeypatch: pytest.MonkeyPatch, option: str, variable: str, expected: str
) -> None:
    monkeypatch.setenv(RACK, variable)
    assert in_this_rack(FetchConfig(client_rack=option)).client_rack == expected
    config = ProducerConfig(ClientConfig((Address("broker", 9092),)), client_rack=option)
    assert in_this_rack(config).client_rack == expected
