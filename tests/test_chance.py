"""The program's own random numbers: the same after `random.seed`, whatever the clients do."""

import ast
import random
from pathlib import Path

import spark_kafka_source
from spark_kafka_source import KafkaProducer, TopicPartition
from spark_kafka_source.testing.memory import MemoryBroker

PACKAGE = Path(spark_kafka_source.__file__).parent


def test_clients_leave_the_programs_random_numbers_alone() -> None:
    before = random.getstate()
    with MemoryBroker(2) as broker:
        (log,) = broker.create_topic("t")
        address = broker.address()
        with KafkaProducer(
            bootstrap_servers=f"{address.host}:{address.port}", retry_backoff_ms=1
        ) as producer:
            producer.send("t", b"before").result(60)
            broker.move_leader(TopicPartition("t", 0), 1 - log.leader_id)
            producer.send("t", b"after").result(60)
    assert random.getstate() == before


def test_no_module_draws_from_the_programs_random_numbers() -> None:
    """Only classes of the module `random` are used: each object has a state of its own."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}: random.{node.attr}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "random"
        and node.attr not in {"Random", "SystemRandom"}
    ]
    assert found == []
