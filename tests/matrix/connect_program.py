"""A user's program over Spark Connect. It prints as JSON what it saw.

    python connect_program.py '{"source": {...}, "copy": {...}, "files": "..."}'

`source` are options to read with a group, `copy` options to write, and `files` is a directory.
"""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import spark_kafka_source

_PATIENCE_SECONDS = 180


def main() -> None:
    asked = json.loads(sys.argv[1])
    source, copy, files = asked["source"], asked["copy"], asked["files"]
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark_kafka_source.register(spark)
    seen: list[int] = []

    def keep_lag(_: object, lag: Mapping[Any, int]) -> None:
        seen.append(sum(lag.values()))

    spark.streams.addListener(spark_kafka_source.LagListener(keep_lag))

    rows = spark.read.format("pykafka").options(**source).load()
    found: dict[str, Any] = {"batch": sorted(bytes(row.value).decode() for row in rows.collect())}

    reading = spark.readStream.format("pykafka").options(**source).load().select("value")
    writing = reading.writeStream.format("pykafka").options(**copy)
    _run(writing.option("checkpointLocation", f"{files}/copied"))

    def keep(frame: DataFrame, _: int) -> None:
        frame.write.mode("append").parquet(f"{files}/kept")

    _run(reading.writeStream.foreachBatch(keep).option("checkpointLocation", f"{files}/each"))
    found["foreachBatch"] = spark.read.parquet(f"{files}/kept").count()

    _wait(seen)
    found["lag"] = seen[-1]
    rows.select("value").limit(1).write.format("pykafka").options(**copy).mode("append").save()
    try:
        spark.read.format("pykafka").options(**source, startingOfsets="earliest").load().collect()
    except PySparkException as error:
        found["error"] = str(error)
    print(json.dumps(found))
    spark.stop()


def _run(writing: Any) -> None:
    query = writing.trigger(availableNow=True).start()
    assert query.awaitTermination(_PATIENCE_SECONDS), "the query did not end"


def _wait(seen: list[int]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not seen and time.monotonic() < deadline:
        time.sleep(0.1)


if __name__ == "__main__":
    main()
