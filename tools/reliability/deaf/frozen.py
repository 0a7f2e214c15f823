"""One of three brokers stopped by SIGSTOP: its connections stay open, but it does not answer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from spark_kafka_source.testing import LocalKafka
from tools.reliability.deaf.clients import Client, Member
from tools.reliability.deaf.cluster import (
    active_controller,
    create_topic,
    create_topic_of_offsets,
    elect_preferred_leaders,
    group_at,
)
from tools.reliability.deaf.diary import Diary, Where, missed, now_ms
from tools.reliability.deaf.outcome import COMMIT, GAP, RECORDS, Outcome
from tools.reliability.deaf.running import (
    AFTERMATH_SECONDS,
    COMMIT_EVERY_MS,
    PATIENCE_SECONDS,
    Patience,
    name,
    running,
    seconds,
)
from tools.reliability.deaf.traffic import Traffic
from tools.reliability.leaders import Leaders
from tools.traffic import wait_until

ROLES = ("coordinator", "leader", "controller")
_NODES = frozenset({1, 2, 3})


def frozen(
    kafka: LocalKafka,
    role: str,
    clients: Sequence[Client],
    patience_seconds: float = PATIENCE_SECONDS,
) -> list[Outcome]:
    """Stop the members' `coordinator`, a `leader` or the active `controller`.

    The leader, or the controller, leads one of three partitions, and coordinates no group. It has
    no replica of the other two. A stopped coordinator has no replica of any. Members commit what
    they read, and wait for the commits, all the time.
    """
    create_topic_of_offsets(kafka)
    elect_preferred_leaders(kafka)
    controller = active_controller(kafka)
    stopped = controller if role == "controller" else min(_NODES - {controller})
    one, other = sorted(_NODES - {stopped})
    topic = name(role)
    first = [one, other] if role == "coordinator" else [stopped, one]
    create_topic(kafka, topic, [first, [one, other], [other, one]])
    places = [(topic, each) for each in range(3)]
    coordinator = stopped if role == "coordinator" else one

    def settings(_: Client) -> dict[str, object]:
        group_id = group_at(kafka, coordinator, name(role))
        return {"group.id": group_id, "enable.auto.commit": "false"}

    orders = (f"subscribe {topic}", f"every {COMMIT_EVERY_MS}")
    with (
        Traffic(kafka.bootstrap_servers, places) as traffic,
        running(clients, kafka.bootstrap_servers, settings, *orders) as members,
    ):
        wait_until(lambda: all(_goes_on(each.diary, places) for each in members))
        with stopped_by_sigstop(kafka, stopped) as stopped_ms:
            seen = Seen(traffic, stopped_ms)
            Patience(patience_seconds).until(lambda: all(map(seen.has_recovered, members)))
            until_ms = now_ms()
            polls_ms = [each.diary.longest_poll_ms(stopped_ms) for each in members]
        traffic.stop()
        ends = traffic.ends()
        aftermath = Patience(AFTERMATH_SECONDS)
        aftermath.until(lambda: all(each.diary.reached() == ends for each in members))
        healthy = places if role == "coordinator" else places[1:]
        return [
            seen.outcome(member, healthy, ends, until_ms, poll_ms)
            for member, poll_ms in zip(members, polls_ms, strict=True)
        ]


@contextmanager
def stopped_by_sigstop(kafka: LocalKafka, node_id: int) -> Iterator[int]:
    """Stop a broker in the context. Yield the moment, in ms. Then resume it, and await its sync."""
    broker = kafka.broker(node_id)
    broker.pause()
    try:
        yield now_ms()
    finally:
        broker.resume()
    kafka.start()
    Leaders(kafka, "__consumer_offsets").await_in_sync(*_NODES)


def _goes_on(diary: Diary, places: list[Where]) -> bool:
    """Whether the member has read of all partitions, and has committed."""
    committed_ms = diary.succeeded_after_ms("commit", 0)
    return committed_ms is not None and set(diary.reached()) == set(places)


class Seen:
    """The view of members since a fault."""

    def __init__(self, traffic: Traffic, since_ms: int) -> None:
        self._traffic, self._since_ms = traffic, since_ms

    def has_recovered(self, member: Member) -> bool:
        """Whether a member has read new records of all partitions, and has committed."""
        return self._committed_ms(member) is not None and self._flows_ms(member) is not None

    def _committed_ms(self, member: Member) -> int | None:
        return member.diary.succeeded_after_ms("commit", self._since_ms)

    def _flows_ms(self, member: Member) -> int | None:
        """Return how long it took to read a record written since then of every partition."""
        found = []
        for where in self._traffic.ends():
            offset = self._traffic.first_since(where, self._since_ms)
            read_at_ms = None if offset is None else member.diary.read_at_ms(where, offset)
            if read_at_ms is None:
                return None
            found.append(read_at_ms - self._since_ms)
        return max(found)

    def outcome(
        self,
        member: Member,
        healthy: Sequence[Where],
        ends: Mapping[Where, int],
        until_ms: int,
        poll_ms: int,
    ) -> Outcome:
        """Return the outcome for a member that was observed until a moment."""
        diary, since_ms = member.diary, self._since_ms
        flows_ms, committed_ms = self._flows_ms(member), self._committed_ms(member)
        if flows_ms is not None and committed_ms is not None:
            until_ms = since_ms + max(flows_ms, committed_ms)
        gaps_ms = {each: diary.longest_gap_ms(each, since_ms, until_ms) for each in ends}
        lost, doubled = missed([diary], ends)
        found = {
            RECORDS: None if flows_ms is None else max(gaps_ms.values()) / 1000,
            COMMIT: seconds(committed_ms),
        }
        if set(healthy) != set(ends):
            found[GAP] = max(gaps_ms[each] for each in healthy) / 1000
        errors = tuple(diary.errors())
        return Outcome(member.client, found, poll_ms / 1000, lost, doubled, errors)
