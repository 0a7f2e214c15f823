"""`python -m tests.spark.options_table`: the tables of options, from their declarations."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spark_kafka_source.spark.declaration import Option, Use
from spark_kafka_source.spark.source.options import OF_A_MEMBER, OF_KAFKA, OPTIONS
from tests.marks import Marks

PROJECT = Path(__file__).parents[2]
README = PROJECT / "README.md"
REFERENCE = PROJECT / "docs" / "options.md"
MARKS = Marks("<!-- options: written by make options -->", "<!-- end of options -->")

_FOR = {Use.BATCH_READ: "batch", Use.STREAM_READ: "stream"}
_KAFKAS = "https://kafka.apache.org/documentation/#consumerconfigs_"


def summary(options: Iterable[Option[Any]] = OPTIONS) -> str:
    """Markdown for the README: a row an option, but for what all of Kafka's clients have."""
    rows = [
        [f"`{each.name}`", _default(each), _for(each), each.meaning] for each in _to_read(options)
    ]
    return "\n".join(_table(["option", "default", "for", "meaning"], rows))


def reference() -> str:
    """Markdown for the page on options: all of them, and the values that they take."""
    known = {each.name for each in (*OPTIONS, *OF_KAFKA)}
    of_members = [each for each in OF_A_MEMBER if each.name not in known]
    own = [
        [f"`{each.name}`", each.kind.takes, _default(each), _for(each), each.meaning]
        for each in _to_read(OPTIONS)
    ]
    by_name = ", ".join(f"`{each.name}`" for each in OF_KAFKA if not each.kind.takes)
    return "\n".join(
        [
            *_table(["option", "takes", "default", "for", "meaning"], own),
            "",
            *_kafkas(each for each in OF_KAFKA if each.kind.takes),
            "",
            f"By SASL: {by_name}.",
            "",
            "And with `managedGroup=true`:",
            "",
            *_kafkas(of_members),
        ]
    )


def _to_read(options: Iterable[Option[Any]]) -> Iterator[Option[Any]]:
    return (each for each in options if each.use & Use.READ)


def _kafkas(options: Iterable[Option[Any]]) -> list[str]:
    rows = [[_linked(each.name), each.kind.takes, _default(each), each.meaning] for each in options]
    return _table(["setting", "takes", "default", "meaning"], rows)


def _linked(name: str) -> str:
    return f"[`{name}`]({_KAFKAS}{name.removeprefix('kafka.')})"


def _default(option: Option[Any]) -> str:
    return f"`{option.kind.default}`" if option.kind.default else ""


def _for(option: Option[Any]) -> str:
    since = f"Spark {option.since}+" if option.since else ""
    return ", ".join(filter(None, (_FOR.get(option.use & Use.READ, ""), since)))


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    return [_row(head), "|---" * len(head) + "|", *map(_row, rows)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    MARKS.write(README, summary())
    MARKS.write(REFERENCE, reference())
