"""Loading of compiled kernels: no read waits for them or fails because of them."""

import logging
import subprocess
import sys

import pytest

from spark_kafka_source.records import compiled, machine_code
from spark_kafka_source.records.compiled import Kernels
from spark_kafka_source.records.machine_code import Loading

KERNELS = Kernels(lambda: True, lambda: True, lambda: 0)


def loaded(loading: Loading[Kernels]) -> Kernels | None:
    assert loading.thread is not None
    loading.thread.join()
    return loading.kernels(0)


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that numba is installed and compiles at once."""
    monkeypatch.setattr(machine_code, "find_spec", lambda name: name)


@pytest.mark.usefixtures("numba")
def test_kernels_are_loaded_once_so_many_records_were_read() -> None:
    loading = Loading(lambda: KERNELS, after_records=10)
    assert loading.kernels(10) is None
    assert loading.thread is None
    loading.kernels(1)
    thread = loading.thread
    assert loaded(loading) is KERNELS
    assert loading.thread is thread


def test_without_numba_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(machine_code, "find_spec", lambda name: None)
    loading = Loading(lambda: KERNELS, after_records=0)
    loading.kernels(1)
    assert loaded(loading) is None
    assert not caplog.records


def test_a_broken_numba_is_warned_of_and_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(machine_code, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "numba", None)
    loading = Loading(compiled.load, after_records=0)
    loading.kernels(1)
    assert loaded(loading) is None
    ((_, level, message),) = caplog.record_tuples
    assert level == logging.WARNING
    assert "numba is installed but cannot be used" in message


@pytest.mark.usefixtures("numba")
def test_numba_is_not_imported_before_it_pays() -> None:
    code = "import sys, spark_kafka_source; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
