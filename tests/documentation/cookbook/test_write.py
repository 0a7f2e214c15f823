"""The recipes of `docs/cookbook/write.md`: what is in Kafka and in the tables afterwards."""

import json
import re
import subprocess
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from spark_kafka_source.testing import LocalKafka
from tests.documentation.cookbook.delta_driver import DeltaRecipe
from tests.documentation.cookbook.restarts import forget_last_commit
from tests.documentation.pages import DOCS, Block, recipe
from tests.documentation.running import Runner
from tests.spark.sink.written import texts, written
from tools.reliability.child import SparkChild
from tools.traffic import Events, stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

_START_MS = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
_MINUTE_MS = 60_000


def created(runner: Runner, kafka: LocalKafka, name: str, partitions: int = 2) -> Events:
    """Create the recipe's topic of this name."""
    events = Events(kafka, runner.name(name))
    events.create(partitions, retention_ms="-1")  # Some records have times of long ago.
    return events


class Join:
    """The recipe that joins two topics, with records at a minute since the start of a day."""

    def __init__(self, runner: Runner, kafka: LocalKafka, blocks: list[Block]) -> None:
        self._runner, (self._block, self._count) = runner, blocks
        runner.replace({'"payments"': f'"{runner.name("payments")}"'})
        self._orders = created(runner, kafka, "orders")
        self._payments = created(runner, kafka, "payments")
        self._invoices = created(runner, kafka, "invoices")

    def order(self, number: int, minute: int) -> None:
        value = json.dumps({"id": number, "amount": 10 * number})
        self._write(self._orders, number, value, minute)

    def payment(self, number: int, minute: int) -> None:
        value = json.dumps({"order_id": number, "paid": 1.5})
        self._write(self._payments, number, value, minute)

    def start(self) -> None:
        self._runner.run(self._block)

    def go_on(self) -> None:
        """Run micro-batches up to the end of both topics."""
        for _ in range(2):
            self._runner.variable("query").processAllAvailable()

    def stop(self) -> None:
        self._runner.variable("query").stop()

    def count(self) -> None:
        """Print the number of the committed rows."""
        self._runner.execute(self._count)

    @property
    def found(self) -> list[int]:
        """The orders in the topic of invoices."""
        values = [json.loads(each) for each in texts(self._invoices)]
        assert all(each["amount"] == 10 * each["id"] and each["paid"] == 1.5 for each in values)
        return sorted(each["id"] for each in values)

    def of_state(self, name: str) -> list[int]:
        """Return a figure of the join in each micro-batch of this run, oldest first."""
        progresses = self._runner.variable("query").recentProgress
        by_batch = {each["batchId"]: each["stateOperators"][0][name] for each in progresses}
        return [by_batch[each] for each in sorted(by_batch)]

    @staticmethod
    def _write(events: Events, number: int, value: str, minute: int) -> None:
        timestamp_ms = _START_MS + minute * _MINUTE_MS
        events.write([value], partition=number % 2, timestamp_ms=timestamp_ms)


@pytest.fixture
def join(runner: Runner, kafka: LocalKafka) -> Join:
    return Join(runner, kafka, recipe("write.md", "Join two topics and write exactly once"))


def test_the_join_writes_each_pair_in_time_once_and_counts_what_is_late(
    join: Join, session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Without micro-batches that only move the watermark, the last one is that with the pairs.
    session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    for number, ordered, paid in ((1, 0, 5), (2, 10, 41), (3, 20, 50), (4, 30, 29)):
        join.order(number, ordered)
        join.payment(number, paid)
    join.payment(99, 0)
    join.start()
    assert join.found == [1, 3]  # 2 is paid after 31 minutes, and 4 before it is ordered.

    join.stop()
    checkpoint = tmp_path / "checkpoints" / "invoices"
    kept = (checkpoint / "offsets" / "0").read_text()
    assert '"spark.sql.shuffle.partitions":"4"' in kept
    assert forget_last_commit(checkpoint) == 0
    session.conf.unset("spark.sql.streaming.noDataMicroBatches.enabled")
    join.start()
    assert join.found == [1, 3]

    join.order(5, 600)
    join.go_on()
    join.payment(2, 35)  # Nobody paid since, so it is not late.
    join.go_on()
    assert join.found == [1, 2, 3]
    assert sum(join.of_state("numRowsDroppedByWatermark")) == 0
    total = join.of_state("numRowsTotal")[-1]

    join.payment(5, 601)
    join.go_on()
    assert join.of_state("numRowsTotal")[-1] < total
    join.payment(1, 7)
    join.order(1, 0)
    join.go_on()
    assert join.found == [1, 2, 3, 5]
    capsys.readouterr()
    join.count()
    assert capsys.readouterr().out == "4\n"
    assert sum(join.of_state("numRowsDroppedByWatermark")) == 2


@pytest.mark.skipif(
    not pyspark.__version__.startswith("4.2."), reason="this release of Delta Lake is for Spark 4.2"
)
def test_a_stream_into_delta_lake_has_each_row_once(
    runner: Runner, kafka: LocalKafka, tmp_path: Path
) -> None:
    (block,) = recipe("write.md", "Write a stream into Delta Lake")
    created(runner, kafka, "orders")
    runs = [
        ['{"id": 1, "amount": 0.5}', '{"id": 2}', '{"amount": 3, "id": 3, "more": []}'],
        ['{"id": 4, "amount": null}', '{"id": 1, "amount": 0.5}'],
    ]
    suffix = runner.name("")[1:]
    wanted = DeltaRecipe(block.source, kafka.bootstrap_servers, suffix, str(tmp_path), runs)
    with closing(SparkChild("tests.documentation.cookbook.delta_driver")) as child:
        assert child.run(wanted.to_json()) == 0
    rows = json.loads((tmp_path / "rows.json").read_text())
    found = sorted((row["partition"], row["offset"], row["id"], row["amount"]) for row in rows)
    assert found == [
        (0, 0, 1, 0.5),
        (0, 1, 3, 3.0),
        (0, 2, 4, None),
        (1, 0, 2, None),
        (1, 1, 1, 0.5),
    ]
    assert all(abs(row["timestamp"] - datetime.now(UTC).timestamp()) < 600 for row in rows)


def test_a_dataframe_becomes_records(
    runner: Runner, session: SparkSession, kafka: LocalKafka
) -> None:
    create, block = recipe("write.md", "Write a DataFrame into a topic")
    runner.run(create)
    orders = Events(kafka, runner.name("orders"))
    orders.partitions = 2
    rows = [(1, 9.5), (2, None), (-3, 0.0), (None, 1.0)]
    runner.set(df=session.createDataFrame(rows, "id BIGINT, amount DOUBLE"))
    runner.run(block)
    found = {each.key: each for each in written(orders)}
    assert {key: json.loads(each.value or b"") for key, each in found.items()} == {
        b"1": {"id": 1, "amount": 9.5},
        b"2": {"id": 2, "amount": None},
        b"-3": {"id": -3, "amount": 0.0},
        None: {"id": None, "amount": 1.0},
    }
    assert {each.partition for key, each in found.items() if key in {b"1", b"-3"}} == {1}
    assert found[b"2"].partition == 0
    assert all(
        each.headers == [("source", runner.name("billing").encode())] for each in found.values()
    )
    too_far = replace(block, source=block.source.replace("pmod(id, 2)", "2"))
    with pytest.raises(PythonException, match="UnencodableRowError"):
        runner.run(too_far)


@pytest.mark.peer
def test_a_query_moves_from_kafka_and_back_and_has_each_row_once(
    runner: Runner, session: SparkSession, kafka: LocalKafka, tmp_path: Path
) -> None:
    query, command = recipe("write.md", 'Move a running query from `format("kafka")` and back')
    ours = query.source
    theirs = ours.replace("pykafka", "kafka")
    last = ours.replace(".start()", ".trigger(availableNow=True).start()")
    events = created(runner, kafka, "events")
    checkpoint = tmp_path / "checkpoints" / "events-moved"
    values: list[str] = []

    def run(source: str) -> None:
        for partition in range(2):
            value = f"{len(values)}"
            values.append(value)
            events.write([value], partition)
        runner.run(Block(query.page, query.line, "python", source, None))
        runner.variable("query").stop()

    run(theirs)
    run(theirs)
    forget_last_commit(checkpoint)
    run(ours)
    forget_last_commit(checkpoint)
    with pytest.raises(subprocess.CalledProcessError):  # The last micro-batch is not finished.
        runner.run(command)
    run(last)
    runner.run(command)
    run(theirs)
    forget_last_commit(checkpoint)
    run(ours)
    rows = session.read.parquet(str(tmp_path / "events-moved")).collect()
    found = sorted((row.partition, row.offset, row.value) for row in rows)
    assert found == sorted((n % 2, n // 2, value) for n, value in enumerate(values))


@pytest.mark.peer
def test_the_options_to_take_out_are_ignored_by_kafka(
    runner: Runner, session: SparkSession, kafka: LocalKafka
) -> None:
    table = (DOCS / "moving.md").read_text().partition("take out the options")[2]
    named = set(re.findall(r"`([\w.]+)`", table))
    ours: dict[str, Any] = {
        "deliveryGuarantee": "exactly-once",
        "value.format": "json",
        "value.schema": "id BIGINT",
        "badRecords": "skip",
        "managedGroup": "true",
        "maxBytesPerTrigger": "1",
    }
    assert ours.keys() <= named
    events = created(runner, kafka, "events")
    events.write(['{"id": 1}', "no JSON"])
    reader = session.read.format("kafka").options(**events.options(**ours)).load()
    assert dict(reader.dtypes)["value"] == "binary"
    assert [bytes(row.value) for row in reader.collect()] == [b'{"id": 1}', b"no JSON"]
    invoices = created(runner, kafka, "invoices")
    writer = reader.select("value").write.format("kafka").options(**ours, topic=invoices.name)
    writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers).save()
    assert sorted(texts(invoices)) == ["no JSON", '{"id": 1}']


def test_both_places_have_each_row_once(
    runner: Runner, session: SparkSession, kafka: LocalKafka, tmp_path: Path
) -> None:
    (block,) = recipe("write.md", "Write the same rows to two places")
    orders, invoices = (created(runner, kafka, name) for name in ("orders", "invoices"))
    more: dict[str, Any] = {"maxOffsetsPerTrigger": 3}
    runner.set(orders=stream(session, orders.options(**more)))

    def found() -> tuple[list[str], list[str]]:
        rows = session.read.parquet(str(tmp_path / "orders-both")).collect()
        return sorted(bytes(row.value).decode() for row in rows), texts(invoices)

    orders.write("abcd", 0)
    orders.write("efg", 1)
    runner.run(block)
    runner.variable("query").stop()
    assert found() == (list("abcdefg"), list("abcdefg"))

    forget_last_commit(tmp_path / "checkpoints" / "orders-both")
    runner.run(block)
    assert found() == (list("abcdefg"), list("abcdefg"))
    runner.variable("query").stop()

    orders.write(["x" * 200, "h"], 0)
    refusing = block.source.replace(
        '.mode("append")', '.option("kafka.max.request.size", 150).mode("append")'
    )
    with pytest.raises(Exception, match=r"kafka\.max\.request\.size"):
        runner.run(Block(block.page, block.line, "python", refusing, None))
    runner.run(block)
    everything = sorted([*"abcdefgh", "x" * 200])
    assert found() == (everything, everything)
