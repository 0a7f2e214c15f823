"""A real Apache Kafka for tests, as a context manager."""

import base64
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.errors import ClosedError, ConfigurationError
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.secret import Secret
from spark_kafka_source.testing import access
from spark_kafka_source.testing.broker import Broker, start_together, stop_together
from spark_kafka_source.testing.child import RemovedDirectory
from spark_kafka_source.testing.deletion import delete_records
from spark_kafka_source.testing.jars import KAFKA_VERSION, kafka_jars
from spark_kafka_source.testing.java import QUICK_START, Runtime, find_java
from spark_kafka_source.testing.ports import check_free, free_ports
from spark_kafka_source.testing.private_file import write_private
from spark_kafka_source.testing.properties import (
    Node,
    broker_properties,
    default_replication_factor,
)
from spark_kafka_source.testing.security import LISTENERS, DelegationToken, Security
from spark_kafka_source.testing.tools import run_tool
from spark_kafka_source.topic_partition import TopicPartition

if TYPE_CHECKING:  # Only `security` needs the package cryptography.
    from spark_kafka_source.testing.certificates import CertificateAuthority
    from spark_kafka_source.testing.secured import Secured
    from spark_kafka_source.testing.token_server import TokenServer

_AUTO_CREATE = "auto.create.topics.enable"
TOOL_TIMEOUT_MS = 180_000
BROKER_JAVA_OPTIONS = ("-Xmx512m", *QUICK_START)
"""Options for a quick start.

A benchmark passes other options, since these keep the JVM from optimizing.
"""

_NOTHING: Mapping[str, str] = MappingProxyType({})


class LocalKafka:
    """Real Kafka brokers on this machine's loopback, for as long as the context lasts.

    Only Java 17 or newer and PySpark must be installed. The jars, some 60 MB, are downloaded once,
    into `cache_directory()`. Each broker is a JVM of 300-400 MB and starts in three seconds.
    Neither processes nor data remain, not even if this process is killed. POSIX systems only.

        with LocalKafka() as kafka:
            kafka.create_topic("events", partitions=4)
            spark.readStream.format("pykafka").option(
                "kafka.bootstrap.servers", kafka.bootstrap_servers
            )
            kafka.broker(1).restart()

    `brokers` is the number of brokers. With three, each topic has three replicas, and one broker
    may fail.
    `racks` are the racks of the brokers, in order. A consumer that names its rack then reads from
    the replica there (KIP-392). `ports` are the ports of the brokers, in order; by default they are
    free ones. `advertised_ports` are the ports that clients connect to, for a proxy before each
    broker. `version` is Kafka's, 3.9 or newer, and must be at Maven Central. With
    `auto_create_topics` the brokers create a topic that a client asks for, with one partition. By
    default a mistyped name fails. Give it or Kafka's property, not both. `properties` are for the
    brokers; they override those of this package's `broker.properties`. `java_options` are for their
    JVMs. `security` adds listeners with TLS and SASL, and ACLs: see `Security`. `directory` keeps
    logs and data after the end. It must be empty, or come from an earlier LocalKafka with the same
    number of brokers. By default logs and data are removed.

    Entering raises `JavaError`, `JarsError` or `BrokerFailedError`, and `ConfigurationError` for
    one of `ports` that is in use.
    """

    def __init__(
        self,
        brokers: int = 1,
        *,
        racks: Sequence[str] = (),
        ports: Sequence[int] = (),
        advertised_ports: Sequence[int] = (),
        version: str = KAFKA_VERSION,
        auto_create_topics: bool = False,
        properties: Mapping[str, str] = _NOTHING,
        java_options: Sequence[str] = BROKER_JAVA_OPTIONS,
        security: Security | None = None,
        directory: Path | None = None,
    ) -> None:
        if brokers < 1:
            raise ConfigurationError("brokers", f"{brokers}", "Give 1 or more")
        of_each = {"racks": racks, "ports": ports, "advertised_ports": advertised_ports}
        for name, given in of_each.items():
            if given and len(given) != brokers:
                raise ConfigurationError(name, f"{len(given)}", f"Give none or {brokers}")
        self._racks = tuple(racks)
        self._ports = tuple(ports)
        self._advertised_ports = tuple(advertised_ports)
        self._version = version
        _check_creation(auto_create_topics, properties)
        of_creation = {_AUTO_CREATE: "true"} if auto_create_topics else {}
        self._properties = {**of_creation, **properties}
        self._java_options = tuple(java_options)
        self._security = security
        self._directory = directory
        self._count = brokers
        self._brokers: tuple[Broker, ...] = ()
        self._secured: Secured | None = None
        self._context = ExitStack()
        self._process = OwnProcess("LocalKafka")

    def __enter__(self) -> Self:
        for each in self._ports:
            check_free(each)
        jars = tuple(kafka_jars(self._version))
        with ExitStack() as undo:
            self._root = self._open_directory(undo)
            log_configuration = _copy("log4j2.properties", self._root)
            if self._security:
                self._secured = _secure(self._security, self._root / "certificates", undo)
            options = self._secured.java_options if self._secured else ()
            self._runtime = Runtime(find_java(), jars, log_configuration, options)
            self._brokers = self._make_brokers()
            undo.callback(self.kill)
            self.start()
            self._context = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._process.is_here:  # The child of a fork leaves the brokers to its parent.
            self._context.close()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for `kafka.bootstrap.servers`.

        Restarts do not change them.
        """
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def bootstrap_servers_of(self, listener: str) -> str:
        """Return the addresses of one listener of all brokers: "CLIENT" or one of `LISTENERS`.

        Raises `ConfigurationError`, with the known names, if there is no such listener.
        """
        return ",".join(broker.node.address_of(listener) for broker in self.brokers)

    @property
    def authority(self) -> "CertificateAuthority":
        """The authority that issued the brokers' certificates, and issues clients' certificates."""
        return self._require_security().authority

    @property
    def token_server(self) -> "TokenServer":
        """The server of tokens for OAUTHBEARER."""
        return self._require_security().token_server

    @property
    def brokers(self) -> tuple[Broker, ...]:
        """All brokers, by their ids. Raises `ClosedError` if the context was not entered."""
        if not self._brokers:
            raise ClosedError("LocalKafka is a context manager: use it in a `with` statement")
        return self._brokers

    def broker(self, node_id: int) -> Broker:
        """Return the broker with this id. The first has 1."""
        if not 1 <= node_id <= len(self.brokers):
            ids = f"Their ids are 1 to {len(self.brokers)}"
            raise ConfigurationError("node_id", f"there is no broker {node_id}", ids)
        return self.brokers[node_id - 1]

    def start(self) -> None:
        """Start the brokers that do not run, and wait until all find each other in service."""
        start_together(self.brokers, {broker.node_id for broker in self.brokers})

    def stop(self) -> None:
        """End all brokers by SIGTERM, as an operator does; see `stop_together`."""
        stop_together(self.brokers)

    def kill(self) -> None:
        """End all brokers at once, by SIGKILL."""
        for broker in self.brokers:
            broker.kill()

    def restart(self) -> None:
        """Stop all brokers and start them again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Pause all brokers by SIGSTOP."""
        for broker in self.brokers:
            broker.pause()

    def resume(self) -> None:
        """Let paused brokers continue."""
        for broker in self.brokers:
            broker.resume()

    def tool(
        self,
        name: str,
        *arguments: str,
        listener: str = "INTERNAL",
        timeout_ms: int = TOOL_TIMEOUT_MS,
    ) -> str:
        """Run one of Kafka's command-line tools to its end, and return its standard output.

        Names are those of `bin/kafka-<name>.sh`. `--bootstrap-server` is added. Raises `ToolError`,
        with the tool's output, if the tool fails or takes longer than `timeout_ms`.

            kafka.tool("consumer-groups", "--describe", "--group", "g")
        """
        where = self.bootstrap_servers_of(listener)
        return run_tool(
            self._runtime,
            self._root,
            where,
            name,
            arguments,
            version=self._version,
            timeout_ms=timeout_ms,
        )

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Create a topic and wait for its leaders. The default is a replica per broker, at most 3.

        `configs` are the topic's: https://kafka.apache.org/documentation/#topicconfigs
        """
        replicas = replication_factor or default_replication_factor(self._count)
        with self._admin() as admin:
            admin.create_topic(name, partitions, replicas, configs)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and wait until it is gone."""
        with self._admin() as admin:
            admin.delete_topic(name)

    def create_partitions(self, name: str, total: int) -> None:
        """Grow a topic to `total` partitions, and wait for their leaders."""
        with self._admin() as admin:
            (error,) = admin.create_partitions({name: total}).values()
        if error is not None:
            raise error

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete each partition's records before an offset. -1 means all records."""
        with self._admin() as admin:
            admin.client.run(delete_records(admin.client, before))

    def allow(self, user: str, *operations: str, **resource: str) -> None:
        """Grant a user operations on a named resource: `topic`, `group` or `transactional_id`.

        The name "*" means all. Once one user has a grant on a resource, users without one are
        denied.

            kafka.allow("alice", "Read", "Describe", topic="events")
        """
        self.tool("acls", *access.acl_arguments("allow", user, operations, resource))

    def deny(self, user: str, *operations: str, **resource: str) -> None:
        """Deny a user operations on a resource, named as for `allow`.

        A denial overrides a grant.
        """
        self.tool("acls", *access.acl_arguments("deny", user, operations, resource))

    def add_scram_user(self, user: str, password: Secret, mechanism: str = "SCRAM-SHA-512") -> None:
        """Add a user of SCRAM-SHA-512 or SCRAM-SHA-256, or change the user's password."""
        access.add_scram_user(self.tool, self._root, mechanism, user, password)

    def delegation_token(self, user: str) -> DelegationToken:
        """Create a delegation token for one of the `users` of `Security` (KIP-48)."""
        users = self._require_security().users
        if user not in users:
            known = f"There are {', '.join(users)}"
            raise ConfigurationError("user", f"there is none named {user!r}", known)
        password = Secret(users[user])
        return access.create_delegation_token(self.tool, self._root, user, password)

    def _require_security(self) -> "Secured":
        if self._secured is None:
            expected = "Give one, and use LocalKafka in a `with` statement"
            raise ConfigurationError("security", "there is none", expected)
        return self._secured

    def _admin(self) -> KafkaAdmin:
        return KafkaAdmin(bootstrap_servers=self.bootstrap_servers_of("INTERNAL"))

    def _open_directory(self, undo: ExitStack) -> Path:
        if self._directory:
            self._directory.mkdir(parents=True, exist_ok=True)
            return self._directory.absolute()
        path = Path(tempfile.mkdtemp(prefix="spark-kafka-source-"))
        undo.callback(RemovedDirectory(path).close)
        return path

    def _make_brokers(self) -> tuple[Broker, ...]:
        nothing = (None,) * self._count
        listeners = tuple(LISTENERS) if self._secured else ()
        cluster = _nodes(
            self._racks or nothing, self._ports, self._advertised_ports or nothing, listeners
        )
        cluster_id = _random_id()
        return tuple(self._make_broker(node, cluster, cluster_id) for node in cluster)

    def _make_broker(self, node: Node, cluster: Sequence[Node], cluster_id: str) -> Broker:
        directory = self._root / f"broker-{node.node_id}"
        directory.mkdir(exist_ok=True)
        secured = self._secured
        broker = Broker(
            node,
            directory,
            self._runtime,
            self._java_options,
            cluster_id,
            format_arguments=secured.format_arguments if secured else (),
        )
        given = {**(secured.properties if secured else {}), **self._properties}
        text = broker_properties(node, cluster, broker.log_dir, given)
        write_private(broker.properties, text.encode())
        return broker


def _check_creation(auto_create_topics: object, properties: Mapping[str, str]) -> None:
    if not isinstance(auto_create_topics, bool):
        found = f"found {auto_create_topics!r:.100}"
        raise ConfigurationError("auto_create_topics", found, "Give True or False")
    if auto_create_topics and _AUTO_CREATE in properties:
        found = f"is given with '{_AUTO_CREATE}' in 'properties'"
        raise ConfigurationError("auto_create_topics", found, "Leave out one of them")


def _nodes(
    racks: Sequence[str | None],
    client_ports: Sequence[int],
    advertised_ports: Sequence[int | None],
    secured_listeners: Sequence[str],
) -> list[Node]:
    needed = (3 + len(secured_listeners)) * len(racks)
    found = free_ports(needed + len(client_ports))
    ports = iter([*client_ports, *(each for each in found if each not in client_ports)])
    client_ports = [next(ports) for _ in racks]
    return [
        Node(
            node_id,
            client_port,
            next(ports),
            next(ports),
            rack,
            advertised_port,
            {name: next(ports) for name in secured_listeners},
        )
        for node_id, (rack, client_port, advertised_port) in enumerate(
            zip(racks, client_ports, advertised_ports, strict=True), 1
        )
    ]


def _secure(security: Security, directory: Path, undo: ExitStack) -> "Secured":
    try:
        from spark_kafka_source.testing.secured import secure  # noqa: PLC0415 (needs cryptography)
    except ModuleNotFoundError as error:
        found = f"the package '{error.name}' is not installed"
        raise ConfigurationError("security", found, "pip install 'cryptography>=45'") from error
    return secure(security, directory, undo)


def _random_id() -> str:
    """Return a cluster id in Kafka's form: 16 bytes in URL-safe base 64, without padding.

    It does not begin with a dash: Kafka's tools would take it for an option.
    """
    random_bytes = bytes([uuid.uuid4().bytes[0] & 0x7F]) + uuid.uuid4().bytes[1:]
    return base64.urlsafe_b64encode(random_bytes).decode().rstrip("=")


def _copy(name: str, directory: Path) -> Path:
    path = directory / name
    path.write_text(files("spark_kafka_source.testing").joinpath(name).read_text())
    return path
