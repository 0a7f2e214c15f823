"""Cost of decoding a record on one core, by stage: `python -m tools.benchmarks.decode`.

Prints nanoseconds of the thread's CPU time per record: the median of all rounds, and below it half
the distance between the quartiles. The stages of a round run one after the other. `total` is the
work of a task, from the bytes of a fetch to Arrow: compare the stages with it. `--compiled` takes
the kernels of the extra `fast`. Pin the program to a core: `taskset -c 1`.
"""

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median, quantiles

import crc32c

from spark_kafka_source.records import (
    COLUMNS,
    COLUMNS_WITH_HEADERS,
    Chunk,
    Codec,
    Record,
    batches,
    chunks,
    compiled,
    encode_batch,
    record_batch,
)
from spark_kafka_source.records.batch import CHECKED_FROM
from spark_kafka_source.records.columns import column
from spark_kafka_source.records.compression import Decompressor
from spark_kafka_source.records.locate import locate
from spark_kafka_source.records.walk import walk
from spark_kafka_source.topic_partition import TopicPartition

TOPIC_PARTITION = TopicPartition("benchmark", 0)
CASES = (
    ("none", 20, 0),
    ("none", 150, 0),
    ("none", 2048, 0),
    ("lz4", 20, 0),
    ("lz4", 150, 0),
    ("lz4", 2048, 0),
    ("none", 150, 2),
    ("lz4", 150, 2),
)
"""Codec, bytes per value, headers per record."""

Stages = dict[str, Callable[[], None]]


def main() -> None:
    options = _options()
    kernels = compiled.load() if options.compiled else None
    compiled.kernels = lambda record_count=0: kernels
    cases: Sequence[tuple[str, int, int]] = CASES
    if options.codec or options.value_bytes or options.headers:
        cases = ((options.codec or "none", options.value_bytes or 150, options.headers),)
    for codec, value_bytes, headers in cases:
        options.value_bytes, options.headers = value_bytes, headers
        _print(f"{codec}, {value_bytes} B, {headers} headers", _measure(codec, options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--codec", choices=[codec.name.lower() for codec in Codec])
    parser.add_argument("--value-bytes", type=int)
    parser.add_argument("--headers", type=int, default=0, help="headers in a record")
    parser.add_argument("--compiled", action="store_true", help="with the extra `fast`")
    parser.add_argument("--megabytes", type=float, default=16, help="decompressed")
    parser.add_argument("--batch-records", type=int, default=100, help="records in a batch")
    parser.add_argument("--fetch-bytes", type=int, default=1 << 20, help="decompressed")
    parser.add_argument("--chunk-bytes", type=int, default=2 << 20)
    parser.add_argument("--rounds", type=int, default=21)
    return parser.parse_args()


def _print(case: str, rounds: Sequence[dict[str, float]]) -> None:
    print(f"{case:24}" + "".join(f"{name:>11}" for name in rounds[0]))
    columns = [[each[name] for each in rounds] for name in rounds[0]]
    print(f"{'':24}" + "".join(f"{median(column):11.1f}" for column in columns))
    quartiles = [quantiles(column, n=4) for column in columns]
    print(f"{'':24}" + "".join(f"{'±':>7}{(high - low) / 2:4.1f}" for low, _, high in quartiles))


def _fetches(codec: Codec, options: argparse.Namespace) -> Iterator[bytes]:
    chance = random.Random(1)
    fetch, held, base = b"", 0, 0
    total = int(options.megabytes * 1e6)
    while total > 0:
        records = [_record(base + n, chance, options) for n in range(options.batch_records)]
        fetch += encode_batch(records, base_offset=base, codec=codec)
        base += len(records)
        batch_bytes = len(records) * (options.value_bytes + 20)
        held, total = held + batch_bytes, total - batch_bytes
        if held >= options.fetch_bytes or total <= 0:
            yield fetch
            fetch, held = b"", 0


def _record(number: int, chance: random.Random, options: argparse.Namespace) -> Record:
    value = json.dumps(
        {
            "id": number,
            "user": f"user-{chance.randrange(1000)}",
            "price": chance.random(),
            "kind": chance.choice(["view", "cart", "order"]),
            "trace": f"{chance.getrandbits(96):024x}",
        }
    ).encode()
    value *= options.value_bytes // len(value) + 1
    return Record(
        key=b"%08d" % chance.randrange(10**6),
        value=value[: options.value_bytes],
        headers=[(f"header-{index}", b"value") for index in range(options.headers)],
        timestamp_ms=1_700_000_000_000 + 10 * number,
    )


def _measure(codec: str, options: argparse.Namespace) -> list[dict[str, float]]:
    fetches = list(_fetches(Codec[codec.upper()], options))
    stages, record_count = _stages(fetches, Codec[codec.upper()], options)
    rounds = []
    for _ in range(options.rounds + 1):
        gc.collect()
        took = {name: _seconds(stage) / record_count * 1e9 for name, stage in stages.items()}
        rounds.append(_apart(took))
    return rounds[1:]


def _seconds(run: Callable[[], None]) -> float:
    started = time.thread_time()
    run()
    return time.thread_time() - started


def _apart(took: dict[str, float]) -> dict[str, float]:
    """Return each stage's time without the stages inside it."""
    took["chunks"] -= took["batches"] + took["unzip"]
    took["fields"] = took.pop("locate") - took["walk"]
    total = took.pop("total")
    return {**took, "total": total, "-unzip": total - took["unzip"]}


def _stages(
    fetches: Sequence[bytes], codec: Codec, options: argparse.Namespace
) -> tuple[Stages, int]:
    """Return the functions to run. They keep no result, to avoid the kernel's page faults."""
    columns = COLUMNS_WITH_HEADERS if options.headers else COLUMNS
    pieces = Decompressor(options.chunk_bytes, 1 << 30).pieces
    split = [list(batches(memoryview(fetch), TOPIC_PARTITION)) for fetch in fetches]

    def unpacked(fetch: bytes, check_crcs: bool) -> Iterator[Chunk]:
        return chunks(
            fetch,
            topic_partition=TOPIC_PARTITION,
            check_crcs=check_crcs,
            chunk_bytes=options.chunk_bytes,
        )

    ready = [chunk for fetch in fetches for chunk in unpacked(fetch, True)]
    located = [(chunk, locate(chunk)) for chunk in ready]
    checked = []
    for fetch, found in zip(fetches, split, strict=True):
        at = 0
        for header, _ in found:
            checked.append(memoryview(fetch)[at + CHECKED_FROM : at + header.size])
            at += header.size

    def drain(things: Iterator[object]) -> None:
        for _ in things:
            pass

    def gathered(*names: str) -> Callable[[], None]:
        def run() -> None:
            for chunk, fields in located:
                for name in names:
                    column(name, chunk, fields)

        return run

    def unzip() -> None:
        for found in split if codec is not Codec.NONE else ():
            for header, payload in found:
                drain(pieces(header.codec, payload))

    def walked() -> None:
        for chunk in ready if not options.compiled else ():
            for segment in chunk.segments:
                walk(chunk.data, segment.start, segment.end)

    def total() -> None:
        for fetch in fetches:
            for chunk in unpacked(fetch, True):
                record_batch(chunk, columns)

    def split_up() -> None:
        for fetch in fetches:
            drain(batches(memoryview(fetch), TOPIC_PARTITION, check_crcs=False))

    def unpack() -> None:
        for fetch in fetches:
            drain(unpacked(fetch, False))

    stages: Stages = {
        "crc": lambda: drain(map(crc32c.crc32c, checked)),
        "batches": split_up,
        "unzip": unzip,
        "chunks": unpack,
        "walk": walked,
        "locate": lambda: drain(map(locate, ready)),
        "key": gathered("key"),
        "value": gathered("value"),
        "5 others": gathered(*COLUMNS[2:]),
        "headers": gathered(*columns[7:]),
        "total": total,
    }
    return stages, sum(chunk.record_count for chunk in ready)


if __name__ == "__main__":
    main()
