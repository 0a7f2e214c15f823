"""The start of a consumer whose first bootstrap address may be bad."""

from collections.abc import Sequence

from spark_kafka_source.testing import LocalKafka
from tools.reliability.deaf.clients import Client, Member
from tools.reliability.deaf.cluster import create_topic_of_offsets
from tools.reliability.deaf.diary import Diary, Where
from tools.reliability.deaf.outcome import COMMIT, RECORDS, Outcome
from tools.reliability.deaf.running import (
    COMMIT_EVERY_MS,
    PATIENCE_SECONDS,
    Patience,
    name,
    running,
    seconds,
)
from tools.reliability.deaf.traffic import Traffic

_PARTITIONS = 3
_ROWS = 100


def first_contact(
    kafka: LocalKafka,
    servers: str,
    clients: Sequence[Client],
    *,
    in_group: bool,
    patience_seconds: float = PATIENCE_SECONDS,
) -> list[Outcome]:
    """Measure from the making of a consumer until it has read all of a topic, and committed."""
    topic = name("contact")
    kafka.create_topic(topic, _PARTITIONS)
    ends = {(topic, each): _ROWS for each in range(_PARTITIONS)}
    with Traffic(kafka.bootstrap_servers, []) as traffic:
        traffic.fill(ends)
    create_topic_of_offsets(kafka)
    orders = [f"subscribe {topic}", f"every {COMMIT_EVERY_MS}"]
    if not in_group:
        orders = ["assign " + " ".join(f"{topic}:{each}" for each in range(_PARTITIONS))]

    def settings(_: Client) -> dict[str, object]:
        return {"group.id": name("contact"), "enable.auto.commit": "false"} if in_group else {}

    def is_done(diary: Diary) -> bool:
        has_committed = diary.succeeded_after_ms("commit", 0) is not None
        return diary.reached() == ends and (has_committed or not in_group)

    with running(clients, servers, settings, *orders) as members:
        Patience(patience_seconds).until(lambda: all(is_done(each.diary) for each in members))
        return [_outcome(each, ends, in_group=in_group) for each in members]


def _outcome(member: Member, ends: dict[Where, int], *, in_group: bool) -> Outcome:
    diary = member.diary
    began_ms = diary.began_ms()
    read_at_ms = [diary.read_at_ms(where, end - 1) for where, end in ends.items()]
    latest_ms = max((each for each in read_at_ms if each is not None), default=0)
    found = {RECORDS: None if None in read_at_ms else (latest_ms - began_ms) / 1000}
    if in_group:
        found[COMMIT] = seconds(diary.succeeded_after_ms("commit", began_ms))
    return Outcome(
        member.client, found, diary.longest_poll_ms() / 1000, errors=tuple(diary.errors())
    )
