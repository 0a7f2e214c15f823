"""The command `local-broker`: a real Kafka on this machine, for as long as the command runs."""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import NoReturn

from spark_kafka_source.admin import KafkaAdmin
from spark_kafka_source.command_line.arguments import PROGRAM
from spark_kafka_source.command_line.output import Output
from spark_kafka_source.command_line.stop_signals import Stopped, StopSignals
from spark_kafka_source.errors import ConfigurationError, KafkaError
from spark_kafka_source.net import Deadline
from spark_kafka_source.protocol.messages.metadata import MetadataRequest
from spark_kafka_source.testing import (
    BrokerFailedError,
    LocalKafka,
    LocalRegistry,
    RegistryFailedError,
    kafka_jars,
)
from spark_kafka_source.testing.downloads import DownloadLine
from spark_kafka_source.testing.jars import KAFKA_VERSION
from spark_kafka_source.testing.java import find_java
from spark_kafka_source.testing.local_registry import registry_files
from spark_kafka_source.testing.ports import check_free

USUAL_PORT = 9092
"""The port in Kafka's own examples, and in those of this package."""

_LOOK_SECONDS = 0.5
_ASK_MS = 5_000
_FIRST_TOPIC = "events"


def local_broker(arguments: argparse.Namespace, output: Output) -> int:
    """Run brokers until Ctrl-C or SIGTERM. Return the exit code for the signal."""
    topics = _topics(arguments.topic)
    try:
        with StopSignals() as stops, stops.allowed(), ExitStack() as running:
            find_java()  # Before a download.
            with DownloadLine("Kafka's jars", sys.stderr) as line:
                kafka_jars(progress=line)
            kafka = _kafka(arguments, output, running)
            for name, partitions in topics.items():
                kafka.create_topic(name, partitions=partitions)
            registry = _registry(running) if arguments.registry else None
            _tell(output, kafka, registry, topics)
            _watch(kafka, registry, output)
    except Stopped as stopped:
        return stopped.status


def _topics(given: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return partitions by topic. Raises `ConfigurationError` for a topic that is given twice."""
    partitions = dict(given)
    if len(partitions) < len(given):
        raise ConfigurationError("--topic", "the same topic twice", "Give each topic once")
    return partitions


def _kafka(arguments: argparse.Namespace, output: Output, running: ExitStack) -> LocalKafka:
    """Start brokers at the port that the user wants, or at the usual one, or at any."""
    if arguments.port is not None:
        return _at(range(arguments.port, arguments.port + arguments.brokers), arguments, running)
    try:
        return _at(range(USUAL_PORT, USUAL_PORT + arguments.brokers), arguments, running)
    except ConfigurationError as error:
        output.note(f"Not at the usual port: {error.found}")
        return _at((), arguments, running)


def _at(ports: Sequence[int], arguments: argparse.Namespace, running: ExitStack) -> LocalKafka:
    with ExitStack() as undo:
        try:
            # A first `produce` needs no other command before it.
            kafka = LocalKafka(arguments.brokers, ports=ports, auto_create_topics=True)
            undo.enter_context(kafka)
        except BrokerFailedError:
            for port in ports:
                check_free(port)
            raise
        if ports:
            _check_own(kafka, ports)
        running.push(undo.pop_all())
    return kafka


def _check_own(kafka: LocalKafka, ports: Sequence[int]) -> None:
    """Raise `ConfigurationError` if another program that started meanwhile listens at a port.

    A broker that cannot have its port serves its other listeners for a moment, then it ends.
    """
    own = _cluster_id(kafka.bootstrap_servers_of("INTERNAL"))
    for port, broker in zip(ports, kafka.brokers, strict=True):
        if own is None or _cluster_id(broker.bootstrap_servers) != own:
            raise ConfigurationError("ports", "{} is taken by now", "Give another one", port)


def _cluster_id(servers: str) -> str | None:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    with KafkaAdmin(bootstrap_servers=servers, default_api_timeout_ms=_ASK_MS) as admin:
        try:
            return admin.client.run(
                admin.client.send_to_any(request, Deadline.after_ms(_ASK_MS))
            ).cluster_id
        except KafkaError:
            return None


def _registry(running: ExitStack) -> LocalRegistry:
    with DownloadLine("the schema registry", sys.stderr) as line:
        registry_files(line)
    return running.enter_context(LocalRegistry())


def _watch(kafka: LocalKafka, registry: LocalRegistry | None, output: Output) -> NoReturn:
    """Wait for a signal. Note a broker that ends. Raises an error once there is nothing left."""
    noted = set()
    while registry is None or registry.running:
        ended = [broker for broker in kafka.brokers if not broker.running]
        if len(ended) == len(kafka.brokers):
            raise BrokerFailedError(f"Broker {ended[0].node_id} has ended", ended[0].log)
        for broker in ended:
            if broker.node_id not in noted:
                noted.add(broker.node_id)
                output.note(f"Broker {broker.node_id} ({broker.bootstrap_servers}) has ended")
        time.sleep(_LOOK_SECONDS)
    raise RegistryFailedError("The registry has ended", registry.log)


def _tell(
    output: Output, kafka: LocalKafka, registry: LocalRegistry | None, topics: dict[str, int]
) -> None:
    """Say where everything is, and what to paste."""
    servers, url = kafka.bootstrap_servers, registry.url if registry else None
    if output.as_json:
        facts = {"kafka": KAFKA_VERSION, "bootstrap_servers": servers, "registry": url}
        output.document({**facts, "topics": topics})
    else:
        for line in _lines(servers, url, topics):
            output.line(line)
    output.flush()


def _lines(servers: str, url: str | None, topics: dict[str, int]) -> list[str]:
    program = PROGRAM if shutil.which(PROGRAM) else f"{sys.executable} -m spark_kafka_source"
    topic = next(iter(topics), _FIRST_TOPIC)
    shown = ", ".join(f"{name} (partitions: {count})" for name, count in topics.items())
    return [
        f"Apache Kafka {KAFKA_VERSION} runs until Ctrl-C. Then its topics and records are gone.",
        "",
        f"  bootstrap servers  {servers}",
        *([f"  schema registry    {url}"] if url else []),
        f"  topics             {shown or 'each is created when it is first written to'}",
        "",
        "In another terminal:",
        "",
        f"  echo hello | {program} produce {topic} -b {servers}",
        f"  {program} tail {topic} -b {servers}",
        "",
        "In PySpark:",
        "",
        'rows = (spark.read.format("pykafka")',
        f'    .option("kafka.bootstrap.servers", "{servers}")',
        f'    .option("subscribe", "{topic}").load())',
        *(_with_registry(servers, url, f"{topic}-avro") if url else []),
    ]


def _with_registry(servers: str, url: str, topic: str) -> list[str]:
    return [
        "",
        f'avro = {{"kafka.bootstrap.servers": "{servers}", "value.format": "avro",',
        f'    "schema.registry.url": "{url}"}}',
        f'to = {{"topic": "{topic}", "auto.register.schemas": "true"}}',
        '(spark.range(3).selectExpr("struct(id) AS value").write.format("pykafka")',
        '    .mode("append").options(**avro, **to).save())',
        f'typed = spark.read.format("pykafka").options(**avro, subscribe="{topic}").load()',
    ]
