"""A schema as it was written, before anything is made of it."""

from dataclasses import dataclass
from enum import Enum


class SchemaType(Enum):
    """The languages of schemas, by the names that schema registries have for them."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


@dataclass(frozen=True, slots=True)
class SchemaText:
    """The text of a schema, and the names and texts of all schemas that it refers to.

    Each of `references` stands after those that it refers to itself.
    """

    type: SchemaType
    text: str
    references: tuple[tuple[str, str], ...] = ()
