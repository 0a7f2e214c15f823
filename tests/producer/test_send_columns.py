"""Users' columns: all types, mixed with single records, several topics, errors."""

import threading
import weakref
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import BrokerError, KafkaTimeoutError
from spark_kafka_source.producer import (
    BatchMetadata,
    BufferFullError,
    KafkaProducer,
    UnsendableRecordError,
)
from spark_kafka_source.producer.given_columns import UnknownColumnError
from spark_kafka_source.producer.partitioners import MURMUR2
from spark_kafka_source.protocol.messages.produce import ProduceRequest
from spark_kafka_source.records import ColumnTypeError, RowTooLargeError, UnencodableRowError
from spark_kafka_source.testing.memory import MemoryBroker, PartitionLog
from tests.producer.writing import HOUR_MS, IN_TIME, answering, knowing, producing, values, written
from tests.records.record_tables import record_tables
from tests.records.strategies import untimed

pytestmark = pytest.mark.memory(topics={"t": 1})

PATIENT: dict[str, Any] = {"linger_ms": HOUR_MS, "delivery_timeout_ms": 2 * HOUR_MS}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def logs_of(broker: MemoryBroker, topic: str = "t") -> list[PartitionLog]:
    return broker.cluster.topics[topic].logs


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def test_rows_are_records_and_the_future_says_where_they_are(broker: MemoryBroker) -> None:
    columns = table(
        key=[b"k", None],
        value=["v", None],
        headers=pa.array([[("h", b"1"), ("h", None)], None], HEADERS),
        timestamp=pa.array([5_000_000, 6_999_999], pa.timestamp("us", "UTC")),
    )
    with producing(broker) as producer:
        future = producer.send_columns("t", columns)
        assert future.result(IN_TIME) == [BatchMetadata("t", 0, 0, 2)]
        assert future.done()
    assert written(logs_of(broker)[0]) == [
        (0, b"k", b"v", [("h", b"1"), ("h", None)], 5_000),
        (1, None, None, [], 6_999),
    ]


def test_records_and_columns_of_all_types_keep_their_order_in_one_batch(
    broker: MemoryBroker,
) -> None:
    with producing(broker, **PATIENT) as producer:
        futures: list[Any] = [
            producer.send("t", b"0", timestamp_ms=1, headers=[("h", b"0")]),
            producer.send_columns("t", table(value=pa.array(["1"], pa.large_string()))),
            producer.send_columns("t", table(value=[b"2"], key=pa.nulls(1))),
            producer.send_columns("t", table(key=["3"], other=pa.nulls(1))),
            producer.send("t", None, key=b"4"),
            producer.send_columns(
                "t", table(value=["5"], timestamp=pa.array([7_000_000_000], pa.timestamp("ns")))
            ),
            producer.send_columns("t", table(headers=pa.array([[("h", b"6")]], HEADERS))),
        ]
        producer.flush(IN_TIME)
        offsets = [futures[0].result(0).offset, futures[4].result(0).offset]
        assert offsets == [0, 4]
        assert futures[5].result(0) == [BatchMetadata("t", 0, 5, 1)]
    assert len(logs_of(broker)[0].batches) == 1
    found = written(logs_of(broker)[0])
    assert [(each.key, each.value) for each in found] == [
        (None, b"0"),
        (None, b"1"),
        (None, b"2"),
        (b"3", None),
        (b"4", None),
        (None, b"5"),
        (None, None),
    ]
    assert [each.headers for each in found] == [[("h", b"0")], [], [], [], [], [], [("h", b"6")]]
    assert (found[0].timestamp_ms, found[5].timestamp_ms) == (1, 7_000)


@untimed
@given(st.lists(record_tables(min_size=1), min_size=1, max_size=4))
def test_whatever_tables_share_a_batch_their_rows_are_written(tables: list[Any]) -> None:
    with MemoryBroker() as broker:
        (log,) = broker.create_topic("t")
        with producing(broker, **PATIENT) as producer:
            for each in tables:
                producer.send_columns("t", each.columns)
            producer.flush(IN_TIME)
        expected = [record for each in tables for record in each.records]
        found = written(log)
    assert [(each.key, each.value) for each in found] == [
        (each.key, each.value) for each in expected
    ]
    assert [tuple(each.headers) for each in found] == [tuple(each.headers) for each in expected]


def test_rows_go_where_their_keys_and_the_partition_column_say(broker: MemoryBroker) -> None:
    broker.create_topic("many", 5)
    keys = [b"a", b"b", b"c", b"a", None]
    partitions = pa.array([None, 3, None, None, 4], pa.int32())
    with producing(broker) as producer:
        columns = table(key=keys, value=[b"%d" % each for each in range(5)], partition=partitions)
        found = producer.send_columns("many", columns).result(IN_TIME)
    assert sum(each.record_count for each in found) == 5
    of_a, of_c = MURMUR2.partition(b"a", 5), MURMUR2.partition(b"c", 5)
    by_value = {
        value: partition
        for partition, log in enumerate(logs_of(broker, "many"))
        for value in values(log)
    }
    assert by_value == {b"0": of_a, b"1": 3, b"2": of_c, b"3": of_a, b"4": 4}


@pytest.mark.parametrize("has_key", [True, False])
def test_a_function_chooses_the_partition_of_each_row_that_has_none(
    broker: MemoryBroker, has_key: bool
) -> None:
    broker.create_topic("many", 3)
    asked: list[Any] = []

    def choose(topic: str, key: bytes | None, count: int) -> int | None:
        asked.append((topic, key, count))
        return 2

    columns = table(value=[b"0", b"1"], partition=[None, 1])
    if has_key:
        columns = columns.append_column("key", pa.array(["k", "l"]))
    with producing(broker, partitioner=choose) as producer:
        producer.send_columns("many", columns).result(IN_TIME)
    assert asked == [("many", b"k" if has_key else None, 3)]
    assert [values(each) for each in logs_of(broker, "many")] == [[], [b"1"], [b"0"]]


def test_rows_of_several_topics(broker: MemoryBroker) -> None:
    broker.create_topic("u")
    with producing(broker, **PATIENT) as producer:
        columns = table(topic=["u", "t", "u"], value=[b"0", b"1", b"2"])
        future = producer.send_columns(None, columns)
        producer.flush(IN_TIME)
        assert sorted(future.result(0)) == [
            BatchMetadata("t", 0, 0, 1),
            BatchMetadata("u", 0, 0, 2),
        ]
    assert [values(logs_of(broker, each)[0]) for each in "tu"] == [
        [b"1"],
        [b"0", b"2"],
    ]


def test_where_the_topic_is_given_the_column_is_passed_over(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        columns = table(topic=["nope", None], value=[b"0", b"1"])
        producer.send_columns("t", columns).result(IN_TIME)
    assert values(logs_of(broker)[0]) == [b"0", b"1"]


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        ({"value": [1]}, ColumnTypeError, "'value' is of the type int64"),
        ({"value": [b"", b"", bytes(900)]}, RowTooLargeError, "'max_request_size' is 600"),
        ({"timestamp": [0, 0, -5]}, UnencodableRowError, "before 1970"),
        ({"value": [b""] * 3, "partition": [0, 0, 7]}, UnencodableRowError, "from 0 on, also"),
        ({"value": [b""] * 3, "partition": [0, 0, -1]}, UnencodableRowError, "partition is -1"),
        ({"value": [b""] * 3, "partition": [0.5] * 3}, ColumnTypeError, "'partition'"),
        ({"headers": pa.array([[], [], [(None, b"")]], HEADERS)}, UnencodableRowError, "key of a"),
    ],
    ids=["type", "size", "time", "partition", "negative", "partition type", "header"],
)
def test_where_one_row_cannot_be_sent_none_is(
    broker: MemoryBroker, columns: Any, error: type[Exception], said: str
) -> None:
    with producing(broker, max_request_size=600, max_block_ms=100) as producer:
        with pytest.raises(error) as caught:
            producer.send_columns("t", table(**columns))
        producer.flush(IN_TIME)
    assert said in str(caught.value)
    if isinstance(caught.value, UnencodableRowError):
        assert caught.value.rows == (2,)
    assert not broker.requests(ProduceRequest)


def test_a_partition_that_the_topic_has_got_meanwhile_is_written_to(broker: MemoryBroker) -> None:
    with producing(broker) as producer:
        producer.partitions_for("t")
        broker.create_topic("t", 2, topic_id=broker.cluster.topics["t"].topic_id)
        found = producer.send_columns("t", table(value=[b""], partition=[1])).result(IN_TIME)
        assert found == [BatchMetadata("t", 1, 0, 1)]


def test_a_topic_that_is_not_there_is_named_before_any_row_is_sent(broker: MemoryBroker) -> None:
    with producing(broker, max_block_ms=100) as producer:
        knowing(producer, "t")
        columns = table(topic=["t", "nope"], value=[b"", b""])
        with pytest.raises(KafkaTimeoutError, match="topic 'nope'"):
            producer.send_columns(None, columns)
        producer.flush(IN_TIME)
    assert not broker.requests(ProduceRequest)


@pytest.mark.parametrize(
    "nothing",
    [
        table(value=pa.array([], pa.binary())),
        table(),
        pa.schema([("key", pa.string())]).empty_table(),
    ],
)
def test_without_rows_nothing_is_sent(broker: MemoryBroker, nothing: Any) -> None:
    with producing(broker) as producer:
        future = producer.send_columns("t", nothing)
        assert future.done()
        assert future.result() == []
    assert not broker.seen


def test_many_rows_are_cut_into_batches_and_wait_for_room(broker: MemoryBroker) -> None:
    rows = 5_000
    with producing(broker, batch_size=2_000, buffer_memory=6_000) as producer:
        columns = table(value=[b"%d" % each for each in range(rows)])
        found = producer.send_columns("t", columns).result(IN_TIME)
        assert sum(each.record_count for each in found) == rows
        assert [each.offset for each in found] == sorted(each.offset for each in found)
    assert [int(each or b"") for each in values(logs_of(broker)[0])] == list(range(rows))


def test_where_there_is_no_room_in_time_the_rows_before_are_on_their_way(
    broker: MemoryBroker,
) -> None:
    with producing(broker, batch_size=300, buffer_memory=500, max_block_ms=30) as producer:
        knowing(producer, "t")
        held = broker.hold(ProduceRequest)
        with pytest.raises(BufferFullError, match="'max_block_ms'"):
            producer.send_columns("t", table(value=[bytes(100)] * 20))
        held.release()
        producer.flush(IN_TIME)
    count = len(values(logs_of(broker)[0]))
    assert 0 < count < 20


def test_columns_fail_with_the_first_error_of_their_records(broker: MemoryBroker) -> None:
    broker.control(ProduceRequest, answering("POLICY_VIOLATION"))
    with producing(broker, **PATIENT) as producer:
        future = producer.send_columns("t", table(value=[b"0", b"1"]))
        told: list[Any] = []
        future.add_done_callback(told.append)
        producer.flush(IN_TIME)
        assert isinstance(future.failure(), BrokerError)
        with pytest.raises(BrokerError, match="Produce to t-0: POLICY_VIOLATION"):
            future.result(IN_TIME)
    assert told == [future]


def test_columns_and_their_owner_are_let_go_once_they_are_encoded(broker: MemoryBroker) -> None:
    """A wait for a leader keeps only the bytes that `buffer.memory` counts."""
    with producing(broker) as producer:
        producer.partitions_for("t")
        held = broker.hold(ProduceRequest)
        columns = table(value=[b"0"])
        gone = weakref.ref(columns)
        future = producer.send_columns("t", columns)
        broker.wait_for(ProduceRequest)
        del columns
        assert gone() is None
        held.release()
        future.result(IN_TIME)


def test_a_record_by_itself_that_no_batch_can_hold_is_refused_by_both(
    broker: MemoryBroker,
) -> None:
    with producing(broker, buffer_memory=300) as producer:
        assert isinstance(producer, KafkaProducer)
        with pytest.raises(UnsendableRecordError, match="'buffer_memory' is 300"):
            producer.send("t", bytes(400))
        with pytest.raises(RowTooLargeError, match="'buffer_memory' is 300"):
            producer.send_columns("t", table(value=[bytes(400)]))


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ({"Value": ["1"]}, "Value"),
        ({"KEY": ["1"], "value": ["2"]}, "KEY"),
        ({"key": ["1"], "val": ["2"]}, "val"),
        ({"amount": [1]}, "amount"),
    ],
)
def test_a_column_whose_data_would_be_left_out_is_refused(
    broker: MemoryBroker, columns: dict[str, Any], name: str
) -> None:
    with producing(broker) as producer:
        with pytest.raises(UnknownColumnError) as refused:
            producer.send_columns("t", pa.table(columns))
        assert refused.value.column == name
        beside = pa.table({"value": ["1"], "key": ["1"], "Value": ["2"], "offset": [3]})
        assert producer.send_columns("t", beside).result(IN_TIME)
    assert [(each.key, each.value) for each in written(logs_of(broker)[0])] == [(b"1", b"1")]


class OfStream:
    """Columns of another library, by Arrow's stream interface."""

    def __init__(self, columns: pa.Table) -> None:
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._columns.__arrow_c_stream__(requested_schema)


class OfArray:
    """Columns of another library, by Arrow's array interface."""

    def __init__(self, columns: pa.RecordBatch) -> None:
        self._columns = columns

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._columns.__arrow_c_array__(requested_schema)


HEADERS_OF_OTHERS = pa.large_list(
    pa.struct([("key", pa.string_view()), ("value", pa.binary_view())])
)


def columns_of_others() -> pa.Table:
    """Return columns of the types that Polars and pandas have."""
    return table(
        key=pa.array(["k", None], pa.string_view()),
        value=pa.array(["a", "b"]).dictionary_encode(),
        headers=pa.array([[{"key": "h", "value": b"1"}], None], HEADERS_OF_OTHERS),
        partition=pa.array([0, None], pa.uint8()),
    )


@pytest.mark.parametrize(
    "given",
    [
        OfStream(columns_of_others()),
        OfArray(columns_of_others().to_batches()[0]),
        columns_of_others(),
        OfStream(pa.concat_tables([columns_of_others().slice(0, 1), columns_of_others().slice(1)])),
    ],
    ids=["stream", "array", "table", "chunks"],
)
def test_columns_of_other_libraries_are_taken_by_arrows_interface(
    broker: MemoryBroker, given: Any
) -> None:
    with producing(broker) as producer:
        assert producer.send_columns("t", given).result(IN_TIME)[0].offset == 0
        producer.flush(IN_TIME)
    first, second = written(logs_of(broker)[0])
    assert (first.key, first.value, first.headers) == (b"k", b"a", [("h", b"1")])
    assert (second.key, second.value, second.headers) == (None, b"b", [])


def test_columns_of_arrows_newer_types_are_taken(broker: MemoryBroker) -> None:
    entry = pa.struct([("key", pa.string()), ("value", pa.binary())])
    given = table(
        key=pa.array([b"k1", b"k2"], pa.binary(2)),
        value=pc.run_end_encode(pa.array(["a", "a"])),
        headers=pa.array([[{"key": "h", "value": b"1"}], None], pa.list_view(entry)),
        other=pa.array([[1], [2]], pa.list_view(pa.int8())),
    )
    with producing(broker) as producer:
        for each in (given, given.to_batches()[0]):
            producer.send_columns("t", each)
        producer.flush(IN_TIME)
    rows = [(each.key, each.value, each.headers) for each in written(logs_of(broker)[0])]
    assert rows == [(b"k1", b"a", [("h", b"1")]), (b"k2", b"a", [])] * 2


@pytest.mark.parametrize(
    "given",
    [{"value": ["a"]}, [b"a"], pa.array(["a"]), pa.chunked_array([["a"]]), "text", None],
    ids=lambda each: type(each).__name__,
)
def test_anything_else_is_refused_with_what_is_taken(broker: MemoryBroker, given: Any) -> None:
    with (
        producing(broker) as producer,
        pytest.raises(TypeError, match="give a pyarrow Table or RecordBatch, or columns with"),
    ):
        producer.send_columns("t", given)


def test_columns_follow_the_records_that_were_sent_before_them_also_in_a_callback(
    broker: MemoryBroker,
) -> None:
    with producing(broker, **PATIENT) as producer:

        def follow(*_: object) -> None:
            producer.send("t", b"2")
            producer.send_columns("t", table(value=[b"3"]))
            producer.send("t", b"4")
            followed.set()

        followed = threading.Event()
        producer.send("t", b"0", on_delivery=follow)
        producer.send_columns("t", table(value=[b"1"]))
        producer.flush(IN_TIME)
        assert followed.wait(IN_TIME)
        producer.flush(IN_TIME)
    assert values(logs_of(broker)[0]) == [b"0", b"1", b"2", b"3", b"4"]
