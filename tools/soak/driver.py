"""A Spark driver that runs until its standard input ends: `python -m tools.soak.driver`.

It reads its settings as a line of JSON. One kind copies the topic of orders, typed and exactly
once. The other kind is a query in a shared group, with rows as in
`tools.reliability.group_driver`.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import spark_kafka_source
from tools.reliability.driver import session
from tools.reliability.group_driver import ROWS
from tools.soak.rows import FACTOR
from tools.soak.writer import note_error, until_input_ends

# Spark retries a task after its Python worker is killed.
MASTER = "local[2,4]"
TRIGGER = "2 seconds"


@dataclass(frozen=True, slots=True)
class DriverOrders:
    """The settings of a driver. `directory` has its checkpoint, its rows and its errors.

    With options of a sink the query copies the topic. Without them it notes the rows it reads.
    """

    source: dict[str, str]
    sink: dict[str, str]
    directory: str
    errors: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def start(spark: SparkSession, orders: DriverOrders) -> StreamingQuery:
    """Start the query on its checkpoint."""
    frame = spark.readStream.format("pykafka").options(**orders.source).load()
    writing = _copies(frame, orders) if orders.sink else _notes(frame, orders)
    checkpoint = str(Path(orders.directory, "checkpoint"))
    return writing.option("checkpointLocation", checkpoint).trigger(processingTime=TRIGGER).start()


def _copies(frame: DataFrame, orders: DriverOrders) -> DataStreamWriter:
    value = f"named_struct('number', value.number, 'amount', value.amount * {FACTOR}) AS value"
    rows = frame.selectExpr("key", value)
    return rows.writeStream.format("pykafka").options(**orders.sink)


def _notes(frame: DataFrame, orders: DriverOrders) -> DataStreamWriter:
    rows = frame.select("partition", "offset")
    return rows.writeStream.format("json").option("path", str(Path(orders.directory, ROWS)))


def main() -> None:
    spark = session(MASTER)
    # The file sink's log must keep one file per batch.
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "1000000")
    spark_kafka_source.register(spark)
    orders = DriverOrders(**json.loads(sys.stdin.readline()))
    ended = until_input_ends()
    query = start(spark, orders)

    def stop() -> None:
        ended.wait()
        query.stop()

    Thread(target=stop, daemon=True).start()
    status = 0
    try:
        query.awaitTermination()
    except Exception as error:
        note_error(orders.errors, error)
        status = 1
    spark.stop()
    os._exit(status)


if __name__ == "__main__":
    main()
