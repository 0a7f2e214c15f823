"""Work of a Python worker before each task."""

import gc
import platform
import subprocess
import sys
from types import ModuleType

import pytest

from spark_kafka_source.client import ClientConfig
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.net import Address
from spark_kafka_source.producer import ProducerConfig
from spark_kafka_source.spark.python_worker import RACK, FrozenImports, in_this_rack


def test_imports_are_frozen_once_and_again_after_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[int] = []
    imports = FrozenImports()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(len(sys.modules)))
    imports.freeze()
    imports.freeze()
    assert len(frozen) == 1
    monkeypatch.setitem(sys.modules, "one_more", ModuleType("one_more"))
    imports.freeze()
    assert len(frozen) == 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that gives memory back")
def test_what_a_task_frees_is_kept_for_its_next_fetch() -> None:
    """The test uses its own process, because an earlier freed block would change the result."""
    run = subprocess.run([sys.executable, "-c", PAGE_FAULTS], capture_output=True, check=True)
    before, after = map(int, run.stdout.split())
    assert before > 1000
    assert after < 100


PAGE_FAULTS = """
import gc, resource
from spark_kafka_source.records.freed_memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        held = [bytearray(3 << 20), bytearray(1 << 20)]
        del held
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults())
keep_freed_memory()
faults()
print(faults())
"""


@pytest.mark.parametrize(
    ("option", "variable", "expected"),
    [("", "", ""), ("", "here", "here"), ("one", "here", "one"), ("one", "", "one")],
)
def test_the_rack_is_the_options_or_the_executors(
    monkeypatch: pytest.MonkeyPatch, option: str, variable: str, expected: str
) -> None:
    monkeypatch.setenv(RACK, variable)
    assert in_this_rack(FetchConfig(client_rack=option)).client_rack == expected
    config = ProducerConfig(ClientConfig((Address("broker", 9092),)), client_rack=option)
    assert in_this_rack(config).client_rack == expected
