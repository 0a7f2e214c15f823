"""Progress messages of a task in a long batch."""

import pytest

from spark_kafka_source.fetch import OffsetRange
from spark_kafka_source.records import Chunk
from spark_kafka_source.records.chunk import Parts
from spark_kafka_source.spark.source.progress import EVERY_SECONDS, Progress
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1


class Clock:
    """Clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def chunk(where: TopicPartition, next_offset: int) -> Chunk:
    return Chunk(where, 0, next_offset, Parts((), ()), next_offset)


def progress(lines: list[str], clock: Clock) -> Progress:
    ranges = (OffsetRange(A0, 100, 300), OffsetRange(A1, 0, 200))
    return Progress(ranges, 2, 5, show=lines.append, clock=clock)


def test_a_short_task_says_nothing() -> None:
    lines: list[str] = []
    clock = Clock()
    task = progress(lines, clock)
    clock.seconds += EVERY_SECONDS - 0.1
    task.read(chunk(A0, 300), 150)
    task.finished()
    assert lines == []


def test_a_long_task_says_now_and_then_how_far_it_is() -> None:
    lines: list[str] = []
    clock = Clock()
    task = progress(lines, clock)
    clock.seconds += 10
    task.read(chunk(A0, 200), 80)
    task.read(chunk(A0, 300), 80)
    clock.seconds += 10
    task.read(chunk(A1, 200), 200)
    task.finished()
    what = "pykafka: partition 2 of 5, a-0 and 1 more:"
    assert lines == [
        f"{what} 25% of 400 offsets, 80 rows, 0 B, 8 rows/s, 30 s left",
        f"{what} 100% of 400 offsets, 360 rows, 0 B, 18 rows/s, 0 s left",
        f"{what} 100% of 400 offsets, 360 rows, 0 B, 18 rows/s, done in 20 s",
    ]


def test_nothing_read_so_far_is_no_error() -> None:
    lines: list[str] = []
    clock = Clock()
    task = progress(lines, clock)
    clock.seconds += 10
    task.read(chunk(A0, 100), 0)
    assert len(lines) == 1


def test_it_says_so_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    task = Progress((OffsetRange(A0, 0, 10),), 1, 1, clock=clock)
    clock.seconds += 10
    task.read(Chunk(A0, 0, 10, Parts((), ()), 5), 5)
    captured = capsys.readouterr()
    assert "partition 1 of 1, a-0: 50% of 10 offsets, 5 rows" in captured.err
    assert captured.out == ""
