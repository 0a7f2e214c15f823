"""Redaction: values that a session hides from Spark's own texts are hidden from our errors, too.

https://spark.apache.org/docs/latest/configuration.html: `spark.redaction.regex` and
`spark.sql.redaction.options.regex`.
"""

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, fields

from pyspark.sql import SparkSession

from spark_kafka_source.errors import ConfigurationError, KafkaError
from spark_kafka_source.spark.short_errors import ShortErrors

# Errors show only the beginning or a piece of a value, and no valid value has megabytes.
_MOST_SEARCHED = 100_000


@dataclass(frozen=True, slots=True)
class Redaction:
    """Regular expressions for the names and values of options.

    The defaults are those of Spark 4.3. Before it, Spark's default did not have `credential`.
    """

    redaction_regex: str = "(?i)secret|password|token|access[.]?key|credential"
    sql_redaction_options_regex: str = "(?i)url"

    @classmethod
    def of(cls, spark: SparkSession) -> "Redaction":
        """Return a session's expressions, to be sent along: Python workers know no settings."""
        names = (each.name for each in fields(cls))
        found = {name: spark.conf.get(f"spark.{name.replace('_', '.')}", None) for name in names}
        return cls(**{name: regex for name, regex in found.items() if regex is not None})

    def hidden(self, options: Mapping[str, str]) -> frozenset[str]:
        """Return the names, in lower case, of the options whose name or value matches.

        If an expression is valid in Java but not in Python, it returns all names.
        """
        try:
            patterns = [re.compile(getattr(self, each.name)) for each in fields(self)]
        except re.error:
            return frozenset(name.lower() for name in options)
        return frozenset(
            name.lower()
            for name, value in options.items()
            for shown in (name, value[:_MOST_SEARCHED])
            if any(pattern.search(shown) for pattern in patterns)
        )


class hiding(ShortErrors):  # noqa: N801  # It is used as a function: `with hiding(options):`.
    """Hide the values of these options, by names in lower case, in errors raised within.

    It shortens these errors, too.
    """

    def __init__(self, options: Container[str]) -> None:
        self._options = options

    def hide(self, error: KafkaError) -> None:
        """Take an option's hidden value out of the error."""
        if isinstance(error, ConfigurationError) and error.option.lower() in self._options:
            hidden = error.without_values()
            error.args, error.found = hidden.args, hidden.found
