"""A record to each partition ten times a second, and the list of acknowledged ones."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from threading import Event, Thread
from typing import Any, Self

from confluent_kafka import Producer

from tools.reliability.deaf.diary import Where, now_ms

_EVERY_SECONDS = 0.1
_LAST_SECONDS = 60
_SETTINGS = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "log_level": 0,
    # The writer must find another leader sooner than any reader does.
    "socket.timeout.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 500,
    "retry.backoff.ms": 50,
}


class Traffic:
    """Writes for the time of the context, or until `stop`. Its partitions have no other writer.

    `written` has when each record was handed to the producer, by partition and offset.
    """

    def __init__(self, servers: str, partitions: Iterable[Where]) -> None:
        self._producer = Producer({"bootstrap.servers": servers, **_SETTINGS})
        self._partitions = list(partitions)
        self._stopped = Event()
        self._thread = Thread(target=self._run)
        self.written: dict[Where, dict[int, int]] = defaultdict(dict)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopped.wait(_EVERY_SECONDS):
            for where in list(self._partitions):
                self._write(where)
            self._producer.poll(0)

    def _write(self, where: Where) -> None:
        queued_ms = now_ms()

        def delivered(error: object, message: Any) -> None:
            if error is None:
                self.written[where][message.offset()] = queued_ms

        topic, partition = where
        self._producer.produce(topic, b"", partition=partition, on_delivery=delivered)

    def fill(self, ends: Mapping[Where, int]) -> None:
        """Write so many records to each of these partitions, and wait."""
        for where, end in ends.items():
            for _ in range(end):
                self._write(where)
        assert self._producer.flush(_LAST_SECONDS) == 0

    def leave(self, topic: str) -> None:
        """Stop writing to one topic."""
        self._partitions = [each for each in self._partitions if each[0] != topic]

    def stop(self) -> None:
        """Stop writing, and wait until all records are acknowledged, or have failed."""
        self._stopped.set()
        self._thread.join()
        self._producer.flush(_LAST_SECONDS)

    def ends(self) -> dict[Where, int]:
        """Return the offset after the last acknowledged record of each partition written to."""
        return {where: max(list(self.written[where]), default=-1) + 1 for where in self._partitions}

    def first_since(self, where: Where, moment_ms: int) -> int | None:
        """Return the offset of the first acknowledged record written since then; None if none."""
        since = [at for at, queued_ms in list(self.written[where].items()) if queued_ms > moment_ms]
        return min(since, default=None)
