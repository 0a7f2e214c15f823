"""Memory, threads, sockets and files of the processes, every few seconds."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

METRICS = ("MiB", "threads", "sockets", "files")
_MIB = 1 << 20
_JVM, _WORKERS = ": JVM", ": workers"


@dataclass(frozen=True, slots=True)
class Sample:
    """Sums over the processes of one role at one time. `life` is the id of the first process."""

    seconds: float
    role: str
    life: int
    values: tuple[float, ...]
    """In the order of `METRICS`."""


def take(began: float, parts: Mapping[str, tuple[int, list[psutil.Process]]]) -> Iterator[Sample]:
    """Yield a sample of each role: a part's own Python, its workers, its JVM."""
    seconds = time.monotonic() - began
    for name, (life, processes) in parts.items():
        roles: dict[str, list[tuple[float, ...]]] = {}
        for each in processes:
            with suppress(psutil.Error, OSError):
                roles.setdefault(_role(name, life, each), []).append(_measure(each))
        for role, found in roles.items():
            sums = tuple(map(sum, zip(*found, strict=True)))
            yield Sample(round(seconds, 1), role, life, sums)


def _role(name: str, life: int, process: psutil.Process) -> str:
    if process.pid == life:
        return name
    return f"{name}{_JVM if process.name() == 'java' else _WORKERS}"


def is_jvm(role: str) -> bool:
    """Return whether it is the role of a driver's JVM."""
    return role.endswith(_JVM)


def is_worker(role: str) -> bool:
    """Return whether it is the role of a driver's Python workers."""
    return role.endswith(_WORKERS)


def _measure(process: psutil.Process) -> tuple[float, ...]:
    with process.oneshot():
        memory, threads = process.memory_info().rss / _MIB, process.num_threads()
    sockets = files = 0
    for each in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(OSError):
            is_socket = str(each.readlink()).startswith("socket:")
            sockets += is_socket
            files += not is_socket
    return round(memory, 1), threads, sockets, files


def write(samples: Iterable[Sample], path: Path) -> None:
    """Append samples to a file."""
    with path.open("a") as file:
        file.writelines(f"{json.dumps(asdict(each))}\n" for each in samples)


def read(path: Path) -> list[Sample]:
    """Return all samples of a file."""
    found = map(json.loads, path.read_text().splitlines())
    return [Sample(**each | {"values": tuple(each["values"])}) for each in found]
