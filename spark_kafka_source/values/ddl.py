"""Schemas as Spark writes them, such as `id BIGINT, tags ARRAY<STRING>`, to Arrow types and back.

Every field is nullable, as Spark wants from a source. Only what is written is held to NOT NULL.
https://spark.apache.org/docs/latest/sql-ref-datatypes.html lists the names.
"""

import re
from collections.abc import Mapping

import pyarrow as pa

from spark_kafka_source.values.errors import SchemaError, quoted

MAX_PRECISION = 38
MAX_DEPTH = 100
MAX_FIELDS = 10_000
TIMESTAMP = pa.timestamp("us", "UTC")
TIMESTAMP_NTZ = pa.timestamp("us")

_TYPES: Mapping[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
}
_OTHER_NAMES = {
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
_NAMES = {kind: name for name, kind in _TYPES.items()}
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_INSTEAD = {
    "CHAR": "STRING",
    "CHARACTER": "STRING",
    "VARCHAR": "STRING",
    "VARIANT": "STRING",
    "TIME": "STRING",
    "INTERVAL": "STRING",
    "VOID": "another type, or no such field",
}
"""Spark types that have no values here, and the type to read instead."""

_SPACE = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_NUMBER = re.compile(r"\d{1,3}(?!\w)")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_SHOWN = re.compile(r"\S{1,20}")


def from_ddl(text: str) -> pa.DataType:
    """Return the type that DDL is read as: as `written_ddl`, but each field is nullable."""
    return nullable(written_ddl(text))


def written_ddl(text: str) -> pa.DataType:
    """Parse DDL. Return a struct for a list of columns, or the type itself for a single type.

    A field that is NOT NULL is not nullable. Raises `SchemaError` with the path of the field and
    the position in the text.
    """
    parser = _Parser(text)
    first = _WORD.match(text, parser.at)
    one = first and parser.is_type(first)
    kind = parser.type("") if one else parser.fields("", "")
    if parser.at < len(text):
        raise parser.error("", "Expected a comma, or nothing more")
    return kind


def nullable(kind: pa.DataType) -> pa.DataType:
    """Return the same type where each field is nullable."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, nullable(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, nullable(kind.item_type))
    return array_of(nullable(kind.value_type)) if pa.types.is_list(kind) else kind


class _Parser:
    """Parser that reads the text from left to right. `at` never points to a space."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._depth = self._fields = 0
        self._skip(0)

    def is_type(self, word: re.Match[str]) -> bool:
        """Whether the text is a single type, and not columns whose first has this name."""
        after = _space(self._text, word.end())
        name = word[0].upper()
        if name in ("ARRAY", "MAP", "STRUCT"):
            return self._text.startswith("<", after)
        known = name in _TYPES or name in _OTHER_NAMES or name in _DECIMALS or name in _INSTEAD
        return known and (after == len(self._text) or self._text[after] == "(")

    def error(self, path: str, expected: str) -> SchemaError:
        """Return an error that shows the text at the current position."""
        shown = _SHOWN.match(self._text, self.at)
        place = f"stands at character {self.at + 1} of the DDL"
        found = f"{quoted(shown[0])} {place}" if shown else "the DDL ends"
        return SchemaError(path, found, expected)

    def _skip(self, to: int) -> None:
        self.at = _space(self._text, to)

    def _take(self, token: str) -> bool:
        """Skip the token if it comes next, and return whether it did."""
        if not self._text.startswith(token, self.at):
            return False
        self._skip(self.at + len(token))
        return True

    def _need(self, token: str, path: str) -> None:
        if not self._take(token):
            raise self.error(path, f"Expected {token}")

    def _keyword(self, *words: str) -> bool:
        start = self.at
        for word in words:
            match = _WORD.match(self._text, self.at)
            if not match or match[0].upper() != word:
                self.at = start
                return False
            self._skip(match.end())
        return True

    def fields(self, path: str, end: str) -> pa.DataType:
        """Parse columns, up to the token `end`."""
        fields: dict[str, pa.Field] = {}
        while True:
            match = _NAME.match(self._text, self.at)
            if not match:
                raise self.error(path, "Expected a name, in backquotes if it is no plain word")
            name = match[0][1:-1].replace("``", "`") if match[0][0] == "`" else match[0]
            inner = f"{path}.{name}" if path else name
            self._fields += 1
            if name in fields or self._fields > MAX_FIELDS:
                expected = f"Each name comes once, and there are {MAX_FIELDS} at most"
                raise self.error(inner, expected)
            self._skip(match.end())
            self._take(":")
            kind = self.type(inner)
            fields[name] = pa.field(name, kind, nullable=not self._keyword("NOT", "NULL"))
            self._comment(inner)
            if self.at == len(self._text) or (end and self._text.startswith(end, self.at)):
                return pa.struct(list(fields.values()))
            self._need(",", inner)

    def _comment(self, path: str) -> None:
        """Skip COMMENT after a type."""
        if self._keyword("COMMENT"):
            match = _QUOTED.match(self._text, self.at)
            if not match:
                raise self.error(path, "Expected a comment in quotes")
            self._skip(match.end())

    def type(self, path: str) -> pa.DataType:
        """Parse one type."""
        start = self.at
        match = _WORD.match(self._text, self.at)
        if not match:
            raise self.error(path, "Expected a type")
        name = match[0].upper()
        name = _OTHER_NAMES.get(name, name)
        self._skip(match.end())
        if name in _TYPES:
            return _TYPES[name]
        if name in _DECIMALS:
            return self._decimal(path)
        if name in ("ARRAY", "MAP", "STRUCT"):
            return self._nested(name, path)
        self.at = start
        if name in _INSTEAD:
            raise self.error(path, f"{name} cannot be read. Use {_INSTEAD[name]}")
        raise self.error(path, f"Expected a type, such as {', '.join(_TYPES)}, DECIMAL(10, 2)")

    def _decimal(self, path: str) -> pa.DataType:
        precision, scale = 10, 0
        start = self.at
        if self._take("("):
            precision = self._number(path)
            scale = self._number(path) if self._take(",") else 0
            self._need(")", path)
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            self.at = start
            raise self.error(path, f"Expected 1 to {MAX_PRECISION} digits, and no larger scale")
        return pa.decimal128(precision, scale)

    def _number(self, path: str) -> int:
        match = _NUMBER.match(self._text, self.at)
        if not match:
            raise self.error(path, "Expected a number of digits")
        self._skip(match.end())
        return int(match[0])

    def _nested(self, name: str, path: str) -> pa.DataType:
        self._need("<", path)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(path, f"Expected at most {MAX_DEPTH} types within each other")
        kind: pa.DataType
        if name == "ARRAY":
            kind = array_of(self.type(f"{path}[]"))
        elif name == "MAP":
            if not pa.types.is_string(self.type(f"{path}{{}}")):
                raise self.error(path, "Expected keys of type STRING, as JSON has them")
            self._need(",", path)
            kind = pa.map_(pa.string(), self.type(f"{path}{{}}"))
        elif self._text.startswith(">", self.at):
            kind = pa.struct([])
        else:
            kind = self.fields(path, ">")
        self._depth -= 1
        self._need(">", path)
        return kind


def _space(text: str, at: int) -> int:
    """Return the position after spaces and comments."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def array_of(items: pa.DataType) -> pa.DataType:
    """Return a list type whose items have the name that Spark gives them."""
    return pa.list_(pa.field("element", items))


def to_ddl(kind: pa.DataType) -> str:
    """Return the DDL of a struct's columns for `from_ddl`, or the name of another type."""
    if pa.types.is_struct(kind) and kind.num_fields:
        return ", ".join(f"{_name(each.name)} {_type(each.type, each.name)}" for each in kind)
    return _type(kind, "")


def _type(kind: pa.DataType, path: str) -> str:
    if kind in _NAMES:
        return _NAMES[kind]
    if pa.types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{_type(kind.value_type, f'{path}[]')}>"
    if pa.types.is_map(kind):
        key, value = (_type(each, f"{path}{{}}") for each in (kind.key_type, kind.item_type))
        return f"MAP<{key}, {value}>"
    if pa.types.is_struct(kind):
        fields = (f"{_name(each.name)}: {_type(each.type, f'{path}.{each.name}')}" for each in kind)
        return f"STRUCT<{', '.join(fields)}>"
    raise SchemaError(path, f"{kind} has no name in DDL", f"Use one of {', '.join(_TYPES)}")


def _name(name: str) -> str:
    if not name:
        raise SchemaError("", "a field without a name", "DDL has none of these")
    return name if _PLAIN.match(name) else f"`{name.replace('`', '``')}`"
