"""Leaders and in-sync replicas of a topic's partitions, as confluent-kafka sees them."""

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from spark_kafka_source.testing import LocalKafka
from tools.traffic import wait_until

_ASK_SECONDS = 5
_STATE_TOPICS = ("__transaction_state", "__consumer_offsets")


class Leaders:
    """Leaders and in-sync replicas of all partitions of a topic."""

    def __init__(self, kafka: LocalKafka, topic: str) -> None:
        servers = kafka.bootstrap_servers
        self._client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        self._topic = topic

    def now(self) -> set[int]:
        """Return the brokers that lead a partition; -1 if a partition has no leader."""
        return {leader for leader, _ in self._found()}

    def await_leader(self, node_id: int) -> None:
        """Wait until this broker leads all partitions."""
        wait_until(lambda: self.now() == {node_id})

    def await_in_sync(self, *node_ids: int) -> None:
        """Wait until exactly these brokers are in sync for each partition."""
        wait_until(lambda: {in_sync for _, in_sync in self._found()} == {frozenset(node_ids)})

    def _found(self) -> set[tuple[int, frozenset[int]]]:
        try:
            topics = self._client.list_topics(self._topic, _ASK_SECONDS).topics
        except KafkaException:
            return set()
        partitions = topics[self._topic].partitions.values()
        return {(each.leader, frozenset(each.isrs)) for each in partitions}


def make_whole(kafka: LocalKafka, *topics: str) -> None:
    """Resume and start all brokers, and wait until all are in sync for the topics."""
    for broker in kafka.brokers:
        if broker.running:
            broker.resume()
    kafka.start()
    for topic in (*topics, *_STATE_TOPICS):
        leaders = Leaders(kafka, topic)
        if topic in topics or leaders.now():  # Brokers create their own topics when first needed.
            leaders.await_in_sync(*(each.node_id for each in kafka.brokers))
