"""The tables of options, from their declarations: `python -m tests.spark.options_table`."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spark_kafka_source.spark import typed
from spark_kafka_source.spark.all_options import OF_KAFKA, OPTIONS
from spark_kafka_source.spark.declaration import Option, Use
from spark_kafka_source.spark.source.options import OF_A_MEMBER
from tests.marks import Marks

PROJECT = Path(__file__).parents[2]
REFERENCE = PROJECT / "docs" / "options.md"
NOT_OF_JAVA = {
    "kafka.partitioner",
    "kafka.sasl.mechanisms",
    "kafka.sasl.username",
    "kafka.sasl.password",
}
"""Settings of another client. Kafka's page does not have them."""
MARKS = Marks("<!-- options: written by make options -->", "<!-- end of options -->")

_FOR = {
    Use.BATCH_READ: "batches only",
    Use.STREAM_READ: "streams only",
    Use.BATCH_WRITE: "batches only",
    Use.STREAM_WRITE: "streams only",
}
_KAFKAS = "https://kafka.apache.org/documentation/#"
_SETTINGS = "Settings of Kafka's clients. Each name leads to Kafka's own page:"


_OF_VALUES = {each.name for each in (*typed.OPTIONS, *typed.OF_TLS)}
_BYTES = [each for each in OPTIONS if each.name not in _OF_VALUES]
"""Options that have nothing to do with typed keys and values."""


def reference() -> str:
    """Return the tables of docs/options.md: all options with their values."""
    known = {each.name for each in (*OPTIONS, *OF_KAFKA)}
    of_members = [each for each in OF_A_MEMBER if each.name not in known]
    kafkas = [each for each in OF_KAFKA if each.name not in _OF_VALUES]
    of_written_values = [each for each in typed.OPTIONS if not each.use & Use.READ]
    of_tls = ", ".join(f"`{each.name}`" for each in typed.OF_TLS)
    return "\n".join(
        [
            "## To read",
            "",
            *_own(Use.READ),
            "",
            _SETTINGS,
            "",
            *_kafkas(Use.READ, kafkas),
            "",
            "And with `managedGroup=true`:",
            "",
            *_kafkas(Use.READ, of_members),
            "",
            "Typed keys and values, see [typed values](typed-values.md):",
            "",
            *_own(Use.READ, typed.OPTIONS),
            "",
            f"The registry's TLS is set as that of the brokers: {of_tls}.",
            "",
            "## To write",
            "",
            *_own(Use.WRITE),
            "",
            _SETTINGS,
            "",
            *_kafkas(Use.WRITE, kafkas),
            "",
            "Typed keys and values, see [typed values](typed-values.md#writing). A writer also "
            "takes a reader's options of the format, the schema and the registry.",
            "",
            *_own(Use.WRITE, of_written_values),
            "",
            "## To read and to write",
            "",
            _SETTINGS,
            "",
            *_kafkas(Use.BOTH, kafkas),
        ]
    )


def _own(use: Use, options: Iterable[Option[Any]] = _BYTES) -> list[str]:
    rows = [
        [f"`{each.name}`", _meaning(each, use), each.kind.takes, _default(each)]
        for each in _of(use, options)
    ]
    return _table(["option", "meaning", "takes", "default"], rows)


def _of(use: Use, options: Iterable[Option[Any]]) -> Iterator[Option[Any]]:
    return (each for each in options if each.use & use)


def _kafkas(use: Use, options: Iterable[Option[Any]]) -> list[str]:
    """Return the table of Kafka's settings for this use only."""
    page = "producerconfigs" if use is Use.WRITE else "consumerconfigs"
    rows = [
        [_linked(each.name, page), each.meaning, each.kind.takes, _default(each)]
        for each in options
        if each.use in use and (use is not Use.BOTH or each.use is Use.BOTH)
    ]
    return _table(["setting", "meaning", "takes", "default"], rows)


def _linked(name: str, page: str) -> str:
    if name in NOT_OF_JAVA:
        return f"`{name}`"
    return f"[`{name}`]({_KAFKAS}{page}_{name.removeprefix('kafka.')})"


def _default(option: Option[Any]) -> str:
    return f"`{option.kind.default}`" if option.kind.default else ""


def _meaning(option: Option[Any], use: Use) -> str:
    """Return the option's meaning, and for which queries it is."""
    where = _FOR.get(option.use & use)
    return f"{option.meaning} ({where})" if where else option.meaning


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """Return the lines of a table, without columns that are empty in all rows."""
    columns = [each for each in zip(head, *rows, strict=True) if any(each[1:])]
    first, *others = (_row(cells) for cells in zip(*columns, strict=True))
    return [first, "|---" * len(columns) + "|", *others]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    MARKS.write(REFERENCE, reference())
