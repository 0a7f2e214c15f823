"""The rights for exactly-once writes: all of them suffice, and each missing one is named."""

from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.errors import BrokerError
from spark_kafka_source.testing import LocalKafka
from tests.exactly_once.judge import committed, found_by_confluent, judge
from tests.exactly_once.query import Query
from tests.security.acls import allow
from tests.security.options import options_of

pytestmark = [pytest.mark.kafka]

PARTITIONS = 2
RIGHTS = {
    "WRITE on the topic": ("WRITE", "topic"),
    "READ on the topic": ("READ", "topic"),
    "READ on the group": ("READ", "group"),
    "WRITE on the ids": ("WRITE", "transactional_id"),
}
"""Each of them includes DESCRIBE. Groups and ids are those with the prefix."""

DENIED = {
    "WRITE on the topic": "TOPIC_AUTHORIZATION_FAILED",
    "READ on the topic": "TOPIC_AUTHORIZATION_FAILED",
    "READ on the group": "GROUP_AUTHORIZATION_FAILED",
    "WRITE on the ids": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
}


def query_of(kafka: LocalKafka, topic: str, lacking: str | None) -> Query:
    """Return bob's query. Bob has all rights but one, which only alice has."""
    kafka.create_topic(topic, PARTITIONS)
    query = Query(kafka.bootstrap_servers_of("SASL_PLAINTEXT"), topic, PARTITIONS)
    given = options_of(kafka, "SASL_PLAINTEXT", "SCRAM-SHA-256", user="bob")
    del given["kafka.bootstrap.servers"]
    query.settings = {name.removeprefix("kafka."): each for name, each in given.items()}
    names = {"topic": topic, "group": f"{query.prefix}*", "transactional_id": f"{query.prefix}.*"}
    for right, (operation, kind) in RIGHTS.items():
        user = "alice" if right == lacking else "bob"
        allow(kafka, user, operation, **{kind: names[kind]})
    return query


def test_with_all_rights_it_works(secured: LocalKafka, topic: str) -> None:
    query = query_of(secured, topic, None)
    for batch_id in range(2):
        run = query.start()
        run.commit(batch_id, run.write(batch_id))
    found = found_by_confluent(secured.bootstrap_servers, topic, PARTITIONS)
    assert judge(found, query.written).is_good


@pytest.mark.parametrize("right", RIGHTS)
def test_without_one_it_says_which(right: str, secured: LocalKafka, topic: str) -> None:
    query = query_of(secured, topic, right)
    run = query.start()
    with pytest.raises(BrokerError, match=DENIED[right]) as raised:
        run.commit(0, run.write(0, 1))
    operation, _, kind = right.partition(" on the ")
    name = "transactional id" if kind == "ids" else kind
    assert f"user needs {operation} on {name} '{query.prefix if kind != 'topic' else topic}" in (
        str(raised.value)
    )
    assert not committed(secured.bootstrap_servers, topic, PARTITIONS)


@pytest.mark.parametrize(
    ("right", "named"),
    [
        ("READ on the group", "READ on groups that begin with '{prefix}'"),
        ("READ on the topic", "READ on the topic"),
        ("WRITE on the ids", "WRITE on transactional ids that begin with '{prefix}.'"),
    ],
)
def test_an_abort_without_a_right_to_look_aborts_nothing(
    right: str, named: str, secured: LocalKafka, topic: str
) -> None:
    query = query_of(secured, topic, right)
    own = Query(secured.bootstrap_servers, topic, PARTITIONS, prefix=query.prefix)
    run = own.start()
    run.commit(0, run.write(0))
    (open_one,) = run.write(1, 1)
    settings: dict[str, Any] = query.settings
    with (
        KafkaAdmin(bootstrap_servers=query.servers, **settings) as admin,
        pytest.raises(BrokerError, match=DENIED[right]) as raised,
    ):
        admin.abort_transaction(open_one.transactional_id, *open_one.producer)
    assert f"the user needs {named.format(prefix=query.prefix)}, to look" in str(raised.value)
    with KafkaAdmin(bootstrap_servers=secured.bootstrap_servers) as admin:
        assert admin.describe_transaction(open_one.transactional_id).state == "Ongoing"


def test_a_transaction_that_one_may_not_see_is_not_listed(secured: LocalKafka, topic: str) -> None:
    """Brokers leave it out without a word, and so `transactions list` says "None is open"."""
    query = query_of(secured, topic, "WRITE on the ids")
    own = Query(secured.bootstrap_servers, topic, PARTITIONS, prefix=query.prefix)
    (open_one,) = own.start().write(0, 1)

    def seen(servers: str, settings: dict[str, Any]) -> set[str]:
        with KafkaAdmin(bootstrap_servers=servers, **settings) as admin:
            return {each.transactional_id for each in admin.list_transactions()}

    assert open_one.transactional_id in seen(secured.bootstrap_servers, {})
    assert open_one.transactional_id not in seen(query.servers, query.settings)
    allow(secured, "bob", "DESCRIBE", transactional_id=f"{query.prefix}.*")
    assert open_one.transactional_id in seen(query.servers, query.settings)
