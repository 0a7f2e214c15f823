"""Errors that Spark shows: the sentence that matters stands near the top, under no causes."""

import logging
import re
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.util import try_simplify_traceback

from spark_kafka_source.errors import (
    ConfigurationError,
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    ProtocolError,
)
from spark_kafka_source.protocol import OtherServerError
from spark_kafka_source.spark.redaction import hiding
from spark_kafka_source.spark.short_errors import ShortErrors, short_errors
from tests.spark_session import Run
from tools.traffic import Batches, Events, batch, stream

LOGGER = "spark_kafka_source.spark.short_errors"


def deep(depth: int, error: Exception, cause: Exception | None = None) -> None:
    if depth:
        deep(depth - 1, error, cause)
    raise error from cause


def shown(call: Callable[[], object], *, simplified: bool = False) -> str:
    """Return what Python shows of the error of a call, or Spark's workers where they simplify."""
    try:
        call()
    except Exception as error:
        frames = error.__traceback__
        if simplified and frames is not None:
            frames = try_simplify_traceback(frames)
        return "".join(traceback.format_exception(type(error), error, frames))
    raise AssertionError("no error")


@short_errors
def fails(error: Exception, cause: Exception | None = None) -> None:
    deep(20, error, cause)


@pytest.mark.parametrize("kind", [KafkaTimeoutError, OtherServerError])
def test_frames_and_our_own_causes_are_left_out(kind: type[KafkaError]) -> None:
    error, cause = kind("what matters"), ConnectionFailedError("its cause")
    text = shown(lambda: fails(error, cause))
    assert text.rstrip().endswith(f"{kind.__name__}: what matters")
    assert "its cause" not in text
    assert text.count("in deep") == 1


def test_a_cause_in_the_users_own_code_stays() -> None:
    error = ConnectionFailedError("no token")
    error.__cause__ = ValueError("of the token provider")
    text = shown(lambda: fails(KafkaTimeoutError("what matters"), error))
    assert "ValueError: of the token provider" in text
    assert text.rstrip().endswith("KafkaTimeoutError: what matters")


def cleans_up(error: Exception) -> None:
    with suppress(ZeroDivisionError):
        try:
            deep(3, error)
        finally:
            print("a line that is not at fault")


def raises_within(error: Exception) -> None:
    with hiding(()):
        raise error


def raises_amid(error: Exception) -> None:
    try:
        with hiding(()):
            cleans_up(error)
    finally:
        print("another line that is not at fault")


@pytest.mark.parametrize("simplified", [False, True])
@pytest.mark.parametrize("call", [cleans_up, raises_within, raises_amid, deep])
def test_no_line_of_a_clean_up_is_shown(call: Callable[..., None], simplified: bool) -> None:
    arguments = (3, KafkaTimeoutError("late")) if call is deep else (KafkaTimeoutError("late"),)
    text = shown(short_errors(partial(call, *arguments)), simplified=simplified)
    assert not re.search("print|with |__exit__|shortened", text), text
    assert text.count("  File") <= 2  # The other is of `shown`.


@pytest.mark.parametrize("error", [ProtocolError("odd bytes"), ZeroDivisionError()])
def test_errors_that_nobody_expects_keep_their_frames(error: Exception) -> None:
    assert "deep" in shown(lambda: fails(error))


def test_the_frames_are_logged_at_debug_without_hidden_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = ConfigurationError("subscribe", "found {}", "Give another", "canary")

    def call() -> None:
        with ShortErrors(), hiding({"subscribe"}):
            deep(3, error)

    with caplog.at_level(logging.DEBUG, LOGGER):
        text = shown(call)
    assert "Option 'subscribe'" in text
    assert "in deep" in caplog.text
    assert "canary" not in text + caplog.text


# -- in Spark --------------------------------------------------------------------------------------


def line_of(sentence: str, text: str) -> int:
    """Return the number of the line with the sentence, from 1 on."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if sentence in line)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribee": "x"}, "Did you mean 'subscribe'?"),
        ({"startingOffsets": "sometimes"}, "Option 'startingOffsets': found 'sometimes'"),
        ({"subscribe": "missing-topic", "fetchOffset.numRetries": "0"}, "does not exist"),
        ({"kafka.security.protocol": "SSL", "kafka.request.timeout.ms": "3000"}, "TLS"),
        ({"value.format": "avro", "value.schema": '"nonsense"'}, "value.schema"),
    ],
    ids=["unknown", "option", "topic", "login", "schema"],
)
def test_an_error_of_reading_is_near_the_top(
    spark: SparkSession, events: Events, run: Run, options: dict[str, str], sentence: str
) -> None:
    events.create()
    with pytest.raises(PySparkException) as failed:
        batch(spark, events.options(**options)).collect()
    assert line_of(sentence, str(failed.value)) <= 10
    with pytest.raises((PySparkException, StreamingQueryException)) as failed:
        run(stream(spark, events.options(**options)), Batches())
    assert line_of(sentence, str(failed.value)) <= 14


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("row", "options", "sentence"),
    [
        ("1 AS value", {}, "ColumnTypeError"),
        ("'a' AS val", {}, "There is no column 'value'"),
        (
            "named_struct('other', 1) AS value",
            {"value.format": "json", "value.schema": "id INT"},
            "UnfitColumnError",
        ),
        ("'a' AS value, 'two words' AS topic", {"topic": None}, "cannot be a topic's name"),
    ],
    ids=["type", "column", "unfit", "task"],
)
def test_an_error_of_writing_is_near_the_top(
    spark: SparkSession, events: Events, row: str, options: dict[str, str | None], sentence: str
) -> None:
    events.create()
    given = {
        "kafka.bootstrap.servers": events.kafka.bootstrap_servers,
        "topic": events.name,
    } | options
    texts = {name: text for name, text in given.items() if text is not None}
    with pytest.raises(PySparkException) as failed:
        spark.sql(f"SELECT {row}").write.format("pykafka").options(**texts).mode("append").save()
    assert line_of(sentence, str(failed.value)) <= 14
