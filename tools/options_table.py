"""The tables of options, from their declarations: `python -m tools.options_table`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from spark_kafka_source.consumer import consumer_config
from spark_kafka_source.options.declaration import ANY_USE, Option, Use
from spark_kafka_source.producer import producer_config
from spark_kafka_source.registry import REGISTRY_TLS_OPTIONS
from spark_kafka_source.spark.all_options import OPTIONS
from spark_kafka_source.spark.sink import options as of_sinks
from spark_kafka_source.spark.source import options as of_sources
from spark_kafka_source.typed import TYPED_OPTIONS
from tools.marks import Marks

PROJECT = Path(__file__).parents[1]
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
_FROM = re.compile(r"^a whole number from (?=.+ to )(.+)$")
_LEAST = re.compile(r"^a whole number from (-?\d+)$")
_KAFKAS = "https://kafka.apache.org/documentation/#"
_AS_ARGUMENTS = """`KafkaConsumer` and `KafkaProducer` take the settings of Kafka's clients as
arguments, without `kafka.` and with underscores for dots, and these:"""
_AS_IN_KAFKA = "As in Kafka, with the default in parentheses:"
_GROUPS = {
    "Brokers and topics": r"kafka\.bootstrap\.servers|assign|subscribe.*|partitions",
    "Where to begin": r"starting.*|minOffset",
    "Where to end": r"ending.*|maxOffset",
    "Columns": r"includeHeaders|columns",
    "Lost records and errors": r"failOnDataLoss|movedToCluster|maxRecordBytes|unknownOptions",
    "Micro-batches": r".*PerTrigger|maxTriggerDelay|limitsWithAvailableNow",
    "Tasks": r"m\w+Partitions?|progress|kafkaConsumer\..+|fetchOffset\..+",
    "Groups": r"kafka\.group\..+|managedGroup|groupIdPrefix",
}
"""Headings for the options of a reader, each with a pattern of their names."""
_TYPED_GROUPS = {
    "Format and schema": r"\w+\.(format|framing|schema.*|message|fields|validate)",
    "Bad records": r"badRecords.*",
    "Schema registry": r"schema\.registry\..+",
    "Details of Avro, JSON and Protobuf": r"(key|value)\..+",
}
_SHARED_GROUPS = {
    "TLS": r"kafka\.(security\.protocol|ssl\..+)",
    "Logins": r"kafka\.sasl\..+",
    "Connections": r"kafka\..+",
}


_OF_QUERIES = {"kafka.bootstrap.servers", *of_sources.OPTIONS, *of_sinks.OPTIONS}
_KAFKAS_NAMES = {name for name in OPTIONS if name.startswith("kafka.")} - _OF_QUERIES
"""Settings of Kafka's clients, without those that are a query's own."""
_OF_VALUES = TYPED_OPTIONS.keys()
_BYTES = [each for name, each in OPTIONS.items() if name not in _KAFKAS_NAMES | _OF_VALUES]
"""Options that have nothing to do with typed keys and values."""
_TYPED = [each for name, each in TYPED_OPTIONS.items() if name not in REGISTRY_TLS_OPTIONS]


def reference() -> str:
    """Return the tables of docs/options.md: all options with their values."""
    of_members = [each for name, each in of_sources.OF_A_MEMBER.items() if name not in OPTIONS]
    kafkas = [OPTIONS[name] for name in OPTIONS if name in _KAFKAS_NAMES]
    of_written_values = [each for each in _TYPED if not each.use & Use.READ]
    of_tls = ", ".join(f"`{name}`" for name in REGISTRY_TLS_OPTIONS)
    return "\n".join(
        [
            '<div class="options" markdown>',
            "",
            "## To read",
            "",
            *_grouped(_GROUPS, _of(Use.READ, _BYTES), lambda part: _own(Use.READ, part)),
            "With `managedGroup=true` a",
            "reader also has these settings of a member. As in Kafka, with the default in",
            "parentheses:",
            "",
            *_listed(Use.READ, of_members),
            "",
            "### Fetches",
            "",
            *_kafkas(Use.READ, kafkas),
            "",
            "## Typed values to read",
            "",
            "[Typed values](typed-values.md) has examples.",
            "",
            *_grouped(_TYPED_GROUPS, _of(Use.READ, _TYPED), lambda part: _own(Use.READ, part)),
            f"The registry's TLS is set as that of the brokers: {of_tls}.",
            "",
            "## To write",
            "",
            *_own(Use.WRITE),
            "",
            "### Producer",
            "",
            *_kafkas(Use.WRITE, kafkas),
            "",
            "## Typed values to write",
            "",
            "A [writer](typed-values.md#writing) also takes a reader's options of the format, the "
            "schema and the registry.",
            "",
            *_own(Use.WRITE, of_written_values),
            "",
            "## To read and to write",
            "",
            *_grouped(_SHARED_GROUPS, kafkas, lambda part: _kafkas(Use.BOTH, part), Use.BOTH),
            "## Without Spark",
            "",
            _AS_ARGUMENTS,
            "",
            *_of_clients({*OPTIONS, *of_sources.OF_A_MEMBER}),
            "",
            "</div>",
        ]
    )


def _grouped(
    groups: Mapping[str, str],
    options: Iterable[Option[Any]],
    lines: Callable[[list[Option[Any]]], list[str]],
    only: Use = ANY_USE,
) -> list[str]:
    """Return a heading and the lines of each group. Each option is in the first that it fits."""
    parts: dict[str, list[Option[Any]]] = {heading: [] for heading in groups}
    for each in options:
        if not only or each.use is only:
            fits = (heading for heading in groups if re.fullmatch(groups[heading], each.name))
            parts[next(fits)].append(each)
    return [
        line for heading, part in parts.items() for line in [f"### {heading}", "", *lines(part), ""]
    ]


def _own(use: Use, options: Iterable[Option[Any]] = _BYTES) -> list[str]:
    rows = [
        [f"`{each.name}`", _meaning(each, use), _takes(each), _default(each)]
        for each in _of(use, options)
    ]
    return _table(["option", "meaning", "takes", "default"], rows)


def _of(use: Use, options: Iterable[Option[Any]]) -> Iterator[Option[Any]]:
    return (each for each in options if each.use & use)


def _kafkas(use: Use, options: Iterable[Option[Any]]) -> list[str]:
    """Return a table of Kafka's settings for this use only, and a list of the usual ones."""
    mine = [
        each
        for each in options
        if each.use in use and (use is not Use.BOTH or each.use is Use.BOTH)
    ]
    rows = [
        [_linked(each.name, use), each.meaning, _takes(each), _default(each)]
        for each in mine
        if each.meaning
    ]
    lines = _table(["setting", "meaning", "takes", "default"], rows)
    if usual := [each for each in mine if not each.meaning]:
        lines += ["", _AS_IN_KAFKA, "", *_listed(use, usual)]
    return lines


def _listed(use: Use, options: Iterable[Option[Any]]) -> list[str]:
    """Return a list of settings that mean here what Kafka's page says."""
    return [f"- {_linked(each.name, use)}{_in_words(each)}" for each in options]


def _in_words(option: Option[Any]) -> str:
    takes = "" if option.kind.takes.endswith("text") else f": {_takes(option)}"
    return takes + (f" ({_default(option)})" if option.kind.default else "")


def _of_clients(known: set[str]) -> list[str]:
    """Return the table of the settings that only the clients in Python have."""
    clients = {
        "consumer": consumer_config.VOCABULARY.known,
        "producer": producer_config.VOCABULARY.known,
    }
    of_both = set.intersection(*map(set, clients.values()))
    mine = [
        (_argument(name, client), each, "both" if name in of_both else client)
        for client, options in clients.items()
        for name, each in options.items()
        if name not in known and not (client == "producer" and name in of_both)
    ]
    rows = [
        [name, each.meaning, _takes(each), _default(each), whose]
        for name, each, whose in mine
        if each.meaning
    ]
    usual = [
        f"- {name}, {whose}{_in_words(each)}" for name, each, whose in mine if not each.meaning
    ]
    return [
        *_table(["setting", "meaning", "takes", "default", "of"], rows),
        "",
        _AS_IN_KAFKA,
        "",
        *usual,
    ]


def _argument(name: str, client: str) -> str:
    plain = name.removeprefix("kafka.")
    return f"[`{plain.replace('.', '_')}`]({_KAFKAS}{client}configs_{plain})"


def _linked(name: str, use: Use) -> str:
    page = "producerconfigs" if use is Use.WRITE else "consumerconfigs"
    if name in NOT_OF_JAVA:
        return f"`{name}`"
    return f"[`{name}`]({_KAFKAS}{page}_{name.removeprefix('kafka.')})"


def _takes(option: Option[Any]) -> str:
    """Return what the option takes. Most are whole numbers: these are short."""
    return _LEAST.sub(r"\1 or more", _FROM.sub(r"\1", option.kind.takes))


def _default(option: Option[Any]) -> str:
    return f"`{option.kind.default}`" if option.kind.default else ""


def _meaning(option: Option[Any], use: Use) -> str:
    """Return the option's meaning, and for which queries it is."""
    where = _FOR.get(option.use & use)
    return f"{option.meaning} ({where})" if where else option.meaning


def _table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """Return the lines of a table, without columns that are empty in all rows.

    Options of which the table says the same, as of `key.format` and `value.format`, share a row.
    """
    joined: dict[tuple[str, ...], list[str]] = {}
    for name, *others in rows:
        said = tuple(others) if others[0] else (name, *others)
        if said in joined:
            joined[said][0] += f",<br>{name}"
        else:
            joined[said] = [name, *others]
    columns = [each for each in zip(head, *joined.values(), strict=True) if any(each[1:])]
    first, *others = (_row(cells) for cells in zip(*columns, strict=True))
    return [first, "|---" * len(columns) + "|", *others]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    MARKS.write(REFERENCE, reference())
