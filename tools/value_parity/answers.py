"""Results of both sides for a case, each as one text."""

import datetime
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_kafka_source.testing import resolve
from spark_kafka_source.values import (
    Decoded,
    Encoded,
    SchemaError,
    SchemaText,
    SchemaType,
    UnresolvableError,
    ValueReader,
)
from spark_kafka_source.values.avro import AvroReader
from spark_kafka_source.values.ddl import from_ddl
from spark_kafka_source.values.json import JsonReader
from spark_kafka_source.values.typing import ProtobufTyping
from tests.values.protobuf_oracle import expected
from tests.values.test_protobuf_cases import proto
from tests.values.test_protobuf_cases import reader as message_reader
from tools.value_parity.case import Avro, Case, Json, Protobuf, Shown

SPARK_AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
"""The newest available version. It runs with Spark 4.2."""

NOTHING = "nothing of the kind"
REFUSED, ERROR = "refused", "error"
_MOST_ITEMS = 10


def ours(case: Case) -> str:
    """Return this package's result."""
    asked = case.asked
    if isinstance(asked, Shown):
        return asked.here
    if isinstance(asked, Avro):
        return _of_avro(asked)
    if isinstance(asked, Json):
        reader = JsonReader(from_ddl(asked.ddl))
        return _answer(reader, None, asked.text)
    of_message = message_reader(asked.message)
    return _answer(of_message, of_message.program(), asked.data, asked.columns)


def _of_avro(asked: Avro) -> str:
    writer = SchemaText(SchemaType.AVRO, json.dumps(asked.writer))
    reader = SchemaText(SchemaType.AVRO, json.dumps(asked.reader or asked.writer))
    try:
        read_with = AvroReader(reader)
    except SchemaError as error:
        return f"refused: {error}"
    try:
        program = read_with.program(writer)
    except UnresolvableError as error:
        return f"bad: {error}"
    return _answer(read_with, program, asked.data)


def _answer(
    reader: ValueReader, program: Any, data: bytes | None, columns: Sequence[str] = ()
) -> str:
    size = np.array([len(data or b"")])
    null = np.array([data is None])
    found: Decoded = reader.decode([program], Encoded(data or b"", size * 0, size, null=null))
    if found.status[0]:
        return f"bad: {found.reason(0)}"
    (value,) = found.array.to_pylist()
    return f"`{shown({name: value[name] for name in columns} if columns and value else value)}`"


def of_upb(asked: Protobuf) -> str:
    """Return the result of Google's own parser, with nulls in the same places as Spark."""
    if asked.data is None:
        return "`null`"
    message = proto(asked.message)()
    try:
        message.ParseFromString(asked.data)
    except DecodeError:
        return ERROR
    found = expected(message, ProtobufTyping())
    return f"`{shown({name: found[name] for name in asked.columns})}`"


class Spark:
    """Spark's own functions, PERMISSIVE, in a session whose time zone is UTC."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        for jar in resolve([SPARK_AVRO], transitive=False):
            spark.sql(f"ADD JAR '{jar}'")

    def answers(self, cases: Sequence[Case]) -> list[str]:
        """Return one answer for each case; `NOTHING` if no function applies to the case."""
        calls = [_call(each) for each in cases]
        found = iter(self._evaluated([each for each in calls if each]))
        return [next(found) if each else NOTHING for each in calls]

    def _evaluated(self, calls: Sequence[str]) -> list[str]:
        """Evaluate all cases together. If that fails, split them in halves to find the failing."""
        if not calls:
            return []
        named = (f"{call} AS c{number}" for number, call in enumerate(calls))
        try:
            table: pa.Table = self._spark.sql(f"SELECT {', '.join(named)}").toArrow()
        except (PySparkException, Py4JError) as error:
            if len(calls) == 1:
                return [ERROR if isinstance(error, Py4JError) else REFUSED]
            half = len(calls) // 2
            return self._evaluated(calls[:half]) + self._evaluated(calls[half:])
        return [f"`{shown(_value(column))}`" for column in table.columns]


def _value(column: pa.ChunkedArray) -> Any:
    try:
        return column.to_pylist()[0]
    except UnicodeDecodeError:  # Spark accepts strings that are not UTF-8.
        kind = pa.struct([(each.name, pa.binary()) for each in column.type])
        (found,) = column.cast(kind).to_pylist()
        return {name: each.decode(errors="replace") for name, each in found.items()}


def _call(case: Case) -> str:
    asked = case.asked
    if isinstance(asked, Json):
        return f"from_json(CAST({_bytes(asked.text)} AS STRING), {_text(asked.ddl)})"
    if not isinstance(asked, Avro):
        return ""
    options = ["'mode'", "'PERMISSIVE'"]
    if asked.reader is not None:
        options += ["'avroSchema'", _text(json.dumps(asked.reader))]
    schema = _text(json.dumps(asked.writer))
    return f"from_avro({_bytes(asked.data)}, {schema}, map({', '.join(options)}))"


def _bytes(data: bytes | None) -> str:
    return "CAST(NULL AS BINARY)" if data is None else f"unhex('{data.hex()}')"


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def shown(value: Any) -> str:
    """Return the text of a value of either side."""
    if isinstance(value, dict):
        found = (f"{name or repr(name)}: {shown(each)}" for name, each in value.items())
        return f"{{{', '.join(found)}}}"
    if isinstance(value, list):
        return _listed(value)
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(value) if isinstance(value, Decimal) else repr(value)


def _listed(value: list[Any]) -> str:
    if value and all(isinstance(each, tuple) for each in value):
        return shown(dict(value))
    more = f", … {len(value):,} items" if len(value) > _MOST_ITEMS else ""
    return f"[{', '.join(map(shown, value[:_MOST_ITEMS]))}{more}]"
