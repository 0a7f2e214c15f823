"""A checkpoint of one cluster, and a topic that lives in another one."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source import KafkaAdmin, TopicPartition
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.spark.source.cluster_moves import OtherClusterError, has_moved
from spark_kafka_source.spark.source.planner import OffsetPlanner
from spark_kafka_source.spark.source.source_offset import INITIAL, SourceOffset
from spark_kafka_source.testing import LocalKafka
from tests.spark.settings import A0, parsed
from tests.spark_session import Run
from tools.traffic import Batches, Events, stream

HERE = SourceOffset({A0: 5}, cluster_id="here")
OLDER = SourceOffset({A0: 5})


# -- which cluster ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "found", "moved_to", "expected"),
    [
        (HERE, "here", None, False),
        (HERE, "here", "here", False),
        (HERE, "there", "there", True),
        (HERE, "", None, False),
        (OLDER, "there", None, False),
        (OLDER, "there", "there", True),
        (INITIAL, "there", None, False),
        (INITIAL, "there", "there", False),
    ],
)
def test_only_a_named_cluster_is_moved_to(
    position: SourceOffset, found: str, moved_to: str | None, expected: bool
) -> None:
    assert has_moved(position, found, moved_to) is expected


def test_another_cluster_is_refused_with_both_ids_and_the_option() -> None:
    with pytest.raises(OtherClusterError) as refused:
        has_moved(HERE, "there", None)
    assert (refused.value.expected, refused.value.found) == ("here", "there")
    assert "of the cluster 'here'" in str(refused.value)
    assert "give the option 'movedToCluster' as 'there'" in str(refused.value)


@pytest.mark.parametrize("position", [INITIAL, HERE, OLDER])
@pytest.mark.parametrize("found", ["here", ""])
def test_an_option_that_names_another_cluster_is_refused(
    position: SourceOffset, found: str
) -> None:
    """So an option that stayed set allows no later move, nor a query that did not move at all."""
    with pytest.raises(ConfigurationError, match=r"'movedToCluster': is 'there'"):
        has_moved(position, found, "there")


# -- two real clusters -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_kafka() -> Iterator[LocalKafka]:
    """Run a broker that is another cluster."""
    with LocalKafka() as kafka:
        with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.list_group_offsets("of-nobody")  # As in `tests/conftest.py`.
        yield kafka


@pytest.fixture
def copy(other_kafka: LocalKafka, topic: str) -> Events:
    """Topic with the same name in the other cluster."""
    return Events(other_kafka, topic)


def id_of(kafka: LocalKafka) -> str:
    with closing(OffsetPlanner(parsed(kafka_bootstrap_servers=kafka.bootstrap_servers))) as planner:
        return planner.cluster_id()


def committed(kafka: LocalKafka, group: str) -> dict[TopicPartition, int]:
    with KafkaAdmin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        return {where: at.offset for where, at in admin.list_group_offsets(group).items()}


def refused(spark: SparkSession, run: Run, found: dict[str, Any]) -> str:
    rows = Batches()
    with pytest.raises(StreamingQueryException) as failed:
        run(stream(spark, found), rows)
    assert rows.values == []
    return str(failed.value)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("fails", [True, False])
def test_a_query_goes_on_in_the_cluster_that_the_option_names(
    spark: SparkSession, events: Events, copy: Events, run: Run, fails: bool
) -> None:
    events.fill(5, 3)
    run(stream(spark, events.options()), Batches())
    copy.fill(7, 3)
    found = copy.options(failOnDataLoss=fails)
    text = refused(spark, run, found)
    assert f"of the cluster '{id_of(events.kafka)}'" in text
    assert f"'movedToCluster' as '{id_of(copy.kafka)}'" in text
    rows = Batches()
    run(stream(spark, found | {"movedToCluster": id_of(copy.kafka)}), rows)
    assert rows.values == ["0:5", "0:6"]
    # The checkpoint has the new cluster now, so the option is needed no more.
    copy.write(["0:7"])
    run(stream(spark, found), rows)
    assert rows.values == ["0:5", "0:6", "0:7"]
    assert f"of the cluster '{id_of(copy.kafka)}'" in refused(spark, run, events.options())


@pytest.mark.spark
@pytest.mark.kafka
def test_an_unfinished_micro_batch_is_run_again_in_the_other_cluster(
    spark: SparkSession, events: Events, copy: Events, run: Run
) -> None:
    class Fails(Batches):
        def __call__(self, frame: DataFrame, batch_id: int) -> None:
            if batch_id == 1:
                raise RuntimeError("the old cluster is lost")
            super().__call__(frame, batch_id)

    fails = Fails()

    events.fill(5, 3)
    with pytest.raises(StreamingQueryException, match="the old cluster is lost"):
        run(stream(spark, events.options(maxOffsetsPerTrigger=4)), fails)
    copy.fill(7, 3)
    refused(spark, run, copy.options())
    rows = Batches()
    run(stream(spark, copy.options(movedToCluster=id_of(copy.kafka))), rows)
    read = [f"0:{each}" for each in range(7)] + [f"1:{each}" for each in range(3)]
    assert sorted(fails.values + rows.values) == read


@pytest.mark.spark
@pytest.mark.kafka
def test_a_copy_that_is_behind_is_told(
    spark: SparkSession, events: Events, copy: Events, run: Run
) -> None:
    events.fill(5)
    run(stream(spark, events.options()), Batches())
    copy.fill(3)
    found = copy.options(movedToCluster=id_of(copy.kafka), **{"fetchOffset.numRetries": 0})
    text = refused(spark, run, found)
    assert f"[KAFKA_DATA_LOSS.PARTITION_OFFSET_CHANGED] {copy.name}-0 was read up to" in text
    assert "it ends at 3: the records in between were not copied" in text
    copy.write(["0:3", "0:4", "0:5"])
    rows = Batches()
    run(stream(spark, found), rows)
    assert rows.values == ["0:5"]


@pytest.mark.spark
@pytest.mark.kafka
def test_no_group_of_a_wrong_cluster_gets_offsets(
    spark: SparkSession, events: Events, copy: Events, run: Run
) -> None:
    group = f"group-of-{events.name}"
    events.fill(5)
    run(stream(spark, events.options(**{"kafka.group.id": group})), Batches())
    copy.fill(7)
    found = copy.options(**{"kafka.group.id": group})
    refused(spark, run, found)
    with KafkaAdmin(bootstrap_servers=copy.kafka.bootstrap_servers) as admin:
        assert group not in {each.group_id for each in admin.list_groups()}
    run(stream(spark, found | {"movedToCluster": id_of(copy.kafka)}), Batches())
    assert committed(copy.kafka, group) == {TopicPartition(copy.name, 0): 7}


@pytest.mark.spark
@pytest.mark.kafka
def test_a_checkpoint_without_the_clusters_id_names_both_causes(
    spark: SparkSession, events: Events, copy: Events, run: Run, tmp_path: Path
) -> None:
    events.fill(5)
    run(stream(spark, events.options()), Batches())
    log = tmp_path / "checkpoint" / "offsets" / "0"
    older = re.sub(r',\s*"clusterId":\s*"[^"]*"', "", log.read_text())
    assert older != log.read_text()
    log.write_text(older)
    (log.parent / ".0.crc").unlink()
    copy.fill(7)
    text = refused(spark, run, copy.options())
    assert "were deleted and made anew" in text
    assert f"'movedToCluster' as '{id_of(copy.kafka)}'" in text
    rows = Batches()
    run(stream(spark, copy.options(movedToCluster=id_of(copy.kafka))), rows)
    assert rows.values == ["0:5", "0:6"]
