"""The common type of values: Spark infers the same type, and all values can be read into it."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.values import Fault, SchemaError
from spark_kafka_source.values.ddl import to_ddl
from spark_kafka_source.values.json import JsonReader, infer
from tests.values.json_values import STRUCTS, rows
from tests.values.test_json_oracle import ONE_BY_ONE, decoded

CASES = [
    # Spark's `schema_of_json` or `read.json` gives the same type for each.
    ('{"a":1,"b":1.5,"h":true,"s":"2026-01-02"}', "a BIGINT, b DOUBLE, h BOOLEAN, s STRING"),
    ('{"a":1} {"a":1.5}', "a DOUBLE"),
    ('{"a":1e3}', "a DOUBLE"),
    ('{"a":1} {"a":"x"}', "a STRING"),
    ('{"a":true} {"a":1}', "a STRING"),
    ('{"a":null}', "a STRING"),
    ('{"a":null} {"a":1}', "a BIGINT"),
    ('{"a":[1,2.5]}', "a ARRAY<DOUBLE>"),
    ('{"a":[1,"x"]}', "a ARRAY<STRING>"),
    ('{"a":[]}', "a ARRAY<STRING>"),
    ('{"a":[1]} {"a":[{"z":1}]}', "a ARRAY<STRING>"),
    ('{"c":{"x":1}} {"c":{"y":2}}', "c STRUCT<x: BIGINT, y: BIGINT>"),
    ('{"c":{"x":1}} {"c":2}', "c STRING"),
    ('{"a":99999999999999999999}', "a DECIMAL(20, 0)"),
    ('{"a":1} {"a":9223372036854775808}', "a DECIMAL(20, 0)"),
    ('{"a":9223372036854775808} {"a":1.5}', "a DOUBLE"),
    ('{"b":1,"a":2,"k":{}}', "a BIGINT, b BIGINT"),
    ('{"a":1} {', "a BIGINT"),
]


@pytest.mark.parametrize(("values", "ddl"), CASES)
def test_a_sample(values: str, ddl: str) -> None:
    assert to_ddl(infer(value.encode() for value in values.split(" "))) == ddl


def test_nothing_to_infer_from() -> None:
    with pytest.raises(SchemaError, match="no JSON object among the values"):
        infer([b"{", b"[1]", b"\xff", b"[" * 100_000])


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_sample_can_be_read_into_its_type(data: st.DataObject) -> None:
    values = [each for _ in range(2) for each in data.draw(rows(data.draw(STRUCTS)))]
    try:
        kind = infer(values)
    except SchemaError:
        return
    found = decoded(JsonReader(kind), values, ONE_BY_ONE)
    for row, fault in enumerate(found.status.tolist()):
        top = values[row].strip().startswith(b"{")
        assert fault in (0, Fault.SYNTAX, Fault.TEXT) or not top, found.reason(row)
