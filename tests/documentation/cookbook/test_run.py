"""The recipes of `docs/cookbook/run.md`: what a person who follows them sees."""

import ast
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source import KafkaAdmin, Secret
from spark_kafka_source.testing import LocalKafka, Security
from spark_kafka_source.testing.ports import free_ports
from tests.documentation.pages import PROJECT, Block, recipe
from tests.documentation.running import Runner
from tools.ports import LOOPBACK
from tools.traffic import Events, failure, stream, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

_TESTS_SECONDS = 300
_PASSWORD = "correct-horse-battery"


def created(runner: Runner, kafka: LocalKafka, partitions: int = 2) -> Events:
    """Create the recipe's topic of events."""
    events = Events(kafka, runner.name("events"))
    events.create(partitions, retention_ms="-1")  # Some records have times of long ago.
    return events


def numbers(directory: Path) -> list[int]:
    """Return the micro-batches of a log of a checkpoint."""
    return sorted(int(path.name) for path in directory.glob("*") if path.name.isdigit())


class Saving:
    """A sink of a stream that takes its time. It keeps the values of the micro-batches."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begun: list[str] = []
        self.ended: list[str] = []

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        values = [bytes(row.value).decode() for row in rows.collect()]
        self.begun += values
        time.sleep(self._seconds)
        self.ended += values


@pytest.fixture
def handler() -> Iterator[None]:
    """Put this process's handler of SIGTERM back."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("asked_by", ["file", "signal"])
def test_a_query_stops_after_its_micro_batch(
    runner: Runner, session: SparkSession, kafka: LocalKafka, tmp_path: Path, asked_by: str
) -> None:
    (block,) = recipe("run.md", "Stop a query between two micro-batches")
    runner.replace({"10 seconds": "4 seconds"})
    events, saving = created(runner, kafka), Saving(1.5)
    group = {"kafka.group.id": runner.name("billing")}
    orders = stream(session, events.options(**group))
    checkpoint = tmp_path / "checkpoints" / "orders-saved"
    events.write("abc")

    # A plain stop breaks a micro-batch off: it has begun, and is not noted down.
    slow = orders.select(udf(lambda _: time.sleep(60), useArrow=False)("value"))
    broken = slow.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    wait_until((checkpoint / "offsets" / "0").exists, broken)
    broken.stop()
    assert numbers(checkpoint / "commits") == []

    def ask() -> None:
        try:
            wait_until(lambda: numbers(checkpoint / "commits") == [0])
            events.write("de")
            wait_until(lambda: "e" in saving.begun)
        finally:  # Without this the block would wait for ever.
            if asked_by == "file":
                (tmp_path / "stop-orders").touch()
            else:
                os.kill(os.getpid(), signal.SIGTERM)

    runner.set(orders=orders, save=saving)
    asking = threading.Thread(target=ask)
    asking.start()
    runner.run(block)
    asking.join()
    assert not runner.variable("query").isActive
    assert numbers(checkpoint / "offsets") == numbers(checkpoint / "commits")
    assert saving.ended == saving.begun == list("abcde")
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:

        def lag() -> int | None:
            return admin.group_lag(runner.name("billing")).total

        # Was there a trigger after the last micro-batch? If not, the group is behind by it.
        assert lag() in range(len("de") + 1)
        again = orders.writeStream.foreachBatch(saving)
        query = again.option("checkpointLocation", str(checkpoint)).start()
        wait_until(lambda: lag() == 0, query)
        query.stop()
    assert saving.begun == list("abcde")


def test_a_query_that_makes_no_pause_stops_at_the_deadline(
    runner: Runner, session: SparkSession, kafka: LocalKafka, tmp_path: Path
) -> None:
    (block,) = recipe("run.md", "Stop a query between two micro-batches")
    runner.replace({"+ 300": "+ 1", "signal.signal": "# signal.signal"})
    events = created(runner, kafka)
    events.write("abc")
    checkpoint = tmp_path / "checkpoints" / "orders-saved"

    def save(rows: DataFrame, batch_id: int) -> None:
        slow = rows.select(udf(lambda _: time.sleep(_TESTS_SECONDS), useArrow=False)("value"))
        slow.write.format("noop").mode("append").save()

    def ask() -> None:
        try:
            wait_until((checkpoint / "offsets" / "0").exists)
        finally:
            (tmp_path / "stop-orders").touch()

    runner.set(orders=stream(session, events.options()), save=save)
    asking = threading.Thread(target=ask)
    asking.start()
    runner.run(block)
    asking.join()
    assert not runner.variable("query").isActive
    assert numbers(checkpoint / "offsets") == [0]
    assert numbers(checkpoint / "commits") == []


def test_queries_share_a_group(
    runner: Runner, session: SparkSession, kafka: LocalKafka, tmp_path: Path
) -> None:
    (block,) = recipe("run.md", "Run several queries in one group")
    events = created(runner, kafka, partitions=4)
    written = 0

    def write() -> None:
        nonlocal written
        for partition in range(4):
            events.write([written], partition)
            written += 1

    def rows(name: str) -> list[int]:
        """Return the rows of the micro-batches that are done."""
        path = tmp_path / "events-shared" / name
        # Without its metadata Spark would read files that are not whole yet.
        if not (path / "_spark_metadata").is_dir():
            return []
        # With a schema Spark needs no file to find one in.
        found = session.read.schema("value STRING").parquet(str(path))
        return [int(row.value) for row in found.collect()]

    write()
    runner.run(block)
    first = runner.variable("query")
    # Until the group has divided the partitions, a query has nothing to read.
    wait_until(lambda: sorted(rows("first")) == [0, 1, 2, 3], first)
    second = runner.variable("share")("second")

    def is_shared() -> bool:
        write()
        time.sleep(0.5)
        return rows("second") != []

    wait_until(is_shared, second)
    wait_until(lambda: {*rows("first"), *rows("second")} == {*range(written)}, second)
    assert len(rows("first")) + len(rows("second")) == written
    first.stop()
    write()
    wait_until(lambda: {*rows("first"), *rows("second")} == {*range(written)}, second)
    again = Counter(rows("first") + rows("second")) - Counter(range(written))
    # The group does not know the last micro-batch of a query that stops, unless it was idle since.
    assert again.total() <= max(each["numInputRows"] for each in first.recentProgress)


def test_the_files_of_tests_pass(tmp_path: Path) -> None:
    (in_memory,) = recipe("run.md", "Test a query with a Kafka in memory")
    (on_a_broker,) = recipe("run.md", "Test a query on a real broker")
    for name in ("conftest.py", "test_paid.py"):
        (tmp_path / name).write_text(in_memory.source)
    (tmp_path / "test_headers.py").write_text(on_a_broker.source)
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith("PYSPARK")
    }
    environment["PYTHONPATH"] = str(PROJECT)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
        timeout=_TESTS_SECONDS,
    )
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "2 passed" in ran.stdout


def test_a_password_from_a_secret_scope_is_seen_nowhere(
    runner: Runner, session: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (block,) = recipe("run.md", "Take a password from a secret scope")
    with LocalKafka(security=Security({"alice": _PASSWORD})) as kafka:
        events = Events(kafka, runner.name("events"))
        events.create()
        events.write("ab")
        runner.replace(
            {
                "broker:9093": kafka.bootstrap_servers_of("SASL_SSL"),
                "/etc/kafka/ca.pem": str(kafka.authority.certificate),
            }
        )
        scopes = {("kafka", "password"): _PASSWORD}
        secrets = SimpleNamespace(get=lambda scope, key: scopes[scope, key])
        runner.set(dbutils=SimpleNamespace(secrets=secrets))

        def run() -> StreamingQuery:
            runner.run(block)
            frame = runner.variable("events").selectExpr("CAST(value AS STRING) AS value")
            writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
            writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
            query: StreamingQuery = writer.trigger(availableNow=True).start()
            return query

        query = run()
        query.awaitTermination()
        query.explain(True)
        kafka.add_scram_user("alice", Secret(f"{_PASSWORD}-2"))
        events.write("c")
        wrong = failure(run())
        assert "refuses the credentials" in wrong
        file = tmp_path / "password"
        file.write_text(f"{_PASSWORD}-2\n")
        scopes["kafka", "password"] = file.read_text()
        with pytest.raises(Exception, match=r"'kafka\.sasl\.password': ends with a newline"):
            runner.run(block)
        source = re.search(r"`Path\(.*?`", block.page.read_text())
        assert source is not None
        expression = source[0].strip("`").replace("/etc/secrets/password", str(file))
        scopes["kafka", "password"] = eval(expression, {"Path": Path})  # our own page
        run().awaitTermination()
        rows = session.read.parquet(str(tmp_path / "rows")).collect()
        assert sorted(row.value for row in rows) == ["a", "b", "c"]
    file.unlink()
    shown = capfd.readouterr()
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert _PASSWORD not in shown.out + shown.err + wrong
    assert not any(_PASSWORD.encode() in each for each in written)


@pytest.fixture
def exporters(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The HTTP servers that a recipe starts, on a free port of the loopback interface."""
    servers: list[Any] = []
    start = prometheus_client.start_http_server

    def on_loopback(port: int) -> Any:
        assert port == 9404
        (free,) = free_ports(1)
        servers.append(start(free, LOOPBACK))
        return servers[-1]

    monkeypatch.setattr(prometheus_client, "start_http_server", on_loopback)
    yield servers
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


def test_prometheus_gets_what_the_dashboard_shows_of_queries(
    runner: Runner, session: SparkSession, kafka: LocalKafka, exporters: list[Any]
) -> None:
    (block,) = recipe("run.md", "Show metrics in Grafana")
    topic = created(runner, kafka)
    topic.write("abc", 0)
    topic.write("de", 1)
    runner.set(events=stream(session, topic.options(maxOffsetsPerTrigger=2)))
    runner.run(block)
    dashboard = (PROJECT / "conf" / "grafana-dashboard.json").read_text()
    asked = set(re.findall(r"pykafka_query_\w+", dashboard))
    ((server, _),) = exporters

    def found() -> dict[str, dict[str, float]]:
        address = f"http://{LOOPBACK}:{server.server_port}/metrics"
        with urllib.request.urlopen(address, timeout=60) as answer:
            families = text_string_to_metric_families(answer.read().decode())
        return {
            family.name: {
                each.labels.get("partition", ""): each.value
                for each in family.samples
                if each.labels["query"] == runner.name("billing")
            }
            for family in families
            if family.name in asked
        }

    wait_until(lambda: found().get("pykafka_query_lag_records") == {"0": 0, "1": 0})
    assert found().keys() == asked
    assert all(found().values())


def lags(text: str) -> dict[int, dict[str, int]]:
    """Return the lag of each partition that the recipe prints, by micro-batch."""
    found = re.findall(r"^lag of (\d+) (\{.*\})$", text, re.MULTILINE)
    return {int(number): ast.literal_eval(lag) for number, lag in found}


def test_growing_lag_shows_its_cause(
    runner: Runner,
    session: SparkSession,
    kafka: LocalKafka,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (block,) = recipe("run.md", "Find out why lag grows")
    events = created(runner, kafka)
    events.write(range(20), 0)
    events.write(range(400), 1)

    def run(frame: DataFrame, save: Any, name: str, **trigger: Any) -> StreamingQuery:
        writer = frame.writeStream.foreachBatch(save).trigger(**trigger)
        query = writer.option("checkpointLocation", str(tmp_path / name)).start()
        runner.set(query=query)
        return query

    def run_recipe() -> None:
        runner.execute(block)
        listeners.append(runner.variable("listener"))

    def shown(query: StreamingQuery, batches: int) -> list[Any]:
        """Run the recipe after some micro-batches. Return the progress."""
        wait_until(lambda: len(query.recentProgress) >= batches, query)
        seen = list(query.recentProgress)
        run_recipe()
        return seen

    listeners: list[Any] = []

    # A limit: the rows are few each time, and one partition is behind. How long a micro-batch takes
    # is a matter of the machine; what the figures count is not.
    frame = stream(session, events.options(maxOffsetsPerTrigger=6))
    limited = run(frame, Saving(0), "limited", processingTime="4 seconds")
    seen = shown(limited, 3)
    out: list[str] = []

    def is_printed() -> bool:
        out.append(capsys.readouterr().out)
        return lags("".join(out)) != {}

    wait_until(is_printed, limited)
    limited.stop()
    assert re.search(r"^\d+ 6 [\d.]+ \{", "".join(out), re.MULTILINE)
    for number, lag in lags("".join(out)).items():
        assert lag.keys() == {f"{events.name}-0", f"{events.name}-1"}
        assert sum(lag.values()) == 420 - 6 * (number + 1)
        assert lag[f"{events.name}-1"] > lag[f"{events.name}-0"]
    assert [each["numInputRows"] for each in seen] == [6] * len(seen)
    assert all(each["durationMs"]["triggerExecution"] > 0 for each in seen)
    # The 6 rows that were read since the trigger before, not the 420 that arrived.
    begun = [datetime.fromisoformat(each["timestamp"]) for each in seen]
    for each, before, now in zip(seen[1:], begun, begun[1:], strict=False):
        assert 0 < each["inputRowsPerSecond"] * (now - before).total_seconds() < 60

    # A slow sink. Its time is that of `addBatch`.
    slow = run(stream(session, events.options()), Saving(3), "slow", processingTime="0 seconds")
    seen = shown(slow, 1)
    slow.stop()
    took = seen[0]["durationMs"]
    assert 3_000 <= took["addBatch"] <= took["triggerExecution"]

    def dies(rows: DataFrame, batch_id: int) -> None:
        raise ValueError("the table is locked")

    # A query that died.
    dead = run(stream(session, events.options()), dies, "dead", processingTime="0 seconds")
    failure(dead)
    capsys.readouterr()
    run_recipe()
    text = capsys.readouterr().out
    assert re.search("^False .*", text, re.MULTILINE)
    assert "the table is locked" in text
    for listener in listeners:
        session.streams.removeListener(listener)


def test_an_alert_tells_of_lag_and_of_a_death(
    runner: Runner, session: SparkSession, kafka: LocalKafka, tmp_path: Path
) -> None:
    (block,) = recipe("run.md", "Get an alert when a query falls behind or dies")
    events, alerts = created(runner, kafka), list[str]()
    events.write(range(30))
    runner.replace({"100_000": "15"})
    runner.set(alert=alerts.append)
    runner.run(block)

    def save(rows: DataFrame, batch_id: int) -> None:
        if batch_id == 2:
            raise ValueError("the table is locked")

    frame = stream(session, events.options(maxOffsetsPerTrigger=10))
    writer = frame.writeStream.queryName("billing").foreachBatch(save)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    failure(query)
    # After the second micro-batch there are 10. Spark may tell of the death first.
    wait_until(lambda: "billing is 20 records behind" in alerts)
    wait_until(lambda: any(each.startswith(f"{query.id} died: ") for each in alerts))
    (died,) = (each for each in alerts if " died: " in each)
    assert "the table is locked" in died


def test_a_first_run_begins_at_the_offsets_that_the_group_was_given(
    runner: Runner, session: SparkSession, kafka: LocalKafka, tmp_path: Path
) -> None:
    command, query = recipe("run.md", "Set a group's offsets before a first run")
    events = created(runner, kafka)
    six_ms = int(datetime(2026, 1, 1, 6, tzinfo=UTC).timestamp() * 1000)
    for partition in range(2):  # The second one has a record that came too late.
        for name, minutes in (("early", -60), ("at six", 0), ("late", 30), ("behind", -5)):
            events.write([name], partition, timestamp_ms=six_ms + minutes * 60_000)
    events.write(["old"], 1, timestamp_ms=six_ms - 60_000)

    def rows() -> list[str]:
        found = session.read.parquet(str(tmp_path / "events-billing")).collect()
        return sorted(row.value for row in found)

    dry, execute = command.source.splitlines()
    assert execute == dry.replace("billing", "billing --execute")
    runner.run(Block(command.page, command.line, "", dry, None))
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assert runner.name("billing") not in {each.group_id for each in admin.list_groups()}
    runner.run(command)
    runner.run(query)
    expected = sorted(["at six", "late", "behind"] * 2 + ["old"])
    assert rows() == expected
    runner.variable("query").stop()
    runner.run(query)  # The checkpoint counts now.
    assert rows() == expected
