"""Schemas of a registry, and the answers that hold them, with each field checked before its use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

from spark_kafka_source.net.http_answer import json_object
from spark_kafka_source.registry.errors import RegistryError
from spark_kafka_source.values import SchemaError, SchemaRule, SchemaText, SchemaType

INT32_MAX = 2**31 - 1
RULE_SETS = ("domainRules", "migrationRules", "encodingRules")


@dataclass(frozen=True, slots=True)
class ApicurioId:
    """Id in Apicurio's own API. Its `kind` is `globalId` or `contentId`: both count from 1."""

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    def __int__(self) -> int:
        return self.number


SchemaId = int | UUID | ApicurioId
"""Id of a schema: an id or a GUID of Confluent's API, Glue's UUID of a version, or Apicurio's."""


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

    id: SchemaId
    version: int | None
    subject: str | None
    schema: SchemaText
    references: tuple[SchemaReference, ...] = ()


def core_references(body: bytes, what: str) -> tuple[SchemaReference, ...]:
    """Return the references in an answer of Apicurio's own API. Raises `RegistryError`.

    The subject is the path of the version there, and the version 0.
    """
    answer = JsonAnswer(b'{"references": %b}' % body, what)
    return tuple(
        SchemaReference(each.text("name"), f"/{each.path_of_version()}", 0)
        for each in answer.objects("references")
    )


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

    def path_of_version(self) -> str:
        """Return the path of the version that a reference of Apicurio's names."""
        names = [str(self._fields.get("groupId") or "default"), self.text("artifactId")]
        group, artifact, version = (
            quote(name, safe="", errors="replace") for name in (*names, self.text("version"))
        )
        return f"groups/{group}/artifacts/{artifact}/versions/{version}"

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
        names = [name for name in found if name in RULE_SETS or isinstance(found[name], list)]
        rules = [
            {"kind": name, **rule._fields} for name in names for rule in rule_set.objects(name)
        ]
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
