"""Conventions that mark which schema wrote a row, and where in the row the value begins.

Each convention is a `Framing`. Confluent's is in `confluent`, others in `other_framings`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.registry.row_headers import RowHeaders
from spark_kafka_source.registry.schemas import SchemaId

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SchemaKey:
    """Key of a schema: its id in a registry, and for Protobuf the message in it.

    `message` is the index of a top-level message, then the index of a message nested in it, and so
    on. Other formats have an empty `message`.
    """

    id: SchemaId
    message: tuple[int, ...] = ()


class Misframed(IntEnum):
    """Reason why a row's schema is unknown. `OK` for rows with a known schema and null rows."""

    OK = 0
    MAGIC = 1
    SHORT = 2
    ID = 3
    INDEX_END = 4
    INDEX_COUNT = 5
    INDEX = 6
    TRAILING = 7
    COMPRESSION = 8
    ZLIB = 9
    ENCODING = 10
    INFLATED = 11


_REASONS = {
    Misframed.OK: "nothing is wrong",
    Misframed.MAGIC: "no schema id, found {:02x}",
    Misframed.SHORT: "no schema id, found only {} bytes",
    Misframed.ID: "no schema id, found the number {}, of more than 31 bits",
    Misframed.INDEX_END: "message indexes that are not varints, or do not end",
    Misframed.INDEX_COUNT: "a count of {} message indexes",
    Misframed.INDEX: "a message index of {}",
    Misframed.TRAILING: "{} bytes after the schema id",
    Misframed.COMPRESSION: "an unknown compression, {:02x}",
    Misframed.ZLIB: "a value that is not in zlib's format",
    Misframed.ENCODING: "a value in Avro's JSON encoding, which is not read",
    Misframed.INFLATED: "a value of more than {} bytes when inflated",
}


@dataclass(frozen=True, slots=True)
class Framed:
    """Result of a framing for each row.

    `starts` is where the value itself begins. `key_of` is the index of the row's key in `keys`, or
    -1 for null and bad rows. A bad row has a `Misframed` as its `status`. `detail` is the number
    that the row's reason shows. `from_header` marks the rows whose key came from a header.
    """

    starts: Integers
    keys: tuple[SchemaKey, ...]
    key_of: Integers
    status: Octets
    detail: Integers | None = None
    from_header: Mask | None = None
    data: Bytes | None = None
    """The bytes that hold the values, if a value is not in the ones that were framed."""
    ends: Integers | None = None
    """Where the values end in `data`."""

    def reason(self, row: int) -> str:
        """Return why a row is bad."""
        detail = 0 if self.detail is None else int(self.detail[row])
        text = _REASONS[Misframed(self.status[row])].format(detail)
        is_header = self.from_header is not None and self.from_header[row]
        is_header &= self.status[row] != Misframed.ENCODING
        return f"in the header of the schema: {text}" if is_header else text


class Framing(Protocol):
    """Convention that marks which schema wrote a row.

    Another convention would be Azure's (a header with a content type). Each needs a `SchemaSource`
    that knows its ids.
    """

    def frame(
        self,
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        headers: RowHeaders | None = None,
    ) -> Framed:
        """Find the schema key of each row, in `data[starts[row]:ends[row]]` or in `headers`.

        Never raises because of the bytes. No row influences another row.
        """


@dataclass(frozen=True, slots=True)
class NoFraming:
    """Framing of rows that were all written with one schema and contain only their values."""

    key: SchemaKey

    def frame(
        self,
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        headers: RowHeaders | None = None,
    ) -> Framed:
        """Give all rows the one key, without a look at their bytes."""
        count = len(starts)
        key_of = np.zeros(count, np.int64) if null is None else -null.astype(np.int64)
        return Framed(starts, (self.key,), key_of, np.zeros(count, np.uint8))
