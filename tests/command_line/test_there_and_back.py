"""Drawn schemas and values go all the way: from dicts to dicts, and from a topic to its copy.

The ways are `send` and `poll`, and `tail` and `produce`. fastavro and upb judge the bytes.
"""

import base64
import io
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.values import SchemaText, SchemaType, ValueReader, decode_column
from spark_kafka_source.values.avro import TIME, AvroReader
from spark_kafka_source.values.protobuf import ProtobufReader
from spark_kafka_source.values.typing import ProtobufTyping
from tests.consumer.consumers import T0, consuming, poll_until
from tests.producer.writing import producing
from tests.producer.writing import written as records_of
from tests.values.avro_oracle import written
from tests.values.avro_schemas import schemas, values
from tests.values.protobuf_oracle import expected
from tests.values.protobuf_schemas import Files, file_set, filled, message_class
from tests.values.test_protobuf_encode import without_oneof_defaults
from tests.values.test_protobuf_oracle import SEEDS

few = settings(max_examples=15)


@few
@given(st.data())
def test_avro(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    rows = written(schema, data.draw(st.lists(values(schema), min_size=1, max_size=5)))
    text = SchemaText(SchemaType.AVRO, json.dumps(schema))
    reader = AvroReader(text, None, TIME)
    objects, data_of = python_rows(reader, rows, text)
    goes_all_the_way("avro", text.text, objects, lambda sent: sent == data_of)


@few
@given(SEEDS)
def test_protobuf(seed: int) -> None:
    """upb has an order of its own for the entries of maps. So it reads the bytes."""
    random = Random(seed)
    file = Files(random).file()
    without_oneof_defaults(file)
    kind = message_class(file)
    descriptors = file_set(file).SerializeToString()
    rows = [filled(random, kind()).SerializeToString() for _ in range(4)]
    none = SchemaText(SchemaType.PROTOBUF, base64.b64encode(descriptors).decode())
    objects, data = python_rows(ProtobufReader(descriptors), rows, none)

    def meaning(rows: Sequence[bytes | None]) -> list[Any]:
        return [expected(kind.FromString(each or b""), ProtobufTyping()) for each in rows]

    goes_all_the_way("protobuf", none.text, objects, lambda sent: meaning(sent) == meaning(data))


def python_rows(
    reader: ValueReader, rows: list[bytes], writer: SchemaText
) -> tuple[list[Any], list[bytes]]:
    """Return the rows that are Python objects and no tombstones, and their bytes."""
    objects, data = [], []
    found = decode_column(reader, pa.array(rows, pa.binary()), writer).array
    for value, row in zip(found, rows, strict=True):
        with suppress(OverflowError, ValueError):
            if (each := value.as_py()) is not None:
                objects.append(each)
                data.append(row)
    return objects, data


def goes_all_the_way(
    format: str, schema: str, objects: list[Any], is_right: Callable[[list[bytes | None]], bool]
) -> None:
    with MemoryBroker() as broker:
        (log,), (copy,) = broker.create_topic("t"), broker.create_topic("copy")
        typed = {"value_format": format, "value_schema": schema}
        with producing(broker, **typed) as producer:
            for each in objects:
                producer.send("t", each)
            producer.flush()
        sent = [each.value for each in records_of(log)]
        assert is_right(sent)
        with consuming(broker, T0, **typed) as consumer:
            found: list[Any] = []
            poll_until(consumer, lambda: len(found) >= len(objects), found.extend)
        assert repr([each.value for each in found]) == repr(objects)
        words = ["-b", str(broker.address()), "--json"]
        words += ["--config", f"value.format={format}", "--config", f"value.schema={schema}"]
        lines = ran("", "tail", "t", "--from", "earliest", *words)
        for line in lines.splitlines():
            json.loads(line, parse_constant=pytest.fail)
        ran(lines, "produce", "copy", *words)
        assert [each.value for each in records_of(copy)] == sent


def ran(given: str, *words: str) -> str:
    """Run a command with this input, and return its output."""
    out = io.TextIOWrapper(io.BytesIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        patch.setattr(sys, "stdout", out)
        assert main(words) == 0
    out.flush()
    buffer: Any = out.buffer
    text: str = buffer.getvalue().decode()
    return text
