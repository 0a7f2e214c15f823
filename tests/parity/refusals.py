"""Texts of errors from Spark, from its Kafka connector, and from this package."""

from collections.abc import Callable, Iterator
from typing import Any

from py4j.java_gateway import JavaObject, is_instance_of  # type: ignore[import-untyped]  # py4j has no types
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException


def refused(action: Callable[[], object]) -> str:
    """Return the text of an action's error and, line by line, of its causes.

    The condition's name stands first, in brackets. Only the causes of the peer's errors have one,
    and causes do not pass through `foreachBatch`. PySpark converts Spark's own exceptions. Some of
    the peer's exceptions stay Java exceptions.
    """
    error: Any
    try:
        action()
    except (PySparkException, Py4JJavaError) as failed:
        error = failed
    else:
        # Do not use `pytest.raises`: its failure is not an Exception. If such a failure ends a
        # callback of `foreachBatch`, Spark waits for ever.
        raise AssertionError("it was not refused")
    thrown = error.java_exception if isinstance(error, Py4JJavaError) else error._origin
    return "\n".join([str(error), *map(_text, _causes(thrown))])


def _causes(thrown: JavaObject | None) -> Iterator[JavaObject]:
    while thrown is not None:
        yield thrown
        thrown = thrown.getCause()


def _text(thrown: JavaObject) -> str:
    has_condition = is_instance_of(SparkContext._gateway, thrown, "org.apache.spark.SparkThrowable")
    condition = f"[{thrown.getCondition()}] " if has_condition else ""
    return f"{condition}{thrown.getMessage()}"


BAD_SUBSCRIPTIONS: dict[str, tuple[dict[str, str | None], str, str]] = {
    "no strategy": ({"subscribe": None}, "subscribe", "must be specified"),
    "subscribe and a pattern": ({"subscribePattern": "t.*"}, "subscribe", "Only one"),
    "subscribe and assign": ({"assign": '{"a":[0]}'}, "assign", "Only one"),
    "assign is empty": ({"subscribe": None, "assign": ""}, "assign", "assign"),
    "subscribe is empty": ({"subscribe": ""}, "subscribe", "subscribe"),
    "the pattern is empty": (
        {"subscribe": None, "subscribePattern": ""},
        "subscribePattern",
        "subscribePattern",
    ),
}
"""Options that batches and streams refuse, the option in our error, words of the peer's error."""
