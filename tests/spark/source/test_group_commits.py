"""Commits to a group. Each position is committed once. A failure never reaches the query."""

import logging
from collections.abc import Mapping

import pytest

from spark_kafka_source.client import ClientConfig, KafkaClient
from spark_kafka_source.errors import (
    BootstrapError,
    BrokerError,
    ClosedError,
    ConnectionFailedError,
    KafkaError,
    KafkaTimeoutError,
    error_named,
)
from spark_kafka_source.groups import OffsetAndMetadata
from spark_kafka_source.net import AuthenticationError, parse_addresses
from spark_kafka_source.net.sasl import TokenUnavailableError
from spark_kafka_source.spark.source import group_commits
from spark_kafka_source.spark.source.group_commits import GroupCommits
from spark_kafka_source.spark.source.source_offset import SourceOffset
from spark_kafka_source.topic_partition import TopicPartition
from tests.spark.settings import A0, A1, A2

FAILURES = [
    BrokerError(error_named("UNKNOWN_MEMBER_ID"), "OffsetCommit"),
    BrokerError(error_named("REBALANCE_IN_PROGRESS"), "OffsetCommit"),
    BrokerError(error_named("COORDINATOR_NOT_AVAILABLE"), "FindCoordinator"),
    BootstrapError(["broker:9092: refused"]),
    ConnectionFailedError("broken"),
    KafkaTimeoutError("too late"),
    TokenUnavailableError("OAUTHBEARER", "the token endpoint did not answer"),
    ClosedError("closed"),
]
HOPELESS: list[KafkaError] = [
    *(
        BrokerError(error_named(name), "OffsetCommit")
        for name in ("GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED", "INVALID_GROUP_ID")
    ),
    AuthenticationError("PLAIN", "broker:9092: the broker refuses the credentials"),
]


class Coordinator:
    """Fake coordinator. It takes commits, or fails with `error` if that is set."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.tries: list[Mapping[TopicPartition, int]] = []
        self.said: list[Mapping[TopicPartition, OffsetAndMetadata]] = []
        self.committed: dict[TopicPartition, int] = {}

    async def commit(
        self,
        client: KafkaClient,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: int,
    ) -> None:
        assert group_id == "g"
        assert 0 < timeout_ms <= 5_000
        self.tries.append({where: at.offset for where, at in offsets.items()})
        self.said.append(offsets)
        if self.error:
            raise self.error
        self.committed.update(self.tries[-1])


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def commits(coordinator: Coordinator) -> GroupCommits:
    client = KafkaClient(ClientConfig(parse_addresses("broker:9092")))
    return GroupCommits(client, "g", commit=coordinator.commit)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commits, "_PAUSE_AFTER_FAILURE_MS", 0)


def test_only_what_moved_is_committed(commits: GroupCommits, coordinator: Coordinator) -> None:
    commits.finished(SourceOffset({A0: 1, A1: 1}))
    commits.finished(SourceOffset({A0: 1, A1: 1}))
    commits.finished(SourceOffset({A0: 1, A1: 2, A2: 0}))
    assert coordinator.tries == [{A0: 1, A1: 1}, {A1: 2, A2: 0}]


def test_a_commit_says_who_made_it_and_under_which_leader_epochs(
    commits: GroupCommits, coordinator: Coordinator
) -> None:
    commits.finished(SourceOffset({A0: 1, A1: 1}, leader_epochs={A0: 4}))
    commits.finished(SourceOffset({A0: 2, A1: 1}, leader_epochs={A0: 5}), "query q batch 7")
    assert coordinator.said == [
        {
            A0: OffsetAndMetadata(1, 4, "spark_kafka_source"),
            A1: OffsetAndMetadata(1, -1, "spark_kafka_source"),
        },
        {A0: OffsetAndMetadata(2, 5, "query q batch 7")},
    ]


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_a_failure_is_logged_and_tried_again_with_the_newest(
    commits: GroupCommits,
    coordinator: Coordinator,
    error: KafkaError,
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator.error = error
    commits.finished(SourceOffset({A0: 1}))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert str(error) in caplog.text
    coordinator.error = None
    commits.finished(SourceOffset({A0: 2, A1: 5}))
    assert coordinator.committed == {A0: 2, A1: 5}


@pytest.mark.usefixtures("no_pause")
def test_a_failed_commit_is_tried_again_though_nothing_moved(
    commits: GroupCommits, coordinator: Coordinator
) -> None:
    coordinator.error = KafkaTimeoutError("too late")
    commits.finished(SourceOffset({A0: 1}))
    coordinator.error = None
    commits.finished(SourceOffset({A0: 1}))
    assert coordinator.committed == {A0: 1}


def test_a_coordinator_that_failed_is_left_alone_for_a_while(
    commits: GroupCommits, coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator.error = KafkaTimeoutError("too late")
    for offset in range(5):
        commits.finished(SourceOffset({A0: offset}))
    assert len(coordinator.tries) == len(caplog.records) == 1


def test_the_last_commit_of_a_run_is_tried_at_once(
    commits: GroupCommits, coordinator: Coordinator
) -> None:
    coordinator.error = KafkaTimeoutError("too late")
    commits.finished(SourceOffset({A0: 1}))
    coordinator.error = None
    commits.finished(SourceOffset({A0: 1}), is_last=True)
    assert coordinator.committed == {A0: 1}


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize("error", HOPELESS, ids=lambda error: str(error)[:30])
def test_what_cannot_heal_is_logged_once_and_ends_the_commits(
    commits: GroupCommits,
    coordinator: Coordinator,
    error: KafkaError,
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator.error = error
    for offset in range(5):
        commits.finished(SourceOffset({A0: offset}))
    assert len(coordinator.tries) == 1
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert str(error) in caplog.text
