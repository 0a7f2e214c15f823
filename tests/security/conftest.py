"""A broker with every secured listener, and a topic to read from it, for all tests in here."""

from collections.abc import Iterator

import pytest

from spark_kafka_source.records import Record
from spark_kafka_source.testing import LocalKafka, Producer, Security
from tests.security.options import USERS
from tests.security.rows import PARTITIONS, ROWS, ROWS_TOPIC


@pytest.fixture(scope="session")
def secured() -> Iterator[LocalKafka]:
    """One broker that all tests share: what has no ACL is everyone's."""
    with LocalKafka(security=Security(USERS)) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def thousand(secured: LocalKafka) -> str:
    """The name of a topic with a thousand rows, `ROWS`, in four partitions; only to be read."""
    secured.create_topic(ROWS_TOPIC, partitions=PARTITIONS)
    with Producer(secured.bootstrap_servers) as producer:
        for partition in range(PARTITIONS):
            records = [Record(value=value) for value in ROWS[partition::PARTITIONS]]
            producer.send(ROWS_TOPIC, partition, records)
    return ROWS_TOPIC
