"""A driver with Delta Lake: `python -m tests.delta.driver` reads its orders as a line of JSON.

It reads a topic, typed, into a Delta table. Or it writes the table to a topic, exactly once.
Either way its query ends when all is copied.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

import spark_kafka_source
from spark_kafka_source.testing.jars import resolve
from tools.reliability.driver import session

# The release for the suite's Spark, and those of its dependencies that Spark lacks.
DELTA = (
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "io.unitycatalog:unitycatalog-client:0.6.0",
)
TO_TABLE, FROM_TABLE = "to the table", "from the table"


@dataclass(frozen=True, slots=True)
class DeltaOrders:
    """The orders of a driver. `options` are those of the topic it reads or writes."""

    kind: str
    options: dict[str, str]
    table: str
    checkpoint: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def delta_settings() -> dict[str, str]:
    """Return the settings of a session that has Delta Lake."""
    return {
        "spark.jars": ",".join(map(str, resolve(DELTA, transitive=False))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Two cores: Delta reads its log by a shuffle.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def writing(spark: SparkSession, orders: DeltaOrders) -> DataStreamWriter:
    """Return the query, ready to start."""
    if orders.kind == TO_TABLE:
        rows = spark.readStream.format("pykafka").options(**orders.options).load()
        flat = rows.select("key", "value.*", "partition", "offset")
        return flat.writeStream.format("delta").option("path", orders.table)
    rows = spark.readStream.format("delta").option("maxFilesPerTrigger", "2").load(orders.table)
    values = rows.selectExpr("key", "named_struct('n', n, 'text', text) AS value")
    return values.writeStream.format("pykafka").options(**orders.options)


def main() -> None:
    spark = session("local[2]", delta_settings())
    spark_kafka_source.register(spark)
    orders = DeltaOrders(**json.loads(sys.stdin.readline()))
    query = (
        writing(spark, orders)
        .option("checkpointLocation", orders.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()
    os._exit(0)


if __name__ == "__main__":
    main()
