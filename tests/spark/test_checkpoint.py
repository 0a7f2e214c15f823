"""A checkpoint moves from `format("kafka")` to `format("pykafka")` and back without lost rows."""

import re
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.records import Record
from spark_kafka_source.spark.all_options import OPTIONS
from spark_kafka_source.spark.checkpoint import hand_back, main
from spark_kafka_source.spark.source.source_offset import CheckpointError
from spark_kafka_source.testing import LocalKafka, Producer
from tests.documentation.pages import DOCS
from tools.traffic import TIMEOUT_SECONDS

LOG = 'v1\n{"batchWatermarkMs":0}\n'


def checkpoint(directory: Path, offsets: str, *, finished: bool = True) -> Path:
    for name in ("offsets", "commits"):
        (directory / name).mkdir(parents=True)
    (directory / "offsets" / "0").write_text(LOG + offsets)
    (directory / "offsets" / ".0.crc").write_bytes(b"crc")
    if finished:
        (directory / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    return directory


def test_our_offsets_become_those_of_sparks_connector_and_others_stay(tmp_path: Path) -> None:
    ours = '{"version": 2, "offsets": {"t": {"0": 5, "10": 7}}, "leaderEpochs": {"t": {"0": 1}}}'
    theirs = '{"other":{"0":3}}\n-'
    hand_back(checkpoint(tmp_path, f"{ours}\n{theirs}"))
    assert (tmp_path / "offsets" / "0").read_text() == f'{LOG}{{"t":{{"0":5,"10":7}}}}\n{theirs}'
    assert [path.name for path in (tmp_path / "offsets").iterdir()] == ["0"]


@pytest.mark.parametrize(
    ("offsets", "error"), [(None, "has no offset log"), ("{", "is not JSON")], ids=["none", "odd"]
)
def test_what_is_no_checkpoint_is_told_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    offsets: str | None,
    error: str,
) -> None:
    directory = tmp_path / "nonexistent" if offsets is None else checkpoint(tmp_path, offsets)
    monkeypatch.setattr(sys, "argv", ["checkpoint", str(directory)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("checkpoint: ")
    assert error in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("made", [False, True])
def test_nothing_is_changed_where_it_cannot_be_handed_back(tmp_path: Path, made: bool) -> None:
    if made:
        checkpoint(tmp_path, '{"version": 2, "offsets": {}}', finished=False)
    with pytest.raises(ConfigurationError, match="not finished" if made else "no offset log"):
        hand_back(tmp_path)
    assert not made or '"version": 2' in (tmp_path / "offsets" / "0").read_text()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"version":2,"offsets":', "is not JSON"),
        (b'{"version":2,"offsets":' + b'{"a":' * 100_000, "is not JSON"),
        (b'{"version":2,"offsets":{"t":{"0":' + b"1" * 4400 + b"}}}", "is not JSON"),
        (b'{"version":2,"offsets":{"t":3}}', "cannot be read"),
        (b"\xe9", "is not UTF-8"),
    ],
)
def test_a_damaged_log_is_named_and_not_changed(tmp_path: Path, line: bytes, reason: str) -> None:
    log = checkpoint(tmp_path, "") / "offsets" / "0"
    log.write_bytes(LOG.encode() + line)
    with pytest.raises(CheckpointError, match=reason):
        hand_back(tmp_path)
    assert log.read_bytes() == LOG.encode() + line


def test_files_beside_those_of_the_log_are_left_alone(tmp_path: Path) -> None:
    checkpoint(tmp_path, '{"version": 2, "offsets": {}}')
    (tmp_path / "offsets" / "\u00b2").write_text("a digit, to Python")
    assert hand_back(tmp_path) == [0]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.peer
def test_there_and_back(spark: SparkSession, kafka: LocalKafka, topic: str, tmp_path: Path) -> None:
    kafka.create_topic(topic, partitions=2)
    read: list[tuple[str, int, int]] = []

    def run(name: str) -> None:
        def keep(batch: DataFrame, _: int) -> None:
            read.extend(
                (name, row.partition, row.offset)
                for row in batch.select("partition", "offset").collect()
            )

        query = (
            spark.readStream.format(name)
            .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(TIMEOUT_SECONDS)

    expected = []
    with Producer(kafka.bootstrap_servers) as producer:
        for number, step in enumerate(["kafka", "pykafka", "back", "kafka", "pykafka", "pykafka"]):
            if step == "back":
                hand_back(tmp_path)
                continue
            for partition in range(2):
                first = producer.send(topic, partition, [Record(value=b"a"), Record(value=b"b")])
                expected += [(step, partition, first), (step, partition, first + 1)]
            run(step)
            assert sorted(read) == sorted(expected), f"after step {number}, {step}"


def to_take_out() -> list[str]:
    """Return the options of the table in docs/moving.md of those that one takes out."""
    table = (DOCS / "moving.md").read_text().partition('| take out | with `format("kafka")` |')[2]
    rows = [row for row in table.partition("\n\n")[0].splitlines() if row.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.peer
def test_sparks_connector_ignores_what_only_this_package_has(
    spark: SparkSession, kafka: LocalKafka, topic: str
) -> None:
    """As docs/moving.md says: without an error. Of its options one alone is an error."""
    names = {name.replace("…", "url") for name in to_take_out()}
    own = {"deliveryGuarantee": "exactly-once", "value.format": "json", "value.schema": "a INT"}
    assert own.keys() < names
    assert {name for name in names if name not in OPTIONS} == {"startingOffsets=committed"}
    kafka.create_topic(topic, partitions=1)
    frame = spark.createDataFrame([(b'{"a": 1}',)], "value binary")
    options = {"kafka.bootstrap.servers": kafka.bootstrap_servers} | {
        name: own.get(name, "1") for name in names if "=" not in name
    }
    frame.write.format("kafka").options(**options, topic=topic).mode("append").save()
    reader = spark.read.format("kafka").options(**options, subscribe=topic)
    assert [row.value for row in reader.load().collect()] == [b'{"a": 1}']
    with pytest.raises(Exception, match="committed"):
        reader.option("startingOffsets", "committed").load().collect()
