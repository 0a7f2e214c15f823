"""A user's program on Sail. It prints as JSON what it saw.

    python sail_program.py '{"source": {}, "copies": [{}], "streamed": {}, "files": "..."}'

`source` are options to read, `copies` and `streamed` options to write, and `files` is a directory.
"""

import json
import sys
from typing import Any

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

import spark_kafka_source

_PATIENCE_SECONDS = 180


def main() -> None:
    asked = json.loads(sys.argv[1])
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    spark_kafka_source.register(spark)
    print(json.dumps(_seen(spark, **asked)))
    spark.stop()
    server.stop()


def _seen(
    spark: SparkSession,
    source: dict[str, Any],
    copies: list[dict[str, Any]],
    streamed: dict[str, Any],
    files: str,
) -> dict[str, Any]:
    rows = spark.read.format("pykafka").options(**source).load()
    found = {
        "batch": sorted(bytes(row.value).decode() for row in rows.collect()),
        "filtered": rows.where("partition = 0 AND offset > 0").count(),
    }
    for copy in copies:
        rows.select("value").write.format("pykafka").options(**copy).mode("append").save()
    for _ in range(2):
        stream = spark.readStream.format("pykafka").options(**source).load().select("value")
        writing = stream.writeStream.format("pykafka").options(**streamed)
        query = writing.option("checkpointLocation", files).trigger(availableNow=True).start()
        assert query.awaitTermination(_PATIENCE_SECONDS), "the query did not end"
    return found


if __name__ == "__main__":
    main()
