"""The page on monitoring: its code feeds Prometheus, and its dashboard knows the names."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import spark_kafka_source
from spark_kafka_source import KafkaProducer
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.ports import free_ports
from tests.documentation.pages import DOCS, PROJECT, blocks
from tests.documentation.running import Runner
from tools.ports import LOOPBACK
from tools.traffic import Events, failure, stream, wait_until

PAGE = DOCS / "monitoring.md"
DASHBOARD = PROJECT / "conf" / "grafana-dashboard.json"
_NAME = re.compile(r"\bpykafka_(?:query|consumer|producer)_\w+")
_ROWS = 120
_IN_TIME_SECONDS = 60.0


@pytest.fixture(scope="module")
def page(spark: SparkSession, kafka: LocalKafka, tmp_path_factory: Any) -> Iterator[Runner]:
    """Run the page, with a query that has read all records."""
    session = spark.newSession()
    # The page's query tells that it is idle as often as this.
    session.conf.set("spark.sql.streaming.noDataProgressEventInterval", "300")
    spark_kafka_source.register(session)
    kafka.create_topic("events-monitoring", partitions=2)
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(_ROWS):
            producer.send("events-monitoring", b"x", partition=number % 2)
    (port,) = free_ports(1)
    texts = {
        "localhost:9092": kafka.bootstrap_servers,
        "9404": f"{port}, '{LOOPBACK}'",
        '"/': f'"{tmp_path_factory.mktemp("page")}/',
    }
    runner = Runner(session, "monitoring", texts)
    for block in blocks(PAGE):
        if block.language == "python":
            runner.run(block)
    yield runner
    for query in session.streams.active:
        query.stop()
    for name in ("consumer", "producer"):
        runner.variable(name).close()
    server = runner.variable("server")
    server.shutdown()
    server.server_close()
    spark.createDataFrame([], "number int")


@pytest.fixture
def address(page: Runner) -> str:
    """Return the exporter's address."""
    return f"{LOOPBACK}:{page.variable('server').server_port}"


def exported(address: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Return the values by name, and by the values of the labels in the order of their names."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {
        family.name: {_values(each.labels): each.value for each in family.samples}
        for family in text_string_to_metric_families(text)
        if family.name.startswith("pykafka")
    }


def _values(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(value for _, value in sorted(labels.items()))


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.long
def test_the_exporter_shows_queries_and_clients(page: Runner, address: str) -> None:
    query = "billing-monitoring"
    first = "0", query, "events-monitoring"
    wait_until(
        lambda: first in exported(address).get("pykafka_query_lag_records", {}),
        page.variable("query"),
    )
    found = exported(address)
    lags = found["pykafka_query_lag_records"]  # Those of other pages' queries are among them.
    lag = {labels: behind for labels, behind in lags.items() if query in labels}
    assert lag == {(str(each), query, "events-monitoring"): 0 for each in range(2)}
    assert found["pykafka_query_batch_seconds"][query,] > 0
    assert found["pykafka_producer_record_error_rate"]["writer",] == 0
    assert ("reader",) in found["pykafka_consumer_records_lag_max"]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.long
def test_an_idle_query_is_alive(page: Runner, address: str) -> None:
    name = "pykafka_query_batch_timestamp_seconds"
    started = page.variable("query")
    wait_until(lambda: name in exported(address), started)
    query = ("billing-monitoring",)
    last = exported(address)[name][query]
    wait_until(lambda: exported(address)[name][query] > last, started)
    wait_until(lambda: exported(address)[name][query] > last + 1, started)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.long
def test_the_dashboard_and_the_alerts_ask_for_what_is_exported(page: Runner, address: str) -> None:
    wait_until(lambda: "pykafka_query_lag_records" in exported(address), page.variable("query"))
    asked = {*_NAME.findall(DASHBOARD.read_text()), *_NAME.findall(PAGE.read_text())}
    assert asked - set(exported(address)) == set()


def test_the_dashboard_is_whole() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    ids = [each["id"] for each in dashboard["panels"]]
    assert len(ids) == len(set(ids)) > 5
    assert all(each["targets"] for each in dashboard["panels"])


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.long
def test_a_real_prometheus_scrapes_it(address: str, tmp_path: Path) -> None:
    with prometheus(address, tmp_path) as server:
        wait_until(lambda: asked_of(server, "pykafka_query_batch_seconds") != [])
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            for target in panel["targets"]:
                expression = target["expr"].replace("$query", ".*")
                assert asked_of(server, expression) != [], expression


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.long
def test_a_stopped_query_is_shown_no_more_and_a_dead_one_is(
    page: Runner, kafka: LocalKafka, address: str, tmp_path: Path
) -> None:
    events = Events(kafka, "events-monitoring")

    def save(rows: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            raise ValueError("the table is locked")

    def started(name: str, **options: Any) -> StreamingQuery:
        frame = stream(page.variable("spark"), events.options(**options))
        writer = frame.writeStream.queryName(name).foreachBatch(save)
        return writer.option("checkpointLocation", str(tmp_path / name)).start()

    def shown() -> set[str]:
        return {query for (query,) in exported(address).get("pykafka_query_batch_seconds", ())}

    stopped = started("stopped")
    wait_until(lambda: "stopped" in shown())
    stopped.stop()
    wait_until(lambda: "stopped" not in shown())
    failure(started("dead", maxOffsetsPerTrigger=_ROWS // 2))
    # Spark tells of events in their order: it has told of the first death before the second stop.
    again = started("again")
    wait_until(lambda: "again" in shown())
    again.stop()
    wait_until(lambda: "again" not in shown())
    assert "dead" in shown()


@contextmanager
def prometheus(address: str, directory: Path) -> Iterator[str]:
    """Run Prometheus with the page's configuration. Return its address."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("not installed: prometheus (Debian's package of this name)")
    (page,) = (each.source for each in blocks(PAGE) if each.language == "yaml")
    configuration = page.replace("driver:9404", address).replace("15s", "1s")
    (directory / "prometheus.yml").write_text(configuration)
    (port,) = free_ports(1)
    server = f"{LOOPBACK}:{port}"
    command = [program, f"--config.file={directory}/prometheus.yml"]
    command += [f"--storage.tsdb.path={directory}/data", f"--web.listen-address={server}"]
    with (directory / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: _is_ready(server))
        yield server
    finally:
        process.terminate()
        process.wait(_IN_TIME_SECONDS)


def _is_ready(server: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{server}/-/ready", timeout=60) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def asked_of(server: str, expression: str) -> list[Any]:
    """Return the answer of Prometheus to an instant query."""
    words = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://{server}/api/v1/query?{words}", timeout=60) as answer:
        found = json.loads(answer.read())
    assert found["status"] == "success", found
    result: list[Any] = found["data"]["result"]
    return result
