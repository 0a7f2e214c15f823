"""Typed columns written to a real broker: what does not fit is refused before a row is written."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.testing import LocalRegistry
from tests.spark.sink.written import to, written
from tools.traffic import Events

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "amount", "type": ["null", "float"], "default": None},
        ],
    }
)
PROTO = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
message Order { int64 id = 1; google.protobuf.Timestamp at = 2; float amount = 3; }"""
DDL = "id BIGINT, at TIMESTAMP, amount FLOAT"
SCHEMAS = {"avro": ORDER, "protobuf": PROTO, "json": DDL}
GOOD = "id, timestamp_millis(1704067200000) AS at, CAST(1.5 AS FLOAT) AS amount"
REFUSED = [
    (GOOD.replace("CAST(1.5 AS FLOAT)", "1e300D"), "value.amount", "double"),
    (GOOD.replace("id,", "CAST(id AS STRING) AS id,"), "value.id", "string"),
    (f"{GOOD}, 'x' AS note", "value.note", "no such field"),
    (GOOD.replace("AS amount", "AS Amount"), "value.Amount", "did you mean 'amount'"),
]


def orders(spark: SparkSession, fields: str) -> DataFrame:
    """Rows whose value is a struct of these fields, in several tasks."""
    return spark.range(20).repartition(3).selectExpr(f"struct({fields}) AS value")


def sunk(frame: DataFrame, options: dict[str, str]) -> None:
    frame.write.format("pykafka").mode("append").options(**options).save()


@pytest.mark.parametrize("format", SCHEMAS)
def test_what_does_not_fit_is_refused_before_a_row_is_written(
    spark: SparkSession, events: Events, format: str
) -> None:
    events.create(1)
    options = to(events, **{"value.format": format, "value.schema": SCHEMAS[format]})
    for fields, column, reason in REFUSED:
        with pytest.raises(PySparkException) as refused:
            sunk(orders(spark, fields), options)
        assert f"Column '{column}' does not fit the schema" in str(refused.value)
        assert reason in str(refused.value)
    assert written(events) == []
    sunk(orders(spark, GOOD), options)
    allowed = {**options, "value.ignore.fields": "note"}
    sunk(orders(spark, f"{GOOD}, 'x' AS note"), allowed)
    values = [each.value for each in written(events)]
    assert len(values) == 40
    assert sorted(values[:20], key=str) == sorted(values[20:], key=str)


def test_a_number_for_a_moment_is_refused_where_its_unit_is_a_guess(
    spark: SparkSession, events: Events
) -> None:
    events.create(1)
    seconds = "id, 1704067200L AS at"
    for format in ("protobuf", "json"):
        options = to(events, **{"value.format": format, "value.schema": SCHEMAS[format]})
        with pytest.raises(PySparkException, match=r"Column 'value\.at' does not fit"):
            sunk(orders(spark, seconds), options)
    avro = to(events, **{"value.format": "avro", "value.schema": ORDER})
    sunk(orders(spark, "id, 1704067200000L AS at"), avro)
    sunk(orders(spark, "id, timestamp_millis(1704067200000) AS at"), avro)
    values = [each.value for each in written(events)]
    assert len(values) == 40
    assert sorted(values[:20], key=str) == sorted(values[20:], key=str)


def test_a_stream_whose_new_column_the_subject_does_not_have(
    spark: SparkSession, events: Events, real_registry: LocalRegistry, tmp_path: Path
) -> None:
    """As when the registry is one version behind: the column does not vanish."""
    events.create(1)
    registry = {
        "value.format": "avro",
        "schema.registry.url": real_registry.url,
        "auto.register.schemas": "true",
    }
    sunk(orders(spark, "id"), to(events, **registry))
    assert len(written(events)) == 20
    latest = {**registry, "value.schema.subject": f"{events.name}-value"}
    source = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    frame = source.selectExpr("struct(value AS id, 'x' AS note) AS value")
    stream = frame.writeStream.format("pykafka").options(**to(events, **latest))
    query = stream.option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException, match=r"Column 'value\.note' does not fit the schema"):
        query.awaitTermination(120)
    query.stop()
    assert len(written(events)) == 20
