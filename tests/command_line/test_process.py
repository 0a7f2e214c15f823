"""The process: its end by Ctrl-C, and by a reader that closes its pipe."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from spark_kafka_source.testing.memory import MemoryBroker
from tests.admin.conftest import address
from tests.testing.processes import running_python

COMMAND = [sys.executable, "-m", "spark_kafka_source"]
TIMEOUT_SECONDS = 300
"""The longest life of a process. A busy machine needs a minute for a broker and some commands."""


@pytest.fixture(autouse=True)
def ctrl_c_ends_processes() -> Iterator[None]:
    """Heed SIGINT. A shell's background jobs ignore it, and their children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def broker(broker: MemoryBroker) -> MemoryBroker:
    broker.create_topic("t")[0].append(*[b"value"] * 20_000)
    broker.held_step_seconds = 0.01
    return broker


def started(*words: str) -> AbstractContextManager["subprocess.Popen[str]"]:
    """Run the command."""
    return running_python("-m", "spark_kafka_source", *words, timeout_seconds=TIMEOUT_SECONDS)


def test_it_follows_until_ctrl_c_and_ends_quietly(broker: MemoryBroker) -> None:
    with started("tail", "t", "--follow", "-n", "1", "-b", address(broker)) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("0:19999  ")
        broker.cluster.topics["t"].logs[0].append(b"later")
        assert process.stdout.readline().endswith("  later\n")
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=TIMEOUT_SECONDS) == ("", "")
    assert process.returncode == 130


def test_a_reader_that_has_enough_ends_it_quietly(broker: MemoryBroker) -> None:
    with started("tail", "t", "--from", "earliest", "-b", address(broker)) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().startswith("0:0  ")
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(TIMEOUT_SECONDS) == 0
