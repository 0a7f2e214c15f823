"""An idempotent producer and random answers: each record is written once, in order, or fails.

EXAMPLES=2000 in the environment runs more examples than the default.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.producer import KafkaProducer, SendFuture
from spark_kafka_source.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    ProduceRequest,
    ProduceResponse,
)
from spark_kafka_source.records import BatchHeader, batches
from spark_kafka_source.testing.memory import Action, MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.producer.writing import HOUR_MS, IN_TIME, T0, answering, producing, values

pytestmark = pytest.mark.memory(topics={"t": 1})

EXAMPLES = int(os.environ.get("EXAMPLES", "60"))
PARTITIONS = 2

Answer = Callable[[ProduceRequest], Any]


def leaving_out(_: ProduceRequest) -> ProduceResponse:
    return ProduceResponse()


def invalid(numbers: list[int]) -> Answer:
    errors = [BatchIndexAndErrorMessage(each, None) for each in numbers]
    return answering("INVALID_RECORD", record_errors=errors)


HEALED = ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "CORRUPT_MESSAGE"]
# A leader answers these errors only for unwritten batches. A written batch gets its offset.
LOST_SEQUENCES = ["OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_EPOCH"]
LASTING = ["MESSAGE_TOO_LARGE", "POLICY_VIOLATION", "TOPIC_AUTHORIZATION_FAILED"]

healing = st.one_of(
    st.just(Action.HANDLE),
    st.sampled_from([Action.LOSE, Action.CLOSE]),
    st.sampled_from([*HEALED, *LOST_SEQUENCES]).map(answering),
)
answers = st.one_of(
    healing,
    st.sampled_from(LASTING).map(answering),
    st.lists(st.integers(-1, 6), max_size=3).map(invalid),
    st.just(leaving_out),
)
healing_steps = st.one_of(
    st.tuples(st.just("send"), st.integers(0, PARTITIONS - 1)),
    st.tuples(st.just("columns"), st.integers(1, 6)),
    st.tuples(st.just("flush"), st.just(0)),
    st.tuples(st.just("move"), st.integers(0, PARTITIONS - 1)),
    st.tuples(st.just("hang up"), st.integers(0, 1)),
)
steps = st.one_of(healing_steps, st.tuples(st.just("expire"), st.integers(0, PARTITIONS - 1)))
batch_sizes = st.sampled_from([1, 60, 200, 10_000])
in_flight = st.sampled_from([1, 3, 5])


@dataclass
class Model:
    """The sent records, and the answers about them."""

    broker: MemoryBroker
    producer: KafkaProducer
    answers: list[Any]
    sent: dict[int, list[tuple[int, SendFuture]]] = field(default_factory=dict)
    columns: list[Any] = field(default_factory=list)
    told: Counter[int] = field(default_factory=Counter)
    number: int = 0

    def respond(self, request: ProduceRequest) -> Any:
        """Answer with the next drawn answer, or truly where the drawn one would be false."""
        answer = self.answers.pop() if self.answers else Action.HANDLE
        if isinstance(answer, Action):
            return answer
        return Action.HANDLE if is_written(self.broker, request) else answer(request)

    def take(self, step: str, argument: int) -> None:
        if step == "send":
            self.send(argument)
        elif step == "columns":
            self.send_columns(argument)
        elif step == "flush":
            self.producer.flush(IN_TIME)
        elif step == "expire":
            self.expire(TopicPartition("t", argument))
        elif step == "move":
            log = self.broker.cluster.topics["t"].logs[argument]
            self.broker.move_leader(TopicPartition("t", argument), 1 - log.leader_id)
        else:
            self.broker.hang_up(argument)

    def send(self, partition: int) -> None:
        number = self.number
        self.number += 1
        future = self.producer.send(
            "t",
            b"%d" % number,
            partition=partition,
            on_delivery=lambda *_: self.told.update([number]),
        )
        self.sent.setdefault(partition, []).append((number, future))

    def send_columns(self, count: int) -> None:
        """Send columns to the first partition."""
        rows = [b"%d" % (self.number + each) for each in range(count)]
        columns = pa.table({"value": rows, "partition": [0] * count})
        future = self.producer.send_columns("t", columns)
        self.columns.append((range(self.number, self.number + count), future))
        self.number += count

    def expire(self, where: TopicPartition) -> None:
        """Let the time of all unwritten batches expire."""
        queue = self.producer._accumulator._queues.get(where)
        for each in [*queue.in_flight, *queue.waiting] if queue is not None else ():
            each.created_at_seconds -= HOUR_MS
        self.producer._accumulator.wakeup.wake()


def is_written(broker: MemoryBroker, request: ProduceRequest) -> bool:
    """Return whether a leader has a batch of the request already."""
    found = False
    for topic in request.topic_data:
        for each in topic.partition_data:
            header = header_of(each.records)
            entry = (
                broker.cluster.topics[topic.name].logs[each.index].producers.get(header.producer_id)
            )
            found = found or (entry is not None and entry.duplicate(header) is not None)
    return found


def header_of(records: Any) -> BatchHeader:
    ((header, _),) = batches(memoryview(bytes(records)), T0)
    return header


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(
    st.lists(steps, min_size=1, max_size=40),
    st.lists(answers, max_size=25),
    batch_sizes,
    in_flight,
    st.sampled_from(["none", "lz4"]),
)
def test_each_record_is_written_once_in_order_or_told_to_be_lost(
    taken: list[tuple[str, int]],
    drawn: list[Any],
    batch_size: int,
    most_in_flight: int,
    compression: str,
) -> None:
    written(taken, drawn, batch_size, most_in_flight, compression)


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(
    st.lists(healing_steps, min_size=1, max_size=40),
    st.lists(healing, max_size=25),
    batch_sizes,
    in_flight,
)
def test_where_all_that_goes_wrong_heals_each_record_is_written_once_in_order(
    taken: list[tuple[str, int]], drawn: list[Any], batch_size: int, most_in_flight: int
) -> None:
    model = written(taken, drawn, batch_size, most_in_flight)
    assert not [each for sent in model.sent.values() for _, each in sent if each.exception(0)]
    assert not [each for _, each in model.columns if each.exception(0)]


def written(
    taken: list[tuple[str, int]],
    drawn: list[Any],
    batch_size: int,
    most_in_flight: int,
    compression: str = "none",
) -> Model:
    """Return the result of these steps, after checks."""
    with MemoryBroker(2) as broker:
        logs = broker.create_topic("t", PARTITIONS)
        with producing(
            broker,
            batch_size=batch_size,
            compression_type=compression,
            max_in_flight_requests_per_connection=most_in_flight,
        ) as producer:
            model = Model(broker, producer, drawn)
            broker.control(ProduceRequest, model.respond, times=None)
            for step, argument in taken:
                model.take(step, argument)
            producer.flush(IN_TIME)
            producer.close()
        for partition, log in enumerate(logs):
            check(model, partition, [int(each or b"") for each in values(log)])
    sent = [number for each in model.sent.values() for number, _ in each]
    assert model.told == Counter(sent), "each callback is called once"
    return model


def check(model: Model, partition: int, found: list[int]) -> None:
    """Check a log: each record is there once, in the order of sending, at its future's offset."""
    assert found == sorted(set(found))
    for number, future in model.sent.get(partition, []):
        assert future.done()
        if future.exception(0) is None:
            offset = future.result(0).offset
            assert found[offset] == number
    for numbers, columns in model.columns if partition == 0 else ():
        assert columns.done()
        if columns.exception(0) is None:
            places = [
                each.offset + at for each in columns.result(0) for at in range(each.record_count)
            ]
            assert [found[each] for each in places] == list(numbers)
