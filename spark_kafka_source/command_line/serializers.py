"""Serializers of lines: the keys or values of a line become bytes."""

from collections.abc import Mapping
from typing import Any, Protocol

from spark_kafka_source.command_line import json_text
from spark_kafka_source.command_line.json_text import NotJsonError


class NoRecordError(Exception):
    """The reason why a line is no record."""


class Serializer(Protocol):
    """Serializer of the keys, or of the values, of lines. Its methods raise `NoRecordError`."""

    def of_line(self, data: bytes) -> bytes | None:
        """Return the bytes for a key or value that is a line, or a part of a line."""

    def of_json(self, value: Any) -> bytes | None:
        """Return the bytes for a value that `json_text.read` has read. None is a tombstone."""


Serializers = Mapping[str, Serializer]
"""The serializers of `key` and `value`."""


class Plain:
    """`Serializer` without a format: a text is itself, and any other JSON value its JSON text."""

    def __init__(self, part: str) -> None:
        self._part = part

    def of_line(self, data: bytes) -> bytes | None:
        """Return the bytes as they are."""
        return data

    def of_json(self, value: Any) -> bytes | None:
        """Return the bytes of a text, or the JSON text of another value."""
        if value is None:
            return None
        if not isinstance(value, str):
            return _json_bytes(self._part, value)
        try:
            return value.encode()
        except UnicodeEncodeError:
            reason = f"has a '{self._part}' that cannot be encoded: half a character"
            raise NoRecordError(reason) from None


class Texts:
    """`Serializer` of the format `string`."""

    def __init__(self, part: str) -> None:
        self._part, self._plain = part, Plain(part)

    def of_line(self, data: bytes) -> bytes | None:
        """Return the bytes, which must be UTF-8."""
        try:
            data.decode()
        except UnicodeDecodeError:
            raise NoRecordError(f"its {self._part} is not UTF-8") from None
        return data

    def of_json(self, value: Any) -> bytes | None:
        """Return the bytes of a text."""
        if value is not None and not isinstance(value, str):
            found = f"has a '{self._part}' that is neither a text nor null"
            raise NoRecordError(f"{found}, where '{self._part}.format' is 'string'")
        return self._plain.of_json(value)


class Json:
    """`Serializer` of JSON without a schema. A line stays as it is, if it is JSON."""

    def __init__(self, part: str) -> None:
        self._part = part

    def of_line(self, data: bytes) -> bytes | None:
        """Return the bytes, which must be JSON."""
        try:
            return None if json_text.read(data) is None else data
        except NotJsonError as error:
            raise NoRecordError(f"its {self._part} {error}") from None

    def of_json(self, value: Any) -> bytes | None:
        """Return the JSON text."""
        return None if value is None else _json_bytes(self._part, value)


def _json_bytes(part: str, value: Any) -> bytes:
    try:
        return json_text.written(value)
    except NotJsonError as error:
        raise NoRecordError(f"has a '{part}' that {error}") from None


PLAIN: Serializers = {"key": Plain("key"), "value": Plain("value")}
