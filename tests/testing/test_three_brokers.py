"""Three brokers are a cluster: two brokers keep the records that one broker loses."""

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.testing.traffic import consume, produce

pytestmark = [pytest.mark.kafka, pytest.mark.long]

VALUES = [b"a", b"b", b"c"]


@pytest.mark.parametrize("node_id", [1, 2, 3])
def test_the_loss_of_any_broker_loses_nothing(kafka3: LocalKafka, topic: str, node_id: int) -> None:
    kafka3.create_topic(topic)
    produce(kafka3.bootstrap_servers, topic, VALUES)
    kafka3.broker(node_id).kill()
    produce(kafka3.bootstrap_servers, topic, VALUES)
    assert consume(kafka3.bootstrap_servers, topic, 6) == VALUES * 2
    kafka3.start()
    assert all(broker.running for broker in kafka3.brokers)


def test_topics_have_three_replicas_unless_told_otherwise(kafka3: LocalKafka, topic: str) -> None:
    kafka3.create_topic(topic)
    kafka3.create_topic(f"{topic}-single", replication_factor=1)
    shown = kafka3.tool("topics", "--describe", "--topic", f"{topic}.*")
    assert "ReplicationFactor: 3" in shown
    assert "ReplicationFactor: 1" in shown


def test_all_stop_and_start_together(kafka3: LocalKafka, topic: str) -> None:
    kafka3.create_topic(topic)
    produce(kafka3.bootstrap_servers, topic, VALUES)
    kafka3.stop()
    assert not any(broker.running for broker in kafka3.brokers)
    kafka3.start()
    assert consume(kafka3.bootstrap_servers, topic, 3) == VALUES
