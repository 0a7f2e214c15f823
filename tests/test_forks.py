"""Forks: a child raises at once where it uses its parent's clients, and harms them in nothing."""

import gc
import inspect
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer, TopicPartition
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.forks import ForkedError, OwnProcess, used_where_made
from spark_kafka_source.net import Deadline
from spark_kafka_source.net.sasl.tokens import RefreshSettings, token_cache
from spark_kafka_source.protocol.messages.membership import LeaveGroupRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.registry import RegistryClient
from spark_kafka_source.spark.pool import Pool
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.memory import MemoryBroker
from tests.forking import PATIENCE_SECONDS, forking, in_child, raised_in_child
from tests.registry.conftest import config
from tools.certificates import authority, certified_by
from tools.ports import LOOPBACK

pytestmark = [forking, pytest.mark.memory(topics={"t": 2})]

CLIENTS: list[type[Any]] = [KafkaAdmin, KafkaConsumer, KafkaProducer, RegistryClient]


_ARGUMENTS = {"send": ("t",)}
"""The arguments of a method that checks the process itself."""


def made(client: type[Any], broker: MemoryBroker) -> Any:
    if client is RegistryClient:
        return RegistryClient(config("http://127.0.0.1:9"))
    return client(bootstrap_servers=str(broker.address()))


def public(client: type[Any]) -> list[str]:
    """Return the names of all public methods and properties, also those of the language."""
    names = [name for name, _ in inspect.getmembers(client) if not name.startswith("_")]
    special = ("__enter__", "__iter__")
    return [*names, *(name for name in special if hasattr(client, name))]


def use(client: Any, name: str) -> None:
    found = getattr(client, name)
    if callable(found):
        found(*_ARGUMENTS.get(name, ()))


# -- every call ------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.__name__)
def test_every_public_call_raises_at_once_in_a_child(
    broker: MemoryBroker, client: type[Any]
) -> None:
    names = [each for each in public(client) if each != "of"]  # `of` makes a producer.
    assert len(names) > 5
    found = made(client, broker)

    def wrong() -> list[str]:
        return [each for each in names if not isinstance(outcome(each), ForkedError)]

    def outcome(name: str) -> Exception | None:
        try:
            use(found, name)
        except Exception as error:
            return error
        return None

    assert in_child(wrong) == []
    found.close()


def test_the_error_names_the_fork_and_says_what_to_do(broker: MemoryBroker) -> None:
    with KafkaProducer(bootstrap_servers=str(broker.address())) as producer:
        error = raised_in_child(producer.flush)
    assert isinstance(error, ForkedError)
    assert not error.retriable
    for part in ("This producer", "a fork of it", "Make the producer in the child"):
        assert part in str(error)


def test_what_the_decorator_leaves_as_it_was() -> None:
    for client in CLIENTS:
        for name in public(client):
            member = inspect.getattr_static(client, name)
            assert name.startswith("_") or inspect.getdoc(member), f"{client.__name__}.{name}"
    parameters = inspect.signature(KafkaConsumer.poll).parameters
    assert list(parameters) == ["self", "timeout_ms"]


def test_a_block_in_a_child_ends_without_a_word() -> None:
    ended = []

    @used_where_made
    class Client:
        def __init__(self) -> None:
            self._process = OwnProcess("client")

        def __enter__(self) -> "Client":
            return self

        def __exit__(self, *_: object) -> None:
            ended.append(1)

    def end() -> list[int]:
        client.__exit__(None, None, None)
        return ended

    with Client() as client:
        assert in_child(end) == []
    assert ended == [1]


FORKED_IN_C = """
import ctypes, os, sys, threading, time
from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer

(servers,) = sys.argv[1:]
admin = KafkaAdmin(bootstrap_servers=servers)
producer = KafkaProducer(bootstrap_servers=servers)
producer.send("t", b"before").result(60)
# Such a fork copies the interpreter's lock as it is. While another thread waits for it, the copy
# may be of no use. So all others must sleep: the producer's thread, which waits for sockets. It is
# in `select` also while it waits for that lock. So it gets time to go on before each look.
def sleeping():
    frames = [frame for number, frame in sys._current_frames().items() if number != me]
    return [each.f_code.co_name for each in frames] == ["select"]

me = threading.get_ident()
time.sleep(0.01)
while not sleeping():
    time.sleep(0.01)
child = ctypes.PyDLL(None).fork()  # Holds the interpreter's lock, and tells it nothing.
if child == 0:
    for call in (admin.list_topics, producer.flush, producer.close):
        try:
            call()
        except Exception as error:
            print(type(error).__name__, flush=True)
    with KafkaProducer(bootstrap_servers=servers) as own:
        print(own.send("t", b"child").result(60).topic, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(producer.send("t", b"after").result(60).topic)
producer.close()
"""


def test_a_fork_of_which_python_is_not_told(broker: MemoryBroker) -> None:
    """A server in C forks so, such as uWSGI."""
    command = [sys.executable, "-c", FORKED_IN_C, str(broker.address())]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.split() == ["ForkedError"] * 3 + ["t"] * 2, ran.stderr


# -- futures ---------------------------------------------------------------------------------------


def future_calls(future: Any) -> list[Callable[[], Any]]:
    return [
        future.done,
        future.result,
        future.exception,
        lambda: future.result(10),
        lambda: future.add_done_callback(print),
    ]


@pytest.mark.parametrize("columns", [False, True], ids=["send", "send_columns"])
def test_futures(broker: MemoryBroker, *, columns: bool) -> None:
    with KafkaProducer(bootstrap_servers=str(broker.address()), linger_ms=0) as producer:

        def send() -> Any:
            if columns:
                return producer.send_columns("t", pa.table({"value": [b"v"]}))
            return producer.send("t", b"v")

        known = send()
        expected = known.result(PATIENCE_SECONDS)
        hold = broker.hold(ProduceRequest)
        unknown = send()
        broker.wait_for(ProduceRequest, 2)
        for call in future_calls(unknown):
            assert isinstance(raised_in_child(call), ForkedError)
        assert in_child(known.result) == expected
        assert in_child(known.done)
        hold.release()
        unknown.result(PATIENCE_SECONDS)


# -- sockets ---------------------------------------------------------------------------------------


def test_no_request_of_a_child_goes_over_the_parents_connection(broker: MemoryBroker) -> None:
    """A client of ours without a check of its own, such as an admin's, cannot do so either."""
    with KafkaClient(broker.config()) as client:
        client.run(client.topics(["t"], Deadline.after_ms(30_000)))
        broker.forget()

        def ask() -> None:
            client.run(client.topics(["t"], Deadline.after_ms(30_000)))

        assert isinstance(raised_in_child(ask), ForkedError)
        assert broker.requests(MetadataRequest) == []
        assert isinstance(raised_in_child(client.close), type(None))
        accepted = broker.accepted()
        ask()
        assert broker.accepted() == accepted, "the parent's connection is as it was"


def test_a_child_says_nothing_on_its_parents_tls_connection(tmp_path: Path) -> None:
    """TLS would notice a byte of another, and a broker would hear of an end of the connection."""
    ca = authority()
    with MemoryBroker(tls=certified_by(ca, LOOPBACK).server_context(tmp_path)) as broker:
        admin = KafkaAdmin(
            bootstrap_servers=str(broker.address()),
            security_protocol="SSL",
            ssl_truststore_certificates=ca.certificate_pem,
        )
        admin.list_topics()
        accepted = broker.accepted()
        clients = [admin.client]

        def drop() -> None:
            clients.pop().close()
            gc.collect()

        in_child(drop)
        admin.list_topics()
        assert broker.accepted() == accepted
        admin.close()


PROGRAM = """
import gc, os, sys, time
from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer

servers, how = sys.argv[1:]
with (
    KafkaAdmin(bootstrap_servers=servers) as admin,
    KafkaProducer(bootstrap_servers=servers, linger_ms=600_000) as producer,
    KafkaProducer(bootstrap_servers=servers, linger_ms=600_000) as quiet,
    KafkaConsumer(
        bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest"
    ) as consumer,
):
    left = KafkaProducer(bootstrap_servers=servers, linger_ms=600_000)
    admin.list_topics()
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(100)
    for each in (producer, quiet, left):
        each.send("t", b"before")
    child = os.fork()
    if child == 0:
        if how == "raise":
            raise ZeroDivisionError
        if how == "collect":
            del admin, producer, quiet, consumer, left
            gc.collect()
            os._exit(3)
        sys.exit(3)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("code", code)
    for each in (producer, quiet, left):
        each.send("t", b"after")
        each.flush(30)
    left.close()
    found = []
    until = time.monotonic() + 60
    while len(found) < 6 and time.monotonic() < until:
        found += [record.value for record in consumer.poll(200)]
    print("read", sorted(found))
    print("groups", [each.group_id for each in admin.list_groups()])
"""


@pytest.mark.parametrize(
    ("how", "code"), [("exit", 3), ("raise", 1), ("collect", 3)], ids=["exit", "raise", "collect"]
)
def test_a_child_that_only_exits_does_nothing(broker: MemoryBroker, how: str, code: int) -> None:
    """Its `with` blocks, its garbage and its exit hooks have the parent's clients."""
    command = [sys.executable, "-c", PROGRAM, str(broker.address()), how]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    read = [b"after"] * 3 + [b"before"] * 3
    assert ran.stdout.splitlines() == [f"code {code}", f"read {read}", "groups ['g']"], ran.stderr
    # Only the parent left the group, and only once.
    assert len(broker.requests(LeaveGroupRequest)) == 1
    assert "Traceback" not in ran.stderr or how == "raise"


# -- a client of the child's own -------------------------------------------------------------------


class _Tokens:
    """A provider that another thread of the parent asks at the time of the fork."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def token(self) -> Any:
        self.asked.set()
        self.go_on.wait(PATIENCE_SECONDS)
        raise KafkaError("no token")


def test_a_lock_that_a_thread_of_the_parent_holds_stays_there() -> None:
    provider, refresh = _Tokens(), RefreshSettings()
    cache = token_cache(provider, refresh)
    thread = threading.Thread(target=lambda: raised(cache.token), daemon=True)
    thread.start()
    provider.asked.wait(PATIENCE_SECONDS)

    def ask() -> None:
        provider.go_on = threading.Event()
        provider.go_on.set()
        token_cache(provider, refresh).token()

    assert isinstance(raised_in_child(ask), KafkaError)
    provider.go_on.set()
    thread.join(PATIENCE_SECONDS)


def test_what_a_worker_keeps_is_not_kept_in_its_child() -> None:
    closed: list[int] = []
    kept: Pool[str, list[int]] = Pool(lambda _: [], closed.append)  # type: ignore[arg-type]
    item = kept.take("k")
    kept.put("k", item)
    item.append(1)
    kept._lock.acquire()  # As a thread of the parent may do at that moment.
    assert in_child(lambda: kept.take("k")) == []
    kept._lock.release()
    assert kept.take("k") == [1]
    assert closed == []


def numbers_written(servers: str, topic: str, first: int) -> list[int]:
    """Write ten records with a new producer, and read them with a new consumer and admin."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for each in range(first, first + 10):
            producer.send(topic, str(each).encode(), partition=1)
        producer.flush(60)
    where = TopicPartition(topic, 1)
    found: list[int] = []
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([where])
        end = consumer.end_offsets([where])[where]
        while len(found) < end:
            found += [int(each.value) for each in consumer.poll(200)]
    with KafkaAdmin(bootstrap_servers=servers) as admin:
        assert [each.name for each in admin.describe_topics([topic])] == [topic]
    return sorted(found)


def child_of_multiprocessing(servers: str, topic: str, results: Any, parents: Any) -> None:
    results.put([raised(call) for call in parents])
    results.put(numbers_written(servers, topic, 0))


def raised(call: Callable[[], Any]) -> str:
    try:
        call()
    except KafkaError as error:
        return type(error).__name__
    return "nothing"


@pytest.mark.kafka
def test_parent_and_child_work_side_by_side(kafka: LocalKafka, topic: str) -> None:
    """The parent's producer, consumer and admin are at work while the child has its own."""
    kafka.create_topic(topic, 2)
    servers = kafka.bootstrap_servers
    with ExitStack() as stack:
        producer = stack.enter_context(KafkaProducer(bootstrap_servers=servers, linger_ms=1))
        consumer = stack.enter_context(
            KafkaConsumer(bootstrap_servers=servers, group_id=topic, auto_offset_reset="earliest")
        )
        admin = stack.enter_context(KafkaAdmin(bootstrap_servers=servers))
        consumer.subscribe([topic])
        sent = [producer.send(topic, str(each).encode(), partition=0) for each in range(100)]
        found = [each.value for each in consumer.poll(5_000)]
        admin.list_topics()
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        parents = [
            lambda: producer.send(topic, b"child"),
            producer.flush,
            producer.close,
            consumer.poll,
            consumer.commit,
            consumer.close,
            admin.list_topics,
            admin.close,
        ]
        child = context.Process(
            target=child_of_multiprocessing, args=(servers, topic, results, parents)
        )
        child.start()
        sent += [producer.send(topic, str(each).encode(), partition=0) for each in range(100, 200)]
        assert results.get(timeout=60) == ["ForkedError"] * len(parents)
        assert results.get(timeout=60) == list(range(10))
        child.join(60)
        assert child.exitcode == 0
        places = [each.result(60).offset for each in sent]
        assert places == list(range(200))
        deadline = Deadline.after_ms(60_000)
        while len(found) < 210:
            assert not deadline.expired
            found += [each.value for each in consumer.poll(500)]
        consumer.commit()
        assert len(found) == 210
        assert topic in [each.name for each in admin.list_topics()]
    gc.collect()
