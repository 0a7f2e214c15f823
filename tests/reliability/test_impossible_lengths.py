"""Answers with impossible lengths, and servers that are no brokers: typed errors, little memory.

What each layer makes of them is in `tests/protocol/test_hostile.py` and `tests/net`; here it is
what a user sees who has the wrong address.
"""

import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.errors import RemoteError
from spark_kafka_source.protocol import Request
from spark_kafka_source.protocol.messages.api_versions import ApiVersionsRequest
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing.memory import MemoryBroker, Raw
from spark_kafka_source.testing.properties import LOOPBACK
from tests.reliability.conftest import Trial
from tests.security.servers import Serve, says, serving
from tools.certificates import authority, certified_by

MIB = 1 << 20
MOST_MIB = 32
MOST_SECONDS = 15.0
IMPATIENT: dict[str, Any] = {"default_api_timeout_ms": 500, "request_timeout_ms": 500}


def framed(correlation_id: int, content: str) -> bytes:
    data = correlation_id.to_bytes(4) + bytes.fromhex(content)
    return len(data).to_bytes(4) + data


MANY = "ffffffff07"  # 2147483646 of a compact array, or as many bytes of a compact string
BOMBS: dict[str, tuple[type[Request], bytes]] = {  # type: ignore[type-arg]  # of any answer
    "a frame of 2 GiB": (ApiVersionsRequest, (0x7FFFFFFF).to_bytes(4)),
    "a frame of 200 MiB that ends early": (
        ApiVersionsRequest,
        (200 * MIB).to_bytes(4) + bytes(1000),
    ),
    "an array": (MetadataRequest, framed(1, f"00 00000000 {MANY}" + "00" * 64)),
    "a string": (MetadataRequest, framed(1, f"00 00000000 02 00000001 {MANY}" + "00" * 64)),
    "a varint without end": (MetadataRequest, framed(1, "00 00000000" + "ff" * 64)),
    "tagged fields, by count": (
        ApiVersionsRequest,
        framed(0, "0000 01 00000000 ffffffff0f" + "6300" * 32),
    ),
    "a tagged field, by length": (
        ApiVersionsRequest,
        framed(0, f"0000 01 00000000 01 63 {MANY}" + "00" * 64),
    ),
}


def tls(directory: Path) -> Serve:
    context = certified_by(authority(), LOOPBACK).server_context(directory)

    def serve(client: socket.socket) -> None:
        context.wrap_socket(client, server_side=True).close()

    return serve


@contextmanager
def bomb(name: str) -> Iterator[str]:
    request_type, data = BOMBS[name]
    with MemoryBroker() as broker:
        broker.control(request_type, Raw(data, close=True), times=None)
        yield str(broker.address())


def refusal(address: str, impatient: Mapping[str, Any] = IMPATIENT) -> tuple[str, float]:
    """Return the error of a look at a topic at this address, and the most MiB that it took."""
    before_kib = most_kib(reset=True)
    with (
        KafkaAdmin(bootstrap_servers=address, **impatient) as admin,
        pytest.raises(RemoteError) as raised,
    ):
        admin.describe_topics(["t"])
    return str(raised.value), (most_kib() - before_kib) / 1024


def asked(serve: Serve, expected: str) -> tuple[str, float]:
    """Return what `refusal` does. A server that a busy machine holds up gets longer."""
    with serving(serve) as server:
        for times in (1, 10, 100):
            said, rise_mib = refusal(
                server.address, {name: times * each for name, each in IMPATIENT.items()}
            )
            if re.search(expected, said):
                break
    return said, rise_mib


def most_kib(*, reset: bool = False) -> int:
    """Return the most memory of this process since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_lengths_that_cannot_be_take_no_memory(trial: Trial) -> None:
    slowest = largest = 0.0
    for name in BOMBS:
        began = time.monotonic()
        with bomb(name) as address:
            _, rise_mib = refusal(address)
        largest = max(largest, rise_mib)
        slowest = max(slowest, time.monotonic() - began)
    trial.report(
        "22",
        f"{len(BOMBS)} answers that announce too much: {', '.join(BOMBS)}",
        f"refused {len(BOMBS)}; memory {largest:.1f} MiB at most; hangs 0, slowest {slowest:.1f} s",
    )
    assert largest < MOST_MIB
    assert slowest < MOST_SECONDS


def test_other_servers_are_named(tmp_path: Path, trial: Trial) -> None:
    began = time.monotonic()
    servers = {
        "looks like an HTTP server": says(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "looks like TLS": says(b"\x15\x03\x03\x00\x02\x02\x46"),
        # It hangs up on what it has not read, which may overtake what it said.
        "expect TLS|looks like TLS": tls(tmp_path),
    }
    found = {expected: asked(serve, expected) for expected, serve in servers.items()}
    seconds = time.monotonic() - began
    largest = max(rise_mib for _, rise_mib in found.values())
    trial.report(
        "22",
        "a server of HTTP and one of TLS on the port",
        f"both named; memory {largest:.1f} MiB at most; {seconds:.1f} s",
    )
    for expected, (said, _) in found.items():
        assert re.search(expected, said)
