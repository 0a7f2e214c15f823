"""Errors in schemas, before a byte is read. A `Fault` describes an error in the bytes of a row."""

from spark_kafka_source.errors import LocalError

_MOST_SHOWN = 100


class SchemaError(LocalError):
    """A schema cannot be used because of `path`. `found` is there, `expected` would be right."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)
        self.path, self.found, self.expected = path, found, expected

    def _text(self) -> str:
        return f"Schema, at {self.path or 'the top'}: {self.found}. {self.expected}"


class RecursiveTypeError(SchemaError):
    """A type contains itself, by way of `path`. Columns have no place for it."""


class UnresolvableError(SchemaError):
    """Values of the writer's schema can never be read with the reader's schema, due to `path`."""


def quoted(value: object) -> str:
    """Return the repr of a part of a schema, cut to a length that fits an error text."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write an integer of thousands of digits.
        text = "a number of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
