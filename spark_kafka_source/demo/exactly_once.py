"""`python -m spark_kafka_source.demo.exactly_once`: a query that is killed, and its rows, counted.

A query copies a topic, exactly once. A second one beside it copies the same topic at least once, to
compare. Their driver is a process of its own. The demo kills it at a random moment of a
micro-batch, with its JVM and its Python workers, and shows the transactions that are open then. It
starts a new driver on the same checkpoints, and shows the end of these transactions. It does this
three times. At the end it counts how many events are lost, and how many are doubled. It ends by
itself, or by Ctrl-C: the first one stops all in order, the second one ends it at once.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.admin.transactions import ABORTED, ONGOING
from spark_kafka_source.consumer.read_topic import read_topic
from spark_kafka_source.demo.copying import AT_LEAST_ONCE, EXACTLY_ONCE, ROWS_PER_BATCH, copy_of
from spark_kafka_source.demo.driver import Driver
from spark_kafka_source.demo.events import Written, send
from spark_kafka_source.demo.running import Claim, Stage, exit_status, folder, python, say
from spark_kafka_source.errors import LocalError
from spark_kafka_source.exactly_once.repair import task_transactions
from spark_kafka_source.producer import KafkaProducer

_TOPIC, _PARTITIONS = "events", 4
_COPY = copy_of(_TOPIC, EXACTLY_ONCE)
_KILLS = 3
# A driver copies two micro-batches. It is killed amid the third.
_ROWS_PER_DRIVER = 3 * ROWS_PER_BATCH
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 300


@dataclass(frozen=True)
class _Open:
    """The transactions that a killed driver has left open."""

    transactional_ids: tuple[str, ...] = ()
    decided: int = 0
    """How many of them the driver had decided to commit."""
    rows: int = 0


@dataclass(frozen=True)
class _Copy:
    """The rows of a copy."""

    committed: int
    """Rows that a reader of committed records sees."""
    distinct: int
    """Different events among them, of those that were written."""
    in_log: int
    """Rows that a reader of uncommitted records sees."""


def main() -> int:
    """Run the demo. Return 1 if a row is lost or doubled, else 0."""
    about = str(__doc__).partition("\n\n")[2]
    name = "python -m spark_kafka_source.demo.exactly_once"
    parser = argparse.ArgumentParser(prog=name, description=about)
    parser.add_argument("--kills", type=int, default=_KILLS, help="how often the driver is killed")
    return exit_status(partial(_show, parser.parse_args().kills), _invite)


def _show(kills: int, stage: Stage) -> list[Claim]:
    """Kill drivers, and return what the copies show."""
    say(
        f"{stage.what_runs()}\n\n"
        f"Two queries copy numbered events from '{_TOPIC}': one exactly once, and one at\n"
        "least once, to compare. Their driver is killed at random moments, with its JVM\n"
        "and its Python workers.\n"
    )
    for topic in (_TOPIC, _COPY, copy_of(_TOPIC, AT_LEAST_ONCE)):
        stage.kafka.create_topic(topic, partitions=_PARTITIONS)
    written = Written()
    with (
        KafkaProducer(bootstrap_servers=stage.servers) as producer,
        folder() as directory,
        _drivers(stage, directory) as drivers,
    ):
        for is_last in [False] * kills + [True]:
            send(producer, _TOPIC, _ROWS_PER_DRIVER, written)
            drivers.start()
            if not is_last:
                drivers.kill()
        producer.flush()
        drivers.finish()
    return _counted(stage, written)


class _Drivers:
    """Drivers that come one after the other on the same checkpoints."""

    def __init__(self, stage: Stage, admin: KafkaAdmin, directory: Path) -> None:
        self._stage, self._admin, self._directory = stage, admin, directory
        self._checkpoint = directory / EXACTLY_ONCE
        self._driver: Driver | None = None
        self._number, self._open = 0, _Open()
        self._random = Random()
        self._began_seconds = time.monotonic()

    def start(self) -> None:
        """Start a driver. Wait for a micro-batch of it. Say what it did with open transactions."""
        self._number += 1
        batch_id = self._last("commits") + 1
        self._say(f"driver {self._number} starts" + " on the same checkpoints" * (self._number > 1))
        arguments = (self._stage.servers, _TOPIC, str(self._directory))
        self._driver = Driver("spark_kafka_source.demo.copying", arguments, self._directory)
        self._wait(lambda: self._last("commits") >= batch_id)
        self._say(f"driver {self._number} has {self._ends()}finished micro-batch {batch_id}")

    def kill(self) -> None:
        """Let the driver copy one more micro-batch. Kill it at a random moment of the next one."""
        second = self._last("commits") + 1
        self._wait(lambda: self._last("offsets") > second)
        self._stage.pause(self._random.uniform(0, self._seconds_of(second)))
        count = self.close()
        begun, committed = self._last("offsets"), self._last("commits")
        moment = f"amid micro-batch {begun}" if begun > committed else "between two micro-batches"
        self._say(f"SIGKILL to the {count} processes of driver {self._number}, {moment}:")
        self._open = self._left_open()
        say(f"        {_said_of(self._open)}")

    def finish(self) -> None:
        """Let the last driver copy the rest, and end."""
        assert self._driver  # noqa: S101 (for mypy: it was started)
        self._driver.tell()
        self._wait(self._driver.has_ended)
        self._say(f"driver {self._number} has copied the rest, and ended")

    def close(self) -> int:
        """Kill the driver, wherever it is. Return the number of its processes."""
        return self._driver.kill() if self._driver else 0

    def _wait(self, until: Callable[[], bool]) -> None:
        """Wait. Raises `LocalError` if the driver fails, and what `Stage.pause` raises."""
        assert self._driver  # noqa: S101 (for mypy: it was started)
        end_seconds = time.monotonic() + _PATIENCE_SECONDS
        while not until():
            self._stage.pause(_LOOK_SECONDS)
            self._driver.has_ended()
            if time.monotonic() > end_seconds:
                raise LocalError(f"A driver does not go on for {_PATIENCE_SECONDS} seconds")

    def _last(self, log: str) -> int:
        """Return the last micro-batch in a log of the checkpoint; -1 if there is none.

        Spark notes a micro-batch in `offsets` when it begins, and in `commits` when it is done.
        """
        names = (each.name for each in (self._checkpoint / log).glob("[0-9]*"))
        return max(map(int, names), default=-1)

    def _seconds_of(self, batch_id: int) -> float:
        """Return how long a micro-batch took."""
        logs = (self._checkpoint / name / str(batch_id) for name in ("offsets", "commits"))
        began, ended = (log.stat().st_mtime for log in logs)
        return ended - began

    def _left_open(self) -> _Open:
        """Return what the driver that was killed has left open in the copy."""
        listed = self._admin.list_transactions(states=[ONGOING])
        described = self._admin.describe_transactions(each.transactional_id for each in listed)
        tasks = task_transactions(self._admin.client, described)
        return _Open(
            tuple(tasks),
            sum(task.is_decided for task in tasks.values()),
            sum(partition.offsets_held_up for partition in self._admin.held_up([_COPY])),
        )

    def _ends(self) -> str:
        """Say how the transactions have ended that the driver before this one has left open."""
        found = self._admin.describe_transactions(self._open.transactional_ids)
        # An id is used again after a commit, never after an abort.
        aborted = sum(each.state in ABORTED for each in found)
        self._open = _Open()
        counts = {"aborted": aborted, "committed": len(found) - aborted}
        return "".join(f"{word} {count} of them, and " for word, count in counts.items() if count)

    def _say(self, text: str) -> None:
        say(f"{time.monotonic() - self._began_seconds:4.0f} s  {text}")


@contextlib.contextmanager
def _drivers(stage: Stage, directory: Path) -> Iterator[_Drivers]:
    with KafkaAdmin(bootstrap_servers=stage.servers) as admin:
        drivers = _Drivers(stage, admin, directory)
        try:
            yield drivers
        finally:
            drivers.close()


def _said_of(left: _Open) -> str:
    count = len(left.transactional_ids)
    if not count:
        return "no transaction is open"
    them = "it" if count == 1 else "them"
    if not left.decided:
        next_driver = f"not decided, the next driver aborts {them}"
    elif left.decided == count:
        next_driver = f"decided, the next driver commits {them}"
    else:
        next_driver = f"{left.decided} decided, the next driver commits these alone"
    words = "transaction" if count == 1 else "transactions"
    return f"{count} {words} open, {left.rows:,} rows: {next_driver}"


def _counted(stage: Stage, written: Written) -> list[Claim]:
    """Read both copies, and return what was counted."""
    events = set(_values(stage, _TOPIC))
    copies = (_copy(stage, each, events) for each in (EXACTLY_ONCE, AT_LEAST_ONCE))
    return _claims(written, len(events), *copies)


def _claims(written: Written, events: int, once: _Copy, at_least: _Copy) -> list[Claim]:
    """Return what was counted, each with whether it is as it should be."""
    count, again = written.count, at_least.committed - at_least.distinct
    lost, doubled = count - once.distinct, once.committed - once.distinct
    by_chance = (
        "" if again else "\n       (no kill came between a row and the end of its micro-batch)"
    )
    return [
        (
            written.acknowledged == events == count,
            f"produced: {count:,} events into '{_TOPIC}', {written.acknowledged:,} acknowledged",
        ),
        (
            lost == doubled == 0,
            f"exactly once: {once.committed:,} rows, read with read_committed:\n"
            f"       {lost:,} events are lost, {doubled:,} are doubled\n"
            f"       ({once.in_log - once.committed:,} more rows, of killed drivers, are aborted)",
        ),
        (
            at_least.distinct == count,
            f"at least once: {at_least.committed:,} rows:\n"
            f"       {count - at_least.distinct:,} events are lost, {again:,} are doubled"
            f"{by_chance}",
        ),
    ]


def _copy(stage: Stage, guarantee: str, events: set[bytes]) -> _Copy:
    topic = copy_of(_TOPIC, guarantee)
    committed = _values(stage, topic)
    in_log = _values(stage, topic, "read_uncommitted")
    return _Copy(len(committed), len(events.intersection(committed)), len(in_log))


def _values(stage: Stage, topic: str, isolation_level: str = "read_committed") -> list[bytes]:
    table = read_topic(
        topic,
        columns=["value"],
        bootstrap_servers=stage.servers,
        isolation_level=isolation_level,
    )
    return list(table.column("value").to_pylist())


def _invite(_: Stage) -> None:
    """Say what to try next."""
    say(
        "\nWhat to try next:\n"
        f"  {python()} -m spark_kafka_source.demo.exactly_once --kills 10\n"
        "      more of it\n"
        "  notebooks/exactly_once.ipynb\n"
        "      the same step by step, and a picture of it\n"
        "  docs/exactly-once.md\n"
        "      what a query must set, what it can rely on, and what can go wrong"
    )


if __name__ == "__main__":
    sys.exit(main())
