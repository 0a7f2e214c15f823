"""Spark's `to_avro` for a pair of a column's type and a schema, without a session."""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.pandas.types import from_arrow_type

from spark_kafka_source.testing import resolve
from spark_kafka_source.testing.java import QUICK_START
from tools.java_program import JavaProgram, run_java
from tools.value_parity.answers import SPARK_AVRO

_OPTIONS = (*QUICK_START, "--add-opens=java.base/java.nio=ALL-UNNAMED")


@dataclass(frozen=True, slots=True)
class Answer:
    """What `to_avro` does. If it refuses the type, there is a reason and no row."""

    refusal: str = ""
    rows: tuple[bytes | str | None, ...] = ()
    """The bytes of each row, or the reason that it is refused. None for a null."""


class ToAvro:
    """The expression of Spark's `to_avro`, in a JVM with Spark's jars."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def __call__(self, schema: Any, rows: pa.Array) -> Answer:
        """Return the answer for a column. All parts of it may be null, as Spark has it."""
        kind = from_arrow_type(rows.type, prefer_timestamp_ntz=True).json()
        sink = pa.BufferOutputStream()
        batch = pa.record_batch([rows], ["v"])
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        data = base64.b64encode(sink.getvalue()).decode()
        first, *found = self._program.ask(f"{kind}\t{json.dumps(schema)}\t{data}").split("\t")
        return Answer(refusal=found[0]) if first == "refused" else Answer(rows=_rows(found))


def _rows(found: Sequence[str]) -> tuple[bytes | str | None, ...]:
    return tuple(
        None if each == "null" else bytes.fromhex(each[1:]) if each[:1] == "x" else each[1:]
        for each in found
    )


@contextmanager
def to_avro() -> Iterator[ToAvro]:
    """Start the JVM."""
    jars = [Path(pyspark.__file__).parent / "jars" / "*", *resolve([SPARK_AVRO], transitive=False)]
    source = Path(__file__).with_name("ToAvro.java")
    with run_java(source, jars, java_options=_OPTIONS) as program:
        yield ToAvro(program)
