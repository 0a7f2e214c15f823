"""The public names. Other names may change in any release."""

from importlib import import_module

import pytest

PUBLIC = {
    "spark_kafka_source": [
        "AIOConsumer",
        "AIOProducer",
        "AlterConfigOp",
        "Assignment",
        "Assignor",
        "BadRecordError",
        "BufferFullError",
        "CommitFailedError",
        "ConfigResource",
        "ConsumerRebalanceListener",
        "ConsumerRecord",
        "ConsumerRecords",
        "DeadLetterError",
        "ForkedError",
        "KafkaAdmin",
        "KafkaConsumer",
        "KafkaDataSource",
        "KafkaError",
        "KafkaMetric",
        "KafkaProducer",
        "LagListener",
        "MetricsReporter",
        "MixedColumnsError",
        "NewTopic",
        "NoOffsetError",
        "OffsetAndMetadata",
        "OffsetSpec",
        "PartitionInfo",
        "ProducerFencedError",
        "PrometheusLagListener",
        "PrometheusReporter",
        "RebalanceProtocol",
        "RecordDeserializationError",
        "RecordMetadata",
        "RecordsLostError",
        "Secret",
        "SendFuture",
        "Shift",
        "Subscription",
        "Token",
        "TokenProvider",
        "TopicPartition",
        "TransactionAbortableError",
        "UnsendableRecordError",
        "WakeupError",
        "__version__",
        "encode",
        "infer_schema",
        "read_topic",
        "read_topic_batches",
        "register",
    ],
    "spark_kafka_source.testing": [
        "Broker",
        "BrokerFailedError",
        "DelegationToken",
        "JarsError",
        "JavaError",
        "LocalKafka",
        "LocalRegistry",
        "MemoryKafka",
        "MemoryKafkaBroker",
        "Producer",
        "RegistryFailedError",
        "Security",
        "ToolError",
        "cache_directory",
        "kafka_jars",
        "peer_jars",
        "resolve",
    ],
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_those_listed_here(module: str) -> None:
    names = set(import_module(module).__all__)
    listed = set(PUBLIC[module])
    assert names == listed, (
        f"{module}: gone are {sorted(listed - names)}, new are {sorted(names - listed)}."
        " A user notices: say so in CHANGELOG.md, then change the list in this test."
    )


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_name_can_be_imported(module: str) -> None:
    imported = import_module(module)
    missing = [name for name in PUBLIC[module] if not hasattr(imported, name)]
    assert not missing, f"{module} lists {missing} in __all__ and does not have them"


@pytest.mark.parametrize("module", PUBLIC)
def test_the_list_is_sorted(module: str) -> None:
    assert PUBLIC[module] == sorted(PUBLIC[module])
