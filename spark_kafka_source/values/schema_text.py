"""Text of a schema, before it is parsed."""

from dataclasses import dataclass
from enum import Enum

_OF_READERS = frozenset({"READ", "UPGRADE", "DOWNGRADE", "UPDOWN"})
_OF_WRITERS = frozenset({"WRITE"})


class SchemaType(Enum):
    """Schema languages, by their names in schema registries."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class SchemaRule:
    """Rule of a schema that is not disabled, with Confluent's words: `TRANSFORM`, `ENCRYPT`."""

    name: str
    kind: str
    type: str
    mode: str

    def __str__(self) -> str:
        return f"{self.name!r}, of the kind {self.kind} and the type {self.type}"


@dataclass(frozen=True, slots=True)
class SchemaText:
    """Text of a schema, and names and texts of all schemas that it refers to.

    Each of `references` comes after the ones that it refers to itself.
    """

    type: SchemaType
    text: str
    references: tuple[tuple[str, str], ...] = ()
    rules: tuple[SchemaRule, ...] = ()
    """What Confluent's clients do to the values before they are written, or once they are read."""

    def unobeyed_rule(self, *, writing: bool = False) -> SchemaRule | None:
        """Return a rule that readers, or with `writing` writers, should obey. None is obeyed here.

        A rule whose mode is unknown is for both.
        """
        others = _OF_READERS if writing else _OF_WRITERS
        return next((rule for rule in self.rules if rule.mode not in others), None)
