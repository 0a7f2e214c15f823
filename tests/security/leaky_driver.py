"""A Spark driver that shows all it can: `python -m tests.security.leaky_driver` reads JSON orders.

It runs queries in a session with DEBUG logs, an event log and the UI. It writes everything that
a user, an operator or a tool can see into files of one directory. A test searches these files.
"""

import json
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

import spark_kafka_source
from spark_kafka_source import KafkaProducer, Secret, Token
from spark_kafka_source.spark import KafkaDataSource
from spark_kafka_source.spark.options import parse_source_options

LOG4J = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
logger.python.name = org.apache.spark.api.python
logger.python.level = debug
logger.sql.name = org.apache.spark.sql
logger.sql.level = debug
logger.sources.name = org.apache.spark.sql.execution
logger.sources.level = trace
appender.file.type = File
appender.file.name = file
appender.file.fileName = ${sys:leaky.log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""
# All Python processes of the driver and the executors find it: it is in their PYTHONPATH.
SITE = """
import logging
logging.basicConfig(level=logging.DEBUG)
# At DEBUG, Py4J logs every word that is said to the JVM, the peer's passwords too.
logging.getLogger("py4j").setLevel(logging.INFO)
"""
PAGES = ("jobs/", "stages/", "environment/", "executors/", "SQL/", "StreamingQuery/")
REST = (
    "environment",
    "jobs",
    "stages?details=true",
    "sql?details=true&planDescription=true&length=1000",
)
WRITTEN = "written-by-leaks"
"""The topic for all writes."""
SHORT = {
    "kafka.default.api.timeout.ms": "3000",
    "kafka.socket.connection.setup.timeout.ms": "2000",
    "kafka.request.timeout.ms": "2000",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A query that succeeds or fails. Its token provider returns `token` or raises `raises`."""

    name: str
    options: dict[str, str]
    token: str = ""
    raises: str = ""
    works: bool = False


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a driver. With `format` "kafka" Spark's own source reads."""

    directory: str
    cases: list[Case] = field(default_factory=list)
    format: str = "pykafka"
    jars: str = ""
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Provider:
    """A user's token provider: it returns a token, or raises an error with a secret."""

    text: Secret
    raises: Secret

    def token(self) -> Token:
        if self.raises:
            raise RuntimeError(f"no token for {self.raises.reveal()}")
        return Token(self.text, time.time() + 600)


class Listener(StreamingQueryListener):
    """A listener that keeps all events."""

    def __init__(self, tell: Callable[[str, object], None]) -> None:
        self._tell = tell

    def onQueryStarted(self, event: Any) -> None:
        self._tell("listener", vars(event))

    def onQueryProgress(self, event: Any) -> None:
        self._tell("listener", event.progress.json)

    def onQueryIdle(self, event: Any) -> None:
        self._tell("listener", vars(event))

    def onQueryTerminated(self, event: Any) -> None:
        self._tell("listener", vars(event))


class Teller:
    """A writer of all visible texts: one file for each place."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)

    def __call__(self, place: str, found: object) -> None:
        with (self._directory / f"{place}.txt").open("a") as file:
            file.write(f"{found}\n")

    def failure(self, place: str, error: BaseException) -> None:
        """Write the error with its whole chain, as Python and Java show it."""
        self(f"{place}-error", f"{error}\n{error!r}\n{error.args}")
        self(f"{place}-traceback", "".join(traceback.format_exception(error)))
        chain: BaseException | None = error
        told: set[int] = set()
        while chain is not None and id(chain) not in told:
            told.add(id(chain))
            self(f"{place}-chain", f"{type(chain)} {chain} {chain!r} {vars(chain)}")
            java = getattr(chain, "_origin", None)
            while java is not None:
                self(f"{place}-java", java.toString())
                java = java.getCause()
            chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)


def session_of(orders: Orders) -> SparkSession:
    directory = Path(orders.directory)
    (directory / "events").mkdir()
    builder = SparkSession.builder.master("local[2]").appName("leaky")
    settings = {
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (directory / "events").as_uri(),
        "spark.eventLog.logStageExecutorMetrics": "true",
        "spark.local.dir": str(directory / "temporary"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.maxPlanStringLength": "10000000",
        "spark.sql.debug.maxToStringFields": "10000",
        "spark.sql.maxMetadataStringLength": "100000",
        "spark.sql.planChangeLog.level": "warn",
        "spark.sql.shuffle.partitions": "1",
        "spark.jars": orders.jars,
    }
    for name, value in (settings | orders.settings).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def tell_of_objects(case: Case, tell: Teller) -> None:
    """Write Python's texts of all objects that hold the options."""
    try:
        source = KafkaDataSource(case.options)
        reader = source.reader(source.schema())
        stream_reader = source.streamReader(source.schema())
        parsed = parse_source_options(case.options, source.token_provider)
        found = [source, reader, stream_reader, parsed, *reader.partitions()]
    except Exception as error:
        tell.failure("objects", error)
        return
    for each in found:
        tell("objects", f"{each} {each!r} {getattr(each, '__dict__', '')}")
        tell("objects", f"{parsed.client} {parsed.client.connection!r}")


def produce(case: Case, provider: Provider | None, tell: Teller) -> bool:
    """Write a record by a producer with a query's settings, and the texts of its objects."""
    settings: dict[str, Any] = {
        name.removeprefix("kafka."): text
        for name, text in case.options.items()
        if name.startswith("kafka.")
    }
    producer: KafkaProducer | None = None
    try:
        producer = KafkaProducer(token_provider=provider, **settings)
        told = [producer, producer._config, producer._sender, producer._callers_client]
        for each in told:
            tell("producer", f"{each} {each!r} {getattr(each, '__dict__', '')}")
        futures = [producer.send(WRITTEN, b"by a producer") for _ in range(2)]
        tell("producer", [each.result() for each in futures])
        tell("producer", producer.metrics())
        return True
    except Exception as error:
        tell.failure("producer", error)
        return False
    finally:
        if producer is not None:
            producer.close(0)


def write(spark: SparkSession, orders: Orders, case: Case, tell: Teller) -> bool:
    """Write records by a batch query of Spark."""
    try:
        value = "named_struct('id', id)" if "value.format" in case.options else "STRING(id)"
        frame = spark.range(2).selectExpr(f"{value} AS value")
        given = {name: text for name, text in case.options.items() if name != "subscribe"}
        writing = frame.write.format(orders.format).mode("append").option("topic", WRITTEN)
        writing.options(**given).save()
        return True
    except Exception as error:
        tell.failure("write", error)
        return False


def tell_of_frame(frame: DataFrame, tell: Teller) -> None:
    jvm: Any = frame._sc._jvm
    java = frame._jdf.queryExecution()
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        explained = jvm.PythonSQLUtils.explainString(java, mode)
        tell(f"explain-{mode}", explained)
    for name in ("logical", "analyzed", "optimizedPlan"):
        plan = getattr(java, name)()
        tell("plan-json", plan.prettyJson())
        tell("plan-text", f"{plan.toString()} {plan.treeString()} {plan.numberedTreeString()}")
    tell("frame", f"{frame} {frame!r} {frame.schema} {java.toString()} {java.debug().toString()}")


def read(spark: SparkSession, orders: Orders, case: Case, tell: Teller) -> bool:
    try:
        frame = spark.read.format(orders.format).options(**case.options).load()
        if not frame.isStreaming:
            tell_of_frame(frame, tell)
        frame.createOrReplaceTempView("rows")
        spark.sql("SELECT count(*), sum(hash(value)) FROM rows").collect()
        described = spark.sql("DESCRIBE EXTENDED rows").collect()
        tell("tables", f"{spark.catalog.listTables()} {described}")
        return True
    except Exception as error:
        tell.failure("batch", error)
        return False


def stream(spark: SparkSession, orders: Orders, case: Case, tell: Teller) -> bool:
    checkpoint = Path(orders.directory) / "checkpoints" / case.name
    query: StreamingQuery | None = None
    try:
        reader = spark.readStream.format(orders.format).options(**case.options)
        frame = reader.option("startingOffsets", "earliest").load()
        tell("plan-text", frame._jdf.queryExecution().toString())
        writing = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        query = writing.queryName(case.name).trigger(availableNow=True).start()
        query.awaitTermination(90)
    except Exception as error:
        tell.failure("stream", error)
    if query is None:
        return False
    failure = query.exception()
    tell("progress", f"{query.lastProgress} {query.recentProgress} {query.status} {failure}")
    query._jsq.explain(True)  # This prints the plan.
    tell("stream-explain", query._jsq.explainInternal(True))
    if failure is not None:
        tell.failure("stream", failure)
    query.stop()
    return failure is None


def tell_of_ui(spark: SparkSession, tell: Teller) -> None:
    where = spark.sparkContext.uiWebUrl
    api = f"{where}/api/v1/applications/{spark.sparkContext.applicationId}"
    wanted = [f"{api}/{name}" for name in REST] + [f"{where}/{name}" for name in PAGES]
    listed = json.loads(_got(wanted[len(REST) - 1]))
    wanted += [f"{where}/SQL/execution/?id={each['id']}" for each in listed]
    for url in wanted:
        tell("ui-rest" if url.startswith(api) else "ui-pages", _got(url))


def _got(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def run(orders: Orders) -> dict[str, list[bool]]:
    """Return by case whether batch and stream succeeded, and with our format the writes."""
    tell = Teller(Path(orders.directory) / "seen")
    spark = session_of(orders)
    spark.streams.addListener(Listener(tell))
    spark_kafka_source.register(spark)
    found = {}
    for given in orders.cases:
        case = replace(given, options=SHORT | given.options)
        provider = None
        if case.token or case.raises:
            provider = Provider(Secret(case.token), Secret(case.raises))
        spark_kafka_source.register(spark, token_provider=provider)
        found[case.name] = [read(spark, orders, case, tell), stream(spark, orders, case, tell)]
        if orders.format == "pykafka":
            tell_of_objects(case, tell)
            found[case.name].append(produce(case, provider, tell))
            found[case.name].append(write(spark, orders, case, tell))
    tell_of_ui(spark, tell)
    spark.stop()
    return found


def main() -> None:
    given = json.loads(sys.stdin.readline())
    cases = [Case(**each) for each in given.pop("cases")]
    orders = Orders(cases=cases, **given)
    found = run(orders)
    (Path(orders.directory) / "outcome.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
