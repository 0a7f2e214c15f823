"""Dead letters: bad records as they came, with headers that say what is wrong and where they were.

The headers have the names of Kafka Connect, where it has one:
https://cwiki.apache.org/confluence/display/KAFKA/KIP-298%3A+Error+Handling+in+Connect
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_kafka_source.records import Chunk, Integers
from spark_kafka_source.records.columns import gather
from spark_kafka_source.records.headers import locate_headers
from spark_kafka_source.records.located import Located
from spark_kafka_source.registry import SchemaId
from spark_kafka_source.secret import printable
from spark_kafka_source.topic_partition import TopicPartition

_OF_CONNECT, _OF_US = b"__connect.errors.", b"__pykafka.errors."
TOPIC = _OF_CONNECT + b"topic"
PARTITION = _OF_CONNECT + b"partition"
OFFSET = _OF_CONNECT + b"offset"
STAGE = _OF_CONNECT + b"stage"
CLASS = _OF_CONNECT + b"exception.class.name"
MESSAGE = _OF_CONNECT + b"exception.message"
# Connect has no names for these.
TIMESTAMP = _OF_US + b"timestamp"
SCHEMA_ID = _OF_US + b"schema.id"

STAGES = {"key": b"KEY_CONVERTER", "value": b"VALUE_CONVERTER"}
"""Connect's names for the decoding of a part."""

LONGEST_REASON = 1_000
_ERROR = b"spark_kafka_source.BadRecordError"
# A header's key need not be UTF-8, and goes on as it is.
_HEADER = pa.struct([("key", pa.binary()), ("value", pa.binary())])


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason why a record is bad, and the part that cannot be decoded.

    If neither part can, `part` and `schema_id` are those of the value; the reason names both.
    """

    part: str
    reason: str
    schema_id: SchemaId | None = None
    """The id of the schema that wrote the part, if the record names one."""


@dataclass(frozen=True, slots=True)
class Letters:
    """The bad records of one chunk, as columns to send."""

    topic_partition: TopicPartition
    """The partition that the records were read from."""
    offsets: Integers
    reason: str
    """Why the first one is bad."""
    columns: pa.RecordBatch
    """`key`, `value`, `headers` and `timestamp`, a row for each of `offsets`."""

    @classmethod
    def of(cls, chunk: Chunk, bad: Located, causes: list[Cause]) -> "Letters":
        """Return the letters for the records of a chunk that are `bad`, with the cause for each.

        A letter has the record's timestamp. If the record has none, or one in the future, which a
        broker may refuse, the timestamp is null.
        """
        times = bad.timestamp_ms
        is_usable = (times >= 0) & (times <= time.time_ns() // 1_000_000)
        columns = {
            "key": gather(chunk.data, bad.key),
            "value": gather(chunk.data, bad.value),
            "headers": _headers(chunk, bad, causes),
            "timestamp": pa.array(times, mask=~is_usable),
        }
        batch = pa.RecordBatch.from_pydict(columns)
        return cls(chunk.topic_partition, bad.offset, causes[0].reason, batch)


def _headers(chunk: Chunk, bad: Located, causes: list[Cause]) -> pa.ListArray:
    """Return the headers of each record, followed by the added ones."""
    located = locate_headers(chunk, bad)
    original = [gather(chunk.data, located.key), gather(chunk.data, located.value)]
    added = [list(_added(chunk, bad, row, cause)) for row, cause in enumerate(causes)]
    flat = [header for headers in added for header in headers]
    added_columns = [pa.array([header[place] for header in flat], pa.binary()) for place in (0, 1)]
    rows = np.arange(len(causes))
    counts = np.array([len(headers) for headers in added])
    owners = np.concatenate([np.repeat(rows, bad.header_count), np.repeat(rows, counts)])
    order = pa.array(np.argsort(owners, kind="stable"))
    columns = [
        pa.concat_arrays(both).take(order) for both in zip(original, added_columns, strict=True)
    ]
    ends = np.cumsum(bad.header_count + counts)
    starts = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    headers = pa.StructArray.from_arrays(columns, fields=list(_HEADER))
    return pa.ListArray.from_arrays(starts, headers)


def _added(chunk: Chunk, bad: Located, row: int, cause: Cause) -> Iterator[tuple[bytes, bytes]]:
    where = chunk.topic_partition
    yield TOPIC, where.topic.encode()
    yield PARTITION, b"%d" % where.partition
    yield OFFSET, b"%d" % bad.offset[row]
    yield STAGE, STAGES[cause.part]
    yield CLASS, _ERROR
    yield MESSAGE, printable(cause.reason)[:LONGEST_REASON].encode()
    yield TIMESTAMP, b"%d" % bad.timestamp_ms[row]
    if cause.schema_id is not None:
        yield SCHEMA_ID, str(cause.schema_id).encode()
