"""An odd case: what is decoded, and what the two answers to it have to do with each other."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Avro:
    """A value of the field `v`, and perhaps another type that it is read as."""

    writer: Any
    data: bytes | None
    reader: Any = None
    """The writer's where it is None."""


@dataclass(frozen=True, slots=True)
class Json:
    """A text that is read as the type of a row."""

    ddl: str
    text: bytes | None


@dataclass(frozen=True, slots=True)
class Protobuf:
    """A message of `tests.values.test_protobuf_cases`."""

    message: str
    data: bytes | None
    columns: tuple[str, ...]
    """What is shown of it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What no function has anything to do with: a test, as `file::test`, holds it."""

    here: str
    test: str


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the page."""

    number: int
    what: str
    asked: Avro | Json | Protobuf | Shown
    verdict: str
    """`same`; or `better` or `different`, a colon, and how or why."""
