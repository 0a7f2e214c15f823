"""The notebooks run top to bottom, as a reader runs them, and show their saved outputs."""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer
from tools.notebooks.running import NOTEBOOKS, SESSION, code_cell, drawn, kept, read, run, shown

IN_SPARK = (pytest.mark.spark, pytest.mark.kafka, pytest.mark.long)
BY_NAME = {path.stem: path for path in NOTEBOOKS}
FROM_MS = 1_760_000_000_000

# Names that a cluster provides, and functions that must not run there.
GIVEN = f"""{SESSION}
import spark_kafka_source.testing

del spark_kafka_source.testing.LocalKafka, spark_kafka_source.testing.Producer
"""
STILL_THERE = "assert spark.range(3).count() == 3; spark.stop()"


# Those that take longest; all are run by `make reliability`.
LONGEST = {"exactly_once", "typed_values"}
IN_FULL = (*IN_SPARK, pytest.mark.reliability_full)


@pytest.mark.parametrize(
    "path",
    [pytest.param(each, marks=IN_FULL if each.stem in LONGEST else IN_SPARK) for each in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_shows_what_is_written_in_it(path: Path) -> None:
    written = read(path)
    found = run(read(path))

    assert shown(found) == shown(written), "`make notebooks` writes it anew"
    assert drawn(found) == drawn(written)


def event(_: int, number: int) -> Record:
    return Record(value=b"event %d" % number, timestamp_ms=FROM_MS + number * 60_000)


def order(partition: int, number: int) -> Record:
    number += partition * 1000
    value = json.dumps({"order": number, "amount": number % 100}).encode()
    return Record(b"customer-%d" % (number % 17), value, timestamp_ms=FROM_MS + number * 1000)


@pytest.mark.parametrize(
    ("name", "topic", "partitions", "count", "record"),
    [
        pytest.param("quickstart", "orders", 3, 1000, order, marks=IN_SPARK),
        pytest.param(
            *("backfill_by_offset_range", "events", 2, 5000, event),
            marks=IN_FULL,
        ),
    ],
)
def test_on_databricks_it_starts_neither_a_broker_nor_a_session(
    name: str, topic: str, partitions: int, count: int, record: Callable[[int, int], Record]
) -> None:
    """It also stops none. It reads the existing topic, and shows the same outputs."""
    notebook = read(BY_NAME[name])
    written = shown(notebook)
    with LocalKafka() as kafka:
        kafka.create_topic(topic, partitions=partitions)
        with Producer(kafka.bootstrap_servers) as producer:
            for partition in range(partitions):
                records = [record(partition, number) for number in range(count)]
                producer.send(topic, partition, records)
        for cell in notebook.cells:
            cell.source = cell.source.replace("localhost:9092", kafka.bootstrap_servers)
        notebook.cells = [code_cell(GIVEN), *notebook.cells, code_cell(STILL_THERE)]
        found = shown(run(notebook, DATABRICKS_RUNTIME_VERSION="17.3"))

    # Kafka's own tool is not available there.
    own = [each.partition("\nGROUP ")[0] for each in written]
    assert found == ["", *own, ""]


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        (
            "backfill_by_offset_range",
            [
                "|partition|first|last|",
                "|        0| 1200|1299| 100|",
                "|        1|    0| 499| 500|",
                "DataLossError: [KAFKA_DATA_LOSS.START_OFFSET_RESET] Option 'endingOffsets': "
                "offset 99999 of events-0 is not in its log, which has offsets 0 to 5000\n",
            ],
        ),
        (
            "quickstart",
            [
                "micro-batch 2 read 600 rows",
                "|        2| 1000|",
                "orders-2 committed 1000 lag 0",
                "quickstart      orders          2          1000            1000            0 ",
            ],
        ),
        (
            "typed_values",
            [
                "struct<id:bigint,amount:decimal(10,2)>",
                "|      83|           67|          149|         13446.00|",
                "|151   |1        |id: the value ends before the record does|",
                "['7b 22 69 64 22 3a 20 31 7d', '00 00 00 00 01 02', '00 00 0f 42 40 02 02']",
                "|gift|    3|",
                "|     153|         53|               153|",
            ],
        ),
    ],
)
def test_a_reader_sees_what_it_is_about(name: str, texts: list[str]) -> None:
    written = "".join(shown(read(BY_NAME[name])))

    assert [text for text in texts if text not in written] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_is_written_as_it_was_run_and_names_no_machine(path: Path) -> None:
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = "".join(shown(notebook))

    assert any(drawn(notebook))
    assert [cell.execution_count for cell in code] == [*range(1, len(code) + 1)]
    assert notebook == kept(deepcopy(notebook)), "times and versions, or what went to stderr"
    assert (
        re.findall(r"(?:^|[\s'\"(])/\w[^\s|]*/|\w:[0-9]{4,5}\b|[0-9]+(?:\.[0-9]+){3}", outputs)
        == []
    )


def test_there_are_notebooks() -> None:
    assert BY_NAME.keys() >= {"quickstart", "backfill_by_offset_range", "typed_values"}
