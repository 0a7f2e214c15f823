"""Broker addresses in `kafka.bootstrap.servers`."""

import re
from typing import NamedTuple

from spark_kafka_source.errors import ConfigurationError

_OPTION = "kafka.bootstrap.servers"
# Kafka's syntax: an optional listener name, a host (IPv6 in brackets), a port.
_ADDRESS = (
    r"(?:[A-Za-z0-9_]+://)?(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]/\s]+)):(?P<port>[0-9]{1,5})"
)


class Address(NamedTuple):
    """Host and port of a broker. It prints as `host:port`, with an IPv6 host in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Identity(NamedTuple):
    """The cluster and the broker that an address leads to, as the metadata says."""

    cluster_id: str
    node_id: int

    def __str__(self) -> str:
        return f"broker {self.node_id} of cluster {self.cluster_id!r}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Return the addresses of a comma-separated list, in order and without repeats.

    Raises `ConfigurationError` if the list is empty, or has an address that is not `host:port`.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigurationError(
            _OPTION, "is empty", "Give 'host:port', or several separated by commas"
        )
    return tuple(dict.fromkeys(_parse_address(part) for part in parts))


def _parse_address(text: str) -> Address:
    match = re.fullmatch(_ADDRESS, text)
    port = int(match["port"]) if match else 0
    if not match or not 0 < port < 65536:
        raise ConfigurationError(
            _OPTION,
            "{} is not an address",
            "Give 'host:port', as in 'broker1:9092'",
            # A name and a password may stand before the '@', as in some URLs.
            text.rpartition("@")[2],
        )
    return Address(match["ipv6"] or match["host"], port)
