"""Options of a writer as a user gives them, and rows as Spark hands them over."""

import pyarrow as pa

from spark_kafka_source.spark.options import parse_sink_options
from spark_kafka_source.spark.sink.options import SinkOptions
from tests.spark.settings import BOOTSTRAP_SERVERS


def parsed(**options: str) -> SinkOptions:
    """Parse options of a writer. `kafka_x_y` stands for `kafka.x.y`."""
    named = {
        name.replace("_", ".") if name.startswith("kafka_") else name: value
        for name, value in options.items()
    }
    return parse_sink_options(BOOTSTRAP_SERVERS | named)


def values(*texts: str | None) -> pa.RecordBatch:
    """Return rows with these values."""
    return pa.RecordBatch.from_pydict({"value": pa.array(texts, pa.string())})
