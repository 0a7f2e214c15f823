"""Kafka's Admin client, for groups, topics and transactions: https://kafka.apache.org/documentation/#adminapi."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Concatenate, Never, ParamSpec, TypeVar
from uuid import UUID

# The first client that wants an id imports what it needs.
from spark_kafka_source import telemetry
from spark_kafka_source.admin.committed import all_committed
from spark_kafka_source.admin.configs import (
    Change,
    ConfigEntry,
    Given,
    alter_configs,
    describe_configs,
)
from spark_kafka_source.admin.deletion import delete_groups, delete_offsets
from spark_kafka_source.admin.errors import TransactionNotFoundError, unless_error
from spark_kafka_source.admin.group_descriptions import (
    GroupDescription,
    GroupListing,
    describe_groups,
    list_groups,
)
from spark_kafka_source.admin.held_up_partitions import HeldUpPartition, held_up
from spark_kafka_source.admin.lag import GroupLag, group_lag
from spark_kafka_source.admin.new_topics import ConfigValue, NewTopic, topic_names
from spark_kafka_source.admin.offset_specs import OffsetSpec, list_offsets, parsed_level
from spark_kafka_source.admin.reset import OffsetResets, reset_offsets
from spark_kafka_source.admin.reset_targets import Target
from spark_kafka_source.admin.topic_changes import create_partitions, create_topics, delete_topics
from spark_kafka_source.admin.topics import TopicDescription, describe_topics
from spark_kafka_source.admin.transactions import (
    TransactionDescription,
    TransactionListing,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.client import Cluster, KafkaClient
from spark_kafka_source.client.arguments import refuse_positional
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.denials import Access
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.fetch.offsets import OffsetAndTimestamp
from spark_kafka_source.forks import OwnProcess, used_where_made
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.net import Conversation, TokenProvider
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition

P = ParamSpec("P")
R = TypeVar("R")


@used_where_made
class KafkaAdmin:
    """Shows groups, topics and transactions from outside, and creates, changes or deletes them.

        with KafkaAdmin(bootstrap_servers="localhost:9092") as admin:
            print(admin.group_lag("billing").to_arrow())

    Its configuration is that of `KafkaConsumer`; settings that a client does not need have no
    effect. Only one thread at a time may use it. Every call retries temporary errors until
    `default_api_timeout_ms`. Then it raises `KafkaTimeoutError`. All calls may also raise
    `BrokerError` (authorization, ...), besides the errors that they name.
    """

    def __init__(
        self,
        *positional: Never,
        token_provider: TokenProvider | None = None,
        **configuration: object,
    ) -> None:
        refuse_positional("KafkaAdmin", positional)
        self._process = OwnProcess("admin client")
        self._config = ConsumerConfig.from_arguments(configuration, token_provider)
        self._client = KafkaClient(self._config.client, Cluster(Access.ADMIN))
        self._client_instance_id: UUID | None = None

    def __enter__(self) -> "KafkaAdmin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def client_instance_id(self, timeout_ms: int | None = None) -> UUID:
        """Return the id that a broker gives this client (KIP-714). It has no metrics to push.

        A broker gives the id once, and the client keeps it. Waits up to `timeout_ms` milliseconds;
        the default is `default_api_timeout_ms`. Raises `UnsupportedVersionError` for brokers that
        take no metrics, and `KafkaTimeoutError`.
        """
        if self._client_instance_id is None:
            self._client_instance_id = self._run(telemetry.new_client_instance_id, timeout_ms)
        return self._client_instance_id

    @property
    def client(self) -> KafkaClient:
        """The client of all requests. Use it for what this class has no method for."""
        return self._client

    def _run(
        self,
        call: Callable[Concatenate[KafkaClient, P], Conversation[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Hold a conversation. Its errors name settings as the constructor's arguments did."""
        with spelt(self._config.spelling):
            return self._client.run(call(self._client, *args, **kwargs))

    # -- groups ------------------------------------------------------------------------------------

    def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[GroupListing]:
        """Return all groups that this user may see, from all brokers.

        `states` limits them to groups in these states: `Stable`, `Empty`, `PreparingRebalance`,
        `CompletingRebalance`, and with KIP-848 `Assigning`, `Reconciling` (from Kafka 2.6 on).
        `types` limits them to groups of these types: `classic`, `consumer`, `share`, `streams`.
        """
        return self._run(list_groups, states, types)

    def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """Return these groups and their members. Raises `GroupNotFoundError`."""
        return [unless_error(each) for each in self._run(describe_groups, group_ids).values()]

    def describe_group(self, group_id: str) -> GroupDescription:
        """Return a group and its members. Raises `GroupNotFoundError`."""
        return self.describe_groups([group_id])[0]

    def group_lag(self, *groups: str | GroupDescription) -> GroupLag:
        """Return the lag of these groups in each partition (default: all groups of consumers).

        Raises `GroupNotFoundError`.
        """
        return self._run(group_lag, groups)

    def list_group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return all that a group has committed: nothing for a group that does not exist."""
        return unless_error(self._run(all_committed, [group_id])[group_id])

    def reset_offsets(
        self,
        group_id: str,
        to: Target,
        topics: Iterable[str | TopicPartition] | None = None,
        *,
        dry_run: bool = True,
    ) -> OffsetResets:
        """Commit other offsets for a group. A dry run (the default) only returns them.

        `to` is `"earliest"`, `"latest"`, `"current"`, a `datetime`, a `timedelta` back from now,
        either of these two as ISO 8601 text, `Shift(-10)`, one offset for all partitions, or
        offsets by partition. `topics` are topics or partitions (default: all that the group has
        committed). An offset outside the log becomes its start or its end, and the row says so. The
        offsets lose their metadata.

        Raises `GroupNotEmptyError` if the group has members: stop them first. Raises
        `ConfigurationError` and `LocalError` for an impossible `to`, and `BrokerError` for
        partitions that do not exist. A group that does not exist is created.
        """
        return self._run(reset_offsets, group_id, to, topics, dry_run=dry_run)

    def delete_groups(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete groups with all they have committed. Return the error of each, or None.

        Errors are `GroupNotEmptyError` for a group with members, `GroupNotFoundError` and
        `BrokerError`.
        """
        return self._run(delete_groups, group_ids)

    def delete_group(self, group_id: str) -> None:
        """Delete a group with all it has committed. Raises the errors of `delete_groups`."""
        unless_error(self.delete_groups([group_id])[group_id])

    def delete_offsets(
        self, group_id: str, topics: Iterable[str | TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Delete a group's offsets of topics or partitions that no member reads.

        Returns the error of each partition that still has an offset (GROUP_SUBSCRIBED_TO_TOPIC), or
        None. Raises `GroupNotFoundError`, and `UnsupportedVersionError` before Kafka 2.4.
        """
        return self._run(delete_offsets, group_id, topics)

    # -- topics ------------------------------------------------------------------------------------

    def list_topics(self) -> list[TopicDescription]:
        """Return all topics that this user may see, with internal ones and without offsets."""
        return self._run(describe_topics, None, offsets=False)

    def describe_topics(self, names: str | Collection[str] | None = None) -> list[TopicDescription]:
        """Return topics (default: all) with the offsets of their partitions.

        `names` may be one name. Raises `BrokerError` for a topic that does not exist, or that this
        user may not see.
        """
        wanted = None if names is None else topic_names("names", names)
        return self._run(describe_topics, wanted, offsets=True)

    def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec], *, isolation_level: str | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return one offset of each partition, with its leader epoch and timestamp.

            events = TopicPartition("events", 0)
            admin.list_offsets({events: OffsetSpec.earliest_local()})[events].offset

        See `OffsetSpec` for what an offset may mean. `isolation_level` is `read_uncommitted` or
        `read_committed` (default: that of this client); it counts for `latest`. None stands for a
        partition without such an offset: no record is that late, or none is in remote storage. The
        timestamp is -1 where the offset was not found by time, the leader epoch if it is unknown.

        Raises `TopicNotFoundError`, `BrokerError` for a partition that does not exist,
        `ConfigurationError` for a wrong argument, and `UnsupportedVersionError` for a broker that
        is too old for one of the specs. The user needs DESCRIBE on the topics.
        """
        level = self._config.fetch.isolation_level
        if isolation_level is not None:
            level = parsed_level(isolation_level)
        return self._run(list_offsets, specs, level)

    def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        """Create topics, and wait until they can be used. Return the error of each, or None.

        A topic is done when all brokers know it and the leaders of all its partitions serve it.
        Before that, a first write could be refused for a while. With `validate_only` the brokers
        check all, and create nothing.

        Errors are `TopicExistsError`, `BrokerError` (INVALID_REPLICATION_FACTOR, INVALID_CONFIG,
        POLICY_VIOLATION, ...), and `KafkaTimeoutError` for a topic that is created but not served
        within `default_api_timeout_ms`. The user needs CREATE on the topics or on the cluster.
        """
        return self._run(create_topics, topics, validate_only=validate_only)

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replication_factor: int | None = None,
        configs: Mapping[str, ConfigValue] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Create one topic; see `NewTopic`. Raises the errors of `create_topics`."""
        configs = {} if configs is None else configs
        topic = NewTopic(name, partitions, replication_factor, configs)
        unless_error(self.create_topics([topic], validate_only=validate_only)[name])

    def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """Delete topics with all their records, and wait until no broker knows them.

        `names` may be one name. Returns the error of each topic, or None: `TopicNotFoundError`,
        `BrokerError` (TOPIC_DELETION_DISABLED, ...), and `KafkaTimeoutError` for a topic that is
        not gone within `default_api_timeout_ms`. The user needs DELETE on the topics.
        """
        return self._run(delete_topics, names)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records. Raises the errors of `delete_topics`."""
        unless_error(self.delete_topics([name])[name])

    def create_partitions(
        self, totals: Mapping[str, int], *, validate_only: bool = False
    ) -> dict[str, KafkaError | None]:
        """Grow topics to so many partitions, and wait until the new ones can be used.

        Old records stay where they are. New records of a key may go to another partition. Returns
        the error of each topic, or None: `TopicNotFoundError`, `BrokerError` (INVALID_PARTITIONS
        for a number that is no growth, ...), or `KafkaTimeoutError`, as `create_topics` does. With
        `validate_only` nothing changes. The user needs ALTER on the topics.
        """
        return self._run(create_partitions, totals, validate_only=validate_only)

    # -- configurations ----------------------------------------------------------------------------

    def describe_configs(
        self,
        resources: Given | Iterable[Given],
        names: str | Collection[str] | None = None,
        *,
        documentation: bool = False,
    ) -> dict[Given, dict[str, ConfigEntry]]:
        """Return the configurations of topics and brokers, by resource and by name.

            admin.describe_configs(["events"])["events"]["retention.ms"].value
            admin.describe_configs([ConfigResource.broker(1)], ["log.retention.ms"])

        A text names a topic. `names` limits the result (default: all). Both may be one in place of
        several. With `documentation` each has Kafka's text about it. The values of secrets are
        never shown.

        Raises `TopicNotFoundError`, `BrokerError`, and `ConfigurationError` for a broker that is
        not up, and for an empty `names`. The user needs DESCRIBE_CONFIGS on the topics, or on the
        cluster for brokers.
        """
        return self._run(describe_configs, resources, names, documentation=documentation)

    def alter_configs(
        self,
        changes: Mapping[Given, Mapping[str, Change]],
        *,
        validate_only: bool = False,
    ) -> dict[Given, KafkaError | None]:
        """Change some configurations of topics and brokers. Others stay as they are.

            admin.alter_configs({"events": {"retention.ms": 86_400_000, "segment.ms": None}})

        A text names a topic. None takes a value away, so that the default counts again.
        `AlterConfigOp` adds to a list, or takes out of it. The value may be a `Secret`: no error
        shows it. Brokers act on a change a moment after it is written down. With `validate_only`
        nothing changes.

        Returns the error of each resource, or None: `TopicNotFoundError`, `BrokerError`
        (INVALID_CONFIG, also for a name to take away that neither Kafka's topics nor this one has,
        ...). Raises `ConfigurationError` for a broker that is not up, and
        `UnsupportedVersionError` before Kafka 2.3. The user needs ALTER_CONFIGS on the topics, or
        on the cluster for brokers.
        """
        return self._run(alter_configs, changes, validate_only=validate_only)

    # -- transactions ------------------------------------------------------------------------------

    def list_transactions(self, *, states: Collection[str] = ()) -> list[TransactionListing]:
        """Return all transactional ids that this user may see, from all brokers, in order.

        `states` limits them to transactions in these states: `Ongoing`, `PrepareCommit`,
        `PrepareAbort`, `CompleteCommit`, `CompleteAbort`, `Empty`. Raises the error of a broker
        that does not answer, and `UnsupportedVersionError` before Kafka 3.0.
        """
        listings, failures = self._run(list_transactions, states)
        for error in failures.values():
            raise error
        return listings

    def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> list[TransactionDescription]:
        """Return the last transaction of each of these ids. Raises `TransactionNotFoundError`."""
        descriptions = []
        for name, description in self._run(describe_transactions, transactional_ids).items():
            if description is None:
                raise TransactionNotFoundError(name)
            descriptions.append(description)
        return descriptions

    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """Return the last transaction of this id. Raises `TransactionNotFoundError`."""
        return self.describe_transactions([transactional_id])[0]

    def abort_transaction(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Abort the open transaction of this id, if it has exactly this producer id and epoch.

        This fences its producer, which cannot continue. If the transaction is a task's of an
        exactly-once query, it looks at the query's decisions first: a decided transaction must be
        committed. The look needs READ on the query's groups and topics, and WRITE on its ids. After
        the abort it looks again, since the query may have decided meanwhile.

        Raises `TransactionNotFoundError`, `ProducerFencedError` if the epoch is not the last, and
        `BrokerError` if the producer id is another, or nothing is open (INVALID_TXN_STATE). For a
        decided transaction raises `DecidedTransactionError`, and nothing is aborted. Raises
        `LateAbortError` if it is aborted, and its micro-batch was decided meanwhile.
        """
        # `exactly_once` is above this package.
        from spark_kafka_source.exactly_once.repair import abort_undecided  # noqa: PLC0415

        with spelt(self._config.spelling):
            abort_undecided(self._client, transactional_id, ProducerId(producer_id, epoch))

    def held_up(self, topics: Iterable[str | TopicPartition]) -> list[HeldUpPartition]:
        """Return how far readers of committed records see partitions, and what stops them.

        `topics` are topics or partitions.

        Raises `BrokerError` for unknown topics, and for denials: the user needs READ on the topics.
        """
        return self._run(held_up, topics)
