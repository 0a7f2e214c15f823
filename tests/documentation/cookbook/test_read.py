"""The recipes of reading, on records as the field has them: late, missing, out of order."""

import ast
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from spark_kafka_source import KafkaAdmin, KafkaProducer, TopicPartition
from spark_kafka_source.testing import LocalKafka
from tests.documentation.pages import Block, recipe
from tests.documentation.running import Runner
from tests.exactly_once.judge import wait_for_markers
from tools.traffic import Writer, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

FOREVER = {"retention.ms": "-1"}
"""The records of these tests have times of long ago."""


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def _write(
    kafka: LocalKafka, topic: str, records: Sequence[tuple[str, str]], partition: int = 0
) -> None:
    """Write records of a time and a text, in this order."""
    with Writer(kafka.bootstrap_servers) as writer:
        for at, text in records:
            writer.queue(topic, text.encode(), partition=partition, timestamp_ms=_ms(at))


def _texts(session: SparkSession, path: Path) -> list[str]:
    """Return the values in a Parquet table, sorted."""
    rows = session.read.parquet(str(path)).selectExpr("CAST(value AS STRING) AS text").collect()
    return sorted(row.text for row in rows)


def test_backfill_a_day(
    session: SparkSession, kafka: LocalKafka, runner: Runner, tmp_path: Path
) -> None:
    topic = runner.name("events")
    kafka.create_topic(topic, partitions=4, configs=FOREVER)
    out_of_order = [
        ("2026-05-03T23:59:59.999", "the day before"),
        ("2026-05-04T00:00:00.000", "the first moment"),
        ("2026-05-03T22:00:00.000", "of the day before, among the day's"),
        ("2026-05-05T00:00:00.000", "the next day"),
        ("2026-05-04T23:59:59.999", "the last moment, behind the next day"),
        ("2026-05-05T06:00:00.000", "the margin's end"),
        ("2026-05-04T12:00:00.000", "later than the margin"),
    ]
    _write(kafka, topic, out_of_order, 0)
    _write(kafka, topic, [("2026-05-01T00:00:00", "only older ones")], 1)
    _write(kafka, topic, [("2026-05-04T10:00:00", "nothing after it")], 2)  # 3 has no record.
    (block,) = recipe("read.md", "Backfill a day")
    for _ in range(2):  # The second run replaces the rows of the first.
        runner.run(block)
        assert _texts(session, tmp_path / "backfill/day=2026-05-04") == [
            "nothing after it",
            "the first moment",
            "the last moment, behind the next day",
        ]


def test_a_backfill_without_an_end_misses_no_late_record(
    session: SparkSession, kafka: LocalKafka, runner: Runner, tmp_path: Path
) -> None:
    topic = runner.name("events")
    kafka.create_topic(topic, configs=FOREVER)
    records = [("2026-05-04T01:00:00", "in time"), ("2099-01-01T00:00:00", "a wrong clock")]

    def is_written(*more: tuple[str, str]) -> bool:
        try:
            _write(kafka, topic, more)
        except KafkaException as error:
            assert "INVALID_TIMESTAMP" in str(error)
            return False
        return True

    assert is_written(records[0])
    assert not is_written(records[1])  # A broker of Kafka 4 refuses it. Older ones do not.
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        changed = {"message.timestamp.after.max.ms": str(2**63 - 1)}
        admin.alter_configs({topic: changed})
    wait_until(lambda: is_written(records[1]))  # The broker hears of the change soon after.
    assert is_written(("2026-05-04T02:00:00", "behind the wrong clock"))
    (block,) = recipe("read.md", "Backfill a day")
    runner.run(block)
    day = tmp_path / "backfill/day=2026-05-04"
    assert _texts(session, day) == ["in time"]
    ending = next(line for line in block.source.splitlines() if "endingTimestamp" in line)
    runner.replace({ending + "\n": ""})
    runner.run(block)
    assert _texts(session, day) == ["behind the wrong clock", "in time"]


ORDERS: list[dict[str, Any]] = [
    {"id": number, "user": f"user-{number % 3}", "amount": number / 2} for number in range(12)
]


def test_a_topic_into_polars_and_duckdb(kafka: LocalKafka, runner: Runner, tmp_path: Path) -> None:
    topic = runner.name("events")
    kafka.create_topic(topic, partitions=2)
    with Writer(kafka.bootstrap_servers) as writer:
        for order in ORDERS:
            writer.queue(topic, json.dumps(order).encode(), partition=order["id"] % 2)
        writer.queue(topic, None)  # A tombstone is a row whose fields are null.
        eight_days_ago = int((time.time() - 8 * 86_400) * 1000)
        writer.queue(topic, b'{"id": -1}', partition=1, timestamp_ms=eight_days_ago)
    for block in recipe("read.md", "A topic into pandas, Polars, DuckDB"):
        runner.run(block)
    runner.run(block)  # The second run replaces the table.
    # The old record stands behind newer ones: a time stands for an offset.
    ids = [*range(0, 12, 2), None, *range(1, 12, 2), -1]
    assert runner.variable("week")["value"].combine_chunks().field("id").to_pylist() == ids
    by_row = runner.variable("by_row")
    assert by_row.columns == ["partition", "offset", "timestamp", "id", "user", "amount"]
    assert by_row["id"].to_list() == ids
    sums: dict[str | None, float | None] = {None: None}
    sums |= {f"user-{n}": sum(each["amount"] for each in ORDERS[n::3]) for n in range(3)}
    assert dict(runner.variable("by_user").fetchall()) == sums
    records = 'SELECT partition, "offset", decode(value) FROM events ORDER BY ALL'
    found = runner.variable("database").sql(records).fetchall()
    assert [(row[0], row[1]) for row in found] == [(n, m) for n in range(2) for m in range(7)]
    assert [row[2] and json.loads(row[2])["id"] for row in found] == ids


def test_replay_from_a_time(
    session: SparkSession, kafka: LocalKafka, runner: Runner, tmp_path: Path
) -> None:
    topic = runner.name("events")
    kafka.create_topic(topic, partitions=2, configs=FOREVER)
    out_of_order = ["12:00:00 a", "13:00:00 b", "12:30:00 c", "14:00:00 d"]
    _write(kafka, topic, [(f"2026-05-04T{each[:8]}", each[9:]) for each in out_of_order])
    _write(kafka, topic, [("2026-05-04T10:00:00", "only older ones")], 1)
    replay, command = recipe("read.md", "Replay from a time")

    # The query that ran until now: from the earliest offset, into the old folder.
    old = {
        '"startingTimestamp", "2026-05-04T13:00:00Z"': '"startingOffsets", "earliest"',
        """.where("timestamp >= '2026-05-04T13:00:00Z'")""": "",
        '"startingOffsetsByTimestampStrategy", "latest"': '"kafka.group.id", "billing"',
        "events-2": "events",
    }
    _run_as(runner, replay, old)
    everything = ["a", "b", "c", "d", "only older ones"]
    assert _texts(session, tmp_path / "events") == everything

    runner.run(replay)
    _stop(session)
    assert _texts(session, tmp_path / "events-2") == ["b", "d"]

    # On its old checkpoint a query does not look at the time.
    _run_as(
        runner,
        replay,
        {'"/data/checkpoints/events-2"': '"/data/checkpoints/events"'}
        | {'"/data/events-2"': '"/data/events"'},
    )
    assert _texts(session, tmp_path / "events") == everything
    # With a new checkpoint and the old folder nothing is written, and nothing fails.
    _run_as(
        runner, replay, {'"/data/events-2"': '"/data/events"'} | {"checkpoints/events-2": "new"}
    )
    assert _texts(session, tmp_path / "events") == everything

    # The group's offsets, moved by the command, are where a new query begins.
    group, other = runner.name("billing"), TopicPartition(runner.name("clicks"), 0)
    kafka.create_topic(other.topic)
    _write(kafka, other.topic, [("2026-05-04T10:00:00", "another topic's")])
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.reset_offsets(group, {other: 0}, dry_run=False)
        show, move = command.source.splitlines()
        assert move == show.replace("billing", "billing --execute")
        before = admin.list_group_offsets(group)
        runner.run(replace(command, source=show))
        assert admin.list_group_offsets(group) == before
        runner.run(replace(command, source=move))
        after = admin.list_group_offsets(group)
    assert after != before
    assert after[other] == before[other]
    committed = {
        '"startingTimestamp", "2026-05-04T13:00:00Z"': '"startingOffsets", "committed"',
        '"startingOffsetsByTimestampStrategy", "latest"': '"kafka.group.id", "billing"',
        """.where("timestamp >= '2026-05-04T13:00:00Z'")""": "",
        "events-2": "events-3",
    }
    _run_as(runner, replay, committed)
    assert _texts(session, tmp_path / "events-3") == ["b", "c", "d"]


def _run_as(runner: Runner, block: Block, texts: dict[str, str]) -> None:
    """Run a block with other texts, and stop its stream."""
    source = block.source
    for found, put in texts.items():
        assert found in source, found
        source = source.replace(found, put)
    runner.run(replace(block, source=source))
    _stop(runner.variable("spark"))


def _stop(session: SparkSession) -> None:
    for query in session.streams.active:
        query.stop()


def test_read_only_what_is_new_every_hour(
    session: SparkSession, kafka: LocalKafka, runner: Runner, tmp_path: Path
) -> None:
    topic = runner.name("events")
    kafka.create_topic(topic, partitions=2)
    table = tmp_path / "events-hourly"
    job, dag = recipe("read.md", "Read only what is new, every hour, from Airflow")

    def write(*texts: str) -> None:
        with Writer(kafka.bootstrap_servers) as writer:
            for number, text in enumerate(texts):
                writer.queue(topic, text.encode(), partition=number % 2)

    write("1", "2", "3")
    script = tmp_path / "jobs/hourly.py"
    script.parent.mkdir()
    script.write_text(runner.source(job))
    assert _submitted(_command(dag).replace("/jobs/", f"{script.parent}/"), tmp_path) == 0
    assert _texts(session, table) == ["1", "2", "3"]
    runner.run(job)  # Cleared, to run again.
    assert _texts(session, table) == ["1", "2", "3"]
    # What a batch adds to the folder of a stream is there, and no reader sees it.
    session.read.parquet(str(table)).write.mode("append").parquet(str(table))
    assert _texts(session, table) == ["1", "2", "3"]
    write("4", "5")
    write("6")  # Of a run that was missed.
    runner.run(job)
    assert _texts(session, table) == ["1", "2", "3", "4", "5", "6"]

    write("lost", "kept")
    kafka.delete_records({TopicPartition(topic, 0): -1})
    with pytest.raises(StreamingQueryException, match=r"KAFKA_DATA_LOSS"):
        runner.run(job)
    assert _texts(session, table) == ["1", "2", "3", "4", "5", "6"]


def _command(dag: Block) -> str:
    """Return the command of the DAG's only task."""
    (command,) = (
        each.value.value
        for each in ast.walk(ast.parse(dag.source))
        if isinstance(each, ast.keyword)
        and each.arg == "bash_command"
        and isinstance(each.value, ast.Constant)
    )
    assert isinstance(command, str)
    return command


def _submitted(command: str, directory: Path) -> int:
    """Run a `spark-submit` with a small and silent Spark. Return its exit code."""
    (directory / "conf").mkdir()
    settings = "spark.master local[1]\nspark.ui.enabled false\nspark.log.level OFF\n"
    (directory / "conf/spark-defaults.conf").write_text(settings)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "SPARK_CONF_DIR": str(directory / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    arguments = shlex.split(command)
    return subprocess.run(arguments, env=environment, timeout=300, check=False).returncode


def test_limit_a_first_run(
    kafka: LocalKafka, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = runner.name("events")
    kafka.create_topic(topic, partitions=3)
    with Writer(kafka.bootstrap_servers) as writer:
        for number in range(120):
            writer.queue(topic, str(number).encode(), partition=min(number // 50, 1))
    (block,) = recipe("read.md", "Limit a first run")
    runner.replace({"100_000": "50"})
    runner.run(block)
    batches = [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert sum(batches) == 120
    assert len(batches) == 3
    assert max(batches) <= 50  # Each partition's share is rounded down.
    with Writer(kafka.bootstrap_servers) as writer:
        writer.write(topic, range(10))
    # Another limit, on the same checkpoint, and as Spark 4.0 and 4.1 need it.
    other = {
        "100_000": "5",
        ".trigger(availableNow=True)": "",
        "awaitTermination()": "processAllAvailable(); query.stop()",
    }
    _run_as(runner, block, other)
    batches = [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert batches == [5, 5]


def test_look_into_a_topic(
    kafka: LocalKafka, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = runner.name("events")
    kafka.create_topic(topic, partitions=2, configs=FOREVER)
    old = [(f"2026-05-04T10:00:{second:02}", f"value {second}") for second in (30, 0, 59)]
    _write(kafka, topic, old)
    transactional = KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, transactional_id=runner.name("billing")
    )
    with transactional as producer:
        producer.init_transactions()
        producer.begin_transaction()
        at = _ms("2026-05-04T11:00:00")
        producer.send(topic, b"value 60", partition=0, timestamp_ms=at)
        producer.commit_transaction()
    assert not wait_for_markers(kafka.bootstrap_servers, topic, 2)
    tail, count = recipe("read.md", "Look into a topic")
    runner.run(tail)
    shown = capsys.readouterr().out
    assert [f"value {second}" in shown for second in (30, 0, 59, 60)] == [True] * 4
    runner.run(count)
    # The end of the transaction takes an offset, and is no record. An empty partition has no row.
    rows = [line.strip("|").split("|") for line in capsys.readouterr().out.splitlines()[3:-2]]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["0", "4", "2026-05-04 10:00:00", "2026-05-04 11:00:00"]
    ]
