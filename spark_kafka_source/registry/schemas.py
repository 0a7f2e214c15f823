"""Schemas of a registry, and the answers that hold them, with each field checked before its use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from spark_kafka_source.net.http_answer import json_object
from spark_kafka_source.registry.errors import RegistryError
from spark_kafka_source.values import SchemaError, SchemaRule, SchemaText, SchemaType

INT32_MAX = 2**31 - 1
RULE_SETS = ("domainRules", "migrationRules", "encodingRules")


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
    rules: tuple[SchemaRule, ...] = ()


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
            return StoredSchema(SchemaType.AVRO, text, references, self.rules())
        name = self.text("schemaType")
        if name not in SchemaType.__members__:
            known = ", ".join(SchemaType.__members__)
            raise SchemaError("", f"a schema of the type {name[:100]!r}", f"There are {known}")
        return StoredSchema(SchemaType(name), text, references, self.rules())

    def rules(self) -> tuple[SchemaRule, ...]:
        """Return the rules of the schema in the answer, without disabled ones."""
        found = self._fields.get("ruleSet") or {}
        if not isinstance(found, dict):
            raise self._wrong("ruleSet", "an object")
        rule_set = JsonAnswer._of(found, self._what)
        rules = [rule._fields for name in RULE_SETS for rule in rule_set.objects(name)]
        words = ("name", "kind", "type", "mode")
        return tuple(
            SchemaRule(*(str(rule.get(word) or "?")[:100] for word in words))
            for rule in rules
            if rule.get("disabled") is not True
        )

    def objects(self, name: str) -> "list[JsonAnswer]":
        """Return a field that holds a list of objects. A field that is not there has none."""
        objects = self._fields.get(name)
        if objects is None:
            return []
        if not isinstance(objects, list) or not all(isinstance(fields, dict) for fields in objects):
            raise self._wrong(name, "a list of objects")
        return [JsonAnswer._of(fields, self._what) for fields in objects]

    def _references(self) -> tuple[SchemaReference, ...]:
        return tuple(
            SchemaReference(answer.text("name"), answer.text("subject"), answer.number("version"))
            for answer in self.objects("references")
        )

    @classmethod
    def _of(cls, fields: Mapping[str, Any], what: str) -> "JsonAnswer":
        answer = cls.__new__(cls)
        answer._what, answer._fields = what, dict(fields)
        return answer

    def _wrong(self, name: str, expected: str) -> RegistryError:
        return RegistryError(f"{self._what}: its field '{name}' is not {expected}")
