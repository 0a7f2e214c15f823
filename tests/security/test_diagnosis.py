"""Each broken set-up gives an error at once, with cause and option, and without a retry."""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack

import pytest
from pyspark.sql import SparkSession

from spark_kafka_source import LagListener, Secret, Token
from spark_kafka_source.client import race
from spark_kafka_source.net import AuthenticationError
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.testing.certificates import CertificateAuthority
from tests.security.acls import CLUSTER, allow, deny
from tests.security.conftest import Outcome
from tests.security.options import USERS, Options, options_of
from tests.security.reading import read
from tests.security.rows import ROWS
from tests.security.servers import counting, serving
from tests.security.setups import (
    GROUP,
    HIDDEN,
    HIDDEN_GROUP,
    PASSWORD,
    READERS,
    SEALED,
    SEALED_ID,
    SERVERS_KEY,
    SETUPS,
    WRITERS,
    Bench,
    Setup,
)
from tests.security.writing import write
from tests.spark_session import Start
from tests.testing.traffic import produce
from tools.traffic import TIMEOUT_SECONDS, batch, failure, sizes, stream, wait_until

pytestmark = pytest.mark.kafka

WRITTEN = "written"
RIGHTS = [
    (deny, "DESCRIBE", {"topic": HIDDEN}),
    (allow, "DESCRIBE", {"topic": SEALED}),
    (deny, "DESCRIBE", {"group": HIDDEN_GROUP}),
    (allow, "DESCRIBE", {"group": GROUP}),
    (deny, "ALL", {"broker": CLUSTER}),
    (allow, "DESCRIBE", {"transactional_id": SEALED_ID}),
]


class Provider:
    """A provider of a wrong token that it calls valid."""

    def __init__(self, text: str) -> None:
        self._text = Secret(text)

    def token(self) -> Token:
        return Token(self._text, time.time() + 600)


Use = Callable[[Options, Provider | None], Iterable[bytes]]
"""An action with a set-up. It returns the values of its rows."""


def reading(options: Options, provider: Provider | None) -> Iterable[bytes]:
    return read({"subscribe": "thousand"} | options, provider)


def writing(options: Options, provider: Provider | None) -> Iterable[bytes]:
    write({"subscribe": WRITTEN} | options, provider)
    return ()


USES = [
    *((reading, each) for each in [*SETUPS, *READERS]),
    *((writing, each) for each in [*SETUPS, *WRITERS]),
]


@pytest.fixture(scope="module")
def denied(secured: LocalKafka) -> LocalKafka:
    """Return the broker after it denied bob some rights. Later topics show that it knows."""
    for change, operation, resource in RIGHTS:
        change(secured, "bob", operation, **resource)
    for topic in (HIDDEN, SEALED):
        secured.create_topic(topic)
        produce(secured.bootstrap_servers, topic, [b"a secret"])
    secured.create_topic(WRITTEN)
    return secured


@pytest.fixture(scope="module")
def bench(denied: LocalKafka, thousand: str, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    directory = tmp_path_factory.mktemp("setups")
    return Bench(denied, CertificateAuthority(directory / "stranger"), directory)


@pytest.mark.parametrize(
    ("use", "setup"), USES, ids=[f"{use.__name__}: {setup.name}" for use, setup in USES]
)
def test_a_set_up_that_cannot_work(
    use: Use,
    setup: Setup,
    bench: Bench,
    outcomes: list[Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a loaded machine the client may try the second server before the first one answers.
    monkeypatch.setattr(race, "_TURN_MS", 60_000)
    options = setup.options(bench) | setup.more
    provider = Provider(setup.token(bench)) if setup.token else None
    rows: list[bytes] = []
    with ExitStack() as opened:
        where = options.get(SERVERS_KEY, "")
        # With two servers, the test counts credentials that reach more than one of them.
        servers = [
            opened.enter_context(serving(setup.server(bench)) if setup.server else counting(where))
            for _ in range(2)
        ]
        options[SERVERS_KEY] = ",".join(each.address for each in servers)
        started_seconds = time.monotonic()
        with pytest.raises(setup.error) as caught:
            rows.extend(use(options, provider))
        seconds = time.monotonic() - started_seconds
        connections = sum(each.connections for each in servers)
    text = str(caught.value)
    outcomes.append(
        Outcome(f"{use.__name__}: {setup.name}", type(caught.value).__name__, text, seconds)
    )
    for part in setup.says:
        assert part in text
    assert type(caught.value) is setup.error
    for secret in (*USERS.values(), PASSWORD):
        assert secret not in f"{text} {caught.value!r}"
    if setup.connections is not None:
        assert connections == setup.connections
    # If the read is allowed, the commit after it is denied.
    assert len(rows) in ((1000,) if options.get("kafka.group.id") == GROUP else (0,))


def test_no_right_on_the_cluster_is_needed(bench: Bench) -> None:
    options = options_of(bench.kafka, "SASL_SSL", "PLAIN", user="bob")
    more = {"subscribe": "thousand", "kafka.group.id": "of-bob"}
    assert sorted(read(options | more)) == sorted(ROWS)


def test_topics_that_one_may_not_see_are_not_of_a_pattern(bench: Bench) -> None:
    options = options_of(bench.kafka, "SASL_SSL", "PLAIN", user="bob")
    more = {"subscribePattern": f"^({HIDDEN}|thousand)$"}
    assert sorted(read(options | more)) == sorted(ROWS)


# -- with Spark ------------------------------------------------------------------------------------


def refused_logins(kafka: LocalKafka) -> int:
    return kafka.broker(1).log.read_text().count("Failed authentication with /127.0.0.1")


def failed_logins_of(kafka: LocalKafka, act: Callable[[], object]) -> int:
    """Return how many failed logins the broker counts, of an action and a final check."""
    before = refused_logins(kafka)
    act()
    # The broker logs a failed login late. One more failed login shows that the log is complete.
    wrong = options_of(kafka, "SASL_SSL", "PLAIN", password=PASSWORD)
    with pytest.raises(AuthenticationError):
        list(read(wrong | {"subscribe": "thousand"}))
    wait_until(lambda: refused_logins(kafka) > before + 1)
    return refused_logins(kafka) - before - 1


def wrong_password(kafka: LocalKafka) -> Options:
    return options_of(kafka, "SASL_SSL", "SCRAM-SHA-256", password=PASSWORD) | {
        "subscribe": "thousand"
    }


@pytest.mark.spark
def test_a_batch_shows_a_wrong_password_once(spark: SparkSession, bench: Bench) -> None:
    def act() -> None:
        with pytest.raises(Exception, match="refuses the credentials"):
            batch(spark, wrong_password(bench.kafka)).collect()

    assert failed_logins_of(bench.kafka, act) == 1


@pytest.mark.spark
def test_a_stream_shows_a_wrong_password_once(
    spark: SparkSession, bench: Bench, start: Start
) -> None:
    def act() -> None:
        query = start(stream(spark, wrong_password(bench.kafka)).writeStream.format("noop"))
        assert "refuses the credentials" in failure(query)

    assert failed_logins_of(bench.kafka, act) == 1


@pytest.mark.spark
def test_a_task_that_writes_shows_a_wrong_password_once(spark: SparkSession, bench: Bench) -> None:
    def act() -> None:
        with pytest.raises(Exception, match="refuses the credentials"):
            written(spark, wrong_password(bench.kafka), WRITTEN)

    assert failed_logins_of(bench.kafka, act) == 1


def written(spark: SparkSession, options: Options, topic: str) -> None:
    """Write in one task."""
    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS value").coalesce(1)
    given = {name: text for name, text in options.items() if name != "subscribe"}
    rows.write.format("pykafka").mode("append").options(**given).option("topic", topic).save()


@pytest.mark.spark
def test_a_task_that_writes_says_which_right_is_missing(spark: SparkSession, bench: Bench) -> None:
    options = options_of(bench.kafka, "SASL_SSL", "PLAIN", user="bob")
    for topic in (SEALED, HIDDEN):
        with pytest.raises(Exception, match=f"needs WRITE on topic '{topic}'"):
            written(spark, options, topic)
    written(spark, options, WRITTEN)


@pytest.mark.spark
def test_a_task_says_which_right_is_missing(spark: SparkSession, bench: Bench) -> None:
    options = options_of(bench.kafka, "SASL_SSL", "PLAIN", user="bob") | {"subscribe": SEALED}
    with pytest.raises(Exception, match=f"needs READ on topic '{SEALED}'"):
        batch(spark, options).collect()


@pytest.mark.spark
def test_a_commit_that_is_denied_does_not_end_a_query(
    spark: SparkSession, bench: Bench, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """This holds for the source's own commit, and for a LagListener's, which logs it once."""
    options = options_of(bench.kafka, "SASL_SSL", "PLAIN", user="bob") | {
        "subscribe": "thousand",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "500",
        "kafka.group.id": GROUP,
    }
    lags: list[int] = []
    listener = LagListener(lambda _, lag: lags.append(sum(lag.values())), options=options)
    spark.streams.addListener(listener)
    try:
        writing = stream(spark, options).writeStream.format("noop").trigger(availableNow=True)
        query = start(writing)
        assert query.awaitTermination(TIMEOUT_SECONDS)
        wait_until(lambda: len(lags) == 2)
    finally:
        spark.streams.removeListener(listener)
        listener.close()
    assert sizes(query) == [500, 500]
    assert lags == [500, 0]
    said = [text for text in caplog.messages if "not committed" in text]
    assert len(said) == 1
    assert f"needs READ on group '{GROUP}'" in said[0]
