"""The conventions of Apicurio's and AWS Glue's own serializers, and hints at them.

    Apicurio, in the value, or the key        in a header of the record, beside a bare value
    +----+-------------+-------+              +-------------------------+-------------+
    | 00 | id, 8 bytes | value |              | apicurio.value.globalId | id, 8 bytes |
    +----+-------------+-------+              +-------------------------+-------------+

    AWS Glue
    +----+-------------+----------------+-------+
    | 03 | compression | UUID, 16 bytes | value |
    +----+-------------+----------------+-------+

Apicurio's ids are big-endian. The other header is `apicurio.value.contentId`; for keys, `key` is in
their names. Glue's compression is 00, or 05 for a value in zlib's format.
https://www.apicur.io/registry/docs/ (chapter on SerDes)
https://docs.aws.amazon.com/glue/latest/dg/schema-registry.html
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from spark_kafka_source.records.types import Bytes
from spark_kafka_source.records.varints import Integers, Octets
from spark_kafka_source.registry.confluent import ConfluentFraming, Indexes, MergedRows, Part
from spark_kafka_source.registry.framing import Framed, Framing, Mask, Misframed, SchemaKey
from spark_kafka_source.registry.row_headers import RowHeaders
from spark_kafka_source.registry.schemas import ApicurioId
from spark_kafka_source.registry.url import URL_OPTION
from spark_kafka_source.spelling import as_written
from spark_kafka_source.values import Encoded

MOST_INFLATED = 32 << 20
"""The most bytes of one value that was in zlib's format."""

_ID_BYTES = 8
_CONFLUENT_BYTES = 5
_GLUE, _STORED, _ZLIB = 3, 0, 5
_GLUE_BYTES = 18
_KINDS = ("contentId", "globalId")
_INFLATED_AT_ONCE = 1 << 20

Found = SchemaKey | tuple[Misframed, int]
"""The key in the bytes before a value, or the fault there and its detail."""


@dataclass(frozen=True, slots=True)
class ApicurioFraming:
    """Framing that reads Apicurio's id from a header, or else from before the value."""

    part: Part = Part.VALUE
    kind: str = "globalId"
    """The kind of an id before the value, `globalId` or `contentId`. A header says it."""

    def frame(
        self,
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        headers: RowHeaders | None = None,
    ) -> Framed:
        """See `Framing`."""
        octets: Octets = np.frombuffer(data, np.uint8)
        left = np.ones(len(starts), np.bool_) if null is None else ~null
        merged, name = MergedRows(starts), self.part.name.lower()
        for kind in _KINDS:
            held = None if headers is None else headers.last(f"apicurio.{name}.{kind}")
            if held is None:
                continue
            places = np.flatnonzero(left[held.rows])
            rows = held.rows[places]
            bounds, key = (held.starts[places], held.ends[places]), _apicurio_key(kind)
            framed = _prefixed(held.data, *bounds, _ID_BYTES, key, is_whole=True)
            merged.add(rows, framed, in_header=True)
            left[rows] = False
        rows = np.flatnonzero(left)
        bounds, key = (starts[rows], ends[rows]), _apicurio_key(self.kind, b"\0")
        merged.add(rows, _prefixed(octets, *bounds, 1 + _ID_BYTES, key), in_header=False)
        framed = merged.framed()
        if headers is not None:
            in_json = _rows_with(headers, f"apicurio.{name}.encoding", b"JSON")
            in_json = [row for row in in_json if framed.key_of[row] >= 0]
            framed.status[in_json], framed.key_of[in_json] = Misframed.ENCODING, -1
        return framed


@dataclass(frozen=True, slots=True)
class GlueFraming:
    """Framing that reads Glue's UUID of a schema's version, and inflates values."""

    def frame(
        self,
        data: Bytes | Octets,
        starts: Integers,
        ends: Integers,
        *,
        null: Mask | None = None,
        headers: RowHeaders | None = None,
    ) -> Framed:
        """See `Framing`."""
        octets: Octets = np.frombuffer(data, np.uint8)
        merged = MergedRows(starts)
        rows = np.arange(len(starts)) if null is None else np.flatnonzero(~null)
        found = _prefixed(octets, starts[rows], ends[rows], _GLUE_BYTES, _glue_key)
        merged.add(rows, found, in_header=False)
        framed = merged.framed()
        good = np.flatnonzero(framed.key_of >= 0)
        packed = good[octets[starts[good] + 1] == _ZLIB]
        return _inflated(octets, framed, ends, packed.tolist()) if len(packed) else framed


def hints(
    framing: Framing,
    framed: Framed,
    rows: Encoded,
    bad: Integers,
    headers: RowHeaders | None,
) -> dict[int, str]:
    """Return, by row, what reads those of the `bad` rows that look like another framing's."""
    octets: Octets = np.frombuffer(rows.data, np.uint8)
    heads = {
        row: octets[rows.starts[row] : rows.ends[row]][:_GLUE_BYTES].tobytes()
        for row in bad.tolist()
    }
    if isinstance(framing, ConfluentFraming):
        return _not_of_confluent(framing, heads, headers)
    return _not_of_apicurio(framing, framed, heads) if isinstance(framing, ApicurioFraming) else {}


def _not_of_confluent(
    framing: ConfluentFraming, heads: Mapping[int, bytes], headers: RowHeaders | None
) -> dict[int, str]:
    part = framing.part.name.lower()
    option, schema = as_written(f"'{part}.framing'"), as_written(f"'{part}.schema'")
    url, format = as_written(f"'{URL_OPTION}'"), as_written(f"'{part}.format'")
    ways = {
        "glue": f"{option} set to 'glue', without {url}, reads them",
        "apicurio": f"{option} set to 'apicurio' reads it",
    }
    if framing.indexes is not Indexes.NONE:
        text = f"Protobuf in this form is not read, but {format} set to 'binary' leaves it as bytes"
        ways = dict.fromkeys(ways, text)
    found: dict[int, str] = {}
    for row, head in heads.items():
        if len(head) == _GLUE_BYTES and head[0] == _GLUE and head[1] in (_STORED, _ZLIB):
            found[row] = f"it begins as AWS Glue's values: {ways['glue']}"
        elif len(head) > _ID_BYTES and not any(head[:_CONFLUENT_BYTES]):
            found[row] = f"it begins as with an id of 8 bytes: {ways['apicurio']}"
    if headers is None:
        return found
    for kind in _KINDS:
        name = f"apicurio.{part}.{kind}"
        for row in heads.keys() & _rows_with(headers, name):
            found[row] = f"its header {name} has the id: {ways['apicurio']}"
    for row in heads.keys() & _rows_with(headers, "content-type", b"avro/binary+"):
        found[row] = (
            "its header content-type is that of Azure's registry, which is not asked: "
            f"{option} set to 'none', and the schema as {schema}, read it"
        )
    return found


def _not_of_apicurio(
    framing: ApicurioFraming, framed: Framed, heads: Mapping[int, bytes]
) -> dict[int, str]:
    part = framing.part.name.lower()
    option, found = as_written(f"'{part}.framing'"), dict[int, str]()
    for row, head in heads.items():
        if framed.status[row] == Misframed.ENCODING:
            found[row] = f"its header apicurio.{part}.encoding is JSON"
        elif len(head) < _CONFLUENT_BYTES or head[0]:
            continue
        elif framed.from_header is not None and framed.from_header[row]:
            found[row] = "its id is in a header, and it begins as with another id"
        elif any(head[1:_CONFLUENT_BYTES]):
            found[row] = f"it begins as with an id of 4 bytes: {option} set to 'confluent' reads it"
    return found


def _rows_with(headers: RowHeaders, name: str, beginning: bytes = b"") -> list[int]:
    """Return the rows whose last header with this name begins so."""
    held = headers.last(name)
    if held is None:
        return []
    bounds = zip(held.rows.tolist(), held.starts.tolist(), held.ends.tolist(), strict=True)
    return [row for row, at, end in bounds if held.data[at:end].tobytes().startswith(beginning)]


def _apicurio_key(kind: str, before: bytes = b"") -> Callable[[bytes], Found]:
    def key(head: bytes) -> Found:
        if not head.startswith(before):
            return Misframed.MAGIC, head[0]
        return SchemaKey(ApicurioId(kind, int.from_bytes(head[len(before) :])))

    return key


def _glue_key(head: bytes) -> Found:
    if head[0] != _GLUE:
        return Misframed.MAGIC, head[0]
    if head[1] not in (_STORED, _ZLIB):
        return Misframed.COMPRESSION, head[1]
    return SchemaKey(UUID(bytes=head[2:]))


def _prefixed(
    octets: Octets,
    starts: Integers,
    ends: Integers,
    size: int,
    key: Callable[[bytes], Found],
    *,
    is_whole: bool = False,
) -> Framed:
    """Frame rows that begin with `size` bytes, or with `is_whole` consist of them.

    `key` is called once for all rows with the same bytes.
    """
    length = ends - starts
    key_of, detail = np.full(len(starts), -1), length.copy()
    status = np.where(length < size, Misframed.SHORT, Misframed.OK).astype(np.uint8)
    if is_whole:
        longer = length > size
        status[longer], detail[longer] = Misframed.TRAILING, length[longer] - size
    keys: dict[SchemaKey, int] = {}
    good = np.flatnonzero(status == 0)
    if len(good):
        heads = octets[starts[good, None] + np.arange(size)]
        _, first, code_of = np.unique(
            heads.view(f"V{size}").ravel(), return_index=True, return_inverse=True
        )
        known: list[tuple[int, int, int]] = []
        for place in first.tolist():
            found = key(heads[place].tobytes())
            if isinstance(found, SchemaKey):
                known.append((keys.setdefault(found, len(keys)), Misframed.OK, 0))
            else:
                known.append((-1, *found))
        key_of[good], status[good], detail[good] = np.array(known)[code_of].T
    return Framed(np.where(status == 0, starts + size, starts), tuple(keys), key_of, status, detail)


def _inflated(octets: Octets, framed: Framed, ends: Integers, rows: list[int]) -> Framed:
    """Return the rows with the inflated values of `rows`, which stand behind all the others."""
    data, ends, detail = bytearray(octets), ends.astype(np.int64), np.zeros(len(ends), np.int64)
    if framed.detail is not None:
        detail |= framed.detail
    for row in rows:
        at = len(data)
        fault = _inflate(octets[framed.starts[row] : ends[row]].tobytes(), data)
        if fault:
            del data[at:]
            framed.status[row], framed.key_of[row], detail[row] = fault, -1, MOST_INFLATED
        else:
            framed.starts[row], ends[row] = at, len(data)
    return replace(framed, data=data, ends=ends, detail=detail)


def _inflate(packed: bytes, data: bytearray) -> Misframed:
    """Append the bytes of one whole stream of zlib to `data`, and stop where they are too many."""
    stream, most = zlib.decompressobj(), len(data) + MOST_INFLATED
    try:
        while piece := stream.decompress(packed, _INFLATED_AT_ONCE):
            data += piece
            if len(data) > most:
                return Misframed.INFLATED
            packed = stream.unconsumed_tail
    except zlib.error:
        return Misframed.ZLIB
    return Misframed.OK if stream.eof and not stream.unused_data else Misframed.ZLIB
