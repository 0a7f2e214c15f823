"""Schemas as a registry stores them. Each field of an answer is checked before it is used."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

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
        found = self._fields.get(name)
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found

    def number(self, name: str) -> int:
        """Return a field that holds an id or a version."""
        found = self._fields.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= INT32_MAX:
            raise self._wrong(name, "a whole number of 31 bits")
        return found

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
        found = self._fields.get("references")
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise self._wrong("references", "a list of objects")
        answers = [JsonAnswer._of(each, self._what) for each in found]
        return tuple(
            SchemaReference(each.text("name"), each.text("subject"), each.number("version"))
            for each in answers
        )

    @classmethod
    def _of(cls, fields: Mapping[str, Any], what: str) -> "JsonAnswer":
        answer = cls.__new__(cls)
        answer._what, answer._fields = what, dict(fields)
        return answer

    def _wrong(self, name: str, expected: str) -> RegistryError:
        return RegistryError(f"{self._what}: its field '{name}' is not {expected}")


def json_object(body: bytes) -> dict[str, Any]:
    """Parse a JSON object. Return an empty dict for any other text."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
