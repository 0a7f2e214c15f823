"""The data source `format("pykafka")`."""

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.secret import shown
from spark_kafka_source.spark import sink, source
from spark_kafka_source.spark.options import parse_sink_options, parse_source_options
from spark_kafka_source.spark.py_files import warn_of_py_files
from spark_kafka_source.spark.python_worker import log_with_query
from spark_kafka_source.spark.redaction import Redaction
from spark_kafka_source.spark.short_errors import short_errors
from spark_kafka_source.spark.source.schema import kafka_schema, typed_schema

if TYPE_CHECKING:
    from spark_kafka_source.spark.sink.options import SinkOptions
    from spark_kafka_source.spark.source.options import SourceOptions

_ONLY_APPENDS = "Kafka's topics only grow"
_OF_TABLES = (
    "Give 'host:port'. Is this a table of CREATE TABLE? Spark gives a table's OPTIONS to no Python "
    "data source. Make it a view: CREATE TEMPORARY VIEW v USING pykafka OPTIONS "
    "(`kafka.bootstrap.servers` 'host:port', subscribe 'events'). Or give the options in each "
    "query: SELECT * FROM t WITH (`kafka.bootstrap.servers` = 'host:port', subscribe = 'events')"
)


_NAMES = ("queryName", "topic", "assign", "subscribe", "subscribePattern")


@lru_cache(maxsize=8)
def _sink_options(
    given: tuple[tuple[str, str], ...], token_provider: TokenProvider | None, redaction: Redaction
) -> "SinkOptions":
    """Return a query's options. Spark asks at each micro-batch; each process parses them once.

    So a warning of an option without effect comes once.
    """
    return parse_sink_options(dict(given), token_provider, redaction)


class KafkaDataSource(DataSource):
    """Apache Kafka as a source and a sink, for batches and streams; see docs/options.md.

    Raises `ConfigurationError` for an option that cannot be used. A reader raises it at `load()`, a
    writer at `save()`, or when a stream begins its first micro-batch.
    """

    token_provider: ClassVar[TokenProvider | None] = None
    """The source of tokens for OAUTHBEARER, if it is not an endpoint; see `register`."""
    redaction: ClassVar[Redaction] = Redaction()
    """The values that errors hide; see `register`."""
    has_time: ClassVar[bool] = False
    """Whether the session supports TIME columns; if not, they are numbers. See `register`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__({})
        # Spark says later whether it reads or writes. The parsed options then replace the texts:
        # this object is pickled into every query.
        self._given = dict(options)
        self._query = self._named_by(self._given)
        self._source_options: SourceOptions | None = None

    @classmethod
    def name(cls) -> str:
        """Return the name of the format: `format("pykafka")`."""
        return "pykafka"

    @short_errors
    def schema(self) -> StructType:
        """Return the columns of Spark's own Kafka connector, or those that the options name.

        With typed values, the first call looks up the schemas. Later calls return the same.
        """
        options = self._to_read()
        typed = options.typed_columns
        return kafka_schema(options.columns) if typed is None else typed_schema(typed.schema)

    @short_errors
    def reader(self, schema: StructType) -> "source.KafkaBatchReader":
        """Return the reader for `spark.read`."""
        self._check_given()
        self._check_schema(_of_spark(schema))
        return source.KafkaBatchReader(self._to_read())

    @short_errors
    def streamReader(self, schema: StructType) -> "source.KafkaStreamReader":
        """Return the reader for `spark.readStream`."""
        self._check_given()
        self._check_schema(schema)
        return source.KafkaStreamReader(self._to_read())

    @short_errors
    def writer(self, schema: StructType, overwrite: bool) -> "sink.KafkaWriter":
        """Return the writer for `df.write`."""
        if overwrite:
            raise ConfigurationError("mode", "is 'overwrite'", f"{_ONLY_APPENDS}: give 'append'")
        return self._writer(_of_spark(schema))

    @short_errors
    def streamWriter(self, schema: StructType, overwrite: bool) -> "sink.KafkaWriter":
        """Return the writer for `df.writeStream`.

        Spark asks twice for each micro-batch, before and after its tasks. So there is no IO here.
        """
        if overwrite:
            expected = f"{_ONLY_APPENDS}: give 'append', or write each result by 'foreachBatch'"
            raise ConfigurationError("outputMode", "is 'complete'", expected)
        return self._writer(schema)

    def _named_by(self, given: Mapping[str, str]) -> str:
        """Return what tells a query from others in a log: its name, or what it reads or writes."""
        hidden = self.redaction.hidden(given)
        texts = {name.lower(): text for name, text in given.items()}
        named = next((name for name in _NAMES if name.lower() in texts), "")
        if not named or named.lower() in hidden:
            return named
        return f"{named}={shown(texts[named.lower()])}"

    def _to_read(self) -> "SourceOptions":
        log_with_query(self._query)
        if self._source_options is None:
            options = parse_source_options(self._given, self.token_provider, self.redaction)
            self._source_options = (
                source.planned(options, has_time=self.has_time) if options.typed.parts else options
            )
            self._given = {}
        return self._source_options

    def _writer(self, schema: StructType) -> "sink.KafkaWriter":
        log_with_query(self._query)
        self._check_given()
        given = tuple(self._given.items())
        return sink.planned_writer(
            schema, _sink_options(given, self.token_provider, self.redaction)
        )

    def _check_given(self) -> None:
        if self._source_options is None and not self._given:
            found = "is missing, as all options are"
            raise ConfigurationError("kafka.bootstrap.servers", found, _OF_TABLES)

    def _check_schema(self, schema: StructType) -> None:
        if schema != self.schema():
            raise ConfigurationError(
                "schema", f"found {schema.simpleString()}", "The columns are fixed: leave it out"
            )


def _of_spark(schema: StructType | pa.Schema) -> StructType:
    """Return the columns as Spark's types. Sail hands over Arrow's, to readers and writers."""
    return from_arrow_schema(schema) if isinstance(schema, pa.Schema) else schema


def register(spark: SparkSession, *, token_provider: TokenProvider | None = None) -> None:
    """Register `format("pykafka")` in a session.

    This is not needed if the wheel is installed: Spark then finds the format by itself. But options
    are texts, so your own `token_provider`, for OAUTHBEARER without an endpoint, is given here. It
    is pickled, and called on the driver and on every executor. This call also reads the session's
    `spark.redaction.regex`, `spark.sql.redaction.options.regex` and `spark.sql.timeType.enabled`.
    A source that Spark found by itself knows only their defaults. A class that the session already
    knows is not registered again, since Spark warns of that. If the package came by `--py-files`
    alone, a warning is logged: Spark runs no stream of it then.
    """
    warn_of_py_files(spark)
    source_class: type[KafkaDataSource] = KafkaDataSource
    given_redaction = Redaction.of(spark)
    knows_time = spark.conf.get("spark.sql.timeType.enabled", "false") == "true"
    if token_provider is not None or given_redaction != Redaction() or knows_time:

        class OfSession(KafkaDataSource):
            pass

        OfSession.token_provider, OfSession.redaction = token_provider, given_redaction
        OfSession.has_time = knows_time
        source_class = OfSession
    if _is_known(spark, source_class):
        return
    try:
        spark.dataSource.register(source_class)
    except AnalysisException as error:
        # Spark 4.0 refuses to register a format that it has found by itself.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise


def _is_known(spark: SparkSession, source_class: type[KafkaDataSource]) -> bool:
    """Whether the session's data source of this name is this very class.

    It asks Spark's internal classes, which are no API. If they differ, the class is registered
    again.
    """
    try:
        jvm: Any = spark
        sources = jvm._jsparkSession.sessionState().dataSourceManager()
        if not sources.dataSourceExists(source_class.name()):
            return False
        known = sources.lookupDataSource(source_class.name()).dataSourceCls().command()
        wrapped = import_module("pyspark.sql.udf")._wrap_function(spark.sparkContext, source_class)
        return bool(known.equals(wrapped.command()))
    except Exception:  # For example, a session of Spark Connect has no JVM.
        return False
