"""A driver is killed with all of its processes, and one that fails says so."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from spark_kafka_source.demo.driver import Driver
from spark_kafka_source.errors import LocalError
from tests.testing.processes import still_there

pytestmark = pytest.mark.slow

# Like Spark: a child in the same process group, as a JVM is, and a child in a group of its own, as
# the Python workers are.
WITH_CHILDREN = """
import os, subprocess, sys, tempfile
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
children = [subprocess.Popen(sleep), subprocess.Popen(sleep, process_group=0)]
print(tempfile.gettempdir(), flush=True)
sys.stdin.readline()
for child in children:
    child.kill()
    child.wait()
"""
FAILS = "import sys; print('the reason'); sys.exit(3)"


@pytest.fixture
def driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Driver:
    (tmp_path / "some_driver.py").write_text(request.param)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Driver("some_driver", [], tmp_path)


def wait(until: Callable[[], bool]) -> None:
    end_seconds = time.monotonic() + 60
    while not until():
        assert time.monotonic() < end_seconds
        time.sleep(0.02)


def processes_of(driver: Driver) -> list[psutil.Process]:
    process = psutil.Process(driver._process.pid)
    return [process, *process.children(recursive=True)]


@pytest.mark.parametrize("driver", [WITH_CHILDREN], indirect=True)
def test_all_of_its_processes_are_killed(driver: Driver, tmp_path: Path) -> None:
    wait(lambda: (tmp_path / "log").read_text() == f"{tmp_path}\n")
    its_own = processes_of(driver)
    assert driver.kill() == len(its_own) == 3
    assert not still_there(its_own)
    assert driver.kill() == 0


@pytest.mark.parametrize("driver", [WITH_CHILDREN], indirect=True)
def test_a_process_that_does_not_die_is_an_error(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that waits for a device outlives SIGKILL. Here the list of processes has one."""
    wait(lambda: (tmp_path / "log").read_text() == f"{tmp_path}\n")
    its_own = processes_of(driver)
    monkeypatch.setattr("spark_kafka_source.demo.driver._KILL_SECONDS", 0.2)
    monkeypatch.setattr("spark_kafka_source.demo.driver._processes", lambda _: [2**22])
    with pytest.raises(LocalError, match=f"within 0.2 seconds: {2**22}. They may wait"):
        driver.kill()
    monkeypatch.undo()
    driver.kill()
    assert not still_there(its_own)


@pytest.mark.parametrize("driver", [WITH_CHILDREN], indirect=True)
def test_a_line_ends_it_in_order(driver: Driver) -> None:
    assert not driver.has_ended()
    driver.tell()
    wait(driver.has_ended)
    assert driver.kill() == 0


@pytest.mark.parametrize("driver", [FAILS], indirect=True)
def test_one_that_fails_says_why(driver: Driver) -> None:
    def has_failed() -> bool:
        try:
            return driver.has_ended()
        except LocalError as error:
            assert str(error) == "A driver has ended with status 3: the reason"
            return True

    wait(has_failed)
    driver.tell()
    assert driver.kill() == 0
