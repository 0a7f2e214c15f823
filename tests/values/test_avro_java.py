"""Drawn schemas and values: Apache's Java library writes, and we read; we write, and it reads."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.testing import resolve
from spark_kafka_source.values import UnresolvableError
from tests.values.avro_fit_oracle import read_back, unnamed
from tests.values.avro_forms import Forms, drawn_rows
from tests.values.avro_oracle import decoded, plain, written
from tests.values.avro_schemas import evolved, records, values
from tests.values.test_avro_fit import writer
from tests.values.test_avro_oracle import drawn
from tools.java_program import JavaProgram, RefusedError, run_java

pytestmark = [pytest.mark.java, pytest.mark.long]

SCHEMAS = 2_000


@pytest.fixture(scope="module")
def java() -> Iterator[JavaProgram]:
    jars = resolve(["org.apache.avro:avro:1.12.1"])
    with run_java(Path(__file__).with_name("ApacheAvro.java"), jars) as program:
        yield program


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
