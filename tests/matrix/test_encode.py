"""Encoding of typed columns of any DataFrame: the same bytes as in the sink."""

import json

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source import encode
from tests.registry.server import registry_server, version
from tests.spark.sink.written import to, written
from tools.traffic import Events

pytest.importorskip("pandas", reason="Spark asks for pandas here, and `make test-matrix` has it")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    # Spark 4.0 leaves the sockets of rows to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed .socket:ResourceWarning"),
    # Spark 4.3 warns of pandas 3, and earlier ones call it in ways that pandas 3 warns of.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated:DeprecationWarning"),
]

AT = {"type": "long", "logicalType": "timestamp-micros"}
FIELDS = [{"name": "id", "type": "long"}, {"name": "at", "type": AT}]
SCHEMA = json.dumps({"type": "record", "name": "E", "fields": FIELDS})


def test_any_dataframe_is_encoded_as_the_sink_encodes_it(
    spark: SparkSession, events: Events
) -> None:
    events.create(1)
    frame = spark.range(100).selectExpr(
        "CAST(id AS STRING) AS key",
        "IF(id = 3, NULL, named_struct('id', id, 'at', timestamp_micros(id * 1001))) AS value",
        "id AS other",
    )
    with registry_server() as registry:
        registry.on("*", version(SCHEMA, 7))
        typed = {
            "value.format": "avro",
            "value.schema.subject": "events",
            "schema.registry.url": registry.url,
        }
        # Arrow functions get times in the session's zone. A sink gets times in UTC.
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        try:
            found = encode(frame, typed)
            rows = {row.key.encode(): row.value and bytes(row.value) for row in found.collect()}
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert found.schema.simpleString() == "struct<key:string,value:binary,other:bigint>"
        frame.write.format("pykafka").mode("append").options(**to(events, **typed)).save()
    assert {each.key: each.value for each in written(events)} == rows
