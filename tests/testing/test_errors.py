"""An error's text has all needed information, and fits on a screen."""

import pickle
from pathlib import Path

from spark_kafka_source.testing import BrokerFailedError, JarsError, ToolError

LINES = [f"line {number}" for number in range(100)]


def test_a_failed_broker_shows_the_end_of_its_log(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("\n".join(LINES))
    error = BrokerFailedError("Broker 1 ended", log)
    # The log is deleted with the broker's directory. The text stays.
    log.unlink()
    assert str(error).splitlines() == [
        f"Broker 1 ended. From the end of its log, {log}:",
        *LINES[-40:],
    ]


def test_a_failed_broker_shows_its_complaints_also_from_before_the_end_of_its_log(
    tmp_path: Path,
) -> None:
    complaints = [
        "2026-01-01T00:00:00,000 ERROR Exiting (kafka.Kafka)",
        "java.lang.ClassNotFoundException: no.such.Class",
        "Caused by: java.net.BindException: in use",
    ]
    stack = ["\tat java.base/java.lang.Class.forName0(Native Method)"]
    log = tmp_path / "broker.log"
    log.write_text("\n".join([*LINES, *complaints, *stack, *LINES]))
    assert str(BrokerFailedError("Broker 1 ended", log)).splitlines()[1:] == [
        *complaints,
        *LINES[-40:],
    ]


def test_a_broker_without_a_log_has_none_to_show(tmp_path: Path) -> None:
    assert str(BrokerFailedError("Broker 1 ended", tmp_path / "none")).endswith("none:\n")


def test_a_failed_tool_shows_the_beginning_of_what_it_wrote() -> None:
    shown = str(ToolError("topics", "ended with 1", "\n".join(LINES))).splitlines()
    assert shown == ["Kafka's tool 'topics' ended with 1:", *LINES[:40]]


def test_errors_survive_a_pickle(tmp_path: Path) -> None:
    for error in (
        JarsError(["a:b:1"], "not found"),
        ToolError("topics", "ended with 1", "text"),
        BrokerFailedError("Broker 1 ended", tmp_path / "none"),
    ):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
