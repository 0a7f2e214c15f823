"""The doctor on a real broker: it reports rights, and creates nothing."""

import json

import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.command_line.main import main
from spark_kafka_source.testing import LocalKafka

pytestmark = pytest.mark.kafka


def test_a_real_broker(kafka: LocalKafka, topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    kafka.create_topic(topic, partitions=2)
    words = ["doctor", "-b", kafka.bootstrap_servers, "--topic", topic]
    words += ["--group", "nobody", "--transactional-id", "nobody", "--timeout", "120"]
    assert main([*words, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found = {(row["check"], row["found"]) for row in rows}
    assert {("topic right", f"{each} is granted") for each in ("READ", "WRITE")} <= found
    assert ("leaders", "2 partitions have leaders") in found


def test_an_unknown_topic_is_not_made(kafka: LocalKafka, topic: str) -> None:
    words = ["doctor", "-b", kafka.bootstrap_servers, "--topic", topic, "--timeout", "120"]
    assert main(words) == 1
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assert topic not in {each.name for each in admin.list_topics()}
