"""The account of all stages, kept up to date from the topics and the notes."""

import time
from collections.abc import Callable
from pathlib import Path

from tools.reliability.group_driver import ranges_of
from tools.soak.cast import SHARING
from tools.soak.judge import Stage, Verdict, judge_consumer, judge_group
from tools.soak.ledger import NumbersAt, Truth, read_ledger
from tools.soak.lines import Lines
from tools.soak.rows import COPIES, FACTOR, ORDERS, PARTITIONS, number_in
from tools.soak.topics import TopicReader

WRITTEN, COPIED = "written by `KafkaProducer`", "copied by Spark, exactly once"
SHARED, CONSUMED = "read by two queries of a group", "read by `KafkaConsumer`"
_LOOK_AGAIN_SECONDS = 5.0


class Account:
    """Verdicts by stage. Memory grows by a few bytes for each row."""

    def __init__(self, servers: str, directory: Path) -> None:
        self._directory = directory
        self._orders = TopicReader(servers, ORDERS, PARTITIONS)
        self._copies = TopicReader(servers, COPIES, PARTITIONS)
        self._ledger, self._notes = Lines(directory / "ledger"), Lines(directory / "notes")
        self._truth = Truth()
        self._numbers = NumbersAt()
        self._written, self._copied, self._consumed = Stage(), Stage(), Stage()
        self._committed: dict[int, int] = {}

    def end(self) -> int:
        """Return the number after the last row of the ledger."""
        read_ledger(self._ledger.advance(), self._truth)
        return self._truth.end

    def verdicts(self, until: int) -> dict[str, Verdict]:
        """Read on, and judge. Rows from `until` on do not count as missing yet."""
        # Read the group before the topic, and the topic before the ledger: so every seen row is
        # known.
        shared = {name: ranges_of(self._home(name)) for name in SHARING}
        judge_consumer(self._notes.advance(), self._consumed, self._committed)
        for message in self._copies.advance():
            self._copied.saw(number_in(message.key(), message.value(), FACTOR))
        for message in self._orders.advance():
            number = number_in(message.key(), message.value())
            self._written.saw(number)
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._numbers.put(partition, offset, -1 if number is None else number)
        read_ledger(self._ledger.advance(), self._truth)
        stages = {
            WRITTEN: self._written,
            COPIED: self._copied,
            SHARED: judge_group(shared, self._numbers),
            CONSUMED: self._consumed,
        }
        return {name: stage.verdict(self._truth, until) for name, stage in stages.items()}

    def await_end(
        self, until: int, patience_seconds: float, meanwhile: Callable[[], object]
    ) -> dict[str, Verdict]:
        """Judge repeatedly until there is no anomaly, or until the timeout.

        After a move of a leader, a reader may see less than another one for a moment.
        """
        deadline = time.monotonic() + patience_seconds
        while True:
            found = self.verdicts(until)
            if not any(each.anomalies for each in found.values()) or time.monotonic() > deadline:
                return found
            meanwhile()
            time.sleep(_LOOK_AGAIN_SECONDS)

    def _home(self, name: str) -> Path:
        return self._directory / name.replace(" ", "-")
