"""Options as a user gives them, without a broker, and names of partitions."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import pytest
from pyspark import cloudpickle

from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.options import SourceOptions
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.topic_partition import TopicPartition

BOOTSTRAP_SERVERS = {"kafka.bootstrap.servers": "broker:9092"}
A0, A1, A2, A10 = (TopicPartition("a", partition) for partition in (0, 1, 2, 10))
B0 = TopicPartition("b", 0)

T = TypeVar("T")
Plan = Callable[..., OffsetPlanner]
"""A function that makes a planner with options."""


def pauses_taken(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make this thread's sleeps return at once from now on. Return the list that records them.

    Other threads, such as those of other tests' Spark, sleep as before.
    """
    taken: list[float] = []
    sleep, here = time.sleep, threading.current_thread()

    def pause(seconds: float) -> None:
        if threading.current_thread() is here:
            taken.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    return taken


def shipped(found: T) -> T:
    """Return the copy that another process gets if Spark sends the object. Check its type."""
    copy = cloudpickle.loads(cloudpickle.dumps(found))  # type: ignore[no-untyped-call]
    assert isinstance(copy, type(found))
    return copy


def parsed(**options: str) -> SourceOptions:
    """Parse options of a source that reads topic `a`. `kafka_x_y` stands for `kafka.x.y`."""
    named = {
        name.replace("_", ".") if name.startswith("kafka_") else name: value
        for name, value in options.items()
    }
    usual = {} if "subscribePattern" in named else {"subscribe": "a"}
    return parse_source_options(BOOTSTRAP_SERVERS | usual | named)
