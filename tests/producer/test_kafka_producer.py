"""A user's view of the producer: sending, futures, callbacks, closing, and errors by name."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.errors import (
    BootstrapError,
    ClosedError,
    ConfigurationError,
    KafkaTimeoutError,
    LocalError,
)
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.producer import (
    BufferFullError,
    KafkaProducer,
    ProducerConfig,
    RecordMetadata,
    TransactionStateError,
    UnknownPartitionError,
    UnsendableRecordError,
)
from spark_kafka_source.producer import sender as sender_module
from spark_kafka_source.producer.partitioners import MURMUR2
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.producer.writing import (
    HOUR_MS,
    IN_TIME,
    T0,
    answering,
    knowing,
    producing,
    values,
    written,
)
from tools.ports import LOOPBACK, refused_port

pytestmark = pytest.mark.memory(topics={"t": 1})

ROOT = Path(__file__).parents[2]
PATIENT: dict[str, Any] = {"linger_ms": HOUR_MS, "delivery_timeout_ms": 2 * HOUR_MS}


def logs_of(broker: MemoryBroker, topic: str = "t") -> list[PartitionLog]:
    return broker.cluster.topics[topic].logs


# -- one record ------------------------------------------------------------------------------------


def test_a_record_is_written_as_it_was_given(broker: MemoryBroker) -> None:
    with producing(broker, key_serializer=str.encode) as producer:
        sent = producer.send(
            "t", b"v", key="k", timestamp_ms=5_000, headers=[("h", b"1"), ("h", None), ("", b"")]
        )
        assert sent.result(IN_TIME) == RecordMetadata("t", 0, 0, 5_000, 1, 1)
        assert producer.send("t").result(IN_TIME)[4:] == (-1, -1)
    first, second = written(logs_of(broker)[0])
    assert first == (0, b"k", b"v", [("h", b"1"), ("h", None), ("", b"")], 5_000)
    assert (second.key, second.value, second.headers) == (None, None, [])


def test_a_serializer_may_add_headers(broker: MemoryBroker) -> None:
    def serialize(topic: str, headers: list[tuple[str, bytes | None]], data: Any) -> bytes:
        headers.append(("topic", topic.encode()))
        return str(data).encode()

    given: list[tuple[str, bytes | None]] = [("given", b"")]
    with producing(broker, value_serializer=serialize) as producer:
        producer.send("t", 5, headers=given).result(IN_TIME)
    (found,) = written(logs_of(broker)[0])
    assert found.value == b"5"
    assert found.headers == [("given", b""), ("topic", b"t")]
    assert given == [("given", b"")]


def test_bytes_that_change_later_are_sent_as_they_were(broker: MemoryBroker) -> None:
    value: Any = bytearray(b"before")
    header: Any = bytearray(b"before")
    with producing(broker, **PATIENT) as producer:
        producer.send("t", value, headers=[("h", header)])
        value[:], header[:] = b"after!", b"after!"
        producer.flush(IN_TIME)
    (found,) = written(logs_of(broker)[0])
    assert (found.value, found.headers) == (b"before", [("h", b"before")])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"value": "text"}, "its value cannot be sent: it is an object of type str, not bytes"),
        ({"key": 5}, "its key cannot be sent: it is an object of type int, not bytes"),
        ({"headers": [("h", 0)]}, "its headers cannot be sent: ('h', 0) is no pair"),
        ({"headers": 5}, "its headers cannot be sent: it is an object of type int"),
        ({"timestamp_ms": 1.5}, "its timestamp cannot be sent: it is an object of type float"),
        ({"timestamp_ms": -1}, "its timestamp cannot be sent: it is -1"),
        ({"timestamp_ms": 1 << 63}, "its timestamp cannot be sent: it is 9223372036854775808"),
        ({"partition": 0.5}, "its partition cannot be sent: it is an object of type float"),
        ({"partition": "0"}, "its partition cannot be sent: it is an object of type str"),
    ],
    ids=str,
)
def test_a_record_that_cannot_be_sent_is_named_and_no_other_is_lost(
    broker: MemoryBroker, record: dict[str, Any], said: str
) -> None:
    with producing(broker, **PATIENT) as producer:
        futures = [producer.send("t", b"before")]
        with pytest.raises(UnsendableRecordError) as caught:
            producer.send("t", **record)
        futures.append(producer.send("t", b"after"))
        producer.flush(IN_TIME)
        assert [each.result(0).offset for each in futures] == [0, 1]
    assert said in str(caught.value)
    assert values(logs_of(broker)[0]) == [b"before", b"after"]


def test_a_record_that_is_too_large_names_the_option_as_its_user_writes_it(
    broker: MemoryBroker,
) -> None:
    said = r"its size cannot be sent: it may take 1082 bytes, and 'max_request_size' is 1081"
    with producing(broker, max_request_size=1_081) as producer:
        assert producer.send("t", bytes(999)).result(IN_TIME).offset == 0
        with pytest.raises(UnsendableRecordError, match=said):
            producer.send("t", bytes(1_000))
    options = {"kafka.bootstrap.servers": str(broker.address()), "kafka.buffer.memory": "500"}
    with (
        KafkaProducer.of(ProducerConfig.from_settings(Settings(options))) as front,
        pytest.raises(UnsendableRecordError, match=r"'kafka\.buffer\.memory' is 500"),
    ):
        front.send("t", bytes(1_000))


# -- partitions ------------------------------------------------------------------------------------


def test_records_go_where_their_keys_say(broker: MemoryBroker) -> None:
    broker.create_topic("many", 7)
    with producing(broker) as producer:
        for key in (b"a", b"", b"some key"):
            found = producer.send("many", key=key).result(IN_TIME)
            assert found.partition == MURMUR2.partition(key, 7)
        assert producer.send("many", key=b"a", partition=6).result(IN_TIME).partition == 6
        assert producer.partitions_for("many") == [
            TopicPartition("many", each) for each in range(7)
        ]


def test_a_partition_that_is_not_there_is_named(broker: MemoryBroker) -> None:
    with producing(broker, max_block_ms=2_000) as producer:
        knowing(producer, "t")
        waited = r", also after 2000 ms \('max_block_ms'\)"
        for wrong, more in ((1, waited), (-1, "")):
            said = f"'t' has no partition {wrong}: it has 1, from 0 on{more}$"
            with pytest.raises(UnknownPartitionError, match=said):
                producer.send("t", partition=wrong)
        topic_id = broker.cluster.topics["t"].topic_id
        broker.create_topic("t", 2, topic_id=topic_id)
        assert producer.send("t", partition=1).result(IN_TIME).partition == 1


@pytest.mark.parametrize(
    "send",
    [
        lambda producer: producer.send("t", b"late", partition=1),
        lambda producer: producer.send_columns(
            "t", pa.table({"value": [b"late"], "partition": [1]})
        ),
    ],
    ids=["a record", "columns"],
)
def test_a_partition_that_comes_late_is_waited_for(broker: MemoryBroker, send: Any) -> None:
    with producing(broker) as producer, ThreadPoolExecutor() as beside:
        producer.partitions_for("t")
        sent = beside.submit(send, producer)
        broker.wait_for(MetadataRequest, 5)
        broker.create_topic("t", 2, topic_id=broker.cluster.topics["t"].topic_id)
        sent.result(IN_TIME).result(IN_TIME)
    assert values(logs_of(broker)[1]) == [b"late"]


def test_a_function_chooses_partitions(broker: MemoryBroker) -> None:
    broker.create_topic("many", 3)
    asked: list[tuple[str, bytes | None, int]] = []

    def choose(topic: str, key: bytes | None, count: int) -> Any:
        asked.append((topic, key, count))
        return {b"last": count - 1, b"any": None}.get(key or b"", 7.0)

    with producing(broker, partitioner=choose) as producer:
        assert producer.send("many", key=b"last").result(IN_TIME).partition == 2
        assert producer.send("many", key=b"any").result(IN_TIME).partition in range(3)
        with pytest.raises(UnsendableRecordError, match=r"partition cannot .* type float"):
            producer.send("many")
        producer.send("many", partition=0).result(IN_TIME)
    assert asked == [("many", b"last", 3), ("many", b"any", 3), ("many", None, 3)]


def test_a_function_that_chooses_what_is_not_there_is_told(broker: MemoryBroker) -> None:
    with (
        producing(broker, partitioner=lambda *_: 5) as producer,
        pytest.raises(UnknownPartitionError, match="'t' has no partition 5"),
    ):
        producer.send("t")


def test_a_partitioner_by_name_and_what_is_none(broker: MemoryBroker) -> None:
    with producing(broker, partitioner="consistent_random") as producer:
        assert producer.send("t").result(IN_TIME).partition == 0
    for wrong in ("nonsense", 5):
        with pytest.raises(ConfigurationError, match="'partitioner'"):
            KafkaProducer(bootstrap_servers=str(broker.address()), partitioner=wrong)  # type: ignore[arg-type]


# -- topics and memory -----------------------------------------------------------------------------


def test_a_topic_that_does_not_come_names_the_option_as_its_user_writes_it(
    broker: MemoryBroker,
) -> None:
    broker.create_topic("other")
    said = r"topic 'nope' .* within 100 ms \('max_block_ms'\)"
    with producing(broker, max_block_ms=100) as producer:
        knowing(producer, "other")
        with pytest.raises(KafkaTimeoutError, match=said):
            producer.send("nope")
        knowing(producer, "t")
        assert producer.send("t").result(IN_TIME).offset == 0


def test_no_broker_at_all_names_the_addresses() -> None:
    with refused_port() as port:
        producer = KafkaProducer(
            bootstrap_servers=f"{LOOPBACK}:{port}",
            # The producer gives up before a pause that is longer than the remaining time.
            max_block_ms=60_000,
            retry_backoff_ms=HOUR_MS,
            retry_backoff_max_ms=HOUR_MS,
        )
        with producer, pytest.raises(BootstrapError, match=rf"'bootstrap_servers'.*:{port}"):
            producer.send("t")


def test_a_full_buffer_waits_and_then_fails_by_name(broker: MemoryBroker) -> None:
    with producing(broker, buffer_memory=300, max_block_ms=30) as producer:
        knowing(producer, "t")
        held = broker.hold(ProduceRequest)
        futures = [producer.send("t", bytes(200))]
        with pytest.raises(BufferFullError) as caught:
            producer.send("t", bytes(200))
        assert "within 30 ms ('max_block_ms')" in str(caught.value)
        assert "of the 300 of 'buffer_memory'" in str(caught.value)
        held.release()
        futures[0].result(IN_TIME)
        eventually(lambda: producer._accumulator.memory.free == 300)  # A moment after the answer.
        futures.append(producer.send("t", bytes(200)))
        assert futures[1].result(IN_TIME).offset == 1
        assert producer.metrics()["bufferpool-wait-time-ns-total"] > 0


def test_a_full_buffer_ends_linger_ms(broker: MemoryBroker) -> None:
    broker.create_topic("many", 2)
    settings = {"buffer_memory": 400, "batch_size": 300, "max_block_ms": HOUR_MS}
    with producing(broker, **PATIENT, **settings) as producer:
        for partition in (0, 1):
            producer.send("many", bytes(150), partition=partition)
        producer.send("many", bytes(150), partition=0)
        producer.flush(IN_TIME)
    assert sum(len(values(log)) for log in logs_of(broker, "many")) == 3


# -- futures and callbacks -------------------------------------------------------------------------


def test_on_delivery_is_told_where_the_record_is_or_why_not(broker: MemoryBroker) -> None:
    told: list[Any] = []
    threads: list[str] = []

    def tell(metadata: RecordMetadata | None, error: Exception | None) -> None:
        threads.append(threading.current_thread().name)
        told.append((metadata, error))

    with producing(broker, **PATIENT) as producer:
        producer.send("t", b"", on_delivery=tell)
        producer.flush(IN_TIME)
        broker.control(ProduceRequest, answering("POLICY_VIOLATION"))
        future = producer.send("t", b"", on_delivery=tell)
        producer.flush(IN_TIME)
        eventually(lambda: len(told) == 2)
        error = future.exception(0)
    assert told[0][0].offset == 0
    assert told[1] == (None, error)
    assert all(each.startswith("producer spark-kafka-source") for each in threads)


def test_a_callback_may_send_and_close(broker: MemoryBroker) -> None:
    closed = threading.Event()
    with producing(broker) as producer:

        def send_on(metadata: RecordMetadata | None, _: object) -> None:
            assert metadata is not None
            if metadata.offset < 3:
                producer.send("t", b"%d" % metadata.offset, on_delivery=send_on)
            else:
                producer.close()
                closed.set()

        producer.send("t", b"first", on_delivery=send_on)
        assert closed.wait(IN_TIME)
        producer._sender._thread.join(IN_TIME)
        assert not producer._sender._thread.is_alive()
    assert values(logs_of(broker)[0]) == [b"first", b"0", b"1", b"2"]


def test_a_callback_that_would_wait_for_itself_is_told_so(broker: MemoryBroker) -> None:
    told: list[BaseException] = []
    with producing(broker, buffer_memory=300, max_block_ms=HOUR_MS) as producer:

        def wait(*_: object) -> None:
            for call in (producer.flush, lambda: producer.send("t", bytes(200))):
                try:
                    call()
                except LocalError as error:
                    told.append(error)
                except BufferFullError as error:
                    told.append(error)

        held = broker.hold(ProduceRequest)
        producer.send("t", bytes(10), on_delivery=wait)
        producer.send("t", bytes(100))
        broker.wait_for(ProduceRequest)
        producer.send("t", bytes(60))
        held.release()
        eventually(lambda: len(told) == 2)
        producer.flush(IN_TIME)
    assert "a callback of the producer cannot wait for its records" in str(told[0])
    assert isinstance(told[1], BufferFullError)


def test_a_send_in_a_callback_waits_for_no_topic(broker: MemoryBroker) -> None:
    told: list[str] = []

    def send_again(*_: object) -> None:
        try:
            producer.send("nope", b"")
        except LocalError as error:
            told.append(str(error))
        finally:
            is_told.set()

    is_told = threading.Event()
    with producing(broker, max_block_ms=3_600_000) as producer:
        producer.send("t", b"", on_delivery=send_again)
        assert is_told.wait(60)
    assert "cannot wait for partitions of topic 'nope'" in told[0]


def test_an_asynchronous_callback_is_refused(broker: MemoryBroker) -> None:
    async def tell(*_: object) -> None: ...

    with producing(broker) as producer:
        with pytest.raises(ConfigurationError, match="'on_delivery': is an asynchronous function"):
            producer.send("t", b"0", on_delivery=tell)
        producer.flush(IN_TIME)
    assert not values(logs_of(broker)[0])


def test_a_callback_that_raises_does_no_harm(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        sys.exit(3)

    with producing(broker) as producer:
        producer.send("t", b"0", on_delivery=fail).result(IN_TIME)
        assert producer.send("t", b"1").result(IN_TIME).offset == 1
    assert "A callback for records of t-0 raised" in caplog.text


def test_errors_from_the_producers_thread_name_settings_as_their_user_writes_them(
    broker: MemoryBroker,
) -> None:
    with producing(broker) as producer:
        producer.partitions_for("t")
        broker.hold(ProduceRequest)
        future = producer.send("t", b"")
        broker.wait_for(ProduceRequest)
        for each in producer._accumulator.queue(T0).in_flight:
            each.created_at_seconds -= HOUR_MS
        producer._accumulator.wakeup.wake()
        with pytest.raises(KafkaTimeoutError, match=r"120000 ms \('delivery_timeout_ms'\)"):
            future.result(IN_TIME)


# -- flush -----------------------------------------------------------------------------------------


def test_flush_sends_at_once_what_would_linger(broker: MemoryBroker) -> None:
    with producing(broker, **PATIENT) as producer:
        futures = [producer.send("t", b"%d" % each) for each in range(3)]
        assert not futures[0].done()
        producer.flush()
        assert all(each.done() for each in futures)
        producer.flush(0)
    assert len(broker.requests(ProduceRequest)) == 1


def test_flush_from_several_threads(broker: MemoryBroker) -> None:
    with producing(broker, **PATIENT) as producer:

        def send_and_flush(number: int) -> None:
            future = producer.send("t", b"%d" % number)
            producer.flush(IN_TIME)
            assert future.done()
            done.append(number)

        done: list[int] = []
        threads = [
            threading.Thread(target=send_and_flush, args=[each], daemon=True) for each in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join(IN_TIME)
        assert sorted(done) == list(range(8))


def test_flush_that_is_not_over_in_time_says_so(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        held = broker.hold(ProduceRequest)
        producer.send("t", b"")
        with pytest.raises(KafkaTimeoutError, match=r"not all records were sent within 0\.01 s"):
            producer.flush(0.01)
        held.release()
        producer.flush(IN_TIME)


# -- ends ------------------------------------------------------------------------------------------


def test_close_waits_for_all_and_no_longer(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender_module, "_LONGEST_WAIT_MS", HOUR_MS)
    before = threading.enumerate()
    with producing(broker, **PATIENT) as producer:
        futures = [producer.send("t", b"%d" % each) for each in range(3)]
        closing = threading.Thread(target=producer.close, daemon=True)
        closing.start()
        closing.join(IN_TIME)
        assert not closing.is_alive()
        assert [each.result(0).offset for each in futures] == [0, 1, 2]
        assert not producer._sender._thread.is_alive()
    left = [each for each in threading.enumerate() if each not in before]
    assert not [each for each in left if each.name.startswith("producer")]


def test_close_waits_no_longer_than_it_may_and_fails_the_rest_by_name(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        broker.hold(ProduceRequest)
        future = producer.send("t", b"")
        broker.wait_for(ProduceRequest)
        producer.close(0.01)
        with pytest.raises(ClosedError, match="closed before the record was sent"):
            future.result(0)


def test_a_closed_producer_takes_nothing_and_can_be_closed_again(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        producer.send("t", b"").result(IN_TIME)
        for _ in range(2):
            producer.close()
        for call in (
            lambda: producer.send("t", b""),
            lambda: producer.partitions_for("t"),
            lambda: producer.send_columns("t", pa.table({"value": [b""]})),
        ):
            with pytest.raises(ClosedError, match="the producer is closed"):
                call()
        producer.flush(IN_TIME)
        assert producer.metrics()["record-send-total"] == 1


def test_close_ends_calls_of_send_that_wait(broker: MemoryBroker) -> None:
    errors: list[Exception] = []
    with producing(broker, buffer_memory=300, max_block_ms=HOUR_MS) as producer:
        producer.partitions_for("t")
        broker.hold(ProduceRequest)
        producer.send("t", bytes(200))

        def send() -> None:
            try:
                producer.send("t", bytes(200))
            except ClosedError as error:
                errors.append(error)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        eventually(lambda: producer._accumulator.memory.is_exhausted)
        producer.close(0)
        thread.join(IN_TIME)
    assert len(errors) == 1


def test_a_block_that_raises_leaves_little_time(broker: MemoryBroker) -> None:
    deadlines: list[Any] = []
    with producing(broker) as producer:
        close = producer.close
        producer.close = deadlines.append  # type: ignore[method-assign, assignment]
        with pytest.raises(ValueError, match="oh"), producer:
            raise ValueError("oh")
        with producer:
            pass
        producer.close = close  # type: ignore[method-assign]
    assert deadlines == [5.0, None]


def test_a_producer_that_is_forgotten_sends_what_it_has_and_ends_its_thread(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    producer = KafkaProducer(bootstrap_servers=str(broker.address()), **PATIENT)
    future = producer.send("t", b"last words")
    thread, gone = producer._sender._thread, weakref.ref(producer)
    del producer
    gc.collect()
    assert gone() is None
    thread.join(IN_TIME)
    assert not thread.is_alive()
    assert future.result(0).offset == 0
    assert (
        "A producer was not closed. Batches left at its end: 1, with 5 s to send them"
        in caplog.text
    )


def test_a_producer_in_a_cycle_may_be_forgotten_in_the_midst_of_its_own_work(
    broker: MemoryBroker,
) -> None:
    """The garbage collector may run in the producer's thread while the thread holds locks."""
    producer = KafkaProducer(bootstrap_servers=str(broker.address()))
    producer.send("t", b"").result(IN_TIME)
    thread, accumulator = producer._sender._thread, producer._accumulator
    cycle: Any = [producer]
    cycle.append(cycle)
    queues = accumulator.queues

    def collecting() -> Any:
        with accumulator._lock:
            gc.collect()
            return queues()

    accumulator.queues = collecting  # type: ignore[method-assign]
    del producer, cycle
    accumulator.wakeup.wake()
    thread.join(IN_TIME)
    assert not thread.is_alive()


@pytest.mark.parametrize("count", [1, 100])
def test_the_end_of_the_interpreter_sends_what_was_not_closed(
    count: int, broker: MemoryBroker
) -> None:
    """With one record, the end comes before the producer has asked for its id."""
    program = f"""
import sys
from spark_kafka_source.producer import KafkaProducer
producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
for number in range({count}):
    producer.send("t", b"%d" % number)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(broker.address())],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert values(logs_of(broker)[0]) == [b"%d" % each for each in range(count)]


# -- several threads -------------------------------------------------------------------------------


def test_any_threads_may_send_and_each_keeps_its_order(broker: MemoryBroker) -> None:
    broker.create_topic("many", 3)
    count, threads = 200, 6
    with producing(broker, batch_size=300, linger_ms=1) as producer:

        def send(thread: int) -> None:
            for number in range(count):
                key = b"%d" % thread
                producer.send("many", b"%d" % number, key=key)

        sending = [
            threading.Thread(target=send, args=[each], daemon=True) for each in range(threads)
        ]
        for each in sending:
            each.start()
        for each in sending:
            each.join()
        producer.flush(IN_TIME)
    found: dict[bytes | None, list[int]] = {}
    for log in logs_of(broker, "many"):
        for record in written(log):
            found.setdefault(record.key, []).append(int(record.value or b""))
    assert found == {b"%d" % each: list(range(count)) for each in range(threads)}


# -- without a transactional id --------------------------------------------------------------------


def test_without_a_transactional_id_there_are_no_transactions(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        for call in (producer.init_transactions, producer.begin_transaction,
                     producer.commit_transaction, producer.abort_transaction):  # fmt: skip
            with pytest.raises(TransactionStateError, match="'transactional_id' is not set"):
                call()


def test_a_producer_asks_nothing_before_it_is_used(broker: MemoryBroker) -> None:
    with producing(broker):
        pass
    assert not broker.seen
    assert broker.accepted() == 0


def test_metrics_count_what_was_done(broker: MemoryBroker) -> None:
    with producing(broker, **PATIENT) as producer:
        for _ in range(3):
            producer.send("t", bytes(100))
        producer.flush(IN_TIME)
        found = producer.metrics()
        assert found["record-send-total"] == 3
        assert found["request-total"] == 1
        assert found["records-per-request-avg"] == 3
        assert found["record-error-total"] == found["record-retry-total"] == 0
        assert found["outgoing-byte-total"] == found["batch-size-avg"] > 300
        assert found["buffer-total-bytes"] == 32 << 20
        eventually(lambda: producer.metrics()["buffer-available-bytes"] == 32 << 20)
