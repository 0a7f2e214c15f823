"""Readers, writers and programs that the next task of a process reuses."""

import json
import pickle
from typing import Any

import pytest

from spark_kafka_source.values import (
    SchemaText,
    SchemaType,
    UnresolvableError,
    ValueReader,
    ValueWriter,
    kept,
)
from spark_kafka_source.values.avro import AvroReader, AvroWriter
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader
from spark_kafka_source.values.protobuf import ProtobufReader, ProtobufWriter, files
from tests.values.test_protobuf_cases import TEXT, descriptors


def avro(*names: str) -> SchemaText:
    fields = [{"name": name, "type": "int", "default": 0} for name in names]
    return SchemaText(
        SchemaType.AVRO, json.dumps({"type": "record", "name": "R", "fields": fields})
    )


def unpickled(reader: ValueReader | ValueWriter) -> Any:
    """Return a task's copy."""
    return pickle.loads(pickle.dumps(reader))  # our own bytes


READERS: list[ValueReader] = [
    AvroReader(avro("a", "b")),
    AvroReader(avro("a", "b"), ["a"]),
    AvroReader(avro("a", "b"), ["b"]),
    JsonReader(from_ddl("a INT")),
    JsonReader(from_ddl("a BIGINT")),
    ProtobufReader(descriptors(), "p.Plain"),
    ProtobufReader(descriptors(), "p.Plain", ["i32"]),
]


def test_each_task_has_the_reader_of_the_one_before() -> None:
    found = [unpickled(each) for each in READERS]
    assert [each.arrow_type for each in found] == [each.arrow_type for each in READERS]
    assert len({id(each) for each in found}) == len(READERS)
    for before, reader in zip(found, READERS, strict=True):
        assert unpickled(reader) is before
        assert unpickled(before) is before


def test_a_program_is_made_once_for_each_schema() -> None:
    reader = unpickled(READERS[0])
    programs = [reader.program(avro(*names)) for names in ("ab", "abc", "ba")]
    assert len({id(each) for each in programs}) == 3
    assert unpickled(READERS[0]).program(avro("a", "b", "c")) is programs[1]


def test_a_text_of_protobuf_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []

    def compiled(text: SchemaText, given: tuple[bytes, ...]) -> bytes:
        assert not given
        texts.append(text)
        return descriptors()

    monkeypatch.setattr(files, "compiled", compiled)
    text = SchemaText(SchemaType.PROTOBUF, "// of this test alone\n" + TEXT.text, TEXT.references)
    for _ in range(3):
        assert unpickled(READERS[5]).program(text, [0]) is unpickled(READERS[5]).program(text, (0,))
    assert texts == [text]


def test_a_writer_is_kept_and_takes_no_compiler_along(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ProtobufWriter(TEXT, "p.Plain")
    data = pickle.dumps(writer)
    monkeypatch.setattr(files, "compiled", None)
    found = [pickle.loads(data) for _ in range(2)]  # our own bytes
    assert found[0] is found[1]
    assert (found[0].message, found[0].indexes) == (writer.message, writer.indexes)
    assert unpickled(AvroWriter(avro("a"))) is unpickled(AvroWriter(avro("a")))


def test_what_cannot_be_read_is_asked_again() -> None:
    reader = AvroReader(avro("a"))
    other = SchemaText(SchemaType.AVRO, '"string"')
    for _ in range(2):
        with pytest.raises(UnresolvableError):
            reader.program(other)


def test_what_is_kept_is_bounded() -> None:
    reader = AvroReader(avro("a"))
    first = reader.program(avro("a"))
    for number in range(kept.MOST_PROGRAMS):
        reader.program(avro("a", f"more{number}"))
    assert reader.program(avro("a")) is not first
    before = unpickled(READERS[0])
    for number in range(kept.MOST_KEPT):
        unpickled(AvroReader(avro(f"a{number}")))
    assert unpickled(READERS[0]) is not before
