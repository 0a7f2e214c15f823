"""The command `local-broker` as a user has it: a process, a port, and Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from spark_kafka_source.command_line.local_broker import _lines
from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing import LocalKafka, LocalRegistry
from spark_kafka_source.testing.ports import free_ports
from tests.command_line.test_process import (
    COMMAND,
    TIMEOUT_SECONDS,
    ctrl_c_ends_processes,
    started,
)
from tests.testing.processes import ENVIRONMENT, still_there
from tools.ports import LOOPBACK

__all__ = ["ctrl_c_ends_processes"]


def directory_of(processes: list[psutil.Process]) -> Path:
    """Return the directory of the broker's data, which its remover has in its command line."""
    (path,) = [line[-1] for each in processes if "remove.sh" in (line := each.cmdline())]
    return Path(path)


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long),
        pytest.param(signal.SIGKILL, -9, marks=pytest.mark.long),
    ],
)
def test_it_runs_until_a_signal_and_leaves_nothing(number: signal.Signals, status: int) -> None:
    (port,) = free_ports(1)
    words = ["local-broker", "--port", str(port), "--topic", "orders:3", "--topic", "more"]
    with started(*words, "--json") as process:
        assert process.stdout is not None
        found = json.loads(process.stdout.readline())
        servers = f"{LOOPBACK}:{port}"
        assert found["bootstrap_servers"] == servers
        assert found["topics"] == {"orders": 3, "more": 1}
        children = psutil.Process(process.pid).children(recursive=True)
        directory = directory_of(children)
        assert directory.exists()
        # What is shown for pasting works, also for a topic that is not there yet.
        for topic in ("orders", "events"):
            done = subprocess.run(
                [*COMMAND, "produce", topic, "-b", servers],
                input="hello\n",
                text=True,
                env=ENVIRONMENT,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
            assert done.returncode == 0
        assert main(["tail", "events", "-b", servers]) == 0
        # A second one cannot have the port.
        second = subprocess.run(
            [*COMMAND, "local-broker", "--port", str(port)],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert second.returncode == 2
        assert second.stderr.startswith(
            f"spark-kafka-source: Option '--port': {port} cannot be had: Address already in use."
        )
        process.send_signal(number)
        assert process.communicate(timeout=TIMEOUT_SECONDS) == ("", "")
        assert process.returncode == status
        assert not still_there(children)
    assert not directory.exists()


@pytest.mark.kafka
@pytest.mark.long
def test_brokers_that_end_are_noted_and_the_last_one_is_its_end() -> None:
    with started("local-broker", "--json", "--brokers", "2") as process:
        assert process.stdout is not None and process.stderr is not None
        assert json.loads(process.stdout.readline())["bootstrap_servers"].count(":") == 2
        children = psutil.Process(process.pid).children(recursive=True)
        # Supervisors have the broker's command line, too.
        first, last = [
            each for each in children if "kafka.Kafka" in each.cmdline() and each.name() == "java"
        ]
        first.kill()
        while "has ended" not in (line := process.stderr.readline()):
            assert line
        last.kill()
        _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
        assert "has ended. From the end of its log" in errors
        assert process.returncode == 1
        assert not still_there(children)


@pytest.mark.kafka
@pytest.mark.registry
@pytest.mark.long
def test_a_registry_and_the_usual_port_or_another() -> None:
    with socket.socket() as usual:
        usual.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            usual.bind((LOOPBACK, 9092))
        except OSError:
            pass  # It is in use, which is what this needs.
        else:
            usual.listen()
        with started("local-broker", "--json", "--registry") as process:
            assert process.stdout is not None
            found = json.loads(process.stdout.readline())
            assert found["registry"].endswith("/apis/ccompat/v7")
            assert not found["bootstrap_servers"].endswith(":9092")
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    assert errors == "Not at the usual port: 9092 cannot be had: Address already in use\n"


def test_without_java_it_says_so_before_a_download(tmp_path: Path) -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "JAVA_HOME"}
    done = subprocess.run(
        [*COMMAND, "local-broker"],
        capture_output=True,
        text=True,
        env={**environment, "PATH": os.devnull, "SPARK_KAFKA_SOURCE_CACHE": str(tmp_path)},
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("spark-kafka-source: There is no 'java' on the PATH")
    assert not list(tmp_path.iterdir())


def test_a_topic_is_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["local-broker", "--topic", "a", "--topic", "a:2"]) == 2
    assert "Option '--topic': the same topic twice" in capsys.readouterr().err


def test_what_is_shown_for_pasting() -> None:
    lines = _lines("127.0.0.1:9092", "http://127.0.0.1:8081", {"orders": 3})
    assert "  bootstrap servers  127.0.0.1:9092" in lines
    assert "  schema registry    http://127.0.0.1:8081" in lines
    assert any(each.endswith(" produce orders -b 127.0.0.1:9092") for each in lines)
    assert any(each.endswith(" tail orders -b 127.0.0.1:9092") for each in lines)
    assert "schema.registry.url" not in pasted(_lines("127.0.0.1:9092", None, {}))


def pasted(lines: list[str]) -> str:
    return "\n".join(lines[lines.index("In PySpark:") + 2 :])


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.registry
def test_what_is_shown_for_pasting_runs(
    spark: SparkSession, kafka: LocalKafka, real_registry: LocalRegistry, topic: str
) -> None:
    for name in (topic, f"{topic}-avro"):
        kafka.create_topic(name)
    names: dict[str, Any] = {"spark": spark}
    exec(pasted(_lines(kafka.bootstrap_servers, real_registry.url, {topic: 1})), names)
    assert names["rows"].count() == 0
    assert [row.id for row in names["typed"].select("value.*").orderBy("id").collect()] == [0, 1, 2]
