"""Topics and configurations of a real broker: Kafka's own tool and confluent-kafka see them so."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import admin as confluent

from spark_kafka_source import (
    AlterConfigOp,
    ConfigResource,
    KafkaAdmin,
    KafkaProducer,
    NewTopic,
    Secret,
)
from spark_kafka_source.admin import TopicExistsError
from spark_kafka_source.admin.new_topics import ConfigValue
from spark_kafka_source.admin.refusals import TOPIC_CONFIGS
from spark_kafka_source.command_line.main import main
from spark_kafka_source.errors import BrokerError, TopicNotFoundError
from spark_kafka_source.testing import LocalKafka
from tests.consumer.consumers import eventually

pytestmark = pytest.mark.kafka

BROKER = ConfigResource.broker(1)
IN_TIME = 60
# The package has no type hints for these.
_confluent: Any = confluent


@pytest.fixture(scope="module")
def admin(kafka: LocalKafka) -> Iterator[KafkaAdmin]:
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        yield admin


def by_kafkas_tool(kafka: LocalKafka, names: str) -> dict[str, dict[str, str]]:
    """Return the heads of the descriptions of topics, by Kafka's tool. It takes seconds."""
    shown = kafka.tool("topics", "--describe", "--topic", f"{names}.*").splitlines()
    heads = (dict(re.findall(r"(\w+): ?(\S*)", line)) for line in shown if "Configs:" in line)
    return {head["Topic"]: head for head in heads}


class Confluent:
    """Topics as confluent-kafka sees them."""

    def __init__(self, kafka: LocalKafka) -> None:
        self._client = _confluent.AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def partitions(self, topic: str) -> int:
        return len(self._client.list_topics(topic, IN_TIME).topics[topic].partitions)

    def entries(self, topic: str) -> dict[str, Any]:
        """Return all configurations of a topic."""
        resource = _confluent.ConfigResource(_confluent.ConfigResource.Type.TOPIC, topic)
        (found,) = self._client.describe_configs([resource]).values()
        entries: dict[str, Any] = found.result(IN_TIME)
        return entries

    def configs(self, topic: str) -> dict[str, str]:
        """Return the values of all configurations of a topic."""
        return {name: each.value for name, each in self.entries(topic).items()}


@pytest.fixture(scope="module")
def other(kafka: LocalKafka) -> Confluent:
    return Confluent(kafka)


def test_topics_are_as_kafkas_tool_and_confluent_kafka_describe_them(
    kafka: LocalKafka, admin: KafkaAdmin, other: Confluent, topic: str
) -> None:
    configs: dict[str, ConfigValue] = {
        "retention.ms": 86_400_000,
        "cleanup.policy": "compact",
        "preallocate": True,
    }
    wanted = [
        NewTopic(topic, 3, 1, configs),
        NewTopic(f"{topic}-of-broker"),
        NewTopic(f"{topic}-replicas", replicas=[[1], [1]]),
        NewTopic(f"{topic}-big", 1, 3),
        NewTopic(f"{topic}-bad", configs={"retention.ms": Secret("canary")}),
    ]
    found = admin.create_topics(wanted)
    done = [name for name, error in found.items() if error is None]
    assert sorted(done) == sorted(each.name for each in wanted[:3])
    assert "Give at most the number of brokers, which is 1" in str(found[f"{topic}-big"])
    assert "INVALID_CONFIG" in str(found[f"{topic}-bad"])
    assert "canary" not in str(found[f"{topic}-bad"])

    heads = by_kafkas_tool(kafka, topic)
    assert {name: head["PartitionCount"] for name, head in heads.items()} == {
        topic: "3",
        f"{topic}-of-broker": "1",
        f"{topic}-replicas": "2",
    }
    told = heads[topic]
    assert told["ReplicationFactor"] == "1"
    for each in ("retention.ms=86400000", "cleanup.policy=compact", "preallocate=true"):
        assert each in told["Configs"].split(",")
    entries = admin.describe_configs([topic])[topic]
    theirs = other.entries(topic)
    assert {name: each.value for name, each in entries.items()} == {
        name: each.value for name, each in theirs.items()
    }
    assert {name for name, each in entries.items() if each.is_default} == {
        name for name, each in theirs.items() if each.is_default
    }
    assert entries.keys() == TOPIC_CONFIGS
    with pytest.raises(TopicExistsError):
        admin.create_topic(topic)


def test_a_new_topic_takes_records_at_once_from_all_of_its_leaders(
    kafka: LocalKafka, admin: KafkaAdmin, topic: str
) -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, retries=0) as producer:
        for number in range(5):
            name = f"{topic}-{number}"
            admin.create_topic(name, partitions=12)
            sent = [producer.send(name, b"x", partition=each) for each in range(12)]
            assert [each.result(IN_TIME).offset for each in sent] == [0] * 12
            assert admin.delete_topics([name]) == {name: None}
            assert name not in {each.name for each in admin.list_topics()}


def test_what_is_changed_is_changed_and_what_is_validated_is_not(
    admin: KafkaAdmin, other: Confluent, topic: str
) -> None:
    admin.create_topic(topic, 2, configs={"retention.ms": 1_000, "cleanup.policy": "compact"})
    admin.alter_configs({topic: {"retention.ms": 5}}, validate_only=True)
    admin.create_partitions({topic: 9}, validate_only=True)
    changes = {
        "retention.ms": None,
        "segment.ms": 60_000,
        "cleanup.policy": AlterConfigOp.append("delete"),
    }
    assert admin.alter_configs({topic: changes}) == {topic: None}
    assert admin.create_partitions({topic: 4}) == {topic: None}
    expected = {"segment.ms": "60000", "cleanup.policy": "compact,delete", "retention.ms": "-1"}
    eventually(lambda: expected.items() <= other.configs(topic).items())
    assert other.partitions(topic) == 4

    found = admin.create_partitions({topic: 2})
    assert "Partitions can only be added: it has 4, so give more" in str(found[topic])
    refused = admin.alter_configs({topic: {"retenton.ms": 5}})[topic]
    assert "Did you mean 'retention.ms'" in str(refused)
    for call in (admin.delete_topic, lambda name: admin.describe_configs([name])):
        with pytest.raises(TopicNotFoundError, match=f"Did you mean '{topic}'"):
            call(f"{topic}s")


def test_configurations_of_a_broker(admin: KafkaAdmin) -> None:
    configs = admin.describe_configs([BROKER], documentation=True)[BROKER]
    secret = configs["ssl.keystore.password"]
    assert (secret.is_sensitive, secret.value, secret.type) == (True, None, "PASSWORD")
    assert configs["node.id"].is_read_only
    retention = configs["log.retention.ms"]
    assert (retention.value, retention.source) == ("-1", "STATIC_BROKER_CONFIG")
    assert "milliseconds to keep a log file" in (retention.documentation or "")
    refused = admin.alter_configs({BROKER: {"node.id": 7}})[BROKER]
    assert isinstance(refused, BrokerError)
    loggers = ConfigResource.broker_loggers(1)
    assert admin.describe_configs([loggers])[loggers]["root"].value == "INFO"


def test_the_commands(
    kafka: LocalKafka, other: Confluent, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> tuple[int, list[dict[str, Any]]]:
        status = main(["topics", *words, "-b", kafka.bootstrap_servers, "--json"])
        return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert run("create", topic, "--dry-run")[1][0]["created"] is False
    assert run("create", topic, "--partitions", "2", "--set", "retention.ms=5")[0] == 0
    assert run("create", topic, "--if-not-exists")[0] == 0
    status, (row,) = run("create", topic)
    assert (status, row["created"]) == (1, False)
    assert run("alter", topic, "--partitions", "3", "--unset", "retention.ms")[0] == 0
    eventually(lambda: other.configs(topic)["retention.ms"] == "-1")
    assert other.partitions(topic) == 3
    rows = run("configs", topic, "--all")[1]
    assert {row["name"] for row in rows} == TOPIC_CONFIGS
    assert run("delete", topic)[0] == 0
    assert run("delete", topic, "--if-exists")[0] == 0
    assert run("delete", topic)[0] == 1
