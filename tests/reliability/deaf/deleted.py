"""One of two topics deleted, of which both have been read and committed.

Offsets are committed automatically, as by default.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spark_kafka_source.testing import LocalKafka
from tests.reliability.deaf.clients import Client, Member
from tests.reliability.deaf.cluster import Committed
from tests.reliability.deaf.diary import Diary, Where, missed, now_ms
from tests.reliability.deaf.outcome import ASK, CLOSE, COMMIT, RECORDS, Outcome
from tests.reliability.deaf.running import (
    AFTERMATH_SECONDS,
    PATIENCE_SECONDS,
    Patience,
    name,
    running,
)
from tests.reliability.deaf.traffic import Traffic
from tests.spark.traffic import wait_until

_PARTITIONS = 3
# Topics are looked at again so often, that it is known within the test that one is gone.
_METADATA_MS = 2_000
_ASKED_MS = 5_000
# So many records of each partition are read, and not committed yet, when the topic goes.
_MORE = 5
# By default `close` may take half a minute.
_CLOSE_SECONDS = 35.0


@dataclass(frozen=True, slots=True)
class Scene:
    """The members, the records that are written for them, and what their group has committed."""

    members: Sequence[Member]
    traffic: Traffic
    committed: Committed
    healthy: str
    doomed: str
    kafka: LocalKafka

    @property
    def diaries(self) -> list[Diary]:
        """What the members have said."""
        return [each.diary for each in self.members]

    @property
    def together(self) -> Diary:
        """What any of them has read, in order."""
        readings = [reading for each in self.diaries for reading in list(each.readings)]
        return Diary(readings=sorted(readings, key=lambda each: each.at_ms))

    def delete(self) -> int:
        """Deletes the doomed topic, and waits until it is gone; when that began, in ms."""
        self.traffic.leave(self.doomed)
        began_ms = now_ms()
        self.kafka.delete_topic(self.doomed)
        return began_ms

    def lasted(self, what: str) -> float | None:
        """How many seconds it took the slowest; None where one is not done."""
        acts = [[act for act in each.acts if act.what == what] for each in self.diaries]
        done = [of_one[-1].took_ms for of_one in acts if of_one and of_one[-1].ended_ms]
        return max(done) / 1000 if len(done) == len(self.diaries) else None

    def everything_read(self) -> tuple[int, int]:
        """Records of the healthy topic that were lost and doubled, once no more are written."""
        self.traffic.stop()
        ends = self.traffic.ends()
        Patience(AFTERMATH_SECONDS).until(lambda: not missed(self.diaries, ends)[0])
        return missed(self.diaries, ends)

    def all_closed(self) -> float | None:
        """How many seconds the slowest took to close."""
        for member in self.members:
            member.tell("close")
        Patience(_CLOSE_SECONDS).until(lambda: self.lasted("close") is not None)
        return self.lasted("close")

    def gap(self, since_ms: int, until_ms: int) -> float:
        """The longest time, in seconds, without a record of a healthy partition."""
        together = self.together
        gaps = [together.longest_gap_ms(each, since_ms, until_ms) for each in self.traffic.ends()]
        return max(gaps) / 1000

    def longest_poll(self, since_ms: int) -> float:
        """Of any member, in seconds."""
        return max(each.longest_poll_ms(since_ms) for each in self.diaries) / 1000

    def errors(self) -> tuple[str, ...]:
        """What any of them raised."""
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
    """Under two members of a group.

    It lasts until both have given the deleted topic up, and what was written after is committed.
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
    """Under a consumer that is assigned its partitions by hand, and keeps them all."""
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
    """Whether these partitions, and no others, are shared out among all."""
    owned = [each.owned[-1].partitions if each.owned else frozenset() for each in diaries]
    return all(owned) and set().union(*owned) == places
