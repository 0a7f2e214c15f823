"""The properties file of a broker: `broker.properties`, filled in.

Its syntax is Java's: https://docs.oracle.com/javase/8/docs/api/java/util/Properties.html
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing.security import LISTENERS

LOOPBACK = "127.0.0.1"
MAX_REPLICATION_FACTOR = 3

_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

_ESCAPES = str.maketrans(
    {"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", " ": r"\ ", "=": r"\=", ":": r"\:"}
    | {"#": r"\#", "!": r"\!"}
)


@dataclass(frozen=True, slots=True)
class Node:
    """One broker of a cluster: its id, its rack, and the loopback port of each listener.

    `advertised_port` is the port that clients connect to, if that is not `client_port`.
    `secured_ports` are those of the listeners that `Security` adds, by name.
    """

    node_id: int
    client_port: int
    internal_port: int
    controller_port: int
    rack: str | None = None
    advertised_port: int | None = None
    secured_ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def client_address(self) -> str:
        """Address of this broker for clients, `127.0.0.1:port`."""
        return self.address_of("CLIENT")

    def address_of(self, listener: str) -> str:
        """Return the address of a listener. Raises `ConfigurationError` for an unknown name."""
        ports = {"CLIENT": self.client_port, "INTERNAL": self.internal_port, **self.secured_ports}
        if listener not in ports:
            known = f"There are {', '.join(ports)}"
            more = "" if self.secured_ports else "; `security` adds others"
            raise ConfigurationError("listener", f"there is none named {listener!r}", known + more)
        return f"{LOOPBACK}:{ports[listener]}"

    @property
    def voter(self) -> str:
        """The broker's entry in `controller.quorum.voters`."""
        return f"{self.node_id}@{LOOPBACK}:{self.controller_port}"


def default_replication_factor(brokers: int) -> int:
    """Return the default number of replicas of a topic."""
    return min(brokers, MAX_REPLICATION_FACTOR)


def broker_properties(
    node: Node, cluster: Sequence[Node], log_dir: Path, overrides: Mapping[str, str]
) -> str:
    """Return the text of a broker's properties file. `overrides` come last, so that they win."""
    replicas = default_replication_factor(len(cluster))
    template = files("spark_kafka_source.testing").joinpath("broker.properties").read_text()
    text = Template(template).substitute(
        node_id=node.node_id,
        voters=",".join(each.voter for each in cluster),
        client_port=node.client_port,
        advertised_port=node.advertised_port or node.client_port,
        internal_port=node.internal_port,
        secured_listeners="".join(
            f",{name}://{node.address_of(name)}" for name in node.secured_ports
        ),
        secured_protocols="".join(
            f",{name}:{LISTENERS[name].protocol}" for name in node.secured_ports
        ),
        controller_port=node.controller_port,
        log_dir=escape(str(log_dir)),
        replication_factor=replicas,
        min_insync_replicas=max(1, replicas - 1),
    )
    return (
        f"{text}\n{as_properties(_rack(node))}\n# Given by the caller.\n{as_properties(overrides)}"
    )


def as_properties(properties: Mapping[str, str]) -> str:
    """Return the text of a properties file."""
    return "".join(f"{escape(key)}={escape(value)}\n" for key, value in properties.items())


def _rack(node: Node) -> Mapping[str, str]:
    """Return the properties that let a consumer read from the replica in its rack (KIP-392)."""
    return {"broker.rack": node.rack, "replica.selector.class": _SELECTOR} if node.rack else {}


def escape(text: str) -> str:
    """Escape a key or a value for a properties file: on one line, and in ASCII."""
    units = text.translate(_ESCAPES).encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)
