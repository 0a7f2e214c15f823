"""What goes wrong with schemas, before a byte is read; what is wrong with bytes is a `Fault`."""

from spark_kafka_source.errors import LocalError

_MOST_SHOWN = 100


class SchemaError(LocalError):
    """A schema that cannot be used, at `path`: `found` is there, `expected` would be right."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)
        self.path, self.found, self.expected = path, found, expected

    def _text(self) -> str:
        return f"Schema, at {self.path or 'the top'}: {self.found}. {self.expected}"


class RecursiveTypeError(SchemaError):
    """A type that holds itself, by way of `path`: columns have no place for it."""


class UnresolvableError(SchemaError):
    """What was written with one schema can never be read with the other, because of `path`."""


def quoted(value: object) -> str:
    """Anything of a schema's, cut to what a text has room for."""
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
