"""A partition with its leader and its replicas: for `partitions_for`, partitioners, assignors."""

from spark_kafka_source.topic_partition import TopicPartition


class PartitionInfo(TopicPartition):
    """A partition with the node ids of its brokers, from the newest metadata.

    It is a `TopicPartition`: it is equal to the plain one, has its hash, and sorts with it.
    """

    leader_id: int | None = None
    """None while the partition has no leader."""
    replica_ids: tuple[int, ...] = ()
    in_sync_replica_ids: tuple[int, ...] = ()
    offline_replica_ids: tuple[int, ...] = ()
    racks: frozenset[str] = frozenset()
    """The racks of the brokers with a replica. A broker may have none."""

    @classmethod
    def of(
        cls,
        topic_partition: TopicPartition,
        leader_id: int | None,
        replica_ids: tuple[int, ...],
        in_sync_replica_ids: tuple[int, ...],
        offline_replica_ids: tuple[int, ...],
        *,
        racks: frozenset[str] = frozenset(),
    ) -> "PartitionInfo":
        """Return a partition with its brokers."""
        found = cls(*topic_partition)
        found.leader_id = leader_id
        found.replica_ids = replica_ids
        found.in_sync_replica_ids = in_sync_replica_ids
        found.offline_replica_ids = offline_replica_ids
        found.racks = racks
        return found

    def __repr__(self) -> str:
        return (
            f"PartitionInfo({self.topic!r}, {self.partition}, leader_id={self.leader_id},"
            f" replica_ids={self.replica_ids}, in_sync_replica_ids={self.in_sync_replica_ids},"
            f" offline_replica_ids={self.offline_replica_ids}, racks={sorted(self.racks)})"
        )
