"""Logs after the cleaner's work: reads pass over gaps, empty batches and deleted records.

An idempotent producer's last batch stays when all its records are gone, and is empty then.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.parity.scenario import OURS, PEER
from tests.reliability.conftest import Trial
from tests.reliability.readers import Row, Streams, by_confluent, by_spark
from tests.spark_session import Start
from tools.traffic import Events, Writer, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.peer, pytest.mark.long]

PARTITIONS = 2
PRODUCERS, ROWS = 6, 60
RANGES = 3
COMPACTED = {
    "cleanup_policy": "compact,delete",  # else DeleteRecords is refused; nothing is that old
    "internal_segment_bytes": "1000",
    "segment_index_bytes": "1000",
    "min_cleanable_dirty_ratio": "0",
    "delete_retention_ms": "0",
    "file_delete_delay_ms": "0",
}


@pytest.fixture(scope="module")
def cleaning_kafka() -> Iterator[LocalKafka]:
    """A broker whose cleaner is nearly always at work."""
    with LocalKafka(properties={"log.cleaner.backoff.ms": "50"}) as kafka:
        yield kafka


def test_what_compaction_leaves_is_read_as_others_read_it(
    spark: SparkSession, cleaning_kafka: LocalKafka, topic: str, start: Start, trial: Trial
) -> None:
    written = left = compared = differ = emptied = 0
    for turn in range(trial.rounds):
        events = Events(cleaning_kafka, f"{topic}-{turn}")
        events.create(PARTITIONS, **COMPACTED)
        written += write(events, trial.chance)
        await_cleaner(events)
        emptied += emptied_batches(events)
        trim_some(events, trial.chance)
        expected = by_confluent(events)
        left += len(expected)
        options = events.options()
        found = [by_spark(spark, options, name) == expected for name in (OURS, PEER)]
        found += [same(spark, events, expected, trial.chance) for _ in range(RANGES)]
        limit = trial.chance.randint(10, 60)
        streams = Streams(spark, events.options(maxOffsetsPerTrigger=limit), start)
        found.append(not streams.differ())
        compared, differ = compared + len(found), differ + found.count(False)
    trial.report(
        "7",
        f"{trial.rounds} topics compacted, with {emptied} emptied batches, then trimmed: {left} of "
        f"{written} rows left; {compared} reads compared",
        f"differences from the peer and from confluent-kafka: {differ}",
    )
    assert differ == 0
    assert emptied


def write(events: Events, chance: Random) -> int:
    """Write few keys by several producers, in small batches. Sometimes delete a key."""
    for _ in range(PRODUCERS):
        settings = {"batch_num_messages": chance.randint(1, 8)}
        with Writer(events.kafka.bootstrap_servers, **settings) as writer:
            for _ in range(ROWS):
                partition, key = chance.randrange(PARTITIONS), b"%d" % chance.randrange(12)
                value = None if chance.random() < 0.1 else b"%d" % chance.randrange(10**6)
                writer.queue(events.name, value, partition=partition, key=key)
    return PRODUCERS * ROWS


def partition_directories(events: Events) -> list[Path]:
    log_dir = events.kafka.broker(1).log_dir
    return [log_dir / f"{events.name}-{each}" for each in range(PARTITIONS)]


def await_cleaner(events: Events) -> None:
    """Wait until the cleaner has cleaned all segments except the active ones."""
    wait_until(lambda: all(map(is_clean, partition_directories(events))))


def is_clean(directory: Path) -> bool:
    """Whether the cleaner's checkpoint is at the start of the active segment."""
    checkpoint = directory.parent / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
    cleaned = {"-".join(words[:2]): int(words[2]) for words in map(str.split, lines[2:])}
    active = max(int(segment.stem) for segment in directory.glob("*.log"))
    return cleaned.get(directory.name, 0) == active


def emptied_batches(events: Events) -> int:
    """Return the number of batches without records, as Kafka's own tool sees them."""
    segments = [path for each in partition_directories(events) for path in each.glob("*.log")]
    shown = events.kafka.tool("dump-log", "--files", ",".join(map(str, segments)))
    return shown.count(" count: 0 ")


def trim_some(events: Events, chance: Random) -> None:
    """Delete up to a third of a partition's records."""
    most = PRODUCERS * ROWS // PARTITIONS // 3
    events.trim({chance.randrange(PARTITIONS): chance.randint(1, most)})


def same(spark: SparkSession, events: Events, expected: list[Row], chance: Random) -> bool:
    """Whether both formats give the same rows for a range. The range may begin and end in a gap."""
    bounds = []
    for partition in range(PARTITIONS):
        offsets = [offset for each, offset, *_ in expected if each == partition]
        bounds.append(sorted(chance.randint(offsets[0], offsets[-1] + 1) for _ in range(2)))
    starts, ends = zip(*bounds, strict=True)
    found = events.options(
        startingOffsets=events.offsets(*starts), endingOffsets=events.offsets(*ends)
    )
    wanted = [row for row in expected if starts[row[0]] <= row[1] < ends[row[0]]]
    return all(by_spark(spark, found, name) == wanted for name in (OURS, PEER))
