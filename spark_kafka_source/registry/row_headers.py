"""Headers of rows, for a framing: from the bytes of a chunk, or from a column."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.headers import LocatedHeaders
from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets


@dataclass(frozen=True, slots=True)
class HeaderValues:
    """Header values: `data[starts[n]:ends[n]]` belongs to row `rows[n]`. Rows are in order."""

    rows: Integers
    data: Octets
    starts: Integers
    ends: Integers


class RowHeaders(Protocol):
    """Headers of some rows."""

    def last(self, name: str) -> HeaderValues | None:
        """Return the value of each row's last header with this name, unless the value is null.

        None if no row has one.
        """


@dataclass(frozen=True, slots=True)
class LocatedRowHeaders:
    """Headers of located records. Nothing is copied. `counts` is `Located.header_count`."""

    data: Bytes
    headers: LocatedHeaders
    counts: Integers

    def last(self, name: str) -> HeaderValues | None:
        """See `RowHeaders`."""
        octets: Octets = np.frombuffer(self.data, np.uint8)
        key, value, name_bytes = self.headers.key, self.headers.value, name.encode()
        places = np.flatnonzero(key.bounds[1::2] - key.bounds[0::2] == len(name_bytes))
        for at, byte in enumerate(name_bytes):
            if not len(places):
                return None
            places = places[octets[key.bounds[2 * places] + at] == byte]
        rows, places = _last_of_rows(np.repeat(np.arange(len(self.counts)), self.counts), places)
        has_value = ~value.null[places]
        rows, places = rows[has_value], places[has_value]
        if not len(rows):
            return None
        starts, ends = value.bounds[2 * places], value.bounds[2 * places + 1]
        return HeaderValues(rows, octets, starts.astype(np.int64), ends.astype(np.int64))


@dataclass(frozen=True, slots=True)
class ColumnRowHeaders:
    """Headers in a column of lists of structs: a key (text or bytes) and a value (bytes)."""

    column: pa.Array

    def last(self, name: str) -> HeaderValues | None:
        """See `RowHeaders`."""
        elements = self.column.flatten()
        keys = pc.struct_field(elements, [0]).cast(pa.binary())
        is_named = pc.fill_null(pc.equal(keys, pa.scalar(name.encode())), False)
        places = np.flatnonzero(is_named.to_numpy(zero_copy_only=False))
        if not len(places):
            return None
        owners = pc.list_parent_indices(self.column).to_numpy().astype(np.int64)
        rows, places = _last_of_rows(owners, places)
        values = pc.struct_field(elements, [1]).cast(pa.binary()).take(pa.array(places))
        has_value = values.is_valid().to_numpy(zero_copy_only=False)
        rows, values = rows[has_value], values.drop_null()
        if not len(rows):
            return None
        _, offsets, data = values.buffers()
        bounds = np.frombuffer(offsets, np.int32)[values.offset :][: len(values) + 1]
        wide = bounds.astype(np.int64)
        octets = np.frombuffer(data or b"", np.uint8)
        return HeaderValues(rows, octets, wide[:-1], wide[1:])


def _last_of_rows(owners: Integers, places: Integers) -> tuple[Integers, Integers]:
    """Return the rows of these header places, each row once with its last place."""
    rows = owners[places]
    is_last = np.ones(len(rows), np.bool_)
    is_last[:-1] = rows[1:] != rows[:-1]
    return rows[is_last], places[is_last]
