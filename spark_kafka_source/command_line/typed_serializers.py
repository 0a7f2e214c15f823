"""Serializers of keys and values with the schema of their topic."""

from typing import Any

from spark_kafka_source.command_line import json_text
from spark_kafka_source.command_line.json_form import from_json_form
from spark_kafka_source.command_line.json_text import NotJsonError
from spark_kafka_source.command_line.serializers import Json, NoRecordError, Serializers
from spark_kafka_source.records import UnencodableRowError
from spark_kafka_source.typed import TypedEncoding, TypedWrite


def typed_serializers(encoding: TypedEncoding, topic: str) -> Serializers:
    """Return the serializers of the parts that have a format with schemas.

    Raises the errors of `TypedEncoding.of_topic`.
    """
    writes = {part: encoding.of_topic(part, topic) for part in encoding.parts}
    return {
        part: Json(part) if write is None else _Typed(part, write) for part, write in writes.items()
    }


class _Typed:
    """`Serializer` of the JSON form of typed values. It takes what `KafkaProducer.send` takes."""

    def __init__(self, part: str, write: TypedWrite) -> None:
        self._part, self._write = part, write
        self._value_of = from_json_form(write.writer.deepest_type)

    def of_line(self, data: bytes) -> bytes | None:
        """Return the encoded value of a JSON text."""
        try:
            return self.of_json(json_text.read(data))
        except NotJsonError as error:
            raise self._unfit(f"it {error}") from None

    def of_json(self, value: Any) -> bytes | None:
        """Return the encoded value of a JSON value."""
        if value is None:
            return None
        try:
            return self._write.one(self._value_of(value))
        except UnencodableRowError as error:
            raise self._unfit(error.reason) from None

    def _unfit(self, reason: str) -> NoRecordError:
        return NoRecordError(f"its {self._part} does not fit the schema: {reason}")
