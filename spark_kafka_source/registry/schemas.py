"""Schemas of a registry, and the answers that hold them, with each field checked before its use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from spark_kafka_source.net.http_answer import json_object
from spark_kafka_source.registry.errors import RegistryError
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Name that a schema uses for another schema, and the subject and version of that schema."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """Schema and its references, without the texts of the schemas it refers to."""

    type: SchemaType
    text: str
    references: tuple[SchemaReference, ...]


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """Schema with the schemas it refers to. A lookup by id leaves version and subject None."""

    id: int | UUID
    version: int | None
    subject: str | None
    schema: SchemaText
    references: tuple[SchemaReference, ...] = ()


class JsonAnswer:
    """JSON object of an answer, with type checks for its fields.

    `what` names the question and the host in errors. All methods raise `RegistryError`.
    """

    def __init__(self, body: bytes, what: str) -> None:
        self._what, self._fields = what, json_object(body)
        if not self._fields:
            raise RegistryError(f"{what}: the answer is no JSON object with fields")

    def text(self, name: str) -> str:
        """Return a field that holds a text."""
        value = self._fields.get(name)
        if not isinstance(value, str):
            raise self._wrong(name, "a text")
        return value

    def number(self, name: str) -> int:
        """Return a field that holds an id or a version."""
        value = self._fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= INT32_MAX:
            raise self._wrong(name, "a whole number of 31 bits")
        return value

    def schema(self) -> StoredSchema:
        """Return the schema in the answer. Raises `SchemaError` for an unknown schema type."""
        text, references = self.text("schema"), self._references()
        kind = self._fields.get("schemaType")
        if kind is None:  # Confluent's registry leaves the type out for Avro.
            return StoredSchema(SchemaType.AVRO, text, references)
        name = self.text("schemaType")
        if name not in SchemaType.__members__:
            known = ", ".join(SchemaType.__members__)
            raise SchemaError("", f"a schema of the type {name[:100]!r}", f"There are {known}")
        return StoredSchema(SchemaType(name), text, references)

    def _references(self) -> tuple[SchemaReference, ...]:
        objects = self._fields.get("references")
        if objects is None:
            return ()
        if not isinstance(objects, list) or not all(isinstance(fields, dict) for fields in objects):
            raise self._wrong("references", "a list of objects")
        answers = [JsonAnswer._of(fields, self._what) for fields in objects]
        return tuple(
            SchemaReference(answer.text("name"), answer.text("subject"), answer.number("version"))
            for answer in answers
        )

    @classmethod
    def _of(cls, fields: Mapping[str, Any], what: str) -> "JsonAnswer":
        answer = cls.__new__(cls)
        answer._what, answer._fields = what, dict(fields)
        return answer

    def _wrong(self, name: str, expected: str) -> RegistryError:
        return RegistryError(f"{self._what}: its field '{name}' is not {expected}")
