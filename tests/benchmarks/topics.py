"""Topics for benchmarks, written by confluent-kafka: JSON values of one size, in one codec."""

import json
import random
import string

from confluent_kafka import Producer

PARTITIONS = 4
CODECS = ("none", "lz4", "zstd", "snappy", "gzip")


def json_value(size: int, number: int, chance: random.Random) -> bytes:
    """A JSON object of `size` bytes or a little more, that compresses as real events do."""
    event = {
        "id": number,
        "user": f"user-{chance.randrange(100_000)}",
        "action": chance.choice(("click", "view", "buy", "leave")),
        "amount": chance.randrange(10_000) / 100,
        "ts": 1_700_000_000_000 + number,
    }
    filler = size - len(json.dumps(event)) - len(', "note": ""')
    if filler > 0:
        event["note"] = "".join(chance.choices(string.ascii_lowercase, k=filler))
    return json.dumps(event).encode()


def fill(
    bootstrap_servers: str,
    topic: str,
    *,
    rows: int,
    value_bytes: int,
    codec: str,
    headers: int = 0,
    partitions: int = PARTITIONS,
) -> None:
    """Writes `rows` records evenly over the partitions of an existing topic."""
    chance = random.Random(value_bytes)
    # Enough different values that a codec cannot cheat, made once.
    values = [json_value(value_bytes, number, chance) for number in range(10_000)]
    header: list[tuple[str, str | bytes | None]] = [
        (f"header-{index}", b"value") for index in range(headers)
    ]
    producer = Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "compression.type": codec,
            "linger.ms": 50,
            "batch.size": 256 * 1024,
            "queue.buffering.max.messages": 500_000,
        }
    )
    for number in range(rows):
        while True:
            try:
                producer.produce(
                    topic,
                    values[number % len(values)],
                    key=b"%d" % (number % 1000),
                    partition=number % partitions,
                    headers=header,
                )
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(120):
        raise RuntimeError("not everything was delivered within two minutes")
