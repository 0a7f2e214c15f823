"""Security of unshared clusters: three brokers, and ACLs for everything."""

from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException

from spark_kafka_source.testing import LocalKafka, Security
from tests.security.options import USERS, independent
from tests.testing.traffic import consume, produce

pytestmark = [pytest.mark.kafka, pytest.mark.long]

VALUES = [b"a", b"b", b"c"]


def test_three_brokers_know_the_same_users_and_keep_them_over_a_restart(topic: str) -> None:
    with LocalKafka(3, security=Security(USERS)) as kafka:
        kafka.create_topic(topic)
        where = kafka.bootstrap_servers_of("SASL_SSL")
        assert len(set(where.split(","))) == 3
        settings = independent(kafka, "SASL_SSL", "SCRAM-SHA-512")
        produce(where, topic, VALUES, settings)
        kafka.broker(2).restart()
        of_each = [broker.node.address_of("SASL_SSL") for broker in kafka.brokers]
        for address in of_each:
            assert consume(address, topic, 3, settings=settings) == VALUES


def test_what_has_no_acl_may_be_nobodys_and_data_stay(topic: str, tmp_path: Path) -> None:
    security = Security(USERS, allow_everyone=False)
    with LocalKafka(security=security, directory=tmp_path) as kafka:
        kafka.create_topic(topic)
        where, bob = kafka.bootstrap_servers_of("MTLS"), independent(kafka, "MTLS", user="bob")
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            produce(where, topic, VALUES, bob)
        kafka.allow("bob", "All", topic="*")
        produce(where, topic, VALUES, bob)
        kafka.allow("bob", "All", group="*")
        processes = [psutil.Process(broker.pid) for broker in kafka.brokers]
    assert not any(process.is_running() for process in processes)
    with LocalKafka(security=security, directory=tmp_path) as again:
        where = again.bootstrap_servers_of("SASL_PLAINTEXT")
        settings = independent(again, "SASL_PLAINTEXT", "SCRAM-SHA-256", user="bob")
        assert consume(where, topic, 3, settings=settings) == VALUES
