"""Ended sessions, expired tokens and closed idle connections: users notice nothing."""

import time
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.streaming.query import StreamingQuery

from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer, Security
from tests.reliability.conftest import Trial
from tests.reliability.socket_metrics import SocketMetrics, socket_metrics
from tests.security.options import USERS, Options, options_of
from tests.security.reading import read
from tests.spark_session import Start
from tools.traffic import Batches, Events, batch, stream, values, wait_until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.reliability_full,
]

# One session is renewed; the other is too short for that, so that its connection is made anew.
RENEWED, REPLACED = "SASL_SSL", "SASL_SSL_BRIEF"
SESSION_MS, TOKEN_SECONDS, IDLE_MS = 2500, 3, 1500
PROPERTIES = {
    "listener.name.sasl_ssl.connections.max.reauth.ms": str(SESSION_MS),
    "connections.max.idle.ms": str(IDLE_MS),
    # Else the first ten seconds of a quota may be taken at once.
    "quota.window.num": "2",
}
WAYS = [(RENEWED, "SCRAM-SHA-256"), (RENEWED, "OAUTHBEARER"), (REPLACED, "SCRAM-SHA-512")]
ROWS = [f"{number:05d}".ljust(10_000, "x") for number in range(400)]
ROWS_AT_A_TIME = 8
SECONDS, FEW_SECONDS = 12, 6
QUOTA_BYTES_A_SECOND = 400_000
FETCH = {"kafka.max.partition.fetch.bytes": "60000", "kafka.fetch.max.bytes": "60000"}


@pytest.fixture(scope="module")
def brief() -> Iterator[LocalKafka]:
    """A broker with short limits for everything."""
    with LocalKafka(security=Security(USERS), properties=PROPERTIES) as kafka:
        kafka.token_server.lifetime_seconds = TOKEN_SECONDS
        yield kafka


@pytest.fixture(scope="module")
def metrics(brief: LocalKafka) -> Iterator[SocketMetrics]:
    with socket_metrics(brief.broker(1)) as metrics:
        yield metrics


@pytest.fixture
def rows_one_by_one(spark: SparkSession) -> Iterator[None]:
    """Hand few rows at a time to Python, so that a slow consumer of rows slows the read."""
    name = "spark.sql.execution.python.udf.maxRecordsPerBatch"
    before = spark.conf.get(name) or "100"
    spark.conf.set(name, ROWS_AT_A_TIME)
    yield
    spark.conf.set(name, before)


def options(kafka: LocalKafka, way: tuple[str, str], topic: str) -> Options:
    more = {"subscribe": topic, "startingOffsets": "earliest"}
    return options_of(kafka, *way) | FETCH | more


def slow(frame: DataFrame, seconds: float) -> DataFrame:
    """Return the rows of `ROWS` in a partition, spread over this number of seconds."""
    pause_seconds = seconds / len(ROWS)

    def after_a_pause(value: bytes) -> bytes:
        time.sleep(pause_seconds)
        return value

    paused = udf(after_a_pause, "binary", useArrow=False)(col("value"))
    return frame.select("partition", "offset", paused.alias("value"))


class Idle:
    """Queries of a topic with hardly any new rows, one for each way to log in."""

    def __init__(self, spark: SparkSession, events: Events, start: Start) -> None:
        self._events = events
        self._written = 0
        self.queries: list[StreamingQuery] = []
        self._sinks: list[Batches] = []
        for way in WAYS:
            frame = stream(spark, options(events.kafka, way, events.name))
            self._sinks.append(Batches())
            writer = frame.writeStream.foreachBatch(self._sinks[-1])
            self.queries.append(start(writer, "-".join(way)))

    def read_one_more(self) -> None:
        """Write a row, and wait until each query has it."""
        self._events.write([f"{self._written:05d}"])
        self._written += 1
        for query, sink in zip(self.queries, self._sinks, strict=True):
            wait_until(lambda: len(sink.values) == self._written, query)  # noqa: B023 - called now


@pytest.mark.usefixtures("rows_one_by_one")
def test_long_reads_and_idle_queries_outlast_sessions_tokens_and_connections(
    spark: SparkSession, metrics: SocketMetrics, brief: LocalKafka, start: Start, trial: Trial
) -> None:
    """Two slow tasks run at a time, beside idle queries."""
    seconds = SECONDS if trial.rounds > 1 else FEW_SECONDS
    reads = max(trial.rounds // 10, 1)
    events, quiet = Events(brief, "long"), Events(brief, "quiet")
    events.create()
    quiet.create()
    events.write(ROWS)
    idle = Idle(spark, quiet, start)
    idle.read_one_more()
    renewed = metrics.of(RENEWED, "successful-reauthentication-total")
    logins = metrics.of(REPLACED, "successful-authentication-total")
    tokens = brief.token_server.issued
    differ = 0
    for turn in range(reads):
        first, second = (WAYS[(turn + place) % len(WAYS)] for place in range(2))
        frames = [
            slow(batch(spark, options(brief, way, "long")), seconds) for way in (first, second)
        ]
        differ += sorted(values(frames[0].union(frames[1]))) != sorted(ROWS * 2)
        idle.read_one_more()
    failed = sum(query.exception() is not None for query in idle.queries)
    renewed = metrics.of(RENEWED, "successful-reauthentication-total") - renewed
    logins = metrics.of(REPLACED, "successful-authentication-total") - logins
    tokens = brief.token_server.issued - tokens
    refused = sum(
        metrics.of(listener, f"failed-{kind}-total")
        for listener in (RENEWED, REPLACED)
        for kind in ("authentication", "reauthentication")
    )
    trial.report(
        "16",
        f"{2 * reads} reads of {seconds} s beside {len(WAYS)} idle queries, by sessions of "
        f"{SESSION_MS / 1000} s and 1 s, tokens of {TOKEN_SECONDS} s, connections closed after "
        f"{IDLE_MS / 1000} s: {renewed} sessions renewed, {logins} replaced, {tokens} tokens",
        f"failed queries: {failed}; reads that differ: {differ}; logins refused: {refused}",
    )
    assert (failed, differ, refused) == (0, 0, 0)
    assert renewed > 3
    assert logins > 3
    assert tokens > 1


def test_a_reader_over_its_quota_keeps_to_it(brief: LocalKafka, topic: str, trial: Trial) -> None:
    brief.create_topic(topic)
    with Producer(brief.bootstrap_servers) as producer:
        # A batch is sent whole or not at all: one larger than the quota's window would never be.
        for at in range(0, len(ROWS), 4):
            producer.send(topic, 0, [Record(value=row.encode()) for row in ROWS[at : at + 4]])
    quota = ("--add-config", f"consumer_byte_rate={QUOTA_BYTES_A_SECOND}")
    brief.tool("configs", "--alter", *quota, "--entity-type", "users", "--entity-name", "bob")
    found = options_of(brief, RENEWED, "PLAIN", user="bob") | FETCH | {"subscribe": topic}
    started_seconds = time.monotonic()
    rows = [value.decode() for value in read(found)]
    seconds = time.monotonic() - started_seconds
    rate = sum(map(len, rows)) / seconds
    error = rate / QUOTA_BYTES_A_SECOND - 1
    trial.report(
        "17",
        f"{len(rows)} rows of {len(ROWS[0])} bytes under a quota of {QUOTA_BYTES_A_SECOND} bytes/s,"
        f" in sessions of {SESSION_MS / 1000} s",
        f"rate: {error:+.0%} of the quota; reads that differ: {int(rows != ROWS)}",
    )
    assert rows == ROWS
    assert error < 0.2
