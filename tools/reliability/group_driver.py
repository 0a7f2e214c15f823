"""A driver whose query is a member of a group: `python -m tools.reliability.group_driver`.

It reads its orders as a line of JSON, and goes on until its standard input ends. Then it stops its
query. Rows go to Spark's file sink: each row is in the files once for each query.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import spark_kafka_source
from tools.reliability.driver import session

ROWS = "rows"


@dataclass(frozen=True, slots=True)
class GroupOrders:
    """The orders of a driver. `directory` has its rows and its checkpoint."""

    options: dict[str, str]
    directory: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of one partition in one micro-batch. `end` is the offset after the last one."""

    batch_id: int
    first: int
    end: int


def ranges_of(directory: Path) -> dict[int, list[Range]]:
    """Return the ranges that a query has read, by partition and in the order of its batches."""
    found: dict[int, list[Range]] = {}
    log = directory / ROWS / "_spark_metadata"
    names = [each for each in log.iterdir() if each.name[0].isdigit()] if log.exists() else []
    for path in sorted(names, key=lambda each: int(each.name.partition(".")[0])):
        if path.name.endswith(".compact"):
            found = {}  # The file has all files before it, but not their batches.
        offsets: dict[int, list[int]] = {}
        for line in path.read_text().splitlines()[1:]:
            path_of_rows = Path(json.loads(line)["path"].removeprefix("file://"))
            for row in path_of_rows.read_text().splitlines():
                read = json.loads(row)
                offsets.setdefault(read["partition"], []).append(read["offset"])
        batch_id = int(path.name.partition(".")[0])
        for partition, read in offsets.items():
            for first, end in _runs(sorted(read)):
                found.setdefault(partition, []).append(Range(batch_id, first, end))
    return found


def _runs(offsets: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for offset in offsets:
        if runs and runs[-1][1] == offset:
            runs[-1] = runs[-1][0], offset + 1
        else:
            runs.append((offset, offset + 1))
    return runs


def main() -> None:
    spark = session("local[1]")
    # The sink's log must keep one file per batch.
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "100000")
    spark_kafka_source.register(spark)
    orders = GroupOrders(**json.loads(sys.stdin.readline()))
    query = (
        spark.readStream.format("pykafka")
        .options(**orders.options)
        .load()
        .select("partition", "offset")
        .writeStream.format("json")
        .option("path", str(Path(orders.directory, ROWS)))
        .option("checkpointLocation", str(Path(orders.directory, "checkpoint")))
        .start()
    )
    sys.stdin.read()
    failed = query.exception()
    query.stop()
    spark.stop()
    if failed is not None:
        Path(orders.directory, "failed").write_text(str(failed))
    os._exit(failed is not None)


if __name__ == "__main__":
    main()
