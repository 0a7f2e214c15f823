"""The producer's thread: hostile answers, changes of leaders, and waits for events."""

from collections.abc import Iterator
from typing import Any

import pytest

from spark_kafka_source.client import asked
from spark_kafka_source.client import client as client_module
from spark_kafka_source.errors import (
    BrokerError,
    ClosedError,
    ConnectionFailedError,
    KafkaTimeoutError,
    LocalError,
    ProtocolError,
    error_code,
    error_named,
)
from spark_kafka_source.producer import KafkaProducer, SendFuture
from spark_kafka_source.producer.batch import PartitionQueue
from spark_kafka_source.producer.produce_answers import ProduceAnswers
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    InitProducerIdRequest,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from spark_kafka_source.testing.memory import Action, MemoryBroker, Raw
from spark_kafka_source.topic_partition import TopicPartition
from tests.consumer.consumers import eventually
from tests.producer.blocking import is_pausing
from tests.producer.writing import (
    HOUR_MS,
    IN_TIME,
    T0,
    T1,
    answering,
    asked_for,
    headers,
    in_flight,
    producing,
    values,
    written,
)

pytestmark = pytest.mark.memory(topics={"t": 1})

PATIENT = {"linger_ms": HOUR_MS, "delivery_timeout_ms": 2 * HOUR_MS}
LONG_PAUSES = {"retry_backoff_ms": HOUR_MS, "retry_backoff_max_ms": HOUR_MS}
DENIED = error_named("TOPIC_AUTHORIZATION_FAILED")


@pytest.fixture
def two() -> Iterator[MemoryBroker]:
    """Run two nodes. Each leads one partition of topic t."""
    with MemoryBroker(2) as broker:
        broker.create_topic("t", 2)
        yield broker


def log_values(broker: MemoryBroker, partition: int = 0, topic: str = "t") -> list[bytes | None]:
    return values(broker.cluster.topics[topic].logs[partition])


def send(producer: KafkaProducer, *sent: bytes, topic: str = "t") -> list[SendFuture]:
    return [producer.send(topic, each, partition=0) for each in sent]


def together(producer: KafkaProducer, *sent: bytes) -> list[SendFuture]:
    """Send the values as one batch, with a `PATIENT` producer."""
    futures = send(producer, *sent)
    producer.flush(IN_TIME)
    return futures


def error_of(future: SendFuture) -> Any:
    return future.exception(IN_TIME)


# -- records that a leader refuses -----------------------------------------------------------------


def invalid(*bad: int, name: str = "INVALID_RECORD", message: str | None = "no") -> Any:
    errors = [BatchIndexAndErrorMessage(each, f"bad {each}") for each in bad]
    return answering(name, record_errors=errors, error_message=message)


@pytest.mark.parametrize("name", ["INVALID_RECORD", "INVALID_TIMESTAMP"])
@pytest.mark.parametrize("bad", [(0,), (4,), (9,), (0, 1, 5, 9), (3, 3, -1, 11, 99)])
def test_the_records_that_the_leader_names_fail_and_the_rest_is_written_in_order(
    broker: MemoryBroker, name: str, bad: tuple[int, ...]
) -> None:
    broker.control(ProduceRequest, invalid(*bad, name=name))
    with producing(broker, **PATIENT) as producer:
        futures = together(producer, *(b"%d" % each for each in range(10)))
        futures += together(producer, b"after")
        good = [each for each in range(11) if each not in bad]
        for number in set(bad) & set(range(10)):
            error = error_of(futures[number])
            assert isinstance(error, BrokerError)
            assert error.error.name == name
            assert f"Produce to t-0: {name}" in str(error)
            assert f"bad {number}" in str(error)
        offsets = [futures[each].result(0).offset for each in good]
    found = written(broker.cluster.topics["t"].logs[0])
    assert offsets == list(range(len(good)))
    expected = [b"after" if each == 10 else b"%d" % each for each in good]
    assert [each.value for each in found] == expected


def test_where_all_records_are_bad_all_fail_and_what_follows_is_written(
    broker: MemoryBroker,
) -> None:
    broker.control(ProduceRequest, invalid(0, 1, 2))
    with producing(broker, **PATIENT) as producer:
        futures = together(producer, b"0", b"1", b"2")
        assert ["bad" in str(error_of(each)) for each in futures] == [True] * 3
        assert together(producer, b"3")[0].result(0).offset == 0
        assert producer.metrics()["record-error-total"] == 3
        assert producer.metrics()["record-send-total"] == 1


@pytest.mark.parametrize("answer", [invalid(), invalid(-1, 99)], ids=["none", "none of ours"])
def test_where_no_record_is_named_the_batch_fails_with_the_leaders_words(
    broker: MemoryBroker, answer: Any
) -> None:
    broker.control(ProduceRequest, answer)
    with producing(broker, **PATIENT) as producer:
        futures = together(producer, b"0", b"1")
        texts = {str(error_of(each)) for each in futures}
    assert texts == {"Produce to t-0: INVALID_RECORD (87): no"}
    assert log_values(broker) == []


def test_the_error_text_of_the_batch_counts_for_records_without_one(broker: MemoryBroker) -> None:
    errors = [BatchIndexAndErrorMessage(0, None)]
    answer = answering("INVALID_RECORD", record_errors=errors, error_message="what a batch")
    broker.control(ProduceRequest, answer)
    with producing(broker, **PATIENT) as producer:
        futures = together(producer, b"0", b"1")
        assert "what a batch" in str(error_of(futures[0]))
        assert futures[1].result(0).offset == 0


# -- errors without a retry ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        error_named("UNKNOWN_SERVER_ERROR"),
        error_named("INVALID_REQUIRED_ACKS"),
        error_named("POLICY_VIOLATION"),
        error_named("UNSUPPORTED_FOR_MESSAGE_FORMAT"),
        error_named("CLUSTER_AUTHORIZATION_FAILED"),
        error_code(4_242),
    ],
    ids=str,
)
def test_an_error_that_cannot_heal_fails_its_batch_alone(broker: MemoryBroker, code: Any) -> None:
    with producing(broker, batch_size=1) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        held = broker.hold(ProduceRequest, then=answering(code, error_message="so it is"))
        futures = send(producer, b"1", b"2", b"3")
        in_flight(producer, 3)
        held.release()
        assert str(error_of(futures[0])).startswith(f"Produce to t-0: {code}: so it is")
        assert [each.result(IN_TIME).offset for each in futures[1:]] == [1, 2]
    assert log_values(broker) == [b"0", b"2", b"3"]


def test_the_right_that_is_missing_is_named(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answering(DENIED))
    with producing(broker) as producer:
        (future,) = send(producer, b"0")
        assert "the user needs WRITE on topic 't'" in str(error_of(future))
        assert send(producer, b"1")[0].result(IN_TIME).offset == 0, "it may be allowed by now"


def test_without_retries_an_error_that_can_heal_is_told_at_once(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answering("NOT_ENOUGH_REPLICAS"))
    with producing(broker, retries=0) as producer:
        futures = send(producer, b"0")
        assert "NOT_ENOUGH_REPLICAS" in str(error_of(futures[0]))
        broker.control(ProduceRequest, Action.CLOSE)
        assert isinstance(error_of(send(producer, b"1")[0]), ConnectionFailedError)
        assert send(producer, b"2")[0].result(IN_TIME).offset == 0
    assert log_values(broker) == [b"2"]


def test_retries_are_counted(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answering("NOT_ENOUGH_REPLICAS"), times=3)
    with producing(broker, retries=2, enable_idempotence=False) as producer:
        assert "NOT_ENOUGH_REPLICAS" in str(error_of(send(producer, b"0")[0]))
        assert producer.metrics()["record-retry-total"] == 2
    assert len(broker.requests(ProduceRequest)) == 3


# -- hostile answers -------------------------------------------------------------------------------


def answer_of(*partitions: tuple[str, PartitionProduceResponse], **rest: Any) -> ProduceResponse:
    responses = [
        TopicProduceResponse(name, partition_responses=[each]) for name, each in partitions
    ]
    return ProduceResponse(responses=responses, **rest)


def test_a_partition_that_the_answer_leaves_out_fails_by_name(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answer_of())
    with producing(broker) as producer:
        error = error_of(send(producer, b"0")[0])
        assert isinstance(error, ProtocolError)
        assert str(error) == f"the answer of {broker.address()} has nothing about t-0"
        assert send(producer, b"1")[0].result(IN_TIME).offset == 0


def test_partitions_that_nobody_asked_for_are_passed_over(broker: MemoryBroker) -> None:
    broker.create_topic("other")
    not_leader = error_named("NOT_LEADER_OR_FOLLOWER").code
    elsewhere = LeaderIdAndEpoch(9, 70)
    strange = answer_of(
        ("nope", PartitionProduceResponse(0, 0, 5)),
        ("t", PartitionProduceResponse(7, not_leader, 5)),
        ("other", PartitionProduceResponse(0, not_leader, 5, current_leader=elsewhere)),
        ("t", PartitionProduceResponse(0, 0, 41)),
        node_endpoints=[NodeEndpoint(9, "203.0.113.1", 9)],
    )
    with producing(broker) as producer:
        send(producer, b"0", topic="other")[0].result(IN_TIME)
        broker.control(ProduceRequest, strange)
        assert send(producer, b"0")[0].result(IN_TIME).offset == 41
        assert send(producer, b"1", topic="other")[0].result(IN_TIME).offset == 1


@pytest.mark.parametrize("offset", [-1, -7])
def test_an_offset_that_is_none_is_not_told(broker: MemoryBroker, offset: int) -> None:
    broker.control(ProduceRequest, answer_of(("t", PartitionProduceResponse(0, 0, offset))))
    with producing(broker, **PATIENT) as producer:
        futures = together(producer, b"0", b"1")
        assert [each.result(0).offset for each in futures] == [-1, -1]


def test_a_time_of_the_broker_takes_the_place_of_the_records(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answer_of(("t", PartitionProduceResponse(0, 0, 3, 777))))
    with producing(broker) as producer:
        assert producer.send("t", b"", timestamp_ms=5).result(IN_TIME).timestamp_ms == 777
        assert producer.send("t", b"", timestamp_ms=5).result(IN_TIME).timestamp_ms == 5


@pytest.mark.parametrize(
    "answer",
    [Raw(b"\0\0\0\10" + b"\xff" * 8), Raw(b"\x7f\xff\xff\xff"), Raw(b"HTTP/1.1 400 no")],
    ids=["another correlation", "a flood", "another protocol"],
)
def test_bytes_that_are_no_answer_fail_what_was_in_flight_and_no_more(
    broker: MemoryBroker, answer: Raw
) -> None:
    with producing(broker, batch_size=1) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        held = broker.hold(ProduceRequest, then=answer)
        futures = send(producer, b"1", b"2")
        in_flight(producer, 2)
        held.release()
        assert [isinstance(error_of(each), ProtocolError) for each in futures] == [True, True]
        assert send(producer, b"3")[0].result(IN_TIME).offset >= 1


def test_without_acknowledgement_there_is_no_offset_and_no_answer(broker: MemoryBroker) -> None:
    with producing(broker, acks="0", batch_size=1) as producer:
        futures = send(producer, b"0", b"1", b"2")
        assert [each.result(IN_TIME).offset for each in futures] == [-1, -1, -1]
    broker.wait_for(ProduceRequest, 3)
    assert log_values(broker) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("most", [1, 5])
def test_without_acknowledgement_a_question_does_not_come_between_two_batches(
    broker: MemoryBroker, most: int
) -> None:
    settings = {"acks": "0", "batch_size": 1, "max_in_flight_requests_per_connection": most}
    with producing(broker, **settings) as producer:
        held = broker.hold(ProduceRequest)
        send(producer, b"0")[0].result(IN_TIME)
        broker.wait_for(ProduceRequest)
        producer._sender._client.cluster.forget_leaders()
        send(producer, b"1")[0].result(IN_TIME)  # The leader is asked for.
        assert len(broker.requests(ProduceRequest)) == 1, "the second waits behind the first"
        held.release()
        broker.wait_for(ProduceRequest, 2)
    assert log_values(broker) == [b"0", b"1"]


def test_without_acknowledgement_a_leader_that_has_moved_is_found_again(two: MemoryBroker) -> None:
    """Instead of an error the broker closes the connection."""
    with producing(two, acks="0", batch_size=1) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        two.wait_for(ProduceRequest)
        two.move_leader(T0, 1)

        def arrived() -> bool:
            send(producer, b"1")[0].exception(IN_TIME)
            return b"1" in log_values(two)

        eventually(arrived)


# -- leaders ---------------------------------------------------------------------------------------


def test_a_leader_that_the_answer_names_is_taken_without_metadata(two: MemoryBroker) -> None:
    with producing(two) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        two.move_leader(T0, 1)
        two.forget()
        assert send(producer, b"1")[0].result(IN_TIME).offset == 1
        assert [each.node_id for each in two.seen if isinstance(each.request, ProduceRequest)] == [
            0,
            1,
        ]
        assert not two.requests(MetadataRequest)


@pytest.mark.parametrize(
    ("leader", "endpoints"),
    [
        (LeaderIdAndEpoch(), []),
        (LeaderIdAndEpoch(1, 0), [NodeEndpoint(1, "127.0.0.1", 9)]),
        (LeaderIdAndEpoch(9, 7), []),
        (LeaderIdAndEpoch(1, 7), [NodeEndpoint(1, "no..host", 9)]),
        (LeaderIdAndEpoch(1, 7), [NodeEndpoint(1, "127.0.0.1", 0)]),
    ],
    ids=["no leader", "no newer epoch", "no address", "nonsense", "no port"],
)
def test_a_hint_of_no_use_has_the_leader_asked_for(
    two: MemoryBroker, leader: LeaderIdAndEpoch, endpoints: list[NodeEndpoint]
) -> None:
    moved = error_named("NOT_LEADER_OR_FOLLOWER").code
    partition = PartitionProduceResponse(0, moved, -1, current_leader=leader)
    with producing(two) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        two.move_leader(T0, 1)
        two.forget()
        two.control(ProduceRequest, answer_of(("t", partition), node_endpoints=endpoints))
        assert send(producer, b"1")[0].result(IN_TIME).offset == 1
        assert two.requests(MetadataRequest)


def test_what_is_in_flight_to_the_old_leader_comes_back_before_the_new_one_gets_any(
    two: MemoryBroker,
) -> None:
    with producing(two, batch_size=1) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        held = two.hold(ProduceRequest, node_id=0)
        futures = send(producer, b"1")
        in_flight(producer, 1)
        two.move_leader(T0, 1)
        cluster = producer._sender._client.cluster
        cluster.forget_leaders()
        futures += send(producer, b"2")
        eventually(lambda: not cluster.missing([T0]) and cluster.leader(T0)[0].node_id == 1)
        Steps(producer).are_few()
        assert [each.broker.node_id for each in producer._sender._requests] == [0]
        held.release()
        assert [each.result(IN_TIME).offset for each in futures] == [1, 2]
    assert {each.producer_epoch for each in headers(two.cluster.topics["t"].logs[0])} == {0}


def test_a_leader_that_died_is_looked_up_and_its_successor_gets_all_in_order(
    two: MemoryBroker,
) -> None:
    with producing(two, batch_size=1) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        two.hold(ProduceRequest, node_id=0)
        futures = send(producer, b"1", b"2", b"3")
        in_flight(producer, 3)
        two.stop(0)
        two.move_leader(T0, 1)
        assert [each.result(IN_TIME).offset for each in futures] == [1, 2, 3]
    assert log_values(two) == [b"0", b"1", b"2", b"3"]


def test_a_partition_waits_for_its_leader_and_others_go_on(two: MemoryBroker) -> None:
    two.move_leader(T0, 7)
    with producing(two) as producer:
        (future,) = send(producer, b"0")
        assert producer.send("t", b"", partition=1).result(IN_TIME).offset == 0
        assert not future.done()
        two.move_leader(T0, 1)
        assert future.result(IN_TIME).offset == 0


def test_a_topic_that_is_deleted_and_made_anew_gets_what_waits(broker: MemoryBroker) -> None:
    broker.create_topic("other")
    with producing(broker) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        broker.delete_topic("t")
        (future,) = send(producer, b"1")
        broker.wait_for(ProduceRequest, 2)
        assert send(producer, b"", topic="other")[0].result(IN_TIME).offset == 0
        broker.create_topic("t")
        assert future.result(IN_TIME).offset == 0
    assert log_values(broker) == [b"1"]


def test_a_topic_that_is_gone_says_so_once_the_time_is_up(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        broker.delete_topic("t")
        (future,) = send(producer, b"1")
        eventually(lambda: producer._sender._leaders.error("t") is not None)
        expire(producer)
        error = error_of(future)
        assert isinstance(error, KafkaTimeoutError)
        assert "delivery_timeout_ms" in str(error)
        assert "UNKNOWN_TOPIC_OR_PARTITION" in str(error)


def queue_of(producer: KafkaProducer, where: TopicPartition = T0) -> PartitionQueue:
    eventually(lambda: where in producer._accumulator._queues)
    return producer._accumulator.queue(where)


def expire(producer: KafkaProducer, where: TopicPartition = T0) -> None:
    """Let the time of a partition's batches expire."""
    queue = queue_of(producer, where)
    for each in [*queue.in_flight, *queue.waiting]:
        each.created_at_seconds -= HOUR_MS
    producer._accumulator.wakeup.wake()


def test_a_topic_that_is_denied_fails_in_all_partitions_at_once_and_works_once_it_is_allowed(
    two: MemoryBroker,
) -> None:
    two.create_topic("other")
    with producing(two) as producer:
        for partition in (0, 1):
            producer.send("t", b"0", partition=partition).result(IN_TIME)
        producer.send("other", b"").result(IN_TIME)
        producer._sender._client.cluster.forget_leaders_of(["t"])
        looked = len(two.requests(MetadataRequest))

        def answer(request: MetadataRequest) -> Any:
            names = [each.name for each in request.topics or ()]
            return DENIED if "t" in names else Action.HANDLE

        # Both records wait for the answer. Otherwise the second could come later.
        held = two.hold(MetadataRequest, then=answer)
        futures = [producer.send("t", b"1", partition=each) for each in (0, 1)]
        held.release()
        for future in futures:
            assert "needs WRITE on topic 't'" in str(error_of(future))
        assert len(two.requests(MetadataRequest)) == looked + 1
        assert producer.send("other", b"").result(IN_TIME).offset == 1
        for partition in (0, 1):
            found = producer.send("t", b"2", partition=partition).result(IN_TIME)
            assert found.offset == 1


def test_without_the_right_to_a_producer_id_all_fails_by_name_until_it_is_given(
    broker: MemoryBroker,
) -> None:
    broker.control(InitProducerIdRequest, error_named("CLUSTER_AUTHORIZATION_FAILED"))
    with producing(broker) as producer:
        error = error_of(send(producer, b"0")[0])
        assert isinstance(error, BrokerError)
        assert "CLUSTER_AUTHORIZATION_FAILED" in str(error)
        assert send(producer, b"1")[0].result(IN_TIME).offset == 0


def test_without_any_broker_the_addresses_are_named_once_the_time_is_up(
    broker: MemoryBroker,
) -> None:
    with producing(broker, **LONG_PAUSES) as producer:
        producer.partitions_for("t")
        broker.stop(0)
        (future,) = send(producer, b"0")
        eventually(lambda: producer._sender._identity.last_error is not None)
        expire(producer)
        assert f"{broker.address()} (127.0.0.1: Connection refused)" in str(error_of(future))


def test_brokers_that_come_later_get_what_waits_for_them(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        producer.partitions_for("t")
        broker.stop(0)
        futures = send(producer, b"0", b"1")
        eventually(lambda: producer._callers_client.history.is_suspect(broker.address()))
        broker.start(0)
        assert [each.result(IN_TIME).offset for each in futures] == [0, 1]


# -- silent leaders --------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker counts as silent after hundredths of a second. Other timeouts are hours."""
    monkeypatch.setattr(asked, "LONGEST_SILENCE_MS", 30)
    monkeypatch.setattr(client_module, "LONGEST_SILENCE_MS", 500)


SLOW = {"request_timeout_ms": HOUR_MS, "delivery_timeout_ms": 2 * HOUR_MS}


@pytest.mark.usefixtures("impatient")
def test_a_leader_that_froze_is_given_up_once_another_leads(two: MemoryBroker) -> None:
    with producing(two, batch_size=1, **SLOW) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        two.control(ProduceRequest, Action.SILENCE, node_id=0, times=None)
        futures = send(producer, b"1", b"2", b"3")
        in_flight(producer, 3)
        looked = len(two.requests(MetadataRequest))
        two.wait_for(MetadataRequest, looked + 2)
        assert not any(each.done() for each in futures), "it leads still"
        two.move_leader(T0, 1)
        assert [each.result(IN_TIME).offset for each in futures] == [1, 2, 3]
        answered = producer._sender._metrics.request_ms.count
        assert answered == 4, "those that were given up have no latency"
    assert log_values(two) == [b"0", b"1", b"2", b"3"]
    assert {each.node_id for each in two.seen[-6:] if isinstance(each.request, ProduceRequest)} == {
        1
    }


@pytest.mark.usefixtures("impatient")
def test_a_leader_that_is_slow_keeps_its_requests(two: MemoryBroker) -> None:
    with producing(two, **SLOW) as producer:
        producer.partitions_for("t")
        held = two.hold(ProduceRequest, node_id=0)
        (future,) = send(producer, b"0")
        looked = len(two.requests(MetadataRequest))
        two.wait_for(MetadataRequest, looked + 3)
        held.release()
        assert future.result(IN_TIME).offset == 0
    assert len(two.requests(ProduceRequest)) == 1


# -- the thread waits, and does not spin -----------------------------------------------------------


class Steps:
    """A counter of the steps of a producer's thread."""

    def __init__(self, producer: KafkaProducer) -> None:
        self.count = 0
        self._producer = producer
        step = producer._sender._step

        def counted() -> None:
            self.count += 1
            step()

        producer._sender._step = counted  # type: ignore[method-assign]
        self._woken(1)

    def _woken(self, at_least: int) -> None:
        self._producer._accumulator.wakeup.wake()
        eventually(lambda: self.count >= at_least)

    def are_few(self) -> None:
        """Check for one or two steps for each wake-up: an answer may come in two parts."""
        before, times = self.count, 20
        for number in range(1, times + 1):
            self._woken(before + number)
        assert self.count - before <= 2 * times


def test_an_idle_producer_waits(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        Steps(producer).are_few()
        send(producer, b"0")[0].result(IN_TIME)
        Steps(producer).are_few()


def test_a_producer_waits_for_linger_ms(broker: MemoryBroker) -> None:
    with producing(broker, **PATIENT) as producer:
        send(producer, b"0")
        Steps(producer).are_few()


def test_a_producer_waits_for_answers(broker: MemoryBroker) -> None:
    held = broker.hold(ProduceRequest)
    with producing(broker, batch_size=1) as producer:
        futures = send(producer, b"0", b"1")
        broker.wait_for(ProduceRequest)
        Steps(producer).are_few()
        held.release()
        futures[1].result(IN_TIME)


def test_a_producer_waits_between_two_tries(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answering("NOT_ENOUGH_REPLICAS"))
    with producing(broker, **LONG_PAUSES) as producer:
        send(producer, b"0")
        eventually(lambda: bool(queue_of(producer).waiting and queue_of(producer).waiting[0].tries))
        Steps(producer).are_few()


def test_a_producer_waits_for_a_leader(two: MemoryBroker) -> None:
    with producing(two, **LONG_PAUSES) as producer:
        producer.partitions_for("t")
        two.move_leader(T1, 7)
        producer._sender._client.cluster.forget_leaders()
        producer.send("t", b"", partition=1)
        eventually(lambda: is_pausing(producer._sender._conversations))
        Steps(producer).are_few()
        assert len(two.requests(MetadataRequest)) <= 3


def test_a_producer_waits_for_a_partition_that_the_topic_has_no_more(two: MemoryBroker) -> None:
    with producing(two, **LONG_PAUSES) as producer:
        producer.send("t", b"", partition=1).result(IN_TIME)
        two.delete_topic("t")
        two.create_topic("t", 1)
        producer.send("t", b"", partition=1)
        eventually(lambda: len(two.requests(ProduceRequest)) == 2)
        queue = queue_of(producer, T1)
        eventually(lambda: bool(queue.waiting and queue.waiting[0].tries))
        queue.waiting[0].retry_at_seconds = 0.0
        producer._accumulator.wakeup.wake()
        eventually(lambda: is_pausing(producer._sender._conversations))
        Steps(producer).are_few()


def test_a_producer_waits_for_a_producer_id(broker: MemoryBroker) -> None:
    broker.control(InitProducerIdRequest, error_named("COORDINATOR_LOAD_IN_PROGRESS"), times=None)
    with producing(broker, **LONG_PAUSES) as producer:
        send(producer, b"0")
        broker.wait_for(InitProducerIdRequest)
        eventually(lambda: is_pausing(producer._sender._conversations))
        Steps(producer).are_few()
        assert len(broker.requests(InitProducerIdRequest)) == 1


def test_a_broker_over_its_quota_is_left_alone(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        broker.cluster.throttle_time_ms[ProduceRequest] = HOUR_MS
        send(producer, b"0")[0].result(IN_TIME)
        broker.cluster.throttle_time_ms.clear()
        (future,) = send(producer, b"1")
        Steps(producer).are_few()
        assert not future.done()
        assert len(broker.requests(ProduceRequest)) == 1
        producer._sender._client.connections._throttled_until_seconds.clear()
        producer._accumulator.wakeup.wake()
        assert future.result(IN_TIME).offset == 1


# -- closing ---------------------------------------------------------------------------------------


def test_a_fault_of_its_own_fails_all_that_waits_and_all_to_come_by_name(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with producing(broker, batch_size=1) as producer:
        send(producer, b"0")[0].result(IN_TIME)
        held = broker.hold(ProduceRequest)
        futures = send(producer, b"1", b"2")
        in_flight(producer, 2)

        def fail(*_: object) -> None:
            raise MemoryError("a fault that was planted")

        monkeypatch.setattr(ProduceAnswers, "_answered", fail)
        held.release()
        for future in futures:
            error = error_of(future)
            assert isinstance(error, LocalError)
            assert "the producer's thread ended: MemoryError('a fault that was" in str(error)
        with pytest.raises(LocalError, match="the producer's thread ended"):
            eventually(lambda: not send(producer, b"3"))
        producer.flush(IN_TIME)
        producer._accumulator.memory._free = producer._accumulator.memory.size
        producer._accumulator._unfinished.clear()
    eventually(lambda: "The producer's thread ended" in caplog.text)


def test_what_is_left_at_the_end_fails_by_name(broker: MemoryBroker) -> None:
    broker.hold(ProduceRequest)
    with producing(broker, batch_size=1) as producer:
        futures = send(producer, b"0", b"1")
        broker.wait_for(ProduceRequest)
        producer.close(0)
        for future in futures:
            with pytest.raises(ClosedError, match="closed before the record was sent"):
                future.result(0)


def test_requests_are_no_larger_than_asked_for(two: MemoryBroker) -> None:
    two.move_leader(T1, 0)
    with producing(two, **PATIENT, max_request_size=1_000, batch_size=800) as producer:
        futures = [producer.send("t", bytes(600), partition=each) for each in (0, 1)]
        producer.flush(IN_TIME)
        assert [each.result(0).offset for each in futures] == [0, 0]
    assert sorted(asked_for(each)[0] for each in two.requests(ProduceRequest)) == [T0, T1]


def test_partitions_of_one_leader_share_a_request(two: MemoryBroker) -> None:
    two.move_leader(T1, 0)
    with producing(two, **PATIENT) as producer:
        futures = [producer.send("t", b"x", partition=each) for each in (0, 1)]
        producer.flush(IN_TIME)
        assert [each.result(0).offset for each in futures] == [0, 0]
    assert {len(asked_for(each)) for each in two.requests(ProduceRequest)} == {2}
    assert len(headers(two.cluster.topics["t"].logs[1])) == 1
