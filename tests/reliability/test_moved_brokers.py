"""Names that do not resolve, changed addresses, dead connections, and brokers that all move."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from spark_kafka_source import KafkaConsumer
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.testing.ports import free_ports
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import fill
from tests.reliability.conftest import Trial
from tools.reliability.deaf.clients import OURS, OURS_848, Client
from tools.reliability.deaf.diary import Diary, missed, now_ms
from tools.reliability.deaf.frozen import Seen
from tools.reliability.deaf.running import Patience, name, running
from tools.reliability.deaf.sockets import Line
from tools.reliability.deaf.traffic import Traffic
from tools.traffic import wait_until

BOTH = (OURS, OURS_848)
RECOVERY_SECONDS = 25.0
POLL_SECONDS = 4.0  # Less than `BROKEN_MS`.
PATIENCE_SECONDS = 40.0
HOST = "kafka.example.org"
T0 = TopicPartition("t", 0)
# That no answer comes is known after the request's timeout, half a minute by default.
BROKEN_MS = 5_000


class Names:
    """The meaning of `HOST`: a port of the loopback. None means that the name does not resolve."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.port: int | None = None
        self.failed = 0
        self._resolve = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._found)

    def _found(self, host: Any, port: Any, *more: Any, **named: Any) -> Any:
        if host != HOST:
            return self._resolve(host, port, *more, **named)
        if self.port is None:
            self.failed += 1
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return self._resolve("127.0.0.1", self.port, *more, **named)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    return Names(monkeypatch)


@contextmanager
def consuming(broker: MemoryBroker) -> Iterator[KafkaConsumer]:
    """Yield a consumer that knows only a broker's name, with default settings."""
    broker.held_step_seconds = 0.002
    with KafkaConsumer(bootstrap_servers=f"{HOST}:9092", auto_offset_reset="earliest") as consumer:
        consumer.assign([T0])
        yield consumer


def read(consumer: KafkaConsumer, until: Callable[[list[int]], bool]) -> tuple[list[int], float]:
    """Read until the condition holds of the offsets. Return them and the seconds that it took."""
    began, offsets = time.monotonic(), list[int]()
    while not until(offsets):
        assert time.monotonic() - began < PATIENCE_SECONDS, offsets
        records = consumer.poll(100)
        if len(records):
            offsets += records.to_arrow()["offset"].to_pylist()
    return offsets, time.monotonic() - began


def test_a_name_that_cannot_be_resolved_for_a_while(names: Names, trial: Trial) -> None:
    with MemoryBroker() as broker, consuming(broker) as consumer:
        broker.create_topic("t")
        fill(broker, T0, 1)
        read(consumer, lambda offsets: names.failed >= 3)
        names.port = broker.address().port
        offsets, seconds = read(consumer, lambda offsets: len(offsets) >= 10)
    done = "a name that cannot be resolved, and then can"
    trial.report("18", done, f"records after {seconds:.1f} s")
    assert offsets == list(range(10))
    assert seconds < RECOVERY_SECONDS


def test_a_name_that_stands_for_another_address(names: Names, trial: Trial) -> None:
    """All known brokers are gone, too. A new bootstrap finds the others (KIP-899)."""
    with MemoryBroker() as before, MemoryBroker() as after:
        after.held_step_seconds = 0.002
        names.port = before.address().port
        (log,) = before.create_topic("t")
        fill(before, T0, 1)
        topic_id = before.cluster.topics["t"].topic_id
        after.create_topic("t", topic_id=topic_id)
        fill(after, T0, 2)
        with consuming(before) as consumer:
            read(consumer, lambda offsets: len(offsets) >= len(log.batches))
            position = consumer.position(T0)
            before.stop(0)
            names.port = after.address().port
            end = 20
            offsets, seconds = read(consumer, lambda offsets: offsets[-1:] == [end - 1])
        before.start(0)
    done = "a name that stands for another address, all known brokers gone"
    trial.report("18", done, f"records after {seconds:.1f} s; lost 0, doubled 0")
    assert offsets == list(range(position, end))
    assert seconds < RECOVERY_SECONDS


def groups(prefix: str, **more: object) -> Callable[[Client], dict[str, object]]:
    """Return a function that gives each client settings with its own group."""

    def settings(client: Client) -> dict[str, object]:
        dotted = {option.replace("_", "."): value for option, value in more.items()}
        group_id = f"{prefix}-{client.protocol}"
        return {"group.id": group_id, "enable.auto.commit": "false", **dotted}

    return settings


@pytest.mark.kafka
@pytest.mark.long
def test_three_brokers_that_come_back_on_other_ports(trial: Trial) -> None:
    """The bootstrap address is a proxy's or a name's. Only its target changes."""
    line, topic = Line(), name("moved")
    places = [(topic, each) for each in range(3)]
    orders = (f"subscribe {topic}", "every 300")
    with line.serving() as address, LocalKafka(3) as kafka:
        line.target_port = kafka.broker(1).node.client_port
        kafka.create_topic(topic, len(places))
        once, twice = dict.fromkeys(places, 10), dict.fromkeys(places, 20)
        with Traffic(kafka.bootstrap_servers, []) as traffic:
            traffic.fill(once)
        with running(BOTH, address, groups(topic), *orders) as members:
            diaries = [each.diary for each in members]
            wait_until(lambda: all(each.reached() == once for each in diaries))
            wait_until(lambda: all(each.succeeded_after_ms("commit", 0) for each in diaries))
            kafka.kill()
            line.target_port, *_ = move(kafka)
            kafka.start()
            moved_ms = now_ms()
            with Traffic(address, []) as traffic:
                traffic.fill(once)

            def is_back(diary: Diary) -> bool:
                committed_ms = diary.succeeded_after_ms("commit", moved_ms)
                return committed_ms is not None and diary.reached() == twice

            back_ms = Patience(PATIENCE_SECONDS).until(lambda: all(map(is_back, diaries)))
            counted = [missed([each], twice) for each in diaries]
    seconds = PATIENCE_SECONDS if back_ms is None else (back_ms - moved_ms) / 1000
    trial.report(
        "18",
        "three brokers that come back on other ports, one of them at the bootstrap address",
        f"records and commits, classic and KIP-848, after {seconds:.1f} s; lost "
        f"{sum(lost for lost, _ in counted)}, doubled {sum(doubled for _, doubled in counted)}",
    )
    assert not any(lost for lost, _ in counted)
    assert seconds < RECOVERY_SECONDS, [each.errors() for each in diaries]


def move(kafka: LocalKafka) -> list[int]:
    """Give each broker another client port from its next start on."""
    ports = free_ports(len(kafka.brokers))
    for broker, port in zip(kafka.brokers, ports, strict=True):
        text = broker.properties.read_text()
        old = f"CLIENT://{broker.bootstrap_servers}"
        assert text.count(old) == 2
        broker.properties.write_text(text.replace(old, f"CLIENT://127.0.0.1:{port}"))
    return ports


@pytest.mark.kafka
@pytest.mark.long
def test_connections_that_lead_nowhere(trial: Trial) -> None:
    """The connections are half open: neither end is told that they ended."""
    line, topic = Line(), name("half-open")
    orders = (f"subscribe {topic}", "every 300")
    with line.serving() as address, LocalKafka(advertised_ports=[int(address[10:])]) as kafka:
        line.target_port = kafka.broker(1).node.client_port
        kafka.create_topic(topic)
        with (
            Traffic(f"127.0.0.1:{line.target_port}", [(topic, 0)]) as traffic,
            running(BOTH, address, groups(topic, request_timeout_ms=BROKEN_MS), *orders) as members,
        ):
            wait_until(lambda: all(each.diary.succeeded_after_ms("commit", 0) for each in members))
            line.cut()
            seen = Seen(traffic, now_ms())
            Patience(PATIENCE_SECONDS).until(lambda: all(map(seen.has_recovered, members)))
            until_ms = now_ms()
            traffic.stop()
            ends = traffic.ends()
            Patience(PATIENCE_SECONDS).until(
                lambda: all(each.diary.reached() == ends for each in members)
            )
            outcomes = [
                seen.outcome(each, [(topic, 0)], ends, until_ms, each.diary.longest_poll_ms())
                for each in members
            ]
    for each in outcomes:
        done = f"half-open connections, request.timeout.ms {BROKEN_MS}: {each.client.name}"
        trial.report("15", done, str(each))
    assert not any(each.lost for each in outcomes)
    late = [each.exceeding(RECOVERY_SECONDS, POLL_SECONDS) for each in outcomes]
    assert not any(late), late
