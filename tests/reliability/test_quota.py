"""Readers over their quotas, side by side, on a real broker with the usual quota windows."""

import pytest

from spark_kafka_source.testing import LocalKafka
from tests.reliability.conftest import Trial
from tools.reliability.deaf.clients import JAVA, OURS, THEIRS, Client
from tools.reliability.deaf.running import Patience, running
from tools.traffic import Writer

pytestmark = [pytest.mark.kafka, pytest.mark.reliability_full]

QUOTA_BYTES_A_SECOND = 1_000_000
# The first ten seconds of a quota may be taken at once, and are made up for in the ten after them.
SECONDS, RECORD_BYTES = 25, 10_000
MOST_ERROR = 0.2


def test_a_reader_keeps_to_its_quota(kafka: LocalKafka, topic: str, trial: Trial) -> None:
    kafka.create_topic(topic)
    records = SECONDS * QUOTA_BYTES_A_SECOND // RECORD_BYTES
    with Writer(kafka.bootstrap_servers) as writer:
        for number in range(records):
            writer.queue(topic, bytes(RECORD_BYTES))
            if number % 1_000 == 0:
                writer.flush()
    clients = (OURS, THEIRS, JAVA)
    for client in clients:
        quota = ("--add-config", f"consumer_byte_rate={QUOTA_BYTES_A_SECOND}")
        of_client = ("--entity-type", "clients", "--entity-name", client_id(topic, client))
        kafka.tool("configs", "--alter", *quota, *of_client)

    def settings(client: Client) -> dict[str, object]:
        return {"client.id": client_id(topic, client)}

    with running(clients, kafka.bootstrap_servers, settings, f"assign {topic}:0") as members:
        diaries = [each.diary for each in members]
        all_read = Patience(4 * SECONDS)
        assert all_read.until(
            lambda: all(each.reached() == {(topic, 0): records} for each in diaries)
        )
    errors = {}
    for client, diary in zip(clients, diaries, strict=True):
        seconds = (diary.readings[-1].at_ms - diary.began_ms()) / 1000
        errors[client] = records * RECORD_BYTES / seconds / QUOTA_BYTES_A_SECOND - 1
    trial.report(
        "17",
        f"{SECONDS} MB read under a quota of 1 MB/s, by three clients with a quota each",
        "rate error: " + ", ".join(f"{each.name} {error:+.0%}" for each, error in errors.items()),
    )
    assert abs(errors[OURS]) < MOST_ERROR


def client_id(topic: str, client: Client) -> str:
    """Return the client id, which has the quota."""
    return f"{topic}-{client.kind}"
