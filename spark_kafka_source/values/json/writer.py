"""JSON as a format of values to write."""

from collections.abc import Callable, Collection
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_kafka_source.records.plain_types import plain
from spark_kafka_source.values.ddl import nullable, written_ddl
from spark_kafka_source.values.errors import SchemaError
from spark_kafka_source.values.fitting import refuse_rows
from spark_kafka_source.values.json.encode import encode
from spark_kafka_source.values.json.fit import Fit, fit_columns, fit_shape, free, with_nulls
from spark_kafka_source.values.json.meaning import DEFAULT
from spark_kafka_source.values.json.one import text_of_one
from spark_kafka_source.values.json.schema import SchemaGraph
from spark_kafka_source.values.json.shape import column_type
from spark_kafka_source.values.json.shaped import ShapedText
from spark_kafka_source.values.json.validation import Validation
from spark_kafka_source.values.kept import keeping_last, made_once
from spark_kafka_source.values.schema_text import SchemaText
from spark_kafka_source.values.typing import JsonTyping

Described: TypeAlias = Any
"""What a schema says: the type of DDL, or the `SchemaGraph` of a JSON Schema. None without one.

In the type a field that is NOT NULL is not nullable."""


class JsonWriter:
    """`ValueWriter` of JSON texts. It is pickled as what its schema says."""

    def __init__(
        self,
        schema: "SchemaText | Described",
        kind: pa.DataType | None = None,
        ignored: Collection[str] = (),
        validation: Validation | None = None,
        typing: JsonTyping = DEFAULT,
    ) -> None:
        """`schema` is a JSON Schema, or DDL, or None to write any type that JSON has.

        Without a schema `kind` is the type of the values. `ignored` are the paths of fields that
        are left out if the schema does not have them. A row that is not valid by `validation` is
        not written. `typing` says whether null fields are. Raises `SchemaError`.
        """
        self._described = _described(schema) if isinstance(schema, SchemaText) else schema
        self._kind, self._ignored, self._validation = kind, frozenset(ignored), validation
        self._typing = typing
        self._fit = keeping_last(self._planned)
        self._text_of_one: Callable[[Any], str] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self._described, self._kind, self._ignored, self._validation, self._typing)
        return made_once, (JsonWriter, *parts)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type in which the source reads the values.

        Raises `SchemaError` for a JSON Schema whose values have no type as columns.
        """
        if isinstance(self._described, SchemaGraph):
            return column_type(self._described)
        if self._described is not None:
            return nullable(self._described)
        if self._kind is None:
            raise ValueError("a writer without a schema has the type that it was given")
        return self._kind

    @property
    def deepest_type(self) -> pa.DataType:
        """The `arrow_type`, or null for a JSON Schema whose values have no type as columns."""
        try:
            return self.arrow_type
        except SchemaError:
            return pa.null()

    def fit(self, kind: pa.DataType) -> None:
        """Raise `UnfitColumnError` for a type of columns that the schema has no place for."""
        self._fit(kind)

    def _planned(self, kind: pa.DataType) -> Fit:
        plan = self._compared(kind)
        return plan if self._typing.ignore_null_fields else with_nulls(plan)

    def _compared(self, kind: pa.DataType) -> Fit:
        given = plain(kind)
        if isinstance(self._described, SchemaGraph):
            return fit_shape(given, self._described, self._ignored)
        if self._described is not None:
            return fit_columns(given, self._described, self._ignored)
        return free(given)

    def encode(self, array: pa.Array, prefix: bytes) -> pa.BinaryArray:
        """Encode each row. Raises `UnfitColumnError` and `UnencodableRowError`."""
        texts = encode(array, self._fit(array.type))
        if self._validation is not None:
            _validate(texts.to_pylist(), self._validation)
        return pc.binary_join_element_wise(prefix, texts, b"") if prefix else texts

    def one(self, value: Any) -> bytes:
        """Encode one value. Raises `UnencodableRowError`."""
        if self._text_of_one is None:
            self._text_of_one = self._text()
        text = self._text_of_one(value).encode()
        if self._validation is not None:
            _validate([text], self._validation)
        return text

    def _text(self) -> Callable[[Any], str]:
        nulls = not self._typing.ignore_null_fields
        if isinstance(self._described, SchemaGraph):
            return ShapedText(self._described, self._ignored, nulls).text
        kind = plain(self.arrow_type) if self._described is None else self._described
        text = text_of_one(kind, self._ignored, nulls=nulls)
        return lambda value: text(value, "")


def _described(schema: SchemaText) -> Described:
    return written_ddl(schema.text) if is_ddl(schema.text) else SchemaGraph.of(schema)


def _validate(texts: list[bytes], validation: Validation) -> None:
    """Raise `UnencodableRowError` for texts that are not valid."""
    verdicts = {row: validation.invalid(text) for row, text in enumerate(texts)}
    wrong = {row: invalid for row, invalid in verdicts.items() if invalid is not None}
    if wrong:
        path, reason = next(iter(wrong.values()))
        refuse_rows(path, np.array(list(wrong)), reason)


def is_ddl(text: str) -> bool:
    """Whether the text of a schema is DDL, and no JSON Schema."""
    return not text.lstrip().startswith("{") and text.strip() not in ("true", "false")
