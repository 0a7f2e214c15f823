"""A program for `spark-submit`, with nothing of the tests: it counts or copies a topic.

Its only argument is JSON: `kind`, `source`, and for a copy `sink` and `checkpoint`.
"""

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

import spark_kafka_source


def main() -> None:
    asked = json.loads(sys.argv[1])
    spark = SparkSession.builder.appName("program").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark_kafka_source.register(spark)
    if asked["kind"] == "count":
        rows = spark.read.format("pykafka").options(**asked["source"]).load()
        print("rows", rows.select("value").distinct().count())
    else:
        rows = spark.readStream.format("pykafka").options(**asked["source"]).load()
        query = (
            rows.repartition(4, col("offset"))
            .select("key", "value")
            .writeStream.format("pykafka")
            .options(**asked["sink"])
            .option("checkpointLocation", asked["checkpoint"])
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print("batches", len(query.recentProgress))
    spark.stop()


if __name__ == "__main__":
    main()
