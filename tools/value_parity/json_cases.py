"""Odd cases of JSON."""

from tools.value_parity.case import Case, Json

_PATH = "better: the row is bad and names the field; Spark's null passes for one that was written"
_WRITTEN = "better: the text as it was written"
_NULLS = "better: it is no row of nulls"
_REST = "better: the rest is not lost in silence"
_ISO = "different: ISO 8601 only"


def field(number: int, ddl: str, text: str | bytes, verdict: str = "same") -> Case:
    """Return the case of the field `a` with this type."""
    data = text.encode() if isinstance(text, str) else text
    return Case(number, f"`a {ddl}`", Json(f"a {ddl}", b'{"a":' + data + b"}"), verdict)


def row(number: int, text: bytes | None, verdict: str = "same", ddl: str = "a INT, b INT") -> Case:
    """Return the case of a whole text."""
    return Case(number, f"`{ddl}`", Json(ddl, text), verdict)


JSON = [
    row(25, b'{"a":1,"a":2}'),
    field(26, "DOUBLE", "NaN"),
    field(26, "DOUBLE", '"Infinity"'),
    field(26, "DOUBLE", '"-INF"'),
    field(26, "DOUBLE", "1e400"),
    field(26, "DOUBLE", "+Infinity", "different: what `pyarrow.json` takes"),
    field(26, "DOUBLE", '"NaN"'),
    field(26, "DOUBLE", "Inf", "different: what `pyarrow.json` takes"),
    field(27, "BIGINT", "9223372036854775808", _PATH),
    field(27, "BIGINT", "1.0", _PATH),
    field(27, "BIGINT", "1e3", _PATH),
    row(27, b'{"a":2147483648,"b":1}', _PATH),
    field(28, "STRING", "1.50", _WRITTEN),
    field(28, "STRING", "1e3", _WRITTEN),
    field(28, "STRING", '{"b" : [1, 2]}', _WRITTEN),
    field(29, "STRING", '"\\ud800"', "better: no text is changed in silence"),
    field(29, "STRING", '"\\ud83d\\ude00"'),
    field(29, "STRING", '"\\u0000"'),
    field(29, "STRING", '"\t"', _PATH),
    field(29, "STRING", b'"\xff"', "better: no text is changed in silence"),
    row(30, b"null", "different: a null that was written is no error, and no struct"),
    row(30, b'[{"a":1}]', _NULLS),
    row(30, b"", "different: a tombstone is a value that is null, and this is none"),
    row(30, None),
    row(30, b'\xef\xbb\xbf{"a":1}', _NULLS),
    row(30, b"{'a':1}", "different: that is no JSON"),
    row(30, b'{"a":007}', _NULLS),
    row(30, b'{"a":1,}', _NULLS),
    row(30, b'{"a":1} xyz', _REST),
    row(30, b'{"a":1}{"a":2}', _REST),
    row(30, b'{"a":1},"w":2', _REST),
    row(30, b'{"a":1', _NULLS),
    row(30, b',"b":2}', _NULLS),
    row(31, b'\n{\n  "a": 1,\n  "b": 2\n}\n'),
    field(31, "STRUCT<x: INT>", "null"),
    field(31, "STRUCT<x: INT>", "{}"),
    field(31, "ARRAY<INT>", '[1,"x",3]', _PATH),
    field(32, "DECIMAL(10, 2)", "12.345"),
    field(32, "DECIMAL(10, 2)", '"-12.345"'),
    field(32, "DECIMAL(10, 2)", "123456789", _PATH),
    field(32, "TIMESTAMP", '"2026-01-02T03:04:05Z"'),
    field(32, "TIMESTAMP", '"2026-01-02T05:04:05+02:00"'),
    field(32, "TIMESTAMP", '"2026-01-02T03:04:05.123456789Z"'),
    field(32, "TIMESTAMP", "1767323045"),
    field(32, "TIMESTAMP", '"2026-1-2"', _ISO),
    field(32, "DATE", '"2026-01-02"'),
    field(32, "DATE", '"2026-01-02T03:04:05Z"', _ISO),
    field(32, "TIMESTAMP_NTZ", '"2026-01-02T03:04:05Z"', _PATH),
    field(32, "BINARY", '"YWJj"'),
    field(32, "BINARY", '"YQ"', _PATH),
    field(33, "DOUBLE", "0.30000000000000004"),
    field(33, "DOUBLE", "4.9e-324"),
    field(33, "DOUBLE", "-0.0"),
    field(33, "DOUBLE", "-0", "different: as Python's `float()`"),
]
"""All cases, by their numbers."""
