"""Which schema wrote each row, and where in it the value itself begins.

There are several conventions; each is a `Framing`. Confluent's is in `confluent`.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.registry.row_headers import RowHeaders

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SchemaKey:
    """A schema, by the id or the GUID that a registry has for it, and a message of Protobuf's.

    `message` is the number of a message in the schema, then the number of one within it, and so
    on; of other formats it is empty.
    """

    id: int | UUID
    message: tuple[int, ...] = ()


class Misframed(IntEnum):
    """Why it is not known which schema wrote a row; `OK` where it is, or the row is null."""

    OK = 0
    MAGIC = 1
    SHORT = 2
    ID = 3
    INDEX_END = 4
    INDEX_COUNT = 5
    INDEX = 6
    TRAILING = 7


_REASONS = {
    Misframed.OK: "nothing is wrong",
    Misframed.MAGIC: "no schema id, found {:02x}",
    Misframed.SHORT: "no schema id, found only {} bytes",
    Misframed.ID: "no schema id, found the number {}, of more than 31 bits",
    Misframed.INDEX_END: "message indexes that are no varints, or that do not end",
    Misframed.INDEX_COUNT: "a message by {} indexes",
    Misframed.INDEX: "a message with the index {}",
    Misframed.TRAILING: "{} bytes after the schema id",
}


@dataclass(frozen=True, slots=True)
class Framed:
    """What a framing found in each row.

    `starts` is where the value itself begins. `key_of` is the row's number in `keys`, -1 for rows
    that are null and those that are bad, which have a `Misframed` as their `status`. `detail` is
    what a reason shows, and `from_header` says which rows have their key in a header.
    """

    starts: Integers
    keys: tuple[SchemaKey, ...]
    key_of: Integers
    status: Octets
    detail: Integers | None = None
    from_header: Mask | None = None

    def reason(self, row: int) -> str:
        """What is wrong with a bad row."""
        detail = 0 if self.detail is None else int(self.detail[row])
        text = _REASONS[Misframed(self.status[row])].format(detail)
        is_header = self.from_header is not None and self.from_header[row]
        return f"in the header of the schema: {text}" if is_header else text


class Framing(Protocol):
    """A convention of how a row says which schema wrote it.

    AWS Glue's (a byte, one that says how the rest is compressed, and a UUID), Azure's (a header
    with a content type) and Apicurio's own headers would be others, beside `ConfluentFraming`;
    each with a `SchemaSource` that knows its ids.
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
        """Look at the rows `data[starts[row]:ends[row]]`, and at their `headers` if they have any.

        Never raises because of what the bytes are, and no row has an influence on another.
        """


@dataclass(frozen=True, slots=True)
class NoFraming:
    """All rows were written with one schema, and are nothing but their values."""

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
        """Nothing is looked at."""
        count = len(starts)
        key_of = np.zeros(count, np.int64) if null is None else -null.astype(np.int64)
        return Framed(starts, (self.key,), key_of, np.zeros(count, np.uint8))
