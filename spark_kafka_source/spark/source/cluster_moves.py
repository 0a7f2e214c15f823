"""The cluster of a checkpoint. A query goes on in another cluster only if an option names it."""

from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.spark.source.source_offset import SourceOffset

MOVED_TO_CLUSTER = "movedToCluster"


class OtherClusterError(LocalError):
    """The offsets of a checkpoint are of another cluster: `expected`. The brokers' is `found`."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(expected, found)
        self.expected, self.found = expected, found

    def _text(self) -> str:
        return (
            f"The checkpoint has offsets of the cluster {self.expected!r}, and "
            f"'kafka.bootstrap.servers' leads to the cluster {self.found!r}. If the topics moved "
            f"there with their offsets, give the option '{MOVED_TO_CLUSTER}' as {self.found!r}: "
            "the query goes on at the same offsets. If they have other offsets there, start with a "
            "new checkpoint"
        )


def has_moved(position: SourceOffset, cluster_id: str, moved_to: str | None) -> bool:
    """Whether `position` is of another cluster than `found`, and the query goes on in `found`.

    `moved_to` is the option. It names a cluster, so that it can stay set: it allows no other move.
    A checkpoint without a cluster's id is taken for one of another cluster if the option is given.
    Raises `ConfigurationError` if the option names another cluster than `found`, and
    `OtherClusterError` if the clusters differ and the option is not given.
    """
    if moved_to is not None and moved_to != cluster_id:
        raise ConfigurationError(
            MOVED_TO_CLUSTER,
            "is {}, and 'kafka.bootstrap.servers' leads to "
            + ("the cluster {}" if cluster_id else "brokers that give no id of their cluster"),
            "Give the id of the cluster that the topics moved to, or leave it out",
            moved_to,
            *filter(None, [cluster_id]),
        )
    if position.initial or not cluster_id or position.cluster_id == cluster_id:
        return False
    if moved_to is None and position.cluster_id:
        raise OtherClusterError(position.cluster_id, cluster_id)
    return moved_to is not None
