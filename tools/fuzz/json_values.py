"""Malformed JSON. A row gives the same result alone and together with other rows.

The first byte of an input selects the type to read.
"""

import pyarrow as pa

from spark_kafka_source.values import Encoded
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader, compiled, fast
from spark_kafka_source.values.json import kernels as written
from tests.values.avro_oracle import laid, plain
from tools.fuzz.judge import replaced

ONE_BY_ONE = 1 << 60
AS_WRITTEN = compiled.Kernels(written.tokenize, written.copy_texts)

_SCALARS = "id BIGINT, n INT, d DOUBLE, f FLOAT, flag BOOLEAN, name STRING, b BINARY"
_TIMES = "at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, price DECIMAL(10, 2), wide DECIMAL(38, 20)"
_NESTED = "address STRUCT<city: STRING, x: DOUBLE>, tags ARRAY<STRING>, lines ARRAY<STRUCT<n: INT>>"

READERS = tuple(
    JsonReader(kind, fields)
    for kind, fields in (
        (from_ddl(f"{_SCALARS}, {_TIMES}, {_NESTED}"), None),
        (from_ddl(f"{_SCALARS}, {_TIMES}, {_NESTED}"), ["id", "address.city"]),
        (from_ddl("id BIGINT, m MAP<STRING, ARRAY<INT>>"), None),
        (pa.string(), None),
    )
)
GOOD = (
    b'{"id":1,"n":-2,"d":1.5,"f":0.1,"flag":true,"name":"n\\u00e9","b":"YWJj","z":[{}],'
    b'"at":"2026-01-02T03:04:05Z","local":"2026-01-02 03:04","day":"2026-01-02","price":1.25,'
    b'"wide":"1.5","address":{"city":"\xc3\xa9","x":1e3},"tags":["a",null],"lines":[{"n":1}]}',
    b"{}",
    b'{ "id" : null , "m" : {"k" : [1, 2]}, "at" : 1767312000 }\n',
)


def json_(data: bytes) -> None:
    """A bad row is null, and does not change the other rows."""
    reader = READERS[data[0] % len(READERS)] if data else READERS[0]
    rows = [GOOD[0], GOOD[1], data[1:], *GOOD]
    found = []
    for few, kernels in ((ONE_BY_ONE, None), (1, None), (1, AS_WRITTEN)):
        with replaced(fast, "FEW", few), replaced(compiled, "kernels", lambda _, k=kernels: k):
            found.append(reader.decode([None], Encoded(*laid(rows))))
    for each in found:
        each.array.validate(full=True)
        values = plain(each.array)
        assert not each.status[[0, 1, 3, 4, 5]].any()
        assert values[:2] == values[3:5]
        assert not each.status[2] or values[2] is None
    for each in found[1:]:
        assert plain(each.array) == plain(found[0].array)
        assert each.status.tolist() == found[0].status.tolist()
        assert each.paths == found[0].paths


_PARTS = (
    b'"\\ud800"', b'"\\ud83d\\ude00"', b"NaN", b"-Inf", b"1e400", b"-0", b'{"a":1,"a":2}',
    b"[[[]]]", b'"2026-01-02T03:04:05.123456789+02:00"', b"12345678901234567890123456789",
    b'"\\u0000"',
)  # fmt: skip


def json_seeds() -> list[bytes]:
    """Return valid rows of each type, and rows with odd values."""
    found = [bytes([place]) + row for place in range(len(READERS)) for row in GOOD]
    found += [b"\0" + GOOD[0].replace(b'"YWJj"', part) for part in _PARTS]
    found += [b"\0" + GOOD[0] + behind for behind in (b" null {}", b',"w":{}', b"{}\0", b"}")]
    return found
