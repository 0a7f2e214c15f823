"""Cost of a trigger for the driver, with many partitions and brokers, in memory.

    python -m tools.benchmarks.planning [--partitions 10000] [--brokers 100] [--triggers N]
        [--together RECORDS]

Prints the requests of a trigger by kind, the driver's CPU time per trigger, the sizes of what Spark
stores and sends for a micro-batch, and the requests per second of an idle query. `--together` is
`minRecordsPerPartition`.
"""

import argparse
import json
import pickle
import statistics
import time
from collections import Counter

from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.testing.memory import MemoryBroker

IDLE_SECONDS = 20.0
# The measured process also runs the in-memory brokers, with the fetches that they hold back.
_HELD_STEP_SECONDS = 0.5


def main() -> None:
    arguments = _arguments()
    found = measure(arguments.partitions, arguments.brokers, arguments.triggers, arguments.together)
    print(f"{arguments.partitions} partitions on {arguments.brokers} brokers")
    for name, value in found.items():
        print(f"{name:40} {value:,.1f}")


def measure(
    partitions: int, brokers: int, triggers: int = 5, together: int = 1
) -> dict[str, float]:
    """Return the figures by their names."""
    with MemoryBroker(brokers) as broker:
        for log in broker.create_topic("t", partitions=partitions):
            log.append(b"x")
        broker.held_step_seconds = _HELD_STEP_SECONDS
        options = parse_source_options(
            {
                "kafka.bootstrap.servers": str(broker.address()),
                "subscribe": "t",
                "startingOffsets": "earliest",
                "minRecordsPerPartition": str(together),
            }
        )
        reader = KafkaStreamReader(options)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        broker.forget()
        cpu_ms = []
        for _ in range(triggers):
            for topic in broker.cluster.topics.values():
                for log in topic.logs:
                    log.append(b"x")
            started = time.thread_time()
            start, end = end, reader.latestOffset(end, reader.getDefaultReadLimit())
            planned = reader.partitions(start, end)
            cpu_ms.append((time.thread_time() - started) * 1000)
        kinds = Counter(type(each.request).__name__ for each in broker.seen)
        for _ in range(2):  # The query becomes idle, and watches all leaders.
            reader.latestOffset(end, reader.getDefaultReadLimit())
        broker.forget()
        started = time.monotonic()
        asked = 0
        while time.monotonic() - started < IDLE_SECONDS:
            reader.latestOffset(end, reader.getDefaultReadLimit())
            asked += 1
        idle_seconds = time.monotonic() - started
        idle = len(broker.seen)
        reader.stop()
    return {
        **{f"{name} a trigger": count / triggers for name, count in sorted(kinds.items())},
        "CPU of a trigger, ms": statistics.median(cpu_ms),
        "entry in the checkpoint, bytes": len(json.dumps(end)),
        "input partitions": len(planned),
        "input partitions, bytes": sum(len(pickle.dumps(each)) for each in planned),
        "idle: triggers a second": asked / idle_seconds,
        "idle: requests a second": idle / idle_seconds,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--brokers", type=int, default=100)
    parser.add_argument("--triggers", type=int, default=5)
    parser.add_argument("--together", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
