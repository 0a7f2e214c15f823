"""Drawn schemas and values: Apache's Java library writes, and we read; we write, and it reads."""

import json
import math
from collections.abc import Iterator
from decimal import Context, Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.testing import resolve
from spark_kafka_source.values import UnresolvableError
from tests.java_program import JavaProgram, RefusedError, run_java
from tests.values.avro_fit_oracle import (
    NoValueError,
    Oracle,
    avro,
    branch_name,
    logical_of,
    members,
    named,
    read_back,
    unnamed,
)
from tests.values.avro_oracle import decoded, plain, written
from tests.values.avro_pairs import column, names_of, record_of, schema_of, value_of
from tests.values.avro_schemas import evolved, records, values
from tests.values.test_avro_fit import reading_type, writer
from tests.values.test_avro_oracle import drawn

pytestmark = [pytest.mark.java, pytest.mark.long]

SCHEMAS = 2_000
_ROWS = 3
_WIDE = Context(prec=60)


@pytest.fixture(scope="module")
def java() -> Iterator[JavaProgram]:
    jars = resolve(["org.apache.avro:avro:1.12.1"])
    with run_java(Path(__file__).with_name("ApacheAvro.java"), jars) as program:
        yield program


def drawn_rows(seed: int) -> tuple[Any, Any, list[Any]]:
    """Draw a schema, a column of the type it is read into, and the values as fastavro has them."""
    random = Random(seed)
    schema = schema_of(random) if random.randint(0, 3) else record_of(random)
    # No column has 40 digits.
    schema = json.loads(json.dumps(schema).replace('"precision": 40', '"precision": 38'))
    kind, oracle = reading_type(schema), Oracle(schema)
    rows, values = [], []
    for _ in range(_ROWS):
        row = value_of(random, kind)
        try:
            values.append(oracle.wanted(schema, kind, row))
            rows.append(row)
        except NoValueError:
            pass
    return schema, column(kind, rows) if rows else None, values


def test_what_java_writes_is_read(java: JavaProgram) -> None:
    count = 0
    for seed in range(SCHEMAS):
        schema, _, rows = drawn_rows(seed)
        forms = Forms(schema)
        for value in rows:
            finite = forms.finite(value)
            text = json.dumps(forms.json(schema, finite))
            for data in java.ask(f"write\t{json.dumps(schema)}\t{text}").split("\t"):
                found = decoded(schema, schema, [bytes.fromhex(data)])
                assert not found.status[0], (seed, found.reason(0))
                assert plain(found.array) == [forms.column(schema, finite)], seed
                back = read_back(schema, bytes.fromhex(data))
                assert by_name(back) == by_name(unnamed(finite)), seed
                count += 1
    assert count > SCHEMAS


def test_java_reads_what_we_write(java: JavaProgram) -> None:
    count = 0
    for seed in range(SCHEMAS):
        schema, given_rows, rows = drawn_rows(seed)
        forms, text = Forms(schema), json.dumps(schema)
        if not rows:
            continue
        for value, data in zip(
            rows, writer(schema).encode(given_rows, b"").to_pylist(), strict=True
        ):
            found = java.ask(f"read\t{text}\t{text}\t{data.hex()}")
            if found:  # Java's JSON has no text for records without bytes.
                assert by_name(forms.of_json(schema, json.loads(found))) == by_name(value), seed
                count += 1
    assert count > SCHEMAS


@settings(drawn, max_examples=500)
@given(st.data())
def test_java_resolves_as_we_do(java: JavaProgram, data: st.DataObject) -> None:
    wrote = data.draw(records())
    reader = data.draw(evolved(wrote))
    rows = written(wrote, data.draw(st.lists(values(wrote), min_size=1, max_size=4)))
    forms = Forms(reader)
    try:
        found = decoded(wrote, reader, rows)
    except UnresolvableError:
        found = None
    for place, row in enumerate(rows):
        question = f"read\t{json.dumps(wrote)}\t{json.dumps(reader)}\t{row.hex()}"
        try:
            text = java.ask(question)
        except RefusedError:
            assert found is None or found.status[place]
            continue
        assert found is not None and not found.status[place]
        if text:  # Java's JSON has no text for records without bytes.
            value = forms.of_json(reader, json.loads(text))
            assert by_name(plain(found.array)[place]) == by_name(forms.column(reader, value))


def by_name(value: Any) -> str:
    """Return a text of a value. Java's maps have an order of their own, its JSON has no -0.0."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name!r}: {by_name(value[name])}' for name in sorted(value))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(by_name, value))}]"
    return repr(value + 0.0) if isinstance(value, float) else repr(value).replace("-0.0", "0.0")


class Forms:
    """One value in several forms: as fastavro writes it, in Avro's JSON, in our columns."""

    def __init__(self, schema: Any) -> None:
        self._known = names_of(schema)

    def finite(self, value: Any) -> Any:
        """Return the value without what JSON has no number for."""
        if isinstance(value, dict):
            return {name: self.finite(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.finite(each) for each in value]
        if isinstance(value, tuple):
            return value[0], self.finite(value[1])
        return 2.5 if isinstance(value, float) and not math.isfinite(value) else value

    def json(self, schema: Any, value: Any) -> Any:
        schema = named(schema, self._known)
        if isinstance(schema, list):
            return (
                None
                if value is None
                else {value[0]: self.json(self._branch(schema, value[0]), value[1])}
            )
        match avro(schema):
            case "record":
                return {
                    each["name"]: self.json(each["type"], value[each["name"]])
                    for each in schema["fields"]
                }
            case "array":
                return [self.json(schema["items"], each) for each in value]
            case "map":
                return {name: self.json(schema["values"], each) for name, each in value.items()}
            case "bytes" | "fixed":
                return value.decode("latin-1")
        return value

    def of_json(self, schema: Any, value: Any) -> Any:
        schema = named(schema, self._known)
        if isinstance(schema, list):
            if value is None:
                return None
            ((name, inner),) = value.items()
            return name, self.of_json(self._branch(schema, name), inner)
        match avro(schema):
            case "record":
                return {
                    each["name"]: self.of_json(each["type"], value[each["name"]])
                    for each in schema["fields"]
                }
            case "array":
                return [self.of_json(schema["items"], each) for each in value]
            case "map":
                return {name: self.of_json(schema["values"], each) for name, each in value.items()}
            case "bytes" | "fixed":
                return value.encode("latin-1")
            case "double":
                return float(value)
            case "float":
                return float(np.float32(value))
        return value

    def column(self, schema: Any, value: Any) -> Any:
        """Return the value as `plain` gives it."""
        schema = named(schema, self._known)
        if isinstance(schema, list):
            return self._member(schema, value)
        match avro(schema):
            case "record":
                return {
                    each["name"]: self.column(each["type"], value[each["name"]])
                    for each in schema["fields"]
                }
            case "array":
                return [self.column(schema["items"], each) for each in value]
            case "map":
                return {name: self.column(schema["values"], each) for name, each in value.items()}
        name = logical_of(schema)
        if name == "decimal":
            return Decimal(int.from_bytes(value, signed=True)).scaleb(-schema["scale"], _WIDE)
        if isinstance(value, float):
            return repr(value)
        return value * 1_000 if name and name.endswith("timestamp-millis") else value

    def _member(self, union: Any, value: Any) -> Any:
        found = members(union)
        if value is None:
            return None
        if len(found) == 1:
            return self.column(found[0], value[1])
        return {
            f"member{place}": self.column(each, value[1])
            if branch_name(each, self._known) == value[0]
            else None
            for place, each in enumerate(found)
        }

    def _branch(self, union: Any, name: str) -> Any:
        return next(each for each in union if branch_name(each, self._known) == name)
