"""The processes of the pipeline. A killed or ended process is started again."""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired

import psutil

from tools.reliability.child import SparkChild
from tools.soak.driver import DriverOrders
from tools.soak.reader import ReaderOrders
from tools.soak.rows import COPIES, ORDERS, SCHEMA
from tools.soak.writer import WriterOrders

WRITER, READER, COPYING = "producer", "consumer", "query that copies"
SHARING = ("first query of the group", "second query of the group")
DRIVERS = (COPYING, *SHARING)
ENDED = "ended by itself"
_END_SECONDS = 300
# The parent of the workers that run tasks. The driver's own workers have other modules: if one of
# them dies, Spark ends the query.
_DAEMON = "pyspark.daemon pyspark.worker"

Choose = Callable[[list[psutil.Process]], psutil.Process]


@dataclass(frozen=True, slots=True)
class Part:
    """A process's module, and the function that returns its orders."""

    module: str
    orders: str


class Cast:
    """All processes, by name."""

    def __init__(self, parts: Mapping[str, Part], note: Callable[[str, str], None]) -> None:
        """Create it. `note` gets each event and its process."""
        self._parts, self._note = parts, note
        self._running: dict[str, SparkChild] = {}
        self._wanted: set[str] = set()
        self.lives: Counter[str] = Counter()
        """How often each process was started."""

    def start(self, name: str) -> None:
        """Start a process."""
        part = self._parts[name]
        child = SparkChild(part.module)
        child.begin(part.orders)
        self._running[name] = child
        self._wanted.add(name)
        self.lives[name] += 1

    def kill(self, name: str) -> None:
        """Kill a process with its JVM and its Python workers, and start it again."""
        self._running.pop(name).close()
        self.start(name)

    def kill_worker(self, name: str, choose: Choose) -> bool:
        """Kill a Python worker that runs a driver's tasks. Return whether there was one."""
        found = [each for each in self._running[name].there() if _is_worker(each)]
        if found:
            with suppress(psutil.NoSuchProcess):
                choose(found).kill()
        return bool(found)

    def revive(self) -> None:
        """Restart processes that have ended by themselves."""
        for name in sorted(self._wanted):
            if self._running[name].has_ended:
                self._note(ENDED, name)
                self.kill(name)

    def processes(self) -> dict[str, tuple[int, list[psutil.Process]]]:
        """Return each part's first process id and all its processes."""
        return {name: (child.pid, child.there()) for name, child in list(self._running.items())}

    def end(self, name: str) -> None:
        """End a process regularly."""
        self._wanted.discard(name)
        child = self._running.pop(name)
        try:
            status = child.end(_END_SECONDS)
            if status:
                self._note(f"ended with {status}", name)
        except TimeoutExpired:
            self._note("did not end", name)
        child.close()

    def close(self) -> None:
        """Kill all processes."""
        self._wanted.clear()
        while self._running:
            self._running.popitem()[1].close()


def _is_worker(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        parent = process.parent()
        command = " ".join(process.cmdline())
        return _DAEMON in command and parent is not None and _DAEMON in " ".join(parent.cmdline())
    return False


def parts(
    servers: str, registry: str, directory: Path, rows_a_second: int, seed: int
) -> dict[str, Part]:
    """Return the parts of the pipeline."""
    typed = {"value.format": "avro", "schema.registry.url": registry}
    source = {
        "kafka.bootstrap.servers": servers,
        "subscribe": ORDERS,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    }
    sink = typed | {
        "kafka.bootstrap.servers": servers,
        "topic": COPIES,
        "deliveryGuarantee": "exactly-once",
        "transactionalIdPrefix": "soak-copies",
        "value.schema": SCHEMA,
        "auto.register.schemas": "true",
    }
    shared = source | {
        "kafka.group.id": "soak-group",
        "managedGroup": "true",
        "kafka.group.protocol": ("classic", "consumer")[seed % 2],
    }

    def driver(name: str, source: dict[str, str], sink: dict[str, str]) -> Part:
        home = directory / name.replace(" ", "-")
        home.mkdir()
        orders = DriverOrders(source, sink, str(home), errors_of(directory, name))
        return Part("tools.soak.driver", orders.to_json())

    writer = WriterOrders(
        servers,
        registry,
        str(directory / "ledger"),
        errors_of(directory, WRITER),
        rows_a_second,
        f"{seed}",
    )
    reader = ReaderOrders(servers, registry, str(directory / "notes"), errors_of(directory, READER))
    return {
        WRITER: Part("tools.soak.writer", writer.to_json()),
        READER: Part("tools.soak.reader", reader.to_json()),
        COPYING: driver(COPYING, source | typed, sink),
        **{name: driver(name, shared, {}) for name in SHARING},
    }


def errors_of(directory: Path, name: str) -> str:
    """Return the file of a process's errors."""
    return str(directory / f"{name.replace(' ', '-')}.errors")


class Diary:
    """A log of events, with seconds since the start."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.entries: list[tuple[int, str, str]] = []

    def note(self, what: str, whom: str) -> None:
        """Note an event, and print it."""
        entry = round(time.monotonic() - self._began), what, whom
        self.entries.append(entry)
        print(json.dumps(entry), flush=True)

    def counts(self) -> dict[str, int]:
        """Return how often each event happened."""
        return dict(sorted(Counter(what for _, what, _ in self.entries).items()))
