"""All methods and settings of Kafka's Java producer (4.4.0), compared with ours."""

from collections.abc import Mapping

from spark_kafka_source.producer.delivery import RecordMetadata
from spark_kafka_source.producer.kafka_producer import KafkaProducer
from spark_kafka_source.producer.producer_config import VOCABULARY, config_from_arguments
from tools.java_clients.rows import (
    ROOT,
    JavaClient,
    Method,
    Setting,
    Verdict,
    better,
    here,
    left_out,
)
from tools.java_clients.settings import (
    OF_ANY_CLIENT,
    ONLY_OWN,
    REPORTERS,
    as_javas,
    left_out_by,
)

_SEND = "send(topic, value, key, partition, timestamp_ms, headers, on_delivery)"
_AN_ARGUMENT = here(_SEND)

_METHODS: Mapping[str, Mapping[str, Method]] = {
    "Producer": {
        "abortTransaction": here("abort_transaction()"),
        "beginTransaction": here("begin_transaction()"),
        "clientInstanceId": here(
            "client_instance_id(timeout_seconds)",
            "an error says why there is none, where Java returns null",
        ),
        "close": here("close(timeout_seconds)"),
        "commitTransaction": here("commit_transaction()"),
        "flush": better("flush(timeout_seconds)", "Java waits without a limit"),
        "initTransactions": here("init_transactions()"),
        "metrics": here("metrics()", "records, batches, requests and buffer; 0 where Java has NaN"),
        "partitionsFor": here("partitions_for(topic)", "leaders and replicas are ids of brokers"),
        "registerMetricForSubscription": left_out(ONLY_OWN),
        "send": better(
            _SEND, "`send_columns(topic, columns)` takes Arrow, and makes no object for a record"
        ),
        "sendOffsetsToTransaction": here("send_offsets_to_transaction(offsets, group_metadata)"),
        "unregisterMetricFromSubscription": left_out(ONLY_OWN),
    },
    "ProducerRecord": {
        "headers": _AN_ARGUMENT,
        "key": _AN_ARGUMENT,
        "partition": _AN_ARGUMENT,
        "timestamp": _AN_ARGUMENT,
        "topic": _AN_ARGUMENT,
        "value": _AN_ARGUMENT,
    },
    "RecordMetadata": {
        "hasOffset": left_out("`offset` is -1 if the broker did not say it"),
        "hasTimestamp": left_out("there is always one"),
        "offset": here("offset"),
        "partition": here("partition"),
        "serializedKeySize": here("serialized_key_size"),
        "serializedValueSize": here("serialized_value_size"),
        "timestamp": here("timestamp_ms"),
        "topic": here("topic"),
    },
    "Callback": {
        "onCompletion": here(_SEND, "`on_delivery` is a function of the metadata and the error"),
    },
}

_WITH_JAVAS_DEFAULT = """
    acks buffer.memory client.rack compression.gzip.level compression.lz4.level compression.type
    compression.zstd.level delivery.timeout.ms enable.idempotence linger.ms max.block.ms
    max.in.flight.requests.per.connection max.request.size partitioner.adaptive.partitioning.enable
    partitioner.ignore.keys partitioner.rack.aware retries transaction.timeout.ms transactional.id
    """
_A_FUNCTION = (
    "a function of the object, of topic and object, or of topic, headers and object; an object with"
    " Java's methods; or the name of a class of Kafka's. None: bytes are sent"
)

_SETTINGS: Mapping[str, Setting] = {
    **OF_ANY_CLIENT,
    **as_javas(_WITH_JAVAS_DEFAULT),
    "batch.size": Setting(
        Verdict.HERE,
        "1 MiB by default, not 16 KiB: no memory is set aside for a batch, and columns fill it",
        "1048576",
    ),
    "client.id": Setting(
        Verdict.HERE,
        "`spark-kafka-source`, the transactional id and a number by default",
        "spark-kafka-source",
    ),
    "partitioner.class": Setting(
        Verdict.HERE,
        "Kafka's own classes. Or `partitioner`: a function, an object with Java's methods,"
        " `murmur2` (Java's), `round_robin`, or librdkafka's `consistent_random` or"
        " `murmur2_random`",
    ),
    "metric.reporters": Setting(Verdict.HERE, REPORTERS),
    **left_out_by(VOCABULARY),
    "key.serializer": Setting(Verdict.HERE, _A_FUNCTION),
    "value.serializer": Setting(Verdict.HERE, _A_FUNCTION),
}

PRODUCER = JavaClient(
    kind="producer",
    main_class="Producer",
    methods=_METHODS,
    settings=_SETTINGS,
    classes={
        "Producer": KafkaProducer,
        "ProducerRecord": KafkaProducer,
        "RecordMetadata": RecordMetadata,
        "Callback": KafkaProducer,
    },
    read=config_from_arguments,
    vocabulary=VOCABULARY,
    page=ROOT / "docs" / "contributors" / "measured" / "java-clients.md",
    arguments=frozenset({"key.serializer", "metric.reporters", "value.serializer"}),
)
