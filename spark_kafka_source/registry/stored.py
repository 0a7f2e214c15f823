"""Schemas as a registry stores them, read out of what it answers, of which nothing is believed."""

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
    """What one schema calls another, and where the registry has that one."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class StoredSchema:
    """A schema and what it refers to, without the texts of that."""

    type: SchemaType
    text: str
    references: tuple[SchemaReference, ...]


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with all that it refers to; where it was asked for by its id, without a subject."""

    id: int | UUID
    version: int | None
    subject: str | None
    schema: SchemaText
    references: tuple[SchemaReference, ...] = ()


class JsonAnswer:
    """The object that an answer is, whose fields are held against their types.

    `what` says what was asked of whom, for errors. All methods raise `RegistryError`.
    """

    def __init__(self, body: bytes, what: str) -> None:
        self._what, self._fields = what, json_object(body)
        if not self._fields:
            raise RegistryError(f"{what}: the answer is no JSON object with fields")

    def text(self, name: str) -> str:
        """A text."""
        found = self._fields.get(name)
        if not isinstance(found, str):
            raise self._wrong(name, "a text")
        return found

    def number(self, name: str) -> int:
        """An id or a version."""
        found = self._fields.get(name)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= INT32_MAX:
            raise self._wrong(name, "a whole number of 31 bits")
        return found

    def schema(self) -> StoredSchema:
        """The schema that it has. Raises `SchemaError` for one of a type that nobody reads."""
        text, references = self.text("schema"), self._references()
        kind = self._fields.get("schemaType")
        if kind is None:  # So Confluent's writes Avro.
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
    """The JSON object that a text is, or an empty one where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
