"""The deletion of one of two topics, after members have read and committed both.

Members commit automatically, as by default.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spark_kafka_source.testing import LocalKafka
from tools.reliability.deaf.clients import Client, Member
from tools.reliability.deaf.cluster import Committed
from tools.reliability.deaf.diary import Diary, Where, missed, now_ms
from tools.reliability.deaf.outcome import ASK, CLOSE, COMMIT, RECORDS, Outcome
from tools.reliability.deaf.running import (
    AFTERMATH_SECONDS,
    PATIENCE_SECONDS,
    Patience,
    name,
    running,
)
from tools.reliability.deaf.traffic import Traffic
from tools.traffic import wait_until

_PARTITIONS = 3
# Members look up topics so often that they learn of the deletion within the test.
_METADATA_MS = 2_000
_ASKED_MS = 5_000
# Members read so many more records of each partition, not committed yet, before the deletion.
_MORE = 5
# By default `close` may take half a minute.
_CLOSE_SECONDS = 35.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The members, the traffic for them, and the committed offsets of their group."""

    members: Sequence[Member]
    traffic: Traffic
    committed: Committed
    healthy: str
    doomed: str
    kafka: LocalKafka

    @property
    def diaries(self) -> list[Diary]:
        """Diaries of the members."""
        return [each.diary for each in self.members]

    @property
    def together(self) -> Diary:
        """One diary of all that members have read, in order."""
        readings = [reading for each in self.diaries for reading in list(each.readings)]
        return Diary(readings=sorted(readings, key=lambda each: each.at_ms))

    def delete(self) -> int:
        """Delete the doomed topic, and wait until it is gone. Return the start, in ms."""
        self.traffic.leave(self.doomed)
        began_ms = now_ms()
        self.kafka.delete_topic(self.doomed)
        return began_ms

    def lasted(self, what: str) -> float | None:
        """Return the slowest member's seconds for an act; None if a member is not done."""
        acts = [[act for act in each.acts if act.what == what] for each in self.diaries]
        done = [of_one[-1].took_ms for of_one in acts if of_one and of_one[-1].ended_ms]
        return max(done) / 1000 if len(done) == len(self.diaries) else None

    def everything_read(self) -> tuple[int, int]:
        """Stop writing. Return the numbers of lost and doubled records of the healthy topic."""
        self.traffic.stop()
        ends = self.traffic.ends()
        Patience(AFTERMATH_SECONDS).until(lambda: not missed(self.diaries, ends)[0])
        return missed(self.diaries, ends)

    def all_closed(self) -> float | None:
        """Close all members. Return the slowest one's seconds."""
        for member in self.members:
            member.tell("close")
        Patience(_CLOSE_SECONDS).until(lambda: self.lasted("close") is not None)
        return self.lasted("close")

    def gap(self, since_ms: int, until_ms: int) -> float:
        """Return the longest time, in seconds, without a record of a healthy partition."""
        together = self.together
        gaps = [together.longest_gap_ms(each, since_ms, until_ms) for each in self.traffic.ends()]
        return max(gaps) / 1000

    def longest_poll(self, since_ms: int) -> float:
        """Return the longest poll of any member, in seconds."""
        return max(each.longest_poll_ms(since_ms) for each in self.diaries) / 1000

    def errors(self) -> tuple[str, ...]:
        """Return the errors of all members."""
        return tuple(error for each in self.diaries for error in each.errors())


@contextmanager
def _scene(kafka: LocalKafka, clients: Sequence[Client], how: str) -> Iterator[Scene]:
    prefix = name("deleted")
    healthy, doomed = f"{prefix}-stays", f"{prefix}-goes"
    for topic in (healthy, doomed):
        kafka.create_topic(topic, _PARTITIONS)
    places = [(topic, each) for topic in (healthy, doomed) for each in range(_PARTITIONS)]
    settings = {"group.id": prefix, "metadata.max.age.ms": _METADATA_MS}
    names = [f"{topic}:{at}" for topic, at in places] if how == "assign" else [healthy, doomed]
    servers = kafka.bootstrap_servers
    with (
        Traffic(servers, places) as traffic,
        running(clients, servers, lambda _: settings, " ".join([how, *names])) as members,
        Committed(kafka, prefix) as committed,
    ):
        scene = Scene(members, traffic, committed, healthy, doomed, kafka)
        if how == "subscribe":
            wait_until(lambda: _share(scene.diaries, set(places)))
        wait_until(lambda: committed.reaches(dict.fromkeys(places, 1)))
        more = {where: end + _MORE for where, end in traffic.ends().items()}
        wait_until(lambda: all(scene.together.reached()[each] >= end for each, end in more.items()))
        yield scene


def deleted(
    kafka: LocalKafka, client: Client, patience_seconds: float = PATIENCE_SECONDS
) -> Outcome:
    """Delete a topic under two members of a group.

    It lasts until both have given the topic up, and have committed later records.
    """
    with _scene(kafka, [client, client], "subscribe") as scene:
        deleted_ms = scene.delete()
        patience = Patience(patience_seconds)
        ends = scene.traffic.ends()
        committed_ms = patience.until(lambda: scene.committed.reaches(ends))
        patience.until(lambda: _share(scene.diaries, set(ends)))
        later = scene.traffic.ends()
        patience.until(lambda: scene.committed.reaches(later))
        until_ms = now_ms()
        poll = scene.longest_poll(deleted_ms)
        lost, doubled = scene.everything_read()
        found = {
            RECORDS: scene.gap(deleted_ms, until_ms),
            COMMIT: None if committed_ms is None else (committed_ms - deleted_ms) / 1000,
            CLOSE: scene.all_closed(),
        }
        return Outcome(client, found, poll, lost, doubled, scene.errors())


def deleted_under_assign(
    kafka: LocalKafka, client: Client, patience_seconds: float = PATIENCE_SECONDS
) -> Outcome:
    """Delete a topic under a consumer with partitions assigned by hand, which keeps them all."""
    with _scene(kafka, [client], "assign") as scene:
        (member,) = scene.members
        deleted_ms = scene.delete()
        patience = Patience(patience_seconds)
        ends = scene.traffic.ends()
        committed_ms = patience.until(lambda: scene.committed.reaches(ends))
        until_ms = now_ms()
        poll = scene.longest_poll(deleted_ms)
        (topic, partition), end = next(iter(ends.items()))
        member.tell(f"commit {topic}:{partition} {end} {_ASKED_MS}")
        patience.until(lambda: scene.lasted("ask") is not None)
        lost, doubled = scene.everything_read()
        found = {
            RECORDS: scene.gap(deleted_ms, until_ms),
            COMMIT: None if committed_ms is None else (committed_ms - deleted_ms) / 1000,
            ASK: scene.lasted("ask"),
            CLOSE: scene.all_closed(),
        }
        return Outcome(client, found, poll, lost, doubled, scene.errors())


def _share(diaries: Iterable[Diary], places: set[Where]) -> bool:
    """Whether all members have partitions, and together exactly these."""
    owned = [each.owned[-1].partitions if each.owned else frozenset() for each in diaries]
    return all(owned) and set().union(*owned) == places
