"""What a session keeps out of Spark's own texts is kept out of our errors as well.

https://spark.apache.org/docs/latest/configuration.html: `spark.redaction.regex` and
`spark.sql.redaction.options.regex`.
"""

import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields

from pyspark.sql import SparkSession

from spark_kafka_source.errors import ConfigurationError

# Errors show the beginning of a value, or a piece; a value of megabytes is none that works.
_MOST_SEARCHED = 100_000


@dataclass(frozen=True, slots=True)
class Redaction:
    """Regular expressions of names and values of options; by default Spark's own."""

    redaction_regex: str = "(?i)secret|password|token|access[.]?key"
    sql_redaction_options_regex: str = "(?i)url"

    @classmethod
    def of(cls, spark: SparkSession) -> "Redaction":
        """Those of a session. Spark's Python workers know no settings: they are sent along."""
        names = (each.name for each in fields(cls))
        found = {name: spark.conf.get(f"spark.{name.replace('_', '.')}", None) for name in names}
        return cls(**{name: regex for name, regex in found.items() if regex is not None})

    def hidden(self, options: Mapping[str, str]) -> frozenset[str]:
        """The names, in lower case, of the options whose name or value matches.

        All of them, where one of the expressions is Java's and not Python's.
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


@contextmanager
def hiding(options: Container[str]) -> Iterator[None]:
    """Within it, errors about these options, by their names in lower case, show no value."""
    try:
        yield
    except ConfigurationError as error:
        if error.option.lower() not in options:
            raise
        raise error.without_values() from None
