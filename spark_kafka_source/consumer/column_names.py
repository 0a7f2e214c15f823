"""The names of Arrow columns, as a consumer's arguments take them."""

from collections.abc import Iterable

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.records import COLUMNS_WITH_HEADERS


def checked_columns(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns in their order. Raises `ConfigurationError` for others, and for none."""
    names = [columns] if isinstance(columns, str) else list(columns)
    unknown = [each for each in names if each not in COLUMNS_WITH_HEADERS]
    if isinstance(columns, str) or unknown or not names:
        found = f"found {(unknown or names)[0]!r}" if names else "are none"
        expected = f"Give a list of names. There are {', '.join(COLUMNS_WITH_HEADERS)}"
        raise ConfigurationError("columns", found, expected)
    return tuple(names)
