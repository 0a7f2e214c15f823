"""Both clients and confluent-kafka's serializers, on a real broker and a real registry."""

import datetime
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

from spark_kafka_source import KafkaConsumer, KafkaProducer
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing import LocalKafka, LocalRegistry
from spark_kafka_source.typed import BadRecordError
from spark_kafka_source.values import SchemaText, SchemaType
from spark_kafka_source.values.protobuf.text import compiled

pytestmark = [pytest.mark.kafka, pytest.mark.registry]

PATIENCE_SECONDS = 60
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "paid", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "place", "type": ["null", {"type": "record", "name": "Place", "fields": [
            {"name": "city", "type": "string"}]}], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}  # fmt: skip
JSON = {
    "title": "Event",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
PROTO = """
syntax = "proto3";
message Other { string x = 1; }
message Event { int64 id = 1; repeated string tags = 2; Other other = 3; }
"""
EVENTS = [
    {
        "id": 1,
        "kind": "B",
        "at": datetime.datetime(2026, 5, 4, 3, 2, 1, 99, datetime.UTC),
        "paid": Decimal("-12.30"),
        "place": {"city": "Ulm"},
        "tags": ["ä", ""],
    },
    {
        "id": -(2**63),
        "kind": "A",
        "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, datetime.UTC),
        "paid": Decimal("0.01"),
        "place": None,
        "tags": [],
    },
]
PLAIN = [{"id": 1, "tags": ["ä", ""]}, {"id": 2, "tags": []}]


@pytest.fixture
def theirs(real_registry: LocalRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": real_registry.url}) as client:
        yield client


@pytest.fixture
def topic(kafka: LocalKafka, topic: str) -> str:
    kafka.create_topic(topic)
    return topic


def ours(registry: LocalRegistry, kafka: LocalKafka, **options: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap_servers,
        "schema_registry_url": registry.url,
        **options,
    }


def read_by_us(topic: str, count: int, **options: Any) -> tuple[list[Any], pa.Table]:
    """Read records. Return their values, and the same records as a table."""
    values: list[Any] = []
    found: list[pa.Table] = []
    with KafkaConsumer(**options, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_for(topic))
        while len(values) < count:
            records = consumer.poll(1_000)
            values += [each.value for each in records]
            found.append(records.to_arrow())
    return values, pa.concat_tables(each for each in found if each.num_rows)


def written_by_them(
    kafka: LocalKafka, topic: str, serializer: Callable[..., Any], values: list[Any]
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    context = SerializationContext(topic, MessageField.VALUE)
    for each in values:
        producer.produce(topic, None if each is None else serializer(each, context))
    assert producer.flush(PATIENCE_SECONDS) == 0


def read_by_them(
    kafka: LocalKafka, topic: str, deserializer: Callable[..., Any], count: int
) -> list[Any]:
    settings = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    context = SerializationContext(topic, MessageField.VALUE)
    try:
        consumer.subscribe([topic])
        messages = consumer.consume(count, PATIENCE_SECONDS)
        return [each.value() and deserializer(each.value(), context) for each in messages]
    finally:
        consumer.close()


def test_avro(
    kafka: LocalKafka, real_registry: LocalRegistry, theirs: SchemaRegistryClient, topic: str
) -> None:
    options = ours(real_registry, kafka, value_format="avro")
    written_by_them(kafka, topic, AvroSerializer(theirs, json.dumps(AVRO)), [*EVENTS, None])
    values, table = read_by_us(topic, 3, **options)
    assert values == [*EVENTS, None] == table["value"].to_pylist()
    with KafkaProducer(**options) as producer:
        for each in EVENTS:
            producer.send(topic, each)
    # Their type alone would give another schema.
    with KafkaProducer(**options, value_schema_subject=f"{topic}-value") as producer:
        producer.send_columns(topic, table.select(["value"]))
    assert read_by_them(kafka, topic, AvroDeserializer(theirs), 8) == [
        *(*EVENTS, None),
        *EVENTS,
        *(*EVENTS, None),
    ]
    assert len(theirs.get_versions(f"{topic}-value")) == 1


def test_json(
    kafka: LocalKafka, real_registry: LocalRegistry, theirs: SchemaRegistryClient, topic: str
) -> None:
    options = ours(real_registry, kafka, value_format="json")
    text = json.dumps(JSON)
    written_by_them(kafka, topic, JSONSerializer(text, theirs), PLAIN)
    values, _ = read_by_us(topic, 2, **options)
    assert values == PLAIN
    with KafkaProducer(**options) as producer:
        for each in PLAIN:
            producer.send(topic, each)
    assert read_by_them(kafka, topic, JSONDeserializer(text), 4) == PLAIN * 2


def test_protobuf(
    kafka: LocalKafka, real_registry: LocalRegistry, theirs: SchemaRegistryClient, topic: str
) -> None:
    schema_id = theirs.register_schema(f"{topic}-value", Schema(PROTO, "PROTOBUF"))
    # Their serializer asks for schemas in a form that this registry lacks.
    prefix = SchemaId("PROTOBUF", schema_id, None, [1]).id_to_bytes()
    files = descriptor_pb2.FileDescriptorSet.FromString(
        compiled(SchemaText(SchemaType.PROTOBUF, PROTO))
    )
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    event = message_factory.GetMessageClass(pool.FindMessageTypeByName("Event"))
    messages = [event(**PLAIN[0], other={"x": "y"}), event(**PLAIN[1])]
    written_by_them(kafka, topic, lambda message, _: prefix + message.SerializeToString(), messages)
    options = ours(real_registry, kafka, value_format="protobuf", value_message="Event")
    values, _ = read_by_us(topic, 2, **options)
    assert values == [{**PLAIN[0], "other": {"x": "y"}}, {**PLAIN[1], "other": None}]
    with KafkaProducer(**options) as producer:
        for each in values:
            producer.send(topic, each)
    deserializer = ProtobufDeserializer(event, {"use.deprecated.format": False})
    found = read_by_them(kafka, topic, deserializer, 4)
    assert [json_format.MessageToDict(each) for each in found[2:]] == [
        json_format.MessageToDict(each) for each in messages
    ]


def test_a_schema_is_registered_by_the_first_record_and_read_at_once(
    kafka: LocalKafka, real_registry: LocalRegistry, topic: str
) -> None:
    options = ours(real_registry, kafka, value_format="avro")
    given: dict[str, Any] = {"value_schema": json.dumps(AVRO)}
    with (
        KafkaProducer(**options, **given) as producer,
        pytest.raises(ConfigurationError, match="'auto_register_schemas': is 'false'"),
    ):
        producer.send(topic, EVENTS[0])
    with KafkaProducer(**options, **given, auto_register_schemas=True) as producer:
        for each in EVENTS:
            producer.send(topic, each)
    assert read_by_us(topic, 2, **options)[0] == EVENTS


def test_a_group_reads_on_behind_a_bad_record(
    kafka: LocalKafka, real_registry: LocalRegistry, topic: str
) -> None:
    options = ours(real_registry, kafka, value_format="avro")
    given: dict[str, Any] = {"value_schema": json.dumps(AVRO), "auto_register_schemas": True}
    with (
        KafkaProducer(**options, **given) as producer,
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as plain,
    ):
        producer.send(topic, EVENTS[0]).result(PATIENCE_SECONDS)
        plain.send(topic, b"{}").result(PATIENCE_SECONDS)
        producer.send(topic, EVENTS[1]).result(PATIENCE_SECONDS)
    seen: list[Any] = []
    in_group: dict[str, Any] = {"group_id": topic, "auto_offset_reset": "earliest"}
    for _ in range(2):
        with KafkaConsumer(**options, **in_group) as consumer:
            consumer.subscribe([topic])
            with pytest.raises(BadRecordError, match="no schema id, found 7b") as failed:
                seen.extend(consumer)
    # The committed offset is before the malformed record: no record is lost or read twice.
    assert [each.offset for each in seen] == [0]
    with KafkaConsumer(**options, **in_group) as consumer:
        consumer.assign([failed.value.topic_partition])
        consumer.seek(failed.value.topic_partition, failed.value.offset + 1)
        assert next(iter(consumer)).value == EVENTS[1]
