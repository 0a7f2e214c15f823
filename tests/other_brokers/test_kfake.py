"""kfake, the broker inside franz-go, which is Go: its toolchain builds `kfake/main.go`."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from spark_kafka_source import KafkaAdmin, KafkaConsumer, KafkaProducer, TopicPartition
from spark_kafka_source.errors import KafkaTimeoutError
from tests.exactly_once.conftest import PARTITIONS
from tests.exactly_once.query import Query

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_SOURCE = Path(__file__).with_name("kfake")
_BROKERS = 3
_PATIENCE_SECONDS = 30
_DOWNLOAD_SECONDS, _BUILD_SECONDS = 120, 500


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the server."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    program = tmp_path_factory.mktemp("kfake") / "server"
    # No newer toolchain is downloaded.
    run = partial(
        subprocess.run, cwd=_SOURCE, check=True, env=os.environ | {"GOTOOLCHAIN": "local"}
    )
    try:
        run([go, "mod", "download"], capture_output=True, timeout=_DOWNLOAD_SECONDS)
    except subprocess.SubprocessError as error:
        pytest.skip(f"kfake cannot be downloaded: {getattr(error, 'stderr', None) or error!r}")
    run([go, "build", "-o", program, "."], timeout=_BUILD_SECONDS)
    return program


@pytest.fixture
def servers(program: Path) -> Iterator[str]:
    """The addresses of new brokers."""
    with subprocess.Popen(
        [program, str(_BROKERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def write(servers: str, values: list[bytes], **settings: Any) -> None:
    with KafkaProducer(bootstrap_servers=servers, **settings) as producer:
        for future in [producer.send("t", each) for each in values]:
            future.result(_PATIENCE_SECONDS)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_go_there_and_back(servers: str, codec: str) -> None:
    values = [b"v" * each for each in range(200)]
    write(servers, values, compression_type=codec)
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        where = [TopicPartition("t", each.partition) for each in consumer.partitions_for("t")]
        consumer.assign(where)
        consumer.seek_to_beginning()
        found = [record.value for record in islice(consumer, len(values))]
        assert sum(consumer.end_offsets(where).values()) == len(values)
    assert sorted(found) == sorted(values)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_where_it_was(servers: str, protocol: str) -> None:
    for first in (0, 5):
        write(servers, [b"%d" % each for each in range(first, first + 5)])
        with KafkaConsumer(
            bootstrap_servers=servers,
            group_id="g",
            group_protocol=protocol,
            auto_offset_reset="earliest",
        ) as consumer:
            consumer.subscribe(["t"])
            found = sorted(int(record.value) for record in islice(consumer, 5))
            assert found == [*range(first, first + 5)]
            consumer.commit()


def test_transactions_are_committed_and_aborted(servers: str) -> None:
    with KafkaProducer(bootstrap_servers=servers, transactional_id="tx") as producer:
        producer.init_transactions()
        for value, end in (
            (b"aborted", producer.abort_transaction),
            (b"committed", producer.commit_transaction),
        ):
            producer.begin_transaction()
            producer.send("t", value).result(_PATIENCE_SECONDS)
            end()
    with KafkaConsumer(
        bootstrap_servers=servers,
        group_id="g",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    ) as consumer:
        consumer.subscribe(["t"])
        assert [record.value for record in islice(consumer, 1)] == [b"committed"]


def test_micro_batches_that_cannot_be_told_apart_are_refused(servers: str) -> None:
    """kfake forgets that a transaction was committed: its state is Empty, as that of a new id."""
    with KafkaAdmin(bootstrap_servers=servers) as admin:
        admin.create_topic("once", partitions=PARTITIONS)
    query = Query(servers, "once", PARTITIONS, settings={"default_api_timeout_ms": 2_000})
    run = query.start()
    with pytest.raises(KafkaTimeoutError, match=r"NOT_COORDINATOR .*its earlier state 'Empty'"):
        for batch in range(2):
            run.commit(batch, run.write(batch))
