"""The lag of groups when some partitions or brokers are missing."""

import pyarrow as pa
import pytest

from spark_kafka_source import KafkaAdmin
from spark_kafka_source.errors import BrokerError, error_named
from spark_kafka_source.protocol import Versions
from spark_kafka_source.protocol.messages.groups import OffsetFetchRequest
from spark_kafka_source.testing.memory import MemoryBroker
from spark_kafka_source.topic_partition import TopicPartition
from tests.admin.conftest import T0, address, fill


def test_every_partition_that_a_group_has_committed(admin: KafkaAdmin) -> None:
    rows = [
        (each.group_id, each.topic_partition, each.committed_offset, each.log_end_offset, each.lag)
        for each in admin.group_lag("h", "g")
    ]
    assert rows == [
        ("g", T0, 1, 3, 2),
        ("g", TopicPartition("u", 0), 1, 1, 0),
        ("h", TopicPartition("t", 1), 4, 5, 1),
    ]
    assert admin.group_lag().rows == admin.group_lag("g", "h").rows
    assert admin.group_lag().total == 3


def test_what_is_not_known_of_a_log_is_said(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.cluster.committed["g"][TopicPartition("gone", 0)] = 7
    broker.cluster.committed["g"][T0] = 9
    broker.stop(broker.cluster.topics["t"].logs[1].leader_id)
    broker.cluster.coordinators.update(g=0, h=0)
    rows = {str(each.topic_partition): each for each in admin.group_lag("g", "h")}
    assert (rows["gone-0"].lag, rows["gone-0"].error) == (None, "UNKNOWN_TOPIC_OR_PARTITION")
    assert (rows["t-1"].lag, rows["t-1"].error) == (None, "LEADER_NOT_AVAILABLE")
    assert (rows["t-1"].committed_offset, rows["t-1"].log_end_offset) == (4, None)
    # The log is shorter than before: a negative lag shows this.
    assert (rows["t-0"].lag, rows["t-0"].error) == (-6, None)


def test_the_table_has_types_even_without_rows(admin: KafkaAdmin) -> None:
    table = admin.group_lag("g").to_arrow()
    assert table.column("lag").to_pylist() == [2, 0]
    assert table.schema.field("partition").type == pa.int32()
    assert table.schema.field("member_id").type == pa.string()
    empty = type(admin.group_lag("g"))(()).to_arrow()
    assert empty.schema == table.schema


@pytest.mark.parametrize("highest", [9, 8, 7, 5, 2])
def test_each_version_of_offset_fetch_tells_the_same(highest: int) -> None:
    with MemoryBroker(2, versions={OffsetFetchRequest.KEY: Versions(1, highest)}) as broker:
        fill(broker)
        with KafkaAdmin(bootstrap_servers=address(broker), retry_backoff_ms=0) as admin:
            assert [each.lag for each in admin.group_lag("g", "h")] == [2, 0, 1]
        requests = broker.requests(OffsetFetchRequest)
        assert all(not each.require_stable for each in requests)


def test_offsets_that_may_not_be_read_are_an_error(broker: MemoryBroker, admin: KafkaAdmin) -> None:
    broker.control(OffsetFetchRequest, error_named("GROUP_AUTHORIZATION_FAILED"), times=None)
    with pytest.raises(BrokerError, match="OffsetFetch of group 'g': GROUP_AUTHORIZATION_FAILED"):
        admin.group_lag("g")
    broker.forget()
    broker.control(OffsetFetchRequest, error_named("NOT_COORDINATOR"), times=1)
    assert admin.group_lag("g").total == 2
