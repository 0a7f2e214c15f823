"""Options mean the same as in Spark's own connector. An unusable option is an error at once."""

import json
import string
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.fetch import FetchConfig
from spark_kafka_source.net import Address
from spark_kafka_source.records import COLUMNS, COLUMNS_WITH_HEADERS, IsolationLevel
from spark_kafka_source.spark.conditions import DataLoss, OffsetMismatchError
from spark_kafka_source.spark.options import parse_source_options
from spark_kafka_source.spark.source.batch import KafkaBatchReader
from spark_kafka_source.spark.source.bounds import Extreme, Given, NamedBound
from spark_kafka_source.spark.source.stream import KafkaStreamReader
from spark_kafka_source.spark.source.subscription import Assign, Subscribe, SubscribePattern
from tests.spark.settings import A0, A1, BOOTSTRAP_SERVERS, parsed

OFFSETS_EXAMPLE = '{"topic":{"0":23,"1":50}}'


def test_the_defaults() -> None:
    options = parsed()
    assert options.client.bootstrap_servers == (Address("broker", 9092),)
    assert options.fetch == FetchConfig()
    assert options.subscription == Subscribe(("a",))
    assert options.starting is None
    assert options.ending is None
    assert options.data_loss == DataLoss(fails=True)
    assert options.columns == COLUMNS
    assert options.group_id is None
    assert options.min_partitions is None
    assert options.max_records_per_partition is None
    assert options.max_offsets_per_trigger is None
    assert options.min_offsets_per_trigger is None
    assert options.max_bytes_per_trigger is None
    assert options.max_trigger_delay_ms == 15 * 60 * 1_000
    assert options.min_records_per_partition is None
    assert options.only_offsets == range(2**63)
    assert options.max_record_bytes == 64 << 20
    assert options.progress
    assert options.poll_timeout_ms == 120_000
    assert options.topic_lookup_timeout_ms == 3 * 1_000


def test_what_is_given_is_understood() -> None:
    options = parsed(
        startingOffsets='{"a":{"0":-2,"1":7}}',
        endingOffsets=" Latest ",
        includeHeaders="TRUE",
        kafka_group_id="g",
        kafka_isolation_level="read_committed",
        maxOffsetsPerTrigger=str(2**63 - 1),
        minOffsetsPerTrigger=" 5 ",
        maxTriggerDelay="2h",
        minPartitions="6",
        maxRecordsPerPartition="1",
        failOnDataLoss="False",
        maxBytesPerTrigger="64M",
        maxRecordBytes="3mb",
        minRecordsPerPartition="500",
        minOffset="7",
        maxOffset="7",
        progress="false",
    )
    assert options.starting == NamedBound("startingOffsets", Given({A0: -2, A1: 7}))
    assert options.ending == NamedBound("endingOffsets", Extreme.LATEST)
    assert options.data_loss == DataLoss(fails=False)
    assert options.columns == COLUMNS_WITH_HEADERS
    assert options.min_offsets_per_trigger == 5
    assert options.max_trigger_delay_ms == 2 * 3_600_000
    assert (options.min_partitions, options.max_records_per_partition) == (6, 1)
    assert options.group_id == "g"
    assert options.fetch.isolation_level is IsolationLevel.READ_COMMITTED
    assert options.max_offsets_per_trigger == 2**63 - 1
    assert (options.max_bytes_per_trigger, options.max_record_bytes) == (64 << 20, 3 << 20)
    assert options.min_records_per_partition == 500
    assert options.only_offsets == range(7, 8)
    assert not options.progress


@pytest.mark.parametrize(
    ("option", "value", "strategy"),
    [
        ("assign", '{"a":[1,0,1]}', Assign((A0, A1))),
        ("subscribe", " b , a,b", Subscribe(("a", "b"))),
        ("subscribePattern", "a.*", SubscribePattern("a.*")),
    ],
)
def test_each_way_to_subscribe(
    option: str, value: str, strategy: Assign | Subscribe | SubscribePattern
) -> None:
    assert parse_source_options(BOOTSTRAP_SERVERS | {option: value}).subscription == strategy


@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase])
def test_names_do_not_depend_on_case(change: Callable[[str], str]) -> None:
    given = BOOTSTRAP_SERVERS | {"subscribePattern": "a", "maxOffsetsPerTrigger": "5"}
    options = parse_source_options({change(name): value for name, value in given.items()})
    assert options.subscription == SubscribePattern("a")
    assert options.max_offsets_per_trigger == 5


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("250", 250), ("250ms", 250), ("30s", 30_000), ("15m", 900_000), ("15 min", 900_000),
        ("2H", 7_200_000), (" 1d ", 86_400_000), ("0", 0),
    ],
)  # fmt: skip
def test_a_delay_has_a_unit_or_is_in_milliseconds(text: str, expected_ms: int) -> None:
    assert parsed(maxTriggerDelay=text).max_trigger_delay_ms == expected_ms


def test_more_may_not_be_waited_for_than_is_read_at_a_time() -> None:
    parsed(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="5")
    with pytest.raises(ConfigurationError, match=r"'minOffsetsPerTrigger': 6 is more than .* 5"):
        parsed(minOffsetsPerTrigger="6", maxOffsetsPerTrigger="5")


def test_offsets_are_wanted_from_the_least_to_the_most() -> None:
    with pytest.raises(ConfigurationError, match=r"'minOffset': 8 is more than maxOffset, 7"):
        parsed(minOffset="8", maxOffset="7")


def test_a_start_at_what_is_committed_needs_a_group() -> None:
    parsed(startingOffsets="committed", kafka_group_id="g")
    with pytest.raises(ConfigurationError, match=r"'startingOffsets': .* Give 'kafka.group.id'"):
        parsed(startingOffsets="committed")
    parsed(startingOffsets="committed", startingTimestamp="1")  # the timestamp wins


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("value", ("value",)),
        (" Offset ,KEY,, offset", ("key", "offset")),
        ("headers", ("headers",)),
        (",".join(COLUMNS), COLUMNS),
    ],
)
def test_columns_are_those_named_in_the_order_of_the_rows(
    columns: str, expected: tuple[str, ...]
) -> None:
    assert parsed(columns=columns).columns == expected


NOT_POSITIVE = ["a", "1.0", "0", "-1", "", "+1", "1_0", "٣", "1e3", str(2**63), "9" * 5000]
NO_DELAY = ["", "soon", "-1s", "1.5h", "15 minutes", "1w", "٣s", "s", "9" * 19, "9" * 5_000]
NO_OFFSETS = [
    "", "nearest", "[]", "{", "{}", '{"a":{}}', '{"a":[0]}', '{"a":1}', '{"a":{"x":0}}',
    '{"a":{"-1":0}}', '{"a":{"٣":0}}', '{"a":{"0":"1"}}', '{"a":{"0":1.0}}', '{"a":{"0":true}}',
    '{"a":{"0":null}}', '{"a":{"0":NaN}}', '{"a":{"0":1},"a":{"0":2}}', '{"a":{"0":1,"0":2}}',
    '{"a":{"0":1,"00":2}}', '{"a":{"0":-3}}', '{"a":{"0":9223372036854775808}}',
    '{"a":{"2147483648":0}}', '{"a":{"' + "9" * 5000 + '":0}}', '{"a":{"0":' + "9" * 5000 + "}}",
    "{" * 100_000, '{"a":' * 100_000, '{"a":' + "[" * 900 + "]" * 900 + "}",
]  # fmt: skip
NOT_ASSIGNED = [
    "", "a", "[]", "{}", '{"a":[]}', '{"a":0}', '{"a":["0"]}', '{"a":[true]}', '{"a":[-1]}',
    '{"a":[0.0]}', '{"a":[2147483648]}', "[" * 100_000,
]  # fmt: skip
NO_PATTERN = ["", "(", "a{99999999999}", "a{" + "9" * 5000 + "}", "(" * 5000 + ")" * 5000]


@pytest.mark.parametrize(
    ("option", "value", "right"),
    [
        *(("maxOffsetsPerTrigger", value, "'10000'") for value in NOT_POSITIVE),
        *(("minOffsetsPerTrigger", value, "'10000'") for value in NOT_POSITIVE),
        *(("minPartitions", value, "'8'") for value in NOT_POSITIVE),
        *(("maxRecordsPerPartition", value, "'1000000'") for value in NOT_POSITIVE),
        *(("maxTriggerDelay", value, "'15m'") for value in NO_DELAY),
        *(("minRecordsPerPartition", value, "'10000'") for value in NOT_POSITIVE),
        *(("maxBytesPerTrigger", value, "'64m'") for value in (*NOT_POSITIVE, "9" * 30, "1t")),
        *(("maxRecordBytes", value, "'64m'") for value in (*NOT_POSITIVE, "2097151", "1025m")),
        *(("minOffset", value, "from 0") for value in ("a", "-1", "1.5", str(2**63))),
        *(("maxOffset", value, "from 0") for value in ("a", "-1", "1.5", str(2**63))),
        ("progress", "maybe", "'true' or 'false'"),
        ("partitions", "a", "'0,2,8-15'"),
        *(("kafkaConsumer.pollTimeoutMs", value, "'120000'") for value in NOT_POSITIVE),
        *(("fetchOffset.numRetries", value, "'3'") for value in ("a", "-1", "1.5")),
        *(("fetchOffset.retryIntervalMs", value, "'1000'") for value in ("a", "-1", "1.5")),
        *(("startingOffsets", value, OFFSETS_EXAMPLE) for value in NO_OFFSETS),
        *(("endingOffsets", value, OFFSETS_EXAMPLE) for value in NO_OFFSETS),
        ("endingOffsets", "earliest", "latest"),
        ("endingOffsets", '{"a":{"0":-2}}', "-1 for latest"),
        *(("includeHeaders", value, "'true' or 'false'") for value in ("", "1", "yes")),
        *(("failOnDataLoss", value, "'true' or 'false'") for value in ("", "0", "no")),
        ("columns", "", "as in 'key,value'"),
        ("columns", ", ,", "as in 'key,value'"),
        ("columns", "value,ofset", "key, value, topic"),
        ("kafka.group.id", " ", "Give a name"),
        ("kafka.bootstrap.servers", "", "'host:port'"),
        ("kafka.bootstrap.servers", "broker", "'broker1:9092'"),
        ("kafka.bootstrap.servers", "broker:0", "'broker1:9092'"),
        ("kafka.isolation.level", "serializable", "read_uncommitted, read_committed"),
        ("kafka.fetch.max.wait.ms", "-1", "from 0 to 2147483647, as in '500'"),
        ("kafka.request.timeout.ms", "soon", "as in '30000'"),
        ("kafka.check.crcs", "maybe", "'true' or 'false'"),
        ("kafka.security.protocol", "TLS", "PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("kafka.sasl.mechanism", "PLAIN", "'kafka.security.protocol' to SASL_SSL"),
        ("kafka.ssl.truststore.location", "/x", "'kafka.security.protocol' to SSL"),
        ("kafka.auto.offset.reset", "earliest", "'startingOffsets'"),
        ("kafka.key.deserializer", "x", "binary"),
        ("kafka.value.deserializer", "x", "binary"),
        ("kafka.enable.auto.commit", "true", "'kafka.group.id'"),
        ("kafka.interceptor.classes", "x", "Java classes"),
        ("databricks.serviceCredential", "x", "Amazon MSK"),
    ],
    ids=lambda value: value[:40],
)
def test_a_wrong_value_is_refused_with_a_right_one(option: str, value: str, right: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_source_options(BOOTSTRAP_SERVERS | {"subscribe": "a", option: value})
    assert refused.value.option == option
    assert str(refused.value).startswith(f"Option '{option}': ")
    assert right in str(refused.value)
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("assign", value) for value in NOT_ASSIGNED),
        *(("subscribe", value) for value in ("", " ", ",, ,")),
        *(("subscribePattern", value) for value in NO_PATTERN),
    ],
    ids=lambda value: value[:40],
)
def test_a_subscription_that_names_nothing_is_refused(option: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_source_options(BOOTSTRAP_SERVERS | {option: value})
    assert refused.value.option == option
    assert len(str(refused.value)) < 1_000


def test_the_address_is_needed() -> None:
    with pytest.raises(ConfigurationError, match=r"'kafka.bootstrap.servers': is missing"):
        parse_source_options({"subscribe": "a"})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"subscribe": "a", "assign": '{"a":[0]}'},
        {"subscribe": "a", "subscribePattern": "a", "assign": '{"a":[0]}'},
    ],
)
def test_exactly_one_way_to_subscribe(given: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_source_options(BOOTSTRAP_SERVERS | given)
    for name in given or ("subscribe",):
        assert f"'{name}'" in str(refused.value)
    assert "exactly one of 'assign', 'subscribe', 'subscribePattern'" in str(refused.value)


@pytest.mark.parametrize("value", ["latest", "LATEST", '{"a":{"0":0,"1":-1}}'])
def test_a_batch_cannot_start_at_the_latest(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"'startingOffsets'.*'earliest', -2"):
        KafkaBatchReader(parsed(startingOffsets=value))


def test_a_batch_names_the_same_partitions_at_both_ends() -> None:
    options = parsed(startingOffsets='{"a":{"0":0}}', endingOffsets='{"a":{"1":0}}')
    with pytest.raises(OffsetMismatchError, match=r"only at the start: a-0; .* at the end: a-1"):
        KafkaBatchReader(options)


def test_a_batch_does_not_end_before_it_starts() -> None:
    options = parsed(startingOffsets='{"a":{"0":5}}', endingOffsets='{"a":{"0":4}}')
    with pytest.raises(OffsetMismatchError) as refused:
        KafkaBatchReader(options)
    assert refused.value.condition == "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"
    assert "a-0: the start offset 5 is greater than the end offset 4" in str(refused.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("endingOffsets", "latest"),
        ("endingOffsets", '{"a":{"0":4}}'),
        ("endingOffsetsByTimestamp", '{"a":{"0":4}}'),
        ("endingTimestamp", "4"),
    ],
)
def test_a_stream_has_no_end(option: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"'{option}'.*leave it out"):
        KafkaStreamReader(parsed(**{option: value}))


NAMES = [
    "assign", "subscribe", "subscribePattern", "startingOffsets", "endingOffsets", "failOnDataLoss",
    "includeHeaders", "columns", "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay",
    "maxBytesPerTrigger", "maxRecordBytes", "minOffset", "maxOffset", "partitions", "progress",
    "minRecordsPerPartition", "minPartitions", "maxRecordsPerPartition", "startingTimestamp",
    "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy",
    "startingOffsetsCommittedStrategy", "endingTimestamp",
    "endingOffsetsByTimestamp", "kafkaConsumer.pollTimeoutMs", "groupIdPrefix",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafka.bootstrap.servers",
    "kafka.group.id", "kafka.isolation.level", "kafka.fetch.min.bytes", "kafka.check.crcs",
    "kafka.security.protocol", "kafka.request.timeout.ms", "kafka.", "kafka.sasl.jaas.config",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
VALUES = st.one_of(
    st.text(),
    st.text(string.digits + "+-. ", max_size=25),
    st.text('{}[]:,"-0123456789ab ', max_size=25),
    st.text("ab(){}[]*+?|\\^$,-0123456789", max_size=12),
    JSON.map(json.dumps),
    st.sampled_from(["earliest", "latest", "true", "false", "a", '{"a":[0]}', '{"a":{"0":1}}']),
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5))
@pytest.mark.filterwarnings("ignore::FutureWarning")  # of patterns like '[[', by `re` itself
def test_any_text_is_understood_or_refused_by_name(options: dict[str, str]) -> None:
    given = BOOTSTRAP_SERVERS | {"subscribe": "a"} | options
    try:
        parse_source_options(given)
    except ConfigurationError as refused:
        assert refused.option in NAMES
        assert refused.expected


@given(VALUES)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("option", ["assign", "subscribe", "subscribePattern"])
def test_any_subscription_is_understood_or_refused_by_name(option: str, value: str) -> None:
    try:
        parse_source_options(BOOTSTRAP_SERVERS | {option: value})
    except ConfigurationError as refused:
        assert refused.option == option
