"""A Kafka cluster in this process for tests, as a context manager: no JVM, up in milliseconds."""

import uuid
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Self

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.errors import ClosedError, ConfigurationError, ErrorCode, error_named
from spark_kafka_source.forks import OwnProcess
from spark_kafka_source.protocol import Request, Versions
from spark_kafka_source.protocol.messages.admin import DeleteTopicsRequest
from spark_kafka_source.protocol.messages.find_coordinator import FindCoordinatorRequest
from spark_kafka_source.protocol.messages.groups import OffsetCommitRequest, OffsetFetchRequest
from spark_kafka_source.protocol.messages.list_transactions import ListTransactionsRequest
from spark_kafka_source.protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from spark_kafka_source.testing.deletion import delete_records
from spark_kafka_source.testing.memory import NEWEST, REQUESTS, Action, Answer, MemoryBroker
from spark_kafka_source.testing.properties import default_replication_factor
from spark_kafka_source.topic_partition import TopicPartition

_FIRST_ID = 1
_LONGEST_HOLD_SECONDS = 1.0
_FEATURES = {"transaction.version": 2, "group.version": 1}
_NOTHING: Mapping[str, str] = MappingProxyType({})
# Handlers answer newer versions of these only to clients of this package.
_VERSIONS = {
    DeleteTopicsRequest.KEY: Versions(1, 5),
    FindCoordinatorRequest.KEY: Versions(0, 5),
    ListTransactionsRequest.KEY: Versions(0, 0),
    OffsetCommitRequest.KEY: Versions(2, 9),
    OffsetFetchRequest.KEY: Versions(1, 9),
}
_APIS = {
    REQUESTS[key].__name__.removesuffix("Request"): REQUESTS[key]
    for key in NEWEST
    if REQUESTS[key] not in (SaslHandshakeRequest, SaslAuthenticateRequest)
}


class MemoryKafka:
    """A Kafka cluster in memory, in a thread of this process, for as long as the context lasts.

    It speaks Kafka's protocol over loopback sockets. So any Kafka client can use it, also Spark's
    executors on this machine, and programs in other languages. It needs no Java and no download,
    and starts in milliseconds. Its answers are held against those of a real broker by this
    package's tests. Methods that `LocalKafka` also has do the same there.

        with MemoryKafka() as kafka:
            kafka.create_topic("events", partitions=4)
            spark.readStream.format("pykafka").option(
                "kafka.bootstrap.servers", kafka.bootstrap_servers
            )
            kafka.refuse("Produce", "NOT_ENOUGH_REPLICAS", times=2)
            kafka.broker(1).restart()

    `brokers` is the number of brokers. All have the same records, as if each topic had a replica
    at each broker. With `auto_create_topics` the brokers create a topic that a client asks for,
    with one partition. By default a mistyped name fails.

    The running broker with the least id is the controller, and coordinates all groups and
    transactions. There is no log on disk, no retention, no compaction and no quota; no TLS, SASL or
    ACLs; no time limit of transactions. Configurations of topics are kept, and have no effect.

    The end of the context raises a failure of a broker itself, if there was one: that is a fault of
    this package. An error that ends the context gets it as a note instead.
    """

    def __init__(self, brokers: int = 1, *, auto_create_topics: bool = False) -> None:
        if brokers < 1:
            raise ConfigurationError("brokers", f"{brokers}", "Give 1 or more")
        self._count = brokers
        self._auto_create_topics = auto_create_topics
        self._memory: MemoryBroker | None = None
        self._brokers: tuple[MemoryKafkaBroker, ...] = ()
        self._process = OwnProcess("MemoryKafka")

    def __enter__(self) -> Self:
        if self._memory is not None:
            expected = "Make another one for a second cluster"
            raise ConfigurationError("MemoryKafka", "its context is entered already", expected)
        memory = MemoryBroker(
            self._count, versions=_VERSIONS, first_node_id=_FIRST_ID, keeps_requests=False
        )
        memory.held_step_seconds = _LONGEST_HOLD_SECONDS
        memory.cluster.cluster_id = uuid.uuid4().hex[:22]
        memory.cluster.features.update(_FEATURES)
        memory.cluster.default_replication_factor = default_replication_factor(self._count)
        memory.cluster.creates_topics = self._auto_create_topics
        self._memory, self._process = memory.__enter__(), OwnProcess("MemoryKafka")
        ids = range(_FIRST_ID, _FIRST_ID + self._count)
        self._brokers = tuple(MemoryKafkaBroker(memory, each) for each in ids)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        memory, self._memory = self._memory, None
        if memory is not None and self._process.is_here:  # The child of a fork has no such thread.
            memory.__exit__(kind, error, traceback)

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers, for `kafka.bootstrap.servers`.

        Restarts do not change them. Raises `ClosedError` if the context was not entered.
        """
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def brokers(self) -> tuple["MemoryKafkaBroker", ...]:
        """All brokers, by their ids. Raises `ClosedError` if the context was not entered."""
        self._entered()
        return self._brokers

    def broker(self, node_id: int) -> "MemoryKafkaBroker":
        """Return the broker with this id. The first has 1."""
        if not 1 <= node_id <= len(self.brokers):
            ids = f"Their ids are 1 to {len(self.brokers)}"
            raise ConfigurationError("node_id", f"there is no broker {node_id}", ids)
        return self.brokers[node_id - 1]

    def start(self) -> None:
        """Start the brokers that do not run."""
        for broker in self.brokers:
            broker.start()

    def stop(self) -> None:
        """Stop all brokers. Topics, records and groups stay."""
        for broker in self.brokers:
            broker.stop()

    kill = stop

    def restart(self) -> None:
        """Stop all brokers and start them again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Answer nothing until `resume`: connections stay open."""
        for broker in self.brokers:
            broker.pause()

    def resume(self) -> None:
        """Let paused brokers continue."""
        for broker in self.brokers:
            broker.resume()

    # -- topics ------------------------------------------------------------------------------------

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        configs: Mapping[str, str] = _NOTHING,
    ) -> None:
        """Create a topic. `replication_factor` and `configs` are shown, and have no effect."""
        replicas = replication_factor or default_replication_factor(self._count)
        with self._admin() as admin:
            admin.create_topic(name, partitions, replicas, configs)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        with self._admin() as admin:
            admin.delete_topic(name)

    def create_partitions(self, name: str, total: int) -> None:
        """Grow a topic to `total` partitions."""
        with self._admin() as admin:
            (error,) = admin.create_partitions({name: total}).values()
        if error is not None:
            raise error

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Delete each partition's records before an offset. -1 means all records."""
        with self._admin() as admin:
            admin.client.run(delete_records(admin.client, before))

    # -- faults ------------------------------------------------------------------------------------

    def refuse(
        self, api: str, error: str, *, times: int | None = 1, node_id: int | None = None
    ) -> None:
        """Answer the next `times` requests of an API with an error. None: all, until `heal`.

        `api` and `error` have Kafka's names: `refuse("OffsetCommit", "COORDINATOR_NOT_AVAILABLE")`.
        A refused request has no effect. `node_id` limits this to one broker. Faults of an API take
        place in the order of the calls. Raises `ConfigurationError` for an unknown name or number.
        """
        self._fault(_request(api), _error(error), times, node_id)

    def lose_answers(self, api: str, *, times: int | None = 1, node_id: int | None = None) -> None:
        """Do what the next `times` requests ask, and close the connection instead of an answer.

        The client cannot know whether its request had an effect. None: all, until `heal`. Arguments
        and errors are those of `refuse`.
        """
        self._fault(_request(api), Action.LOSE, times, node_id)

    def heal(self) -> None:
        """End the faults of `refuse` and `lose_answers`, and resume paused brokers."""
        memory = self._entered()
        memory.call(memory.forget)
        self.resume()

    def move_leader(self, topic_partition: TopicPartition, node_id: int) -> None:
        """Make a broker the leader of a partition, in a new leader epoch.

        Raises `ConfigurationError` if there is no such partition or the broker does not run.
        """
        memory = self._entered()
        if not self.broker(node_id).running:
            raise ConfigurationError("node_id", f"broker {node_id} does not run", "Start it first")
        if memory.cluster.log(*topic_partition) is None:
            found = f"there is no partition {topic_partition}"
            raise ConfigurationError("topic_partition", found, "Create its topic first")
        memory.call(lambda: memory.move_leader(topic_partition, node_id))

    def time_out_transaction(self, transactional_id: str) -> None:
        """Abort an open transaction as the coordinator does after its timeout. Fence its producer.

        Raises `ConfigurationError` if the transactional id has no open transaction.
        """
        memory = self._entered()

        def time_out() -> bool:
            transaction = memory.cluster.transactions.get(transactional_id)
            if transaction is None or not transaction.is_open:
                return False
            transaction.time_out(memory.cluster)
            return True

        if not memory.call(time_out):
            found = f"{transactional_id!r} has no open transaction"
            raise ConfigurationError("transactional_id", found, "Send a record of it first")

    def _fault(
        self,
        request_type: type[Request[Any]],
        answer: Answer,
        times: int | None,
        node_id: int | None,
    ) -> None:
        memory = self._entered()
        if times is not None and times < 1:
            expected = "Give 1 or more, or None for all requests until `heal`"
            raise ConfigurationError("times", f"{times}", expected)
        if node_id is not None:
            self.broker(node_id)
        memory.call(lambda: memory.control(request_type, answer, times=times, node_id=node_id))

    def _entered(self) -> MemoryBroker:
        if self._memory is None:
            raise ClosedError("MemoryKafka is a context manager: use it in a `with` statement")
        return self._memory

    def _admin(self) -> KafkaAdmin:
        return KafkaAdmin(bootstrap_servers=self.bootstrap_servers)


class MemoryKafkaBroker:
    """One broker of a `MemoryKafka`. It keeps its port over a restart."""

    def __init__(self, memory: MemoryBroker, node_id: int) -> None:
        self._memory, self._node_id = memory, node_id

    def __repr__(self) -> str:
        state = "running" if self.running else "not running"
        return f"MemoryKafkaBroker({self.node_id}, '{self.bootstrap_servers}', {state})"

    @property
    def node_id(self) -> int:
        """The broker's id in Kafka. The first broker of a MemoryKafka has 1."""
        return self._node_id

    @property
    def bootstrap_servers(self) -> str:
        """The address of this broker alone, `127.0.0.1:port`."""
        return str(self._memory.address(self.node_id))

    @property
    def running(self) -> bool:
        """Whether the broker listens. A paused one does."""
        return self.node_id in self._memory.cluster.ports

    def start(self) -> None:
        """Start the broker if it does not run. It leads no partition that has another leader."""
        if not self.running:
            self._memory.start(self.node_id)

    def stop(self) -> None:
        """Close the port and all connections. The other running brokers lead its partitions.

        A paused broker is not paused any more. If no other broker runs, its partitions have no
        leader until it starts.
        """
        if self.running:
            self._memory.stop(self.node_id)
            self._memory.resume(self.node_id)
            self._memory.call(lambda: self._memory.hand_over(self.node_id))

    kill = stop

    def restart(self) -> None:
        """Stop the broker and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Answer nothing until `resume`: connections stay open, and it stays the leader.

        The others take over from a real broker that is silent for longer than
        `broker.session.timeout.ms`. Here they do not.
        """
        self._memory.pause(self.node_id)

    def resume(self) -> None:
        """Let a paused broker continue. It answers the requests that came meanwhile."""
        self._memory.resume(self.node_id)

    def disconnect(self) -> None:
        """Close all connections of clients, as a broker does with idle ones. Go on listening."""
        self._memory.hang_up(self.node_id)


def _request(api: str) -> type[Request[Any]]:
    if api not in _APIS:
        raise ConfigurationError("api", f"there is no {api!r}", f"Give one of {', '.join(_APIS)}")
    return _APIS[api]


def _error(name: str) -> ErrorCode:
    try:
        error = error_named(name)
    except KeyError:
        error = None
    if error is None or not error.code:
        expected = "Give a name as NOT_LEADER_OR_FOLLOWER, from https://kafka.apache.org/protocol"
        raise ConfigurationError("error", f"Kafka has no error {name!r}", expected)
    return error
