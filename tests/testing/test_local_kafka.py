"""A LocalKafka is a real Kafka: it keeps its data over restarts, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from spark_kafka_source.errors import ClosedError, ConfigurationError
from spark_kafka_source.testing import BrokerFailedError, LocalKafka, ToolError
from spark_kafka_source.testing.probe import brokers_in_service
from spark_kafka_source.topic_partition import TopicPartition
from tests.testing.processes import still_there
from tests.testing.traffic import consume, produce

pytestmark = pytest.mark.kafka

WAIT_SECONDS = 60
VALUES = [b"a", b"b", b"c"]


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[LocalKafka]:
    """Run a broker that these tests may stop."""
    with LocalKafka() as kafka:
        yield kafka


def test_serves_an_independent_client(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic)
    produce(kafka.bootstrap_servers, topic, VALUES)
    assert consume(kafka.bootstrap_servers, topic, 3) == VALUES


def test_topics_are_created_grown_trimmed_and_deleted(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic, partitions=2, configs={"segment.bytes": "2097152"})
    kafka.create_partitions(topic, 5)
    description = kafka.tool("topics", "--describe", "--topic", topic)
    assert "PartitionCount: 5" in description
    assert "segment.bytes=2097152" in description
    produce(kafka.bootstrap_servers, topic, VALUES)
    kafka.delete_records({TopicPartition(topic, 0): 2})
    earliest = kafka.tool("get-offsets", "--topic", topic, "--time", "earliest")
    assert f"{topic}:0:2" in earliest.splitlines()
    kafka.delete_topic(topic)
    assert topic not in kafka.tool("topics", "--list").splitlines()


def test_a_mistyped_topic_is_not_made(kafka: LocalKafka, topic: str) -> None:
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    assert client.list_topics(topic, timeout=WAIT_SECONDS).topics[topic].error is not None
    assert topic not in kafka.tool("topics", "--list").splitlines()


@pytest.mark.long
def test_topics_come_by_themselves_where_a_test_wants_that(topic: str) -> None:
    with LocalKafka(auto_create_topics=True) as kafka:
        produce(kafka.bootstrap_servers, topic, VALUES)
        assert consume(kafka.bootstrap_servers, topic, 3) == VALUES


def test_topics_come_by_themselves_by_one_of_two_ways() -> None:
    given = {"auto.create.topics.enable": "true"}
    assert LocalKafka(auto_create_topics=True)._properties == given
    assert LocalKafka(properties=given)._properties == given
    assert LocalKafka()._properties == {}
    with pytest.raises(ConfigurationError, match="is given with 'auto"):
        LocalKafka(auto_create_topics=True, properties=given)
    with pytest.raises(ConfigurationError, match=r"found 'yes'\. Give True or False"):
        LocalKafka(auto_create_topics="yes")  # type: ignore[arg-type]


def test_a_tool_shows_a_group(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic)
    produce(kafka.bootstrap_servers, topic, VALUES)
    consume(kafka.bootstrap_servers, topic, 2, group=topic)
    shown = kafka.tool("consumer-groups", "--describe", "--group", topic)
    rows = [line.split() for line in shown.splitlines()]
    group_topic_partition_committed_end_lag = [topic, topic, "0", "2", "3", "1"]
    assert group_topic_partition_committed_end_lag in [row[:6] for row in rows]


def test_a_failed_tool_raises_what_it_wrote(kafka: LocalKafka) -> None:
    with pytest.raises(ToolError, match=r"'topics' ended with 1:\n.*nonsense"):
        kafka.tool("topics", "--nonsense")


def test_a_tool_is_ended_when_its_time_is_up(kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic)
    with pytest.raises(ToolError, match="did not end within 2000 ms"):
        kafka.tool("console-consumer", "--topic", topic, timeout_ms=2000)
    # Not the children of children: the workers of other tests' Spark end while they are asked.
    # An ended, unreaped child of another test has no command line.
    children = psutil.Process().children()
    assert not [each for each in children if topic in (each.as_dict(["cmdline"])["cmdline"] or ())]


def test_an_unknown_tool_names_those_that_are(kafka: LocalKafka) -> None:
    with pytest.raises(ConfigurationError, match=r"none named 'topic'.* topics, "):
        kafka.tool("topic")


def test_an_unknown_broker_names_those_that_are(kafka: LocalKafka) -> None:
    with pytest.raises(ConfigurationError, match=r"no broker 2.* 1 to 1"):
        kafka.broker(2)


@pytest.mark.parametrize("ended_by", ["restart", "kill"])
def test_data_and_ports_outlive_a_restart(own_kafka: LocalKafka, topic: str, ended_by: str) -> None:
    bootstrap_servers, pid = own_kafka.bootstrap_servers, own_kafka.broker(1).pid
    own_kafka.create_topic(topic)
    produce(bootstrap_servers, topic, VALUES)
    getattr(own_kafka.broker(1), ended_by)()
    own_kafka.broker(1).start()
    assert own_kafka.broker(1).pid != pid
    assert own_kafka.bootstrap_servers == bootstrap_servers
    assert consume(bootstrap_servers, topic, 3) == VALUES


def test_a_stopped_broker_shut_down_in_order(own_kafka: LocalKafka) -> None:
    process = psutil.Process(own_kafka.broker(1).pid)
    own_kafka.stop()
    assert not process.is_running()
    assert not own_kafka.broker(1).running
    assert "shut down completed (kafka.server" in own_kafka.broker(1).log.read_text()
    with pytest.raises(ClosedError, match="does not run"):
        own_kafka.broker(1).pause()
    own_kafka.start()


def test_a_paused_broker_is_silent_until_it_resumes(own_kafka: LocalKafka, topic: str) -> None:
    own_kafka.create_topic(topic)
    own_kafka.pause()
    client = AdminClient({"bootstrap.servers": own_kafka.bootstrap_servers, "log_level": 0})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)
    own_kafka.resume()
    produce(own_kafka.bootstrap_servers, topic, VALUES)
    assert consume(own_kafka.bootstrap_servers, topic, 3) == VALUES


def test_a_paused_broker_can_be_stopped(own_kafka: LocalKafka) -> None:
    own_kafka.pause()
    own_kafka.stop()
    assert not own_kafka.broker(1).running
    own_kafka.start()


def test_two_at_once_are_two_clusters(kafka: LocalKafka, own_kafka: LocalKafka, topic: str) -> None:
    kafka.create_topic(topic)
    assert topic in kafka.tool("topics", "--list").splitlines()
    assert topic not in own_kafka.tool("topics", "--list").splitlines()


def test_properties_of_the_caller_reach_the_broker_and_data_stay_in_its_directory(
    tmp_path: Path, topic: str
) -> None:
    properties = {"message.max.bytes": "7777", "auto.create.topics.enable": "true"}
    with LocalKafka(properties=properties, directory=tmp_path / "a b") as kafka:
        kafka.create_topic(topic)
        produce(kafka.bootstrap_servers, topic, VALUES)
        shown = kafka.tool("configs", "--describe", "--all", "--broker", "1")
        assert "message.max.bytes=7777" in shown
        assert "auto.create.topics.enable=true" in shown
        with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
            produce(kafka.bootstrap_servers, topic, [b"x" * 8000])
    with LocalKafka(directory=tmp_path / "a b") as again:
        assert consume(again.bootstrap_servers, topic, 3) == VALUES


def test_whatever_its_clients_must_do_the_tools_and_topic_helpers_work(topic: str) -> None:
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required user_alice='secret';"
    properties = {
        "listener.security.protocol.map": (
            "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "listener.name.client.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.client.plain.sasl.jaas.config": jaas,
    }
    with LocalKafka(properties=properties) as kafka:
        kafka.create_topic(topic)
        assert topic in kafka.tool("topics", "--list").splitlines()
        plain = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": "0"}
        alice = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "secret"}
        by_sasl = AdminClient({**plain, **alice, "security.protocol": "SASL_PLAINTEXT"})
        assert topic in by_sasl.list_topics(timeout=WAIT_SECONDS).topics
        with pytest.raises(KafkaException):
            AdminClient({**plain}).list_topics(timeout=1)


def test_the_end_of_the_context_leaves_no_process_and_no_directory() -> None:
    with LocalKafka() as kafka:
        broker = kafka.broker(1)
        process = psutil.Process(broker.pid)
        internal_port = broker.node.internal_port
        assert brokers_in_service(internal_port, WAIT_SECONDS * 1000) == {1}
    assert not process.is_running()
    assert not broker.directory.parent.exists()
    assert brokers_in_service(internal_port, WAIT_SECONDS * 1000) == set()


def test_a_broker_that_cannot_start_says_why_and_leaves_nothing() -> None:
    # Not the children of children: the workers of other tests' Spark come and go.
    before = set(psutil.Process().children())
    with pytest.raises(BrokerFailedError, match=r"(?s)Broker 1 .*no.such.Authorizer") as failure:
        LocalKafka(properties={"authorizer.class.name": "no.such.Authorizer"}).__enter__()
    assert not failure.value.log.parent.exists()
    assert set(psutil.Process().children()) <= before


PARENT = """
import sys
from spark_kafka_source.testing import LocalKafka
with LocalKafka() as kafka:
    print(kafka.broker(1).pid, kafka.broker(1).directory.parent, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(pytest.param(each, marks=pytest.mark.long) for each in (signal.SIGTERM, signal.SIGINT)),
    ],
)
def test_a_killed_parent_leaves_no_process_and_no_directory(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:
        assert parent.stdout
        pid, directory = parent.stdout.readline().split()
        # The JVM, its supervisor and the remover: all processes of this LocalKafka.
        left = psutil.Process(parent.pid).children(recursive=True)
        assert int(pid) in {process.pid for process in left}
        parent.send_signal(number)
        assert not still_there(left)
    assert not Path(directory).exists()


def test_every_broker_has_a_rack_or_none_has() -> None:
    with pytest.raises(ConfigurationError, match=r"'racks': 2\. Give none or 3"):
        LocalKafka(3, racks=["a", "b"])


def test_it_must_be_entered() -> None:
    with pytest.raises(ClosedError, match="`with` statement"):
        _ = LocalKafka().bootstrap_servers
