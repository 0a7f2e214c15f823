"""A driver whose query is a member of a group: `python -m tests.reliability.group_driver`.

Reads what it is to do as a line of JSON, and goes on until its standard input ends; then it stops
its query. Rows go to files, by Spark's file sink: each row is in them once for each query.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import spark_kafka_source
from tests.reliability.driver import session

ROWS = "rows"


@dataclass(frozen=True, slots=True)
class GroupOrders:
    """What the driver does; `directory` has its rows and its checkpoint."""

    options: dict[str, str]
    directory: str

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Range:
    """What one micro-batch read of one partition: the first offset, and the one after the last."""

    batch_id: int
    first: int
    end: int


def ranges_of(directory: Path) -> dict[int, list[Range]]:
    """What the query in this directory has read, by partition and in the order of its batches."""
    found: dict[int, list[Range]] = {}
    log = directory / ROWS / "_spark_metadata"
    names = [each for each in log.iterdir() if each.name[0].isdigit()] if log.exists() else []
    for path in sorted(names, key=lambda each: int(each.name.partition(".")[0])):
        if path.name.endswith(".compact"):
            found = {}  # It has all before it, and says of none in which batch it was.
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
    # So that no file of the sink's log takes several batches together.
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
