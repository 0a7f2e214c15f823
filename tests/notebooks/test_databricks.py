"""The notebook for Databricks on Apache Spark, with stand-ins for what a workspace gives."""

import json
import re
from pathlib import Path

import pytest

from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer, Security
from tests.exactly_once.judge import found_by_confluent
from tools.notebooks.running import DATABRICKS, SESSION, code_cell, read, run, shown

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.long]

ROWS, PASSWORD = 50, "a password"

GIVEN = """
import json
from types import SimpleNamespace

widgets, parameters = {{}}, json.loads({parameters!r})
dbutils = SimpleNamespace(
    widgets=SimpleNamespace(
        text=widgets.setdefault, get=lambda name: parameters.get(name, widgets[name])
    ),
    secrets=SimpleNamespace(get=lambda scope, key: json.loads({secrets!r})[scope][key]),
)
"""


def _warehouse(directory: Path) -> str:
    return f"--conf spark.sql.warehouse.dir={directory / 'warehouse'} pyspark-shell"


def test_it_runs_with_a_login_from_a_secret_scope(tmp_path: Path) -> None:
    with LocalKafka(security=Security({"alice": PASSWORD})) as kafka:
        for topic in ("orders", "orders-copy"):
            kafka.create_topic(topic, partitions=2)
        values = [
            json.dumps({"n": number, "text": f"row {number}"}, separators=(",", ":")).encode()
            for number in range(ROWS)
        ]
        with Producer(kafka.bootstrap_servers) as producer:
            for partition in range(2):
                records = [Record(b"k", value) for value in values[partition::2]]
                producer.send("orders", partition, records)
            producer.send("orders", 0, [Record(b"k", b"{broken")])
        parameters = {
            "bootstrap_servers": kafka.bootstrap_servers_of("SASL_SSL"),
            "table": "orders",
            "volume": str(tmp_path),
            "secret_scope": "kafka",
            "ca_file": str(kafka.authority.certificate),
        }
        given = GIVEN.format(
            parameters=json.dumps(parameters),
            secrets=json.dumps({"kafka": {"user": "alice", "password": PASSWORD}}),
        )
        notebook = read(DATABRICKS)
        cells = [cell for cell in notebook.cells if not cell.source.startswith("%pip")]
        notebook.cells = [code_cell(SESSION), code_cell(given), *cells, code_cell("spark.stop()")]
        # Spark makes its warehouse in the working directory.
        texts = "".join(shown(run(notebook, PYSPARK_SUBMIT_ARGS=_warehouse(tmp_path))))
        copied = found_by_confluent(kafka.bootstrap_servers, "orders-copy", 2)

    by_error = dict(re.findall(r"^\|(.*?) *\|(\d+) *\|$", texts, re.MULTILINE))
    assert by_error.pop("NULL") == str(ROWS)
    ((error, count),) = by_error.items()
    assert "not JSON" in error
    assert count == "1"
    assert f"{ROWS} rows in the copy" in texts
    assert sorted(copied.values) == sorted(values)
    assert copied.held_up == 0
    assert PASSWORD not in texts
