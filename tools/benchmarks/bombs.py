"""Memory cost of decompression bombs, compared with Spark's own connector.

    python -m tools.benchmarks.bombs [--only zstd] [--seconds 90]

Prints for each bomb its size in the log. For this source: the peak memory of a Python worker, in
MiB above a read of a few rows, and the outcome, with `failOnDataLoss` and without. For the peer:
the peak memory of its JVM (with a heap of at most 2 GiB), and the outcome. Each read has its own
Spark, which the program stops after `--seconds`.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil
import zstandard
from pyspark.sql import Observation, SparkSession
from pyspark.sql.functions import count, lit

import spark_kafka_source
from spark_kafka_source.records import Codec
from spark_kafka_source.testing import LocalKafka, Producer, peer_jars
from tools import bombs
from tools.benchmarks.session import broker

HEAD = ("bomb", "in the log", "ours MiB", "ours", "skipping", "peer's JVM MiB", "peer")
LARGE = 1536 * bombs.MIB
LIMIT = 64 * bombs.MIB
SMALL_FETCHES = {"kafka.max.partition.fetch.bytes": "1000", "kafka.fetch.max.bytes": "1000"}
BROKER = {
    "message.max.bytes": str(200 * bombs.MIB),
    "socket.request.max.bytes": str(250 * bombs.MIB),
}
_FEW = "a few rows"
_STEP_SECONDS = 0.01
_MARK = "outcome: "
_JVM_DIED = ("Connection refused", "while sending or receiving", "does not exist in the JVM")
"""Messages of py4j after the JVM died."""


@dataclass(frozen=True, slots=True)
class Bomb:
    """A batch. A `planted` one is put into the log, so that the broker does not decompress it."""

    name: str
    make: Callable[[], bytes]
    options: Mapping[str, str] = field(default_factory=dict)
    planted: bool = False
    for_peer: bool = True


def _many(codec: Codec) -> bytes:
    return bombs.batch(codec, bombs.records(1500, bombs.MIB), record_count=1500)


def _one(codec: Codec, make_stream: bombs.MakeStream) -> bytes:
    stream = make_stream(sum(map(len, bombs.record(0, LARGE))))
    return bombs.batch(codec, bombs.record(0, LARGE), record_count=1, stream=stream)


def _empty(count: int) -> bytes:
    stream = zstandard.ZstdCompressor().compressobj()
    return bombs.batch(Codec.ZSTD, bombs.empty_records(count), record_count=count, stream=stream)


def _exactly(size: int) -> bytes:
    return bombs.batch(Codec.LZ4, bombs.record_of_size(0, size), record_count=1)


def _headers() -> bytes:
    return bombs.batch(Codec.ZSTD, bombs.record(0, 10, headers=20_000_000), record_count=1)


def _plain(count: int, value_bytes: int) -> bytes:
    return bombs.batch(Codec.NONE, bombs.records(count, value_bytes), record_count=count)


def _all() -> Iterator[Bomb]:
    codecs = tuple(Codec)[1:]
    zstd = partial(_one, Codec.ZSTD, bombs.usual(Codec.ZSTD))
    yield Bomb(_FEW, partial(_plain, 9, 9))
    for codec in codecs:
        yield Bomb(f"1500 of 1 MiB, {codec.name.lower()}", partial(_many, codec))
    for codec in codecs:
        name = f"one of 1.5 GiB, {codec.name.lower()}"
        yield Bomb(name, partial(_one, codec, bombs.usual(codec)))
    for name, (codec, stream) in bombs.OTHER_STREAMS.items():
        yield Bomb(f"one of 1.5 GiB, {name}", partial(_one, codec, stream), planted=True)
    yield Bomb("one of 1.5 GiB, zstd, only `offset`", zstd, {"columns": "offset"}, for_peer=False)
    yield Bomb("50,000,000 empty records, zstd", partial(_empty, 50_000_000), planted=True)
    yield Bomb("one with 20,000,000 headers, zstd", _headers, {"includeHeaders": "true"})
    yield Bomb("the same, without the headers", _headers)
    yield Bomb("one of exactly 64 MiB, lz4", partial(_exactly, LIMIT))
    yield Bomb("one of 64 MiB and a byte, lz4", partial(_exactly, LIMIT + 1))
    yield Bomb("3 of 10 MB, fetches of 1 kB", partial(_plain, 3, 10_000_000), SMALL_FETCHES)


@dataclass(slots=True)
class Most:
    """Peak memory in MiB of a Spark's JVM and of its largest Python worker."""

    worker: float = 0.0
    jvm: float = 0.0


def main() -> None:
    arguments = _arguments()
    if arguments.read:
        _read(*arguments.read)
        return
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    for row in measure(arguments.only, arguments.seconds):
        print(f"| {' | '.join(row)} |", flush=True)


def measure(only: str, seconds: float) -> Iterator[list[str]]:
    """Measure the bombs. Return the rows of the table, under `HEAD`."""
    wanted = [bomb for bomb in _all() if only in bomb.name or bomb.name == _FEW]
    with broker(properties=BROKER) as kafka:
        sizes = _write(kafka, wanted)
        ours, _ = _reading("pykafka", kafka, dict(enumerate(wanted)), seconds * len(wanted))
        idle = ours[0]["worker"]
        for number, bomb in enumerate(wanted):
            found = ours[number]
            row = [bomb.name, f"{sizes[number]:,}", f"{found['worker'] - idle:.0f}"]
            row += found["outcomes"]
            if bomb.for_peer:
                outcomes, most = _reading("kafka", kafka, {number: bomb}, seconds)
                late = {"outcomes": [f"not done in {seconds:.0f} s, or dead"]}
                row += [f"{most.jvm:.0f}", outcomes.get(number, late)["outcomes"][0]]
            yield row


def _write(kafka: LocalKafka, wanted: list[Bomb]) -> list[int]:
    sizes = []
    planted = {}
    with Producer(kafka.bootstrap_servers) as producer:
        for number, bomb in enumerate(wanted):
            kafka.create_topic(_topic(number))
            data = bomb.make()
            sizes.append(len(data))
            if bomb.planted:
                planted[number] = data
            else:
                producer.send_batch(_topic(number), 0, data)
    kafka.stop()
    for number, data in planted.items():
        (log,) = (kafka.broker(1).log_dir / f"{_topic(number)}-0").glob("*.log")
        log.write_bytes(data)
    kafka.start()
    return sizes


def _topic(number: int | str) -> str:
    return f"bomb-{number}"


# -- the reading process ---------------------------------------------------------------------------


def _end_with_the_watcher() -> None:
    sys.stdin.read()
    os._exit(1)


def _read(name: str, servers: str, jobs: str) -> None:
    """Read the bombs. Print a line for each."""
    Thread(target=_end_with_the_watcher, daemon=True).start()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.memory", "2g")
        .config("spark.jars", ",".join(map(str, peer_jars())))
        .getOrCreate()
    )
    spark_kafka_source.register(spark)
    for number, options in json.loads(jobs).items():
        given = {"kafka.bootstrap.servers": servers, "subscribe": _topic(number)} | options
        losses = ("true", "false") if name == "pykafka" else ("true",)
        with _looking(psutil.Process()) as most:
            outcomes = [_outcome(spark, name, given | {"failOnDataLoss": each}) for each in losses]
        found = {"number": int(number), "worker": most.worker, "outcomes": outcomes}
        print(_MARK + json.dumps(found), flush=True)
    spark.stop()


def _outcome(spark: SparkSession, name: str, options: Mapping[str, str]) -> str:
    found = Observation()
    frame = spark.read.format(name).options(**options).load()
    try:
        counted = frame.observe(found, count(lit(1)).alias("rows"))
        counted.write.format("noop").mode("overwrite").save()
        return f"{found.get['rows']:,} rows"
    except Exception as error:
        return _named(str(error))


def _named(text: str) -> str:
    """Return the most useful line of a Spark error."""
    if any(sign in text for sign in _JVM_DIED):
        return "its JVM died"
    for pattern in (
        r"OutOfMemoryError: .*",
        r"RecordTooLargeError: .*",
        r"\w+(Error|Exception): .*",
    ):
        if found := re.search(pattern, text):
            return found[0].strip()[:120]
    return text.strip().split("\n")[0][:120]


# -- the watching process --------------------------------------------------------------------------


def _reading(
    name: str, kafka: LocalKafka, wanted: Mapping[int, Bomb], seconds: float
) -> tuple[dict[int, Any], Most]:
    """Read the bombs in a new process. Return the outcomes by number, and the peak memory."""
    jobs = json.dumps({number: dict(bomb.options) for number, bomb in wanted.items()})
    program = [sys.executable, "-m", __spec__.name, "--read", name, kafka.bootstrap_servers, jobs]
    with tempfile.TemporaryFile("w+") as output:
        reading = psutil.Popen(
            program, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL
        )
        with _looking(reading) as most, contextlib.suppress(psutil.TimeoutExpired):
            reading.wait(seconds)
        _end(reading)
        output.seek(0)
        found = [json.loads(line[len(_MARK) :]) for line in output if line.startswith(_MARK)]
    return {each["number"]: each for each in found}, most


@contextlib.contextmanager
def _looking(process: psutil.Process) -> Iterator[Most]:
    """Watch the memory of a process's children. Look once more at the end."""
    for each in process.children(recursive=True):
        if each.name() != "java":  # This resets the worker's peak memory.
            Path(f"/proc/{each.pid}/clear_refs").write_text("5")
    most, ended = Most(), Event()

    def look() -> None:
        while not ended.wait(_STEP_SECONDS):
            _look(process, most)

    thread = Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()
        _look(process, most)


def _look(reading: psutil.Process, found: Most) -> None:
    with contextlib.suppress(psutil.Error):
        for process in reading.children(recursive=True):
            with contextlib.suppress(psutil.Error, OSError):
                # A fork of the JVM has the JVM's memory until it runs another program.
                most, name, line = _most_mib(process.pid), process.name(), process.cmdline()
                if name == "java":
                    found.jvm = max(found.jvm, most)
                elif any("pyspark" in word for word in line[:3]) and "python" in line[0]:
                    found.worker = max(found.worker, most)


def _most_mib(pid: int) -> float:
    """Return the peak memory of a process so far, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def _end(reading: psutil.Popen) -> None:
    with contextlib.suppress(psutil.Error):
        for process in [*reading.children(recursive=True), reading]:
            with contextlib.suppress(psutil.Error):
                process.kill()
    reading.wait()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="bombs whose names have this in them")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--read", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
