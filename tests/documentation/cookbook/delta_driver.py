"""A driver with Delta Lake: `python -m` this module reads its orders as a line of JSON.

It runs the block of a recipe twice, on one checkpoint. Before the second run it forgets that the
last micro-batch was noted down, and there are new records.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import Row, SparkSession

import spark_kafka_source
from spark_kafka_source import KafkaProducer
from tests.delta.driver import delta_settings
from tests.documentation.cookbook.restarts import forget_last_commit
from tests.documentation.pages import Block
from tests.documentation.running import Runner
from tools.reliability.driver import session


@dataclass(frozen=True, slots=True)
class DeltaRecipe:
    """A block of code, the values of each run's new records, and where its rows are to go."""

    source: str
    servers: str
    suffix: str
    directory: str
    runs: list[list[str]]

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main() -> None:
    spark = session("local[2]", delta_settings())
    spark_kafka_source.register(spark)
    wanted = DeltaRecipe(**json.loads(sys.stdin.readline()))
    rows = [row.asDict() for row in run(spark, wanted)]
    for row in rows:
        row["timestamp"] = row["timestamp"].timestamp()
    Path(wanted.directory, "rows.json").write_text(json.dumps(rows))
    spark.stop()
    os._exit(0)


def run(spark: SparkSession, wanted: DeltaRecipe) -> list[Row]:
    """Return the rows of the table."""
    texts = {
        "localhost:9092": wanted.servers,
        "/data/": f"{wanted.directory}/",
        "1 minute": "1 second",
    }
    runner = Runner(spark, wanted.suffix, texts)
    block = Block(Path("write.md"), 0, "python", wanted.source, None)
    checkpoint = Path(wanted.directory, "checkpoints", "orders-delta")
    with KafkaProducer(bootstrap_servers=wanted.servers) as producer:
        for values in wanted.runs:
            for number, value in enumerate(values):
                producer.send(runner.name("orders"), value.encode(), partition=number % 2)
            producer.flush()
            if checkpoint.exists():
                forget_last_commit(checkpoint)
            runner.run(block)
            runner.variable("query").stop()
    return spark.read.format("delta").load(f"{wanted.directory}/orders-delta").collect()


if __name__ == "__main__":
    main()
