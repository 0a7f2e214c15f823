"""Kafka's Admin client, for groups, topics and transactions: https://kafka.apache.org/documentation/#adminapi."""

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from spark_kafka_source.admin.committed import all_committed
from spark_kafka_source.admin.deletion import delete_groups, delete_offsets
from spark_kafka_source.admin.errors import TransactionNotFoundError
from spark_kafka_source.admin.group_descriptions import (
    GroupDescription,
    GroupListing,
    describe_groups,
    list_groups,
)
from spark_kafka_source.admin.held_up import HeldUpPartition, held_up
from spark_kafka_source.admin.lag import GroupLag, group_lag, lag_of
from spark_kafka_source.admin.reset import OffsetResets, reset_offsets
from spark_kafka_source.admin.targets import Target
from spark_kafka_source.admin.topics import (
    TopicDescription,
    describe_topics,
    partitions_named,
)
from spark_kafka_source.admin.transactions import (
    TransactionDescription,
    TransactionListing,
    abort_transaction,
    describe_transactions,
    list_transactions,
)
from spark_kafka_source.client import KafkaClient
from spark_kafka_source.consumer.consumer_config import ConsumerConfig
from spark_kafka_source.errors import KafkaError
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.net import TokenProvider
from spark_kafka_source.producer import ProducerId
from spark_kafka_source.spelling import spelt
from spark_kafka_source.topic_partition import TopicPartition

P = ParamSpec("P")
R = TypeVar("R")


def _spelt_as_given(
    method: "Callable[Concatenate[KafkaAdmin, P], R]",
) -> "Callable[Concatenate[KafkaAdmin, P], R]":
    """With its errors naming settings as the arguments did."""

    @wraps(method)
    def spelling(self: "KafkaAdmin", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with spelt(self._config.spelling):
            return method(self, *args, **kwargs)

    return spelling


class KafkaAdmin:
    """Looks at groups, topics and transactions from outside, and ends or moves what is in the way.

        with KafkaAdmin(bootstrap_servers="localhost:9092") as admin:
            print(admin.group_lag("billing").to_arrow())

    Configuration is that of `KafkaConsumer`; what a client does not need has no effect. Belongs to
    one thread at a time. All calls try again what can heal until `default_api_timeout_ms`, and
    raise `KafkaTimeoutError`, or `BrokerError` (authorization, ...) and what else they say.
    """

    def __init__(
        self, *, token_provider: TokenProvider | None = None, **configuration: object
    ) -> None:
        self._config = ConsumerConfig.from_arguments(configuration, token_provider)
        self._client = KafkaClient(self._config.client)

    def __enter__(self) -> "KafkaAdmin":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    @property
    def client(self) -> KafkaClient:
        """By which all of it is asked: for what this class has no method for."""
        return self._client

    # -- groups ------------------------------------------------------------------------------------

    @_spelt_as_given
    def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = ()
    ) -> list[GroupListing]:
        """All groups that this user may see, of all brokers.

        Or only those in certain `states` (`Stable`, `Empty`, `PreparingRebalance`,
        `CompletingRebalance`, and with KIP-848 `Assigning`, `Reconciling`; from Kafka 2.6 on), or
        of certain `types` (`classic`, `consumer`, `share`, `streams`).
        """
        return list_groups(self._client, states, types)

    @_spelt_as_given
    def describe_groups(self, group_ids: Iterable[str]) -> list[GroupDescription]:
        """These groups and their members. Raises `GroupNotFoundError`."""
        found = []
        for each in describe_groups(self._client, group_ids).values():
            if isinstance(each, KafkaError):
                raise each
            found.append(each)
        return found

    @_spelt_as_given
    def describe_group(self, group_id: str) -> GroupDescription:
        """A group and its members. Raises `GroupNotFoundError`."""
        return self.describe_groups([group_id])[0]

    @_spelt_as_given
    def group_lag(self, *groups: str | GroupDescription) -> GroupLag:
        """How far these groups are behind in each partition; without any, all groups of consumers.

        Raises `GroupNotFoundError`.
        """
        if not groups:
            consumers = [each.group_id for each in self.list_groups() if each.has_offsets]
            return group_lag(self._client, consumers, must_exist=False)
        described = [each for each in groups if isinstance(each, GroupDescription)]
        named = [each for each in groups if isinstance(each, str)]
        return lag_of(self._client, [*described, *self.describe_groups(named)])

    @_spelt_as_given
    def list_group_offsets(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """All that a group has committed; nothing, of one that is not there."""
        found = all_committed(self._client, [group_id])[group_id]
        if isinstance(found, KafkaError):
            raise found
        return found

    @_spelt_as_given
    def reset_offsets(
        self,
        group_id: str,
        to: Target,
        topics: Iterable[str | TopicPartition] | None = None,
        *,
        dry_run: bool = True,
    ) -> OffsetResets:
        """Commits other offsets to a group; as a dry run, only says which they would be.

        `to` is `"earliest"`, `"latest"`, `"current"`, a `datetime`, a `timedelta` ago, either as
        ISO 8601 text too, `Shift(-10)`, an offset for all, or offsets by partition. `topics` are
        topics or partitions; without, all that the group has committed. What the log does not
        reach becomes its start or end, and each row says so. What is committed loses its metadata.

        Raises `GroupNotEmptyError` where the group has members: stop them first;
        `ConfigurationError` and `LocalError` for a `to` that cannot be, `BrokerError` for
        partitions that are not there. A group that is not there is made.
        """
        return reset_offsets(self._client, group_id, to, topics, dry_run=dry_run)

    @_spelt_as_given
    def delete_groups(self, group_ids: Iterable[str]) -> dict[str, KafkaError | None]:
        """Deletes groups and all they have committed; why one is still there, or None.

        `GroupNotEmptyError` for one with members, `GroupNotFoundError`, `BrokerError`.
        """
        return delete_groups(self._client, group_ids)

    @_spelt_as_given
    def delete_group(self, group_id: str) -> None:
        """Deletes a group and all it has committed; raises what `delete_groups` tells."""
        (error,) = self.delete_groups([group_id]).values()
        if error is not None:
            raise error

    @_spelt_as_given
    def delete_offsets(
        self, group_id: str, topics: Iterable[str | TopicPartition]
    ) -> dict[TopicPartition, KafkaError | None]:
        """Deletes what a group has committed of topics, or partitions, that no member reads.

        Tells why a partition is still committed (GROUP_SUBSCRIBED_TO_TOPIC), or None. Raises
        `GroupNotFoundError`; `UnsupportedVersionError` before Kafka 2.4.
        """
        return delete_offsets(self._client, group_id, topics)

    # -- topics ------------------------------------------------------------------------------------

    @_spelt_as_given
    def list_topics(self) -> list[TopicDescription]:
        """All topics that this user may see, internal ones too, without their offsets."""
        return describe_topics(self._client, None, offsets=False)

    @_spelt_as_given
    def describe_topics(self, names: Collection[str] | None = None) -> list[TopicDescription]:
        """Topics, or all of them, with the offsets of their partitions.

        Raises `BrokerError` for a name that there is not, or may not be seen.
        """
        return describe_topics(self._client, names, offsets=True)

    # -- transactions ------------------------------------------------------------------------------

    @_spelt_as_given
    def list_transactions(self, *, states: Collection[str] = ()) -> list[TransactionListing]:
        """All transactional ids that this user may see, of all brokers, by their names.

        Or only those in certain `states`: `Ongoing`, `PrepareCommit`, `PrepareAbort`,
        `CompleteCommit`, `CompleteAbort`, `Empty`. Raises why a broker does not answer;
        `UnsupportedVersionError` before Kafka 3.0.
        """
        found, failures = list_transactions(self._client, states)
        for error in failures.values():
            raise error
        return found

    @_spelt_as_given
    def describe_transactions(
        self, transactional_ids: Iterable[str]
    ) -> list[TransactionDescription]:
        """The last transaction under each of these ids. Raises `TransactionNotFoundError`."""
        found = []
        for name, each in describe_transactions(self._client, transactional_ids).items():
            if each is None:
                raise TransactionNotFoundError(name)
            found.append(each)
        return found

    @_spelt_as_given
    def describe_transaction(self, transactional_id: str) -> TransactionDescription:
        """The last transaction under this id. Raises `TransactionNotFoundError`."""
        return self.describe_transactions([transactional_id])[0]

    @_spelt_as_given
    def abort_transaction(self, transactional_id: str, producer_id: int, epoch: int) -> None:
        """Aborts what is open under this id, if it is of exactly this producer id and epoch.

        Its producer cannot go on: it is fenced. What an exactly-once query has decided must be
        committed instead: `spark-kafka-source transactions abort` looks for that, this does not.

        Raises `TransactionNotFoundError`, `ProducerFencedError` where the epoch is not the last,
        `BrokerError` where the producer id is another, or nothing is open (INVALID_TXN_STATE).
        """
        abort_transaction(self._client, transactional_id, ProducerId(producer_id, epoch))

    @_spelt_as_given
    def held_up(self, topics: Iterable[str | TopicPartition]) -> list[HeldUpPartition]:
        """Up to where readers of committed records see partitions, or topics, and why no further.

        Raises `BrokerError` for unknown ones, and denials: it needs READ on the topics.
        """
        return held_up(self._client, partitions_named(self._client, topics))
