"""What a record costs on one core to decode, by stage: `python -m tests.benchmarks.decode`.

Prints nanoseconds per record, the best of several rounds, for each codec: `unpack` is CRC and
decompression, `walk` the chain of lengths, `fields` the rest of `locate`, `columns` the gathering
of the columns; `both` is all of it in one go, which is what a task does.
"""

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence

from spark_kafka_source.records import Chunk, Codec, Record, chunks, encode_batch, to_arrow
from spark_kafka_source.records.locate import locate
from spark_kafka_source.records.walk import walk
from spark_kafka_source.topic_partition import TopicPartition

TOPIC_PARTITION = TopicPartition("benchmark", 0)


def main() -> None:
    options = _options()
    print(f"{'codec':8}{'MB':>6}{'unpack':>8}{'walk':>8}{'fields':>8}{'columns':>9}{'both':>8}")
    for codec in Codec if options.codec is None else [Codec[options.codec.upper()]]:
        fetches = list(_fetches(codec, options))
        size = sum(map(len, fetches)) / 1e6
        row = _measure(fetches, options)
        print(
            f"{codec.name.lower():8}{size:6.1f}"
            + "".join(f"{ns:{width}.0f}" for ns, width in zip(row, (8, 8, 8, 9, 8), strict=True))
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--codec", choices=[codec.name.lower() for codec in Codec])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--value-bytes", type=int, default=150)
    parser.add_argument("--batch-records", type=int, default=100, help="records in a batch")
    parser.add_argument("--fetch-bytes", type=int, default=1 << 20, help="decompressed")
    parser.add_argument("--headers", type=int, default=0, help="headers in a record")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def _fetches(codec: Codec, options: argparse.Namespace) -> Iterator[bytes]:
    chance = random.Random(1)
    fetch, held = b"", 0
    for base in range(0, options.records, options.batch_records):
        stop = min(base + options.batch_records, options.records)
        records = [_record(number, chance, options) for number in range(base, stop)]
        fetch += encode_batch(records, base_offset=base, codec=codec)
        held += (stop - base) * (options.value_bytes + 20)
        if held >= options.fetch_bytes:
            yield fetch
            fetch, held = b"", 0
    if fetch:
        yield fetch


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
    return Record(
        key=b"%08d" % chance.randrange(10**6),
        value=value.ljust(options.value_bytes)[: options.value_bytes],
        headers=[(f"header-{index}", b"value") for index in range(options.headers)],
        timestamp_ms=1_700_000_000_000 + 10 * number,
    )


def _unpacked(fetches: Sequence[bytes]) -> list[Chunk]:
    return [chunk for fetch in fetches for chunk in chunks(fetch, topic_partition=TOPIC_PARTITION)]


def _unpacked_and_dropped(fetches: Sequence[bytes]) -> None:
    # To keep them would measure the kernel's page faults.
    for fetch in fetches:
        for _ in chunks(fetch, topic_partition=TOPIC_PARTITION):
            pass


def _walked(unpacked: Sequence[Chunk]) -> None:
    for chunk in unpacked:
        for segment in chunk.segments:
            walk(chunk.data, segment.start, segment.end)


def _measure(fetches: Sequence[bytes], options: argparse.Namespace) -> tuple[float, ...]:
    def arrow(chunk: Chunk) -> int:
        return int(to_arrow(chunk, include_headers=options.headers > 0).num_rows)

    def both() -> None:
        for fetch in fetches:
            for chunk in chunks(fetch, topic_partition=TOPIC_PARTITION):
                arrow(chunk)

    def best(run: Callable[[], object]) -> float:
        seconds = min(_seconds(run) for _ in range(options.rounds))
        return seconds / int(options.records) * 1e9

    unpacked = _unpacked(fetches)
    if sum(map(arrow, unpacked)) != options.records:
        raise SystemExit("records were lost: the figures would be of something else")
    unpack = best(lambda: _unpacked_and_dropped(fetches))
    walked = best(lambda: _walked(unpacked))
    located = best(lambda: [locate(chunk) for chunk in unpacked])
    columns = best(lambda: [arrow(chunk) for chunk in unpacked])
    return unpack, walked, located - walked, columns - located, best(both)


def _seconds(run: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
