"""Duration of a small stream, with and without Spark's archive of pyspark.

    python -m tools.benchmarks.starts [--runs 15]

A streaming query starts a Python process. It imports pyspark from the archive `pyspark.zip`, which
has no bytecode, or else from the installed package, which has.
"""

import argparse
import tempfile
import zipfile
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tools.benchmarks.interleaved import Ratio, interleaved, medians
from tools.benchmarks.session import broker, session
from tools.benchmarks.topics import fill

PACKAGE = Path(pyspark.__file__).parent
ARCHIVE = PACKAGE / "python" / "lib" / "pyspark.zip"
TOPIC = "t"


def main() -> None:
    """Measure with an archive of the installed sources. At the end there is none."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    archive = _archive()
    with broker() as kafka:
        kafka.create_topic(TOPIC, 1)
        fill(kafka.bootstrap_servers, TOPIC, rows=1_000, value_bytes=150, codec="lz4", partitions=1)
        spark = session()
        try:
            seconds = interleaved(
                {
                    "archive": lambda: _stream(spark, kafka, archive),
                    "bytecode": lambda: _stream(spark, kafka, None),
                },
                runs,
            )
        finally:
            ARCHIVE.unlink(missing_ok=True)
            spark.stop()
    for name, median in medians(seconds).items():
        print(f"{name:10} {median:.2f} s")
    print(f"times as fast with bytecode: {Ratio.of(seconds, 'archive', 'bytecode')}")


def _archive() -> bytes:
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.json")]):
                archive.write(path, path.relative_to(PACKAGE.parent))
        file.seek(0)
        return file.read()


def _stream(spark: SparkSession, kafka: LocalKafka, archive: bytes | None) -> None:
    """Read the topic once. Spark's processes take pyspark from the archive, if there is one."""
    ARCHIVE.unlink(missing_ok=True)
    if archive is not None:
        ARCHIVE.write_bytes(archive)
    rows = (
        spark.readStream.format("pykafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .load()
    )
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()


if __name__ == "__main__":
    main()
