"""A driver that copies a topic by watched commits: `python -m tests.spark.sink.watched_driver`.

Each line of its standard input has orders as JSON: a query that runs to the topic's end or to its
error. Its file then has the error's text, or no text.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import spark_kafka_source
from tests.spark.sink.watched import FORMAT, WatchedDataSource
from tools.reliability.driver import session

MODULE = "tests.spark.sink.watched_driver"


@dataclass(frozen=True, slots=True)
class Orders:
    """The task of one query. A value is like `0:7`: its partition, then its own number."""

    source: dict[str, str]
    sink: dict[str, str]
    checkpoint: str
    report: str
    waits: dict[str, str] = field(default_factory=dict)
    """The files that must be there before the tasks of these partitions have a row."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def run(spark: SparkSession, orders: Orders) -> str:
    waits = orders.waits

    @udf("binary", useArrow=False)
    def late(value: bytes) -> bytes:
        path = waits.get(bytes(value).decode().split(":")[0])
        while path is not None and not Path(path).exists():
            time.sleep(0.05)
        return value

    frame = spark.readStream.format("pykafka").options(**orders.source).load()
    query = (
        frame.select(late("value").alias("value"))
        .writeStream.format(FORMAT)
        .options(**orders.sink)
        .option("checkpointLocation", orders.checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return str(error)
    return ""


def main() -> None:
    spark = session("local[2]")
    spark_kafka_source.register(spark)
    spark.dataSource.register(WatchedDataSource)
    for line in iter(sys.stdin.readline, ""):
        orders = Orders(**json.loads(line))
        unfinished = Path(orders.report + ".unfinished")
        unfinished.write_text(run(spark, orders))
        unfinished.rename(orders.report)
    spark.stop()


if __name__ == "__main__":
    main()
