"""Text of a schema, before it is parsed."""

from dataclasses import dataclass
from enum import Enum


class SchemaType(Enum):
    """Schema languages, by their names in schema registries."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class SchemaText:
    """Text of a schema, and names and texts of all schemas that it refers to.

    Each of `references` comes after the ones that it refers to itself.
    """

    type: SchemaType
    text: str
    references: tuple[tuple[str, str], ...] = ()
