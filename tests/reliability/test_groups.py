"""Groups whose members change all the time, and whose coordinator is killed."""

import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from random import Random

import pytest

from spark_kafka_source.groups.listener import Partitions
from spark_kafka_source.net import Deadline, readable
from spark_kafka_source.testing import LocalKafka
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.real_members import SESSION_MS, Ours, divided, settle
from tests.reliability.conftest import Trial

pytestmark = [pytest.mark.kafka, pytest.mark.reliability_full]

PARTITIONS = 12
AT_ONCE = 5
MEMBERS_A_ROUND = 8


@dataclass
class Owners:
    """The owners of all partitions, as listeners report them. It finds impossible states."""

    owners: dict[TopicPartition, str] = field(default_factory=dict)
    moves: int = 0
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Witness:
    """One member's listener."""

    name: str
    all: Owners

    def assigned(self, partitions: Partitions) -> None:
        with self.all.lock:
            for each in partitions:
                owner = self.all.owners.setdefault(each, self.name)
                if owner != self.name:
                    self.all.wrong.append(f"{each} is {owner}'s and {self.name}'s")
                self.all.moves += 1

    def revoked(self, partitions: Partitions) -> None:
        with self.all.lock:
            for each in partitions:
                owner = self.all.owners.pop(each, "nobody")
                if owner != self.name:
                    self.all.wrong.append(f"{self.name} gives up {each}, which is {owner}'s")

    def lost(self, partitions: Partitions) -> None:
        with self.all.lock:
            for each in partitions:
                if self.all.owners.get(each) == self.name:
                    del self.all.owners[each]


def live(member: Ours, chance: Random, failures: list[BaseException]) -> None:
    """Poll for a while, then leave."""
    ends_seconds = time.monotonic() + chance.uniform(1, 6)
    try:
        with closing(member):
            while time.monotonic() < ends_seconds:
                member.poll()
                readable([member.membership], Deadline.after_ms(chance.randrange(1, 100)))
    except Exception as error:  # Told of by the test.
        failures.append(error)


@pytest.mark.parametrize(
    "protocol", ["range", "roundrobin", "sticky", "cooperative-sticky", "consumer"]
)
def test_no_partition_is_two_members_at_once(
    kafka: LocalKafka, topic: str, trial: Trial, protocol: str
) -> None:
    kafka.create_topic(topic, partitions=PARTITIONS)
    made = (kafka.bootstrap_servers, f"group-of-{topic}", protocol, topic)
    owners, failures = Owners(), list[BaseException]()
    threads: list[threading.Thread] = []
    came = MEMBERS_A_ROUND * trial.rounds
    for number in range(came):
        while sum(each.is_alive() for each in threads) >= AT_ONCE:
            time.sleep(0.05)
        member = Ours(*made, listener=Witness(f"member-{number}", owners))
        chance = Random(trial.chance.random())
        threads.append(threading.Thread(target=live, args=(member, chance, failures)))
        threads[-1].start()
        time.sleep(trial.chance.uniform(0.05, 0.6))
    with closing(Ours(*made, listener=Witness("the last", owners))) as last:
        settle([last], divided([last], PARTITIONS))
    for thread in threads:
        thread.join()
    trial.report(
        "members",
        f"{came} members of {protocol} come and go, {owners.moves} partitions move",
        f"{len(owners.wrong)} owned twice, {len(failures)} members failed",
    )
    assert (owners.wrong, failures) == ([], [])


def test_a_broker_that_is_killed_costs_no_rebalance(trial: Trial) -> None:
    protocols = ["range", "cooperative-sticky", "consumer"]
    with LocalKafka() as kafka:
        kafka.create_topic("t", partitions=6)
        servers = kafka.bootstrap_servers
        groups = [
            [
                Ours(servers, protocol, protocol, "t", session_timeout_ms=SESSION_MS)
                for _ in range(3)
            ]
            for protocol in protocols
        ]
        members = [member for group in groups for member in group]
        settle(members, lambda: all(divided(group, 6)() for group in groups))
        told = sum(len(member.told.said) for member in members)
        for _ in range(trial.rounds):
            kafka.broker(1).kill()
            kafka.broker(1).start()
            until_seconds = time.monotonic() + 8  # Longer than a session.
            while time.monotonic() < until_seconds:
                for member in members:
                    member.poll()
                readable([member.membership for member in members], Deadline.after_ms(50))
        told_more = sum(len(member.told.said) for member in members) - told
        for member in members:
            member.close()
    trial.report(
        "coordinator",
        f"{trial.rounds} times, 9 members by 3 protocols",
        f"{told_more} calls of listeners",
    )
    assert told_more == 0
