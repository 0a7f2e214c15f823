"""This version beside an earlier one. Both read the same topics in turn.

    python -m tools.benchmarks.versions --before DIRECTORY [--only scans,...] [--page PAGE]

DIRECTORY is a checkout of the earlier version. It runs in the environment of this version. Each
version has a Spark session of its own, and the peer and the floor share a third one. The tables:

    scans       seconds of a scan, and how many times as fast as the peer each version is
    micro       milliseconds of a micro-batch, and how much longer than the floor it takes
    sinks       milliseconds of a micro-batch that writes, beside the peer's, also exactly once
    together    round trips of a task that reads 64 small partitions, each trip 20 ms
    imports     milliseconds to import the package, over pyspark's own imports
    calls       microseconds of one call of a consumer or a producer
    records     nanoseconds of processor time for a record, beside confluent-kafka
    rows        seconds to write a cached DataFrame, beside the peer
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from spark_kafka_source.testing import LocalKafka, Security
from spark_kafka_source.testing.ports import free_ports
from tests.security.options import USERS, options_of
from tools.benchmarks import one_call, one_client, one_version
from tools.benchmarks.delay import delayed
from tools.benchmarks.interleaved import Ratio, Seconds, interleaved, medians
from tools.benchmarks.page import add_page, publish, table
from tools.benchmarks.produce import new_topic
from tools.benchmarks.scan import Case, filled
from tools.benchmarks.session import broker
from tools.benchmarks.sources import CEILING, FAST, PEER, PLAIN
from tools.benchmarks.topics import CODECS, fill
from tools.benchmarks.trickle import TOGETHER, trickling

HERE = Path(__file__).parents[2]
BEFORE, NOW, FLOOR = "before", "now", "floor"
CASES = (*map(Case, CODECS), Case("lz4", 2048, rows=1_000_000))
LISTENERS = (("SSL", ""), ("SASL_SSL", "SCRAM-SHA-512"))
MICRO = ((16, PLAIN), (64, PLAIN), (256, TOGETHER))
SINK_TASKS, OURS, EXACT = (4, 16, 64), "pykafka", "exactly once"
ROWS, CONFLUENT = 2_000_000, "confluent-kafka"
RECORDS = {
    "send": "confluent_send",
    "send_told": "confluent_send_told",
    "send_columns": "confluent_send",
    "loop": "confluent_loop",
}
"""Way of a client, and the way of confluent-kafka beside it; see `one_client`."""
SMALL_PARTITIONS, ROUND_TRIP_MS = 64, 20.0
IMPORTS = {
    "the options": "spark.data_source",
    "a batch": "spark.source.batch",
    "a stream": "spark.source.stream",
}
"""Module that each step of a query imports."""


class Session:
    """A Spark session in its own process, with the sources of one version."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._answer()

    def scan(self, source: str, options: Mapping[str, str]) -> float:
        """Return the seconds of a scan."""
        return self._order(run="scan", source=source, options=options)

    def stream(self, source: str, options: Mapping[str, str], batches: int = 20) -> float:
        """Return the median seconds of a micro-batch."""
        return self._order(run="stream", source=source, options=options, batches=batches)

    def write(self, rows: Mapping[str, str], sink: str, options: Mapping[str, str]) -> float:
        """Return the median seconds of a micro-batch that writes ready rows."""
        return self._order(run="write", rows=rows, sink=sink, options=options)

    def write_frame(self, count: int, sink: str, options: Mapping[str, str]) -> float:
        """Return the seconds to write a DataFrame of `count` rows."""
        return self._order(run="write_frame", count=count, sink=sink, options=options)

    def _order(self, **order: object) -> float:
        assert self._process.stdin is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._answer()
        assert isinstance(answer, float)
        return answer

    def _answer(self) -> object:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


class Sessions(NamedTuple):
    """The sessions of a comparison."""

    before: Session
    now: Session
    other: Session
    """For the peer and the floor, so that each session runs as many queries."""


@contextmanager
def running(directory: Path) -> Iterator[Session]:
    """Start a session with the version of a checkout. It ends with the context."""
    command = [sys.executable, "-P", one_version.__file__]
    environment = {**os.environ, "PYTHONPATH": str(directory), "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=directory,
    ) as process:
        try:
            yield Session(process)
        finally:
            process.kill()


def main() -> None:
    arguments = _arguments()
    with ExitStack() as stack:
        directories = (arguments.before, HERE, HERE)
        sessions = Sessions(*(stack.enter_context(running(each)) for each in directories))
        for name in arguments.only.split(","):
            rows = _TABLES[name](sessions, arguments)
            command = f"tools.benchmarks.versions --before DIRECTORY --only {name}"
            publish(f"versions-{name}", command, rows, arguments.page)


def _scans(sessions: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Scan with both versions and the peer, by codecs, then through TLS."""
    found: dict[str, Seconds] = {}

    def measure(name: str, options: Mapping[str, str]) -> None:
        ways: dict[str, Callable[[], float]] = {
            PEER: partial(sessions.other.scan, PEER, options),
            BEFORE: partial(sessions.before.scan, FAST, options),
            NOW: partial(sessions.now.scan, FAST, options),
        }
        found[name] = interleaved(ways, arguments.runs)

    with broker() as kafka:
        for case in CASES:
            with filled(kafka, case) as topic:
                measure(str(case), _options(kafka.bootstrap_servers, topic))
    with broker(security=Security(USERS)) as kafka, filled(kafka, Case("lz4")) as topic:
        for listener, mechanism in LISTENERS:
            login = options_of(kafka, listener, mechanism)
            measure(f"lz4, 150 B, {listener}", _options("", topic) | login)
    head = ("scan", "peer s", "before s", "now s", "before x", "now x", "before/now")
    yield from table(head, (_scan_cells(name, each) for name, each in found.items()))


def _scan_cells(name: str, seconds: Seconds) -> list[str]:
    took = medians(seconds)
    pairs = ((PEER, BEFORE), (PEER, NOW), (BEFORE, NOW))
    ratios = [str(Ratio.of(seconds, over, under)) for over, under in pairs]
    return [name, *(f"{took[each]:.2f}" for each in (PEER, BEFORE, NOW)), *ratios]


def _micro(sessions: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Run small micro-batches of both versions and of the floor."""
    rows = []
    with broker() as kafka:
        for partitions, way in MICRO:
            name = f"{partitions} partitions{', together' if way == TOGETHER else ''}"
            seconds = _micro_batches(kafka, sessions, partitions, way, arguments.runs)
            took = medians(seconds)
            ratios = [str(Ratio.of(seconds, each, FLOOR)) for each in (BEFORE, NOW)]
            rows.append([name, *(f"{took[each] * 1000:.0f}" for each in took), *ratios])
    head = ("micro-batches", "before ms", "now ms", "floor ms", "before/floor", "now/floor")
    yield from table(head, rows)


def _micro_batches(
    kafka: LocalKafka, sessions: Sessions, partitions: int, way: str, runs: int
) -> Seconds:
    topic = f"micro-{partitions}"
    kafka.create_topic(topic, partitions=partitions)
    options = _options(kafka.bootstrap_servers, topic) | {"startingOffsets": "latest"}
    if way == TOGETHER:
        options["minRecordsPerPartition"] = "10000"
    ready = {"partitions": str(partitions), "valueBytes": "150"}

    def run(session: Session, source: str, given: Mapping[str, str]) -> float:
        # The writer runs beside the floor, too, since it uses a part of the machine.
        with trickling(kafka, topic, partitions):
            return session.stream(source, given)

    ways: dict[str, Callable[[], float]] = {
        BEFORE: partial(run, sessions.before, PLAIN, options),
        NOW: partial(run, sessions.now, PLAIN, options),
        FLOOR: partial(run, sessions.other, CEILING, ready),
    }
    return interleaved(ways, runs)


def _sinks(sessions: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Write small micro-batches with both versions and the peer, at least and exactly once."""
    rows = []
    with broker() as kafka:
        for tasks in SINK_TASKS:
            seconds = _written(kafka, sessions, tasks, arguments.runs)
            took = {name: f"{each * 1000:.0f}" for name, each in medians(seconds).items()}
            ratios = [str(Ratio.of(seconds, each, PEER)) for each in (BEFORE, NOW)]
            more = [
                f"{1000 * median(_differences(seconds, exact, plain)):+.0f}"
                for exact, plain in ((f"{EXACT} {BEFORE}", BEFORE), (f"{EXACT} {NOW}", NOW))
            ]
            rows.append([f"{tasks} tasks of 10 rows", *took.values(), *ratios, *more])
    ways = ("peer ms", "before ms", "now ms", "exactly once before ms", "exactly once now ms")
    head = ("micro-batch", *ways, "before/peer", "now/peer", "more before ms", "more now ms")
    yield from table(head, rows)


def _written(kafka: LocalKafka, sessions: Sessions, tasks: int, runs: int) -> Seconds:
    ready = {"partitions": str(tasks), "rows": "10", "valueBytes": "150"}
    exactly = {"deliveryGuarantee": "exactly-once"}

    def run(session: Session, sink: str, given: dict[str, str]) -> float:
        with new_topic(kafka, tasks, None) as topic:
            to = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "topic": topic}
            return session.write(ready, sink, to | given)

    ways: dict[str, Callable[[], float]] = {
        PEER: partial(run, sessions.other, PEER, {}),
        BEFORE: partial(run, sessions.before, OURS, {}),
        NOW: partial(run, sessions.now, OURS, {}),
        f"{EXACT} {BEFORE}": partial(run, sessions.before, OURS, exactly),
        f"{EXACT} {NOW}": partial(run, sessions.now, OURS, exactly),
    }
    return interleaved(ways, runs)


def _differences(seconds: Seconds, over: str, under: str) -> list[float]:
    return [more - less for more, less in zip(seconds[over], seconds[under], strict=True)]


def _together(sessions: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Read 64 small partitions in one task, without a delay and with one."""
    (port,) = free_ports(1)
    trips_ms = (0.0, ROUND_TRIP_MS)
    found: dict[tuple[str, float], list[float]] = {
        (name, ms): [] for name in (BEFORE, NOW) for ms in trips_ms
    }
    with broker(advertised_ports=(port,)) as kafka:
        target = kafka.broker(1).node.client_port
        server = f"127.0.0.1:{port}"
        options = _options(server, "small") | {"minPartitions": "1"}
        options["minRecordsPerPartition"] = "1000000"
        kafka.create_topic("small", partitions=SMALL_PARTITIONS)
        with delayed(port, target, 0):
            sizes = {"rows": 100 * SMALL_PARTITIONS, "value_bytes": 150}
            fill(server, "small", codec="lz4", partitions=SMALL_PARTITIONS, **sizes)
        for turn in range(arguments.runs + 1):
            for ms in trips_ms:
                with delayed(port, target, ms):
                    for name, session in ((BEFORE, sessions.before), (NOW, sessions.now)):
                        seconds = session.scan(PLAIN, options)
                        if turn:
                            found[name, ms].append(seconds)
    rows = []
    for name in (BEFORE, NOW):
        near, far = (median(found[name, ms]) for ms in trips_ms)
        trips = (far - near) * 1000 / ROUND_TRIP_MS
        rows.append([name, f"{near:.2f}", f"{far:.2f}", f"{trips:.1f}"])
    yield from table(("version", "near s", "far s", "round trips of the query"), rows)


def _imports(_: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Import in new processes, in turn."""
    rows = []
    directories = {BEFORE: arguments.before, NOW: HERE}
    for step, module in IMPORTS.items():
        ways = {name: partial(_import_seconds, each, module) for name, each in directories.items()}
        seconds = interleaved(ways, 9)
        took = [f"{each * 1000:.0f}" for each in medians(seconds).values()]
        rows.append([step, *took, str(Ratio.of(seconds, BEFORE, NOW))])
    yield from table(("import for", "before ms", "now ms", "before/now"), rows)


def _calls(_: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Make one call of a client again and again, in new processes, in turn."""
    rows = []
    directories = {BEFORE: arguments.before, NOW: HERE}
    with broker() as kafka, filled(kafka, Case("none", rows=100_000, partitions=1)) as topic:
        for call in one_call.CALLS:
            given = (one_call.__file__, kafka.bootstrap_servers, topic, call)
            ways = {name: partial(_printed, each, *given) for name, each in directories.items()}
            seconds = interleaved(ways, arguments.runs)
            took = [f"{each * 1e6:.0f}" for each in medians(seconds).values()]
            rows.append([call, *took, str(Ratio.of(seconds, BEFORE, NOW))])
    yield from table(("call", "before us", "now us", "before/now"), rows)


def _records(_: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Send and take records with both versions and confluent-kafka, in new processes, in turn."""
    rows = []
    with broker() as kafka, filled(kafka, Case("lz4", rows=500_000, partitions=1)) as full:

        def run(directory: Path, way: str) -> float:
            if way.endswith("loop"):
                return _printed(directory, one_client.__file__, kafka.bootstrap_servers, full, way)
            with new_topic(kafka, 8, None) as topic:
                return _printed(directory, one_client.__file__, kafka.bootstrap_servers, topic, way)

        for way, theirs in RECORDS.items():
            seconds = interleaved(
                {
                    CONFLUENT: partial(run, HERE, theirs),
                    BEFORE: partial(run, arguments.before, way),
                    NOW: partial(run, HERE, way),
                },
                arguments.runs,
            )
            took = [f"{each * 1e9:.0f}" for each in medians(seconds).values()]
            ratios = [str(Ratio.of(seconds, each, CONFLUENT)) for each in (BEFORE, NOW)]
            rows.append([f"`{way}`", *took, *ratios])
    head = ("a record", f"{CONFLUENT} ns", "before ns", "now ns", "before x", "now x")
    yield from table(head, rows)


def _rows(sessions: Sessions, arguments: argparse.Namespace) -> Iterator[str]:
    """Write a cached DataFrame with both versions and the peer, in turn."""
    rows = []
    with broker() as kafka:
        servers = {
            "kafka.bootstrap.servers": kafka.bootstrap_servers,
            "kafka.compression.type": "lz4",
        }

        def run(session: Session, sink: str, partitions: int) -> float:
            with new_topic(kafka, partitions, None) as topic:
                return session.write_frame(ROWS, sink, servers | {"topic": topic})

        for partitions in (8, 1):
            seconds = interleaved(
                {
                    PEER: partial(run, sessions.other, PEER, partitions),
                    BEFORE: partial(run, sessions.before, OURS, partitions),
                    NOW: partial(run, sessions.now, OURS, partitions),
                },
                arguments.runs,
            )
            rows.append(_scan_cells(f"{ROWS:,} rows, {partitions} partitions", seconds))
    head = ("written", "peer s", "before s", "now s", "before x", "now x", "before/now")
    yield from table(head, rows)


def _printed(directory: Path, *arguments: str) -> float:
    """Run Python with the version of a checkout. Return the number that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-P", *arguments]
    return float(subprocess.check_output(command, env=environment, cwd=directory, timeout=300))


def _import_seconds(directory: Path, module: str) -> float:
    program = f"""
import pyspark.sql.datasource, pyspark.sql.types, pyarrow, pyspark.sql.pandas.types
import time
started = time.perf_counter()
import spark_kafka_source.{module}
print(time.perf_counter() - started)
"""
    return _printed(directory, "-c", program)


def _options(bootstrap_servers: str, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }


_TABLES: Mapping[str, Callable[[Sessions, argparse.Namespace], Iterator[str]]] = {
    "scans": _scans,
    "micro": _micro,
    "sinks": _sinks,
    "together": _together,
    "imports": _imports,
    "calls": _calls,
    "records": _records,
    "rows": _rows,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the earlier checkout")
    parser.add_argument("--only", default=",".join(_TABLES))
    parser.add_argument("--runs", type=int, default=5)
    add_page(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
