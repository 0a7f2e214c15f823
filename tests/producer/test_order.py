"""Order within a partition without duplicates, for all answers of leaders."""

import threading
from typing import Any

import pytest

from spark_kafka_source.errors import ERRORS, KafkaTimeoutError
from spark_kafka_source.producer import KafkaProducer, ProducerId, SendFuture
from spark_kafka_source.producer.batch import PartitionQueue
from spark_kafka_source.producer.identity import Idempotent
from spark_kafka_source.producer.produce_answers import RequestInFlight
from spark_kafka_source.producer.sender import Sender
from spark_kafka_source.producer.sequences import MAX_EPOCH
from spark_kafka_source.protocol.messages.produce import InitProducerIdRequest, ProduceRequest
from spark_kafka_source.testing.memory import Action, MemoryBroker, PartitionLog
from spark_kafka_source.testing.memory.producers import Written
from tests.consumer.consumers import eventually
from tests.producer.writing import (
    HOUR_MS,
    IN_TIME,
    T0,
    answering,
    headers,
    in_flight,
    producing,
    sequences,
    values,
)

pytestmark = pytest.mark.memory(topics={"t": 1})

RETRIABLE = [each.name for each in ERRORS.values() if each.retriable]
LOST_SEQUENCES = [
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "UNKNOWN_PRODUCER_ID",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_PRODUCER_ID_MAPPING",
]
PATIENT = {"linger_ms": HOUR_MS, "delivery_timeout_ms": 2 * HOUR_MS}
LAST_SEQUENCE = (1 << 31) - 1


def log_of(broker: MemoryBroker) -> PartitionLog:
    return broker.cluster.topics["t"].logs[0]


def send(producer: KafkaProducer, *numbers: int) -> list[SendFuture]:
    return [producer.send("t", b"%d" % each) for each in numbers]


def numbers(broker: MemoryBroker) -> list[int]:
    return [int(each or b"") for each in values(log_of(broker))]


def offsets(futures: list[SendFuture]) -> list[int]:
    return [each.result(IN_TIME).offset for each in futures]


def queue_of(producer: KafkaProducer) -> PartitionQueue:
    eventually(lambda: T0 in producer._accumulator._queues)
    return producer._accumulator.queue(T0)


def known(producer: KafkaProducer) -> None:
    """Make the producer known to the leader, so that several requests may be in flight."""
    assert offsets(send(producer, 0)) == [0]


# -- errors with a retry ---------------------------------------------------------------------------


@pytest.mark.parametrize("error", RETRIABLE)
def test_with_five_in_flight_the_order_is_kept_after_an_error_that_can_heal(
    broker: MemoryBroker, error: str
) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        held = broker.hold(ProduceRequest, then=answering(error))
        futures = send(producer, *range(1, 9))
        in_flight(producer, 5)
        held.release()
        assert offsets(futures) == list(range(1, 9))
    assert numbers(broker) == list(range(9))
    assert {each.producer_epoch for each in headers(log_of(broker))} == {0}


@pytest.mark.parametrize("answer", [Action.CLOSE, Action.LOSE])
def test_with_five_in_flight_a_connection_that_is_cut_loses_and_doubles_nothing(
    broker: MemoryBroker, answer: Action
) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        broker.control(ProduceRequest, Action.HANDLE)
        held = broker.hold(ProduceRequest, then=answer)
        futures = send(producer, *range(1, 9))
        in_flight(producer, 5)
        held.release()
        assert offsets(futures) == list(range(1, 9))
    assert numbers(broker) == list(range(9))


def test_what_is_behind_a_failed_batch_does_not_use_up_its_retries(broker: MemoryBroker) -> None:
    with producing(broker, batch_size=1, retries=1) as producer:
        known(producer)
        held = broker.hold(ProduceRequest, then=answering("NOT_ENOUGH_REPLICAS"))
        futures = send(producer, *range(1, 6))
        in_flight(producer, 5)
        held.release()
        assert offsets(futures) == list(range(1, 6))


def test_a_leader_that_knows_nothing_of_the_producer_is_sent_one_batch_first(
    broker: MemoryBroker,
) -> None:
    """This leader takes any sequence: it could write the second batch after the first one fails."""
    held = broker.hold(ProduceRequest, then=answering("NOT_ENOUGH_REPLICAS"))
    with producing(broker, batch_size=1) as producer:
        futures = send(producer, *range(5))
        broker.wait_for(ProduceRequest)
        eventually(lambda: len(queue_of(producer).waiting) == 4)
        eventually(lambda: len(producer._sender._requests) == 1)
        held.release()
        assert offsets(futures) == list(range(5))
    assert numbers(broker) == list(range(5))


def test_without_idempotence_one_in_flight_keeps_the_order(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answering("NOT_ENOUGH_REPLICAS"), times=3)
    settings = {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1}
    with producing(broker, batch_size=1, **settings) as producer:
        futures = send(producer, *range(5))
        assert offsets(futures) == list(range(5))
    assert numbers(broker) == list(range(5))
    assert {each.producer_id for each in headers(log_of(broker))} == {-1}


def test_without_idempotence_several_are_in_flight_from_the_first_on(broker: MemoryBroker) -> None:
    held = broker.hold(ProduceRequest)
    with producing(broker, batch_size=1, enable_idempotence=False) as producer:
        futures = send(producer, *range(9))
        in_flight(producer, 5)
        held.release()
        assert offsets(futures) == list(range(9))


def test_a_connection_that_is_made_just_before_a_wait_is_used_at_once(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches that had to wait for it do not wait for the first answer, too."""
    all_are_there, answered = threading.Event(), Sender._answered

    def late(sender: Sender) -> list[RequestInFlight]:
        found = answered(sender)
        if not all(each.asked.is_sent for each in sender._requests):
            all_are_there.wait(IN_TIME)
            eventually(lambda: bool(answered(sender)) or sender._requests[0].asked.is_sent)
            sender._accumulator.wakeup.clear()  # As if the records had woken it a step before.
        return found

    monkeypatch.setattr(Sender, "_answered", late)
    held = broker.hold(ProduceRequest)
    with producing(broker, batch_size=1, enable_idempotence=False) as producer:
        futures = send(producer, *range(9))
        all_are_there.set()
        in_flight(producer, 5)
        held.release()
        assert offsets(futures) == list(range(9))


# -- sequences -------------------------------------------------------------------------------------


def test_sequences_count_records(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        for count in (3, 1, 2):
            send(producer, *range(count))
            producer.flush(IN_TIME)
    found = [each for request in broker.requests(ProduceRequest) for each in sequences(request)]
    assert sum(count for _, _, count in found) == 6
    assert [sequence for _, sequence, _ in found] == [
        sum(count for _, _, count in found[:place]) for place in range(len(found))
    ]


def test_a_batch_that_the_leader_has_already_is_delivered(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answering("DUPLICATE_SEQUENCE_NUMBER"))
    with producing(broker) as producer:
        (future,) = send(producer, 0)
        assert future.result(IN_TIME).offset == -1
    assert len(broker.requests(ProduceRequest)) == 1


def test_an_answer_that_was_lost_tells_its_offset_the_second_time(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, Action.LOSE)
    with producing(broker) as producer:
        assert offsets(send(producer, 7)) == [0]
    assert numbers(broker) == [7]
    assert len(broker.requests(ProduceRequest)) == 2


@pytest.mark.parametrize("error", LOST_SEQUENCES)
def test_where_the_leader_has_lost_the_sequences_the_next_epoch_begins_in_order(
    broker: MemoryBroker, error: str
) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        held = broker.hold(ProduceRequest, then=answering(error))
        broker.control(ProduceRequest, answering(error), times=4)
        futures = send(producer, *range(1, 9))
        in_flight(producer, 5)
        held.release()
        assert offsets(futures) == list(range(1, 9))
    assert numbers(broker) == list(range(9))
    found = [(each.producer_epoch, each.base_sequence) for each in headers(log_of(broker))]
    assert found == [(0, 0), *((1, each) for each in range(8))]
    assert len(broker.requests(InitProducerIdRequest)) == 1


def test_out_of_order_at_the_head_takes_along_what_is_behind_it(broker: MemoryBroker) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        producer_id = headers(log_of(broker))[0].producer_id
        log_of(broker).producers[producer_id].batches.append(Written(0, 70, 0, 0))
        futures = send(producer, *range(1, 9))
        assert offsets(futures) == list(range(1, 9))
    assert numbers(broker) == list(range(9))
    assert [each.producer_epoch for each in headers(log_of(broker))] == [0] + [1] * 8


def test_other_partitions_keep_their_epoch(broker: MemoryBroker) -> None:
    logs = broker.create_topic("u", 2)
    with producing(broker) as producer:
        for partition in (0, 1):
            producer.send("u", b"", partition=partition).result(IN_TIME)
        broker.control(ProduceRequest, answering("UNKNOWN_PRODUCER_ID"))
        for partition in (0, 1):
            producer.send("u", b"", partition=partition).result(IN_TIME)
    assert [[each.producer_epoch for each in headers(log)] for log in logs] == [[0, 1], [0, 0]]


def test_after_the_last_sequence_comes_the_first(broker: MemoryBroker) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        producer_id = headers(log_of(broker))[0].producer_id
        remembered = log_of(broker).producers[producer_id].batches
        remembered.clear()
        remembered.append(Written(LAST_SEQUENCE - 2, LAST_SEQUENCE - 2, 0, 0))
        queue_of(producer).next_sequence = LAST_SEQUENCE - 1
        assert offsets(send(producer, 1, 2, 3, 4)) == [1, 2, 3, 4]
    found = [(each.producer_epoch, each.base_sequence) for each in headers(log_of(broker))]
    assert found[1:] == [(0, LAST_SEQUENCE - 1), (0, LAST_SEQUENCE), (0, 0), (0, 1)]


def test_after_the_last_epoch_another_producer_id_is_taken(broker: MemoryBroker) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        identity = producer._sender._identity
        assert isinstance(identity, Idempotent)
        last = ProducerId(headers(log_of(broker))[0].producer_id, MAX_EPOCH)
        identity._producer = queue_of(producer).producer = last
        log_of(broker).producers[last.producer_id].epoch = MAX_EPOCH
        broker.control(ProduceRequest, answering("OUT_OF_ORDER_SEQUENCE_NUMBER"))
        assert offsets(send(producer, 1, 2, 3)) == [1, 2, 3]
    assert numbers(broker) == [0, 1, 2, 3]
    found = [(each.producer_id, each.producer_epoch) for each in headers(log_of(broker))]
    assert found[1:] == [(last.producer_id + 1, 0)] * 3


# -- delivery.timeout.ms ---------------------------------------------------------------------------


def let_expire(producer: KafkaProducer, place: int = 0) -> None:
    """Let the time of one batch expire. `place` counts batches in the order of sending."""
    queue = queue_of(producer)
    [*queue.in_flight, *queue.waiting][place].created_at_seconds -= HOUR_MS
    producer._accumulator.wakeup.wake()


def assert_expired(future: SendFuture, *said: str) -> None:
    with pytest.raises(KafkaTimeoutError) as caught:
        future.result(IN_TIME)
    text = str(caught.value)
    for each in ("t-0: 1 records were not written within 120000 ms", "delivery_timeout_ms", *said):
        assert each in text


@pytest.mark.parametrize(
    "answer",
    [
        Action.HANDLE,
        Action.LOSE,
        Action.CLOSE,
        answering("NOT_ENOUGH_REPLICAS"),
        answering("UNKNOWN_SERVER_ERROR"),
        answering("MESSAGE_TOO_LARGE"),
    ],
    ids=["written", "cut after it", "cut before it", "can heal", "cannot heal", "too large"],
)
def test_a_batch_whose_time_is_up_in_flight_leaves_those_behind_it_whole(
    broker: MemoryBroker, answer: Any
) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        held = broker.hold(ProduceRequest, then=answer)
        futures = send(producer, *range(1, 9))
        in_flight(producer, 5)
        let_expire(producer)
        assert_expired(futures[0], "no leader has answered")
        held.release()
        producer.flush(IN_TIME)
        assert [each.exception(0) for each in futures[1:]] == [None] * 7
        is_written = 1 in numbers(broker)
    assert is_written == (answer in {Action.HANDLE, Action.LOSE})
    assert numbers(broker) == [0, *([1] if is_written else []), *range(2, 9)]


def test_a_batch_whose_time_is_up_between_two_tries_leaves_those_behind_it_whole(
    broker: MemoryBroker,
) -> None:
    pauses = {"retry_backoff_ms": HOUR_MS, "retry_backoff_max_ms": HOUR_MS}
    with producing(broker, batch_size=1, **pauses) as producer:
        known(producer)
        held = broker.hold(ProduceRequest, then=answering("NOT_ENOUGH_REPLICAS"))
        futures = send(producer, 1, 2, 3)
        in_flight(producer, 3)
        held.release()
        eventually(lambda: not queue_of(producer).in_flight)
        let_expire(producer)
        assert_expired(futures[0], "the last error: Produce to t-0: NOT_ENOUGH_REPLICAS (19)")
        # The next batch gets OUT_OF_ORDER_SEQUENCE_NUMBER, and pauses before the new epoch.
        eventually(lambda: [each.tries for each in queue_of(producer).waiting] == [2, 1])
        queue_of(producer).waiting[0].retry_at_seconds = 0.0
        producer._accumulator.wakeup.wake()
        assert offsets(futures[1:]) == [1, 2]
    assert numbers(broker) == [0, 2, 3]


def test_a_batch_whose_time_is_up_before_it_is_sent_takes_no_sequence(broker: MemoryBroker) -> None:
    with producing(broker, batch_size=1) as producer:
        known(producer)
        broker.cluster.topics["t"].logs[0].leader_id = 7
        producer._sender._client.cluster.forget_leaders()
        futures = send(producer, 1, 2)
        eventually(lambda: len(queue_of(producer).waiting) == 2)
        let_expire(producer)
        assert_expired(futures[0])
        broker.cluster.topics["t"].logs[0].leader_id = 0
        assert offsets(futures[1:]) == [1]
    assert [each.base_sequence for each in headers(log_of(broker))] == [0, 1]


# -- batches too large for leaders -----------------------------------------------------------------


@pytest.mark.parametrize("compression", ["none", "lz4"])
def test_a_batch_that_is_too_large_is_split_until_its_parts_are_not(
    broker: MemoryBroker, compression: str
) -> None:
    broker.cluster.max_message_bytes = 150
    with producing(broker, **PATIENT, compression_type=compression) as producer:
        futures = send(producer, *range(100))
        producer.flush(IN_TIME)
        assert offsets(futures) == list(range(100))
        assert producer.metrics()["batch-split-total"] >= 1
    assert numbers(broker) == list(range(100))
    assert {each.producer_epoch for each in headers(log_of(broker))} == {0}


def test_one_record_that_is_too_large_fails_by_name_and_no_other_does(
    broker: MemoryBroker,
) -> None:
    broker.cluster.max_message_bytes = 150
    with producing(broker, **PATIENT) as producer:
        futures = [producer.send("t", b"7" * (200 if each == 5 else 1)) for each in range(10)]
        producer.flush(IN_TIME)
        error = futures.pop(5).exception(0)
        assert "Produce to t-0: MESSAGE_TOO_LARGE (10): a record of 2" in str(error)
        assert "over the topic's 'max.message.bytes'" in str(error)
        assert offsets(futures) == list(range(9))
    assert len(values(log_of(broker))) == 9


def test_what_is_behind_a_batch_that_is_split_stays_behind_it(broker: MemoryBroker) -> None:
    with producing(broker, batch_size=2 * 22, **PATIENT) as producer:
        offsets(send(producer, 0, 1))
        held = broker.hold(ProduceRequest, then=answering("MESSAGE_TOO_LARGE"))
        futures = send(producer, *range(2, 10))
        in_flight(producer, 4)
        held.release()
        assert offsets(futures) == list(range(2, 10))
    assert numbers(broker) == list(range(10))
