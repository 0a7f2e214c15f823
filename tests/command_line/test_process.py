"""The process: its end by Ctrl-C, and by a reader that closes its pipe."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.admin.conftest import address
from tests.memory_broker import MemoryBroker

COMMAND = [sys.executable, "-m", "spark_kafka_source"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
TIMEOUT_SECONDS = 60


@pytest.fixture(autouse=True)
def ctrl_c_ends_processes() -> Iterator[None]:
    """Heed SIGINT. A shell's background jobs ignore it, and their children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def broker() -> Iterator[MemoryBroker]:
    with MemoryBroker() as broker:
        broker.create_topic("t")[0].append(*[b"value"] * 20_000)
        broker.held_step_seconds = 0.01
        yield broker


@contextmanager
def started(*words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run the command. A timeout kills it, which also ends the reads of its output."""
    with subprocess.Popen(
        [*COMMAND, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        cwd=Path(__file__).parents[2],
    ) as process:
        too_long = threading.Timer(TIMEOUT_SECONDS, process.kill)
        too_long.start()
        try:
            yield process
        finally:
            too_long.cancel()
            process.kill()


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
