"""An odd case: the input, and the verdict on the two answers."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Avro:
    """A value of the field `v`, and perhaps another type to read it as."""

    writer: Any
    data: bytes | None
    reader: Any = None
    """The reader's type. None stands for the writer's type."""


@dataclass(frozen=True, slots=True)
class Json:
    """A text that is read as a row's type."""

    ddl: str
    text: bytes | None


@dataclass(frozen=True, slots=True)
class Protobuf:
    """A message of `tests.values.test_protobuf_cases`."""

    message: str
    data: bytes | None
    columns: tuple[str, ...]
    """The shown text of the message."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A case that applies to no function. The test `file::test` checks it."""

    here: str
    test: str


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the page."""

    number: int
    what: str
    asked: Avro | Json | Protobuf | Shown
    verdict: str
    """`same`, or `better` or `different` with a colon and the reason."""
