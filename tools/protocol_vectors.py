"""Messages of Kafka's own Java classes, kept in vectors.txt for runs without a JVM.

`python -m tools.protocol_vectors <folder of Kafka's jars>` makes the file: Oracle.java reads a
sample of each message, and prints it with Kafka's writer and Kafka's JSON converter. Each line is
a vector: Kafka's name, the versions with these bytes, the bytes, the JSON.
"""

import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from spark_kafka_source.protocol import Message, Versions, encode
from tests.protocol.messages import MESSAGES, all_versions, sample
from tests.protocol.oracle import Oracle, ask_kafka

PATH = Path(__file__).parents[1] / "tests" / "protocol" / "vectors.txt"


class Vector(NamedTuple):
    """A message in Kafka's bytes and in Kafka's JSON."""

    name: str
    version: int
    data: bytes
    json: Any


def read() -> list[Vector]:
    lines = (line.split(" ", 3) for line in PATH.read_text("utf-8").splitlines() if line[0] != "#")
    return [
        Vector(name, version, bytes.fromhex(data), json.loads(text))
        for name, versions, data, text in lines
        for version in _each(Versions.parse(versions))
    ]


def _each(versions: Versions) -> range:
    return range(versions.lowest, versions.highest + 1)


def _make(oracle: Oracle, message_type: type[Message]) -> Iterator[str]:
    name = message_type.__name__

    def as_kafka_writes_it(version: int) -> str:
        data = oracle.rewrite(name, version, encode(sample(message_type, version), version))
        text = json.dumps(oracle.json(name, version, data), separators=(",", ":"))
        return f"{data.hex()} {text}"

    for written, versions in groupby(all_versions(message_type), as_kafka_writes_it):
        alike = list(versions)
        yield f"{name} {Versions(alike[0], alike[-1])} {written}"


def _main(jars: Path) -> None:
    clients = next(jars.glob("kafka-clients-*.jar")).stem
    with ask_kafka(sorted(jars.glob("*.jar"))) as oracle:
        lines = [line for message_type in MESSAGES for line in _make(oracle, message_type)]
    origin = f"# Written by the Java classes of {clients}; see vectors.py."
    PATH.write_text("\n".join([origin, *lines]) + "\n", "utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
