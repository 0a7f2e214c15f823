"""Topics for benchmarks: JSON values of one size, in one codec."""

import json
import random
import string

import pyarrow as pa

from spark_kafka_source import KafkaProducer

PARTITIONS = 4
CODECS = ("none", "lz4", "zstd", "snappy", "gzip")

_ROWS_AT_A_TIME = 10_000
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def json_value(size: int, number: int, chance: random.Random) -> bytes:
    """Return a JSON object of about `size` bytes. It compresses like real events."""
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
    """Write `rows` records evenly over the partitions of an existing topic."""
    chance = random.Random(value_bytes)
    # There are enough different values that a codec cannot cheat.
    values = [json_value(value_bytes, number, chance) for number in range(_ROWS_AT_A_TIME)]
    header = [{"key": f"header-{index}", "value": b"value"} for index in range(headers)]
    with KafkaProducer(
        bootstrap_servers=bootstrap_servers,
        compression_type=codec,
        linger_ms=50,
        batch_size=256 * 1024,
    ) as producer:
        written = []
        for first in range(0, rows, _ROWS_AT_A_TIME):
            numbers = range(first, min(first + _ROWS_AT_A_TIME, rows))
            columns = {
                "key": pa.array([b"%d" % (number % 1000) for number in numbers]),
                "value": pa.array(values[: len(numbers)]),
                "partition": pa.array([number % partitions for number in numbers], pa.int32()),
                "headers": pa.array([header] * len(numbers), _HEADERS),
            }
            written.append(producer.send_columns(topic, pa.RecordBatch.from_pydict(columns)))
        for each in written:
            each.result()
