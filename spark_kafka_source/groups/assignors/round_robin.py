"""The round-robin assignor: the members take all partitions of all topics in turn."""

from bisect import bisect_left
from collections.abc import Mapping

from spark_kafka_source.groups.assignors.assignor import Assignor, Cluster, topics_to_assign
from spark_kafka_source.groups.assignors.hash_order import sort_key
from spark_kafka_source.groups.assignors.members import lasting_order, subscribers
from spark_kafka_source.groups.assignors.subscription import Assignment, Subscription
from spark_kafka_source.topic_partition import TopicPartition


class RoundRobinAssignor(Assignor):
    """Kafka's `roundrobin`."""

    name = "roundrobin"

    def assign(
        self, cluster: Cluster, subscriptions: Mapping[str, Subscription]
    ) -> Mapping[str, Assignment]:
        """Divide the partitions; see `Assignor`."""
        members = lasting_order(subscriptions)
        seat_of = {member: seat for seat, member in enumerate(members)}
        readers = subscribers(members, subscriptions)
        seats = {topic: [seat_of[member] for member in readers[topic]] for topic in readers}
        topics = topics_to_assign(cluster, subscriptions)
        assigned: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        turn = 0
        for topic in sorted(topics, key=sort_key):
            for partition in range(len(topics[topic])):
                # A member that does not subscribe to the topic misses its turn.
                seat = _next(seats[topic], turn)
                assigned[members[seat]].append(TopicPartition(topic, partition))
                turn = seat + 1
        return {member: Assignment(tuple(partitions)) for member, partitions in assigned.items()}


def _next(seats: list[int], turn: int) -> int:
    """Return the first seat from `turn` on, around the table."""
    return seats[bisect_left(seats, turn) % len(seats)]
