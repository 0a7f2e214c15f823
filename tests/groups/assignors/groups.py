"""Random groups: topics in racks, and members with subscriptions, owned partitions and claims.

Hypothesis draws the shape of a group. A seeded generator fills the group, which is faster.
"""

from dataclasses import dataclass
from random import Random
from uuid import UUID

from hypothesis import strategies as st

from spark_kafka_source.client.cluster import PartitionInfo
from spark_kafka_source.groups.assignors import ASSIGNORS, Assignment, Subscription
from spark_kafka_source.protocol import encode
from spark_kafka_source.protocol.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_versioned,
)
from spark_kafka_source.topic_partition import TopicPartition
from tests.groups.assignors.topics import described, partitions

Described = dict[str, list[PartitionInfo]]
MISSING = "missing"


@dataclass(frozen=True)
class Member:
    """One member that joins. `version` is its version of the consumer protocol."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...]
    generation_id: int
    rack_id: str | None
    group_instance_id: str | None
    version: int

    def metadata(self, assignor_name: str) -> bytes:
        """Return the metadata for JoinGroup."""
        assignor = ASSIGNORS[assignor_name]()
        if self.owned:
            assignor.on_assignment(Assignment(self.owned), self.generation_id)
        newest = Subscription(
            topics=self.topics,
            user_data=assignor.user_data(self.topics),
            owned=self.owned,
            generation_id=self.generation_id,
            rack_id=self.rack_id,
        ).encode()
        message = decode_versioned(ConsumerProtocolSubscription, newest)
        return self.version.to_bytes(2) + encode(message, self.version)


@dataclass(frozen=True)
class Group:
    """A group, as its leader sees it."""

    cluster: Described
    members: dict[str, Member]


def cluster_of(random: Random, topics: int, most: int, racks: list[str]) -> Described:
    """Create topics of 0 to `most` partitions. Each partition is in some of the racks."""
    names = [f"{random.choice(['t', 'events-', 'a.b_'])}{each}" for each in range(topics)]
    even = random.random() < 0.3
    return described(
        {
            name: [
                frozenset(random.sample(racks, random.randint(min(1, len(racks)), len(racks))))
                for _ in range(most if even else random.randint(0, most))
            ]
            for name in names
        }
    )


def member_id(random: Random) -> str:
    """Create a member id like a broker's: it begins with the client id."""
    client = random.choice(["consumer-1", "é", "\U0001f600", "\uffee"])
    return f"{client}-{UUID(int=random.getrandbits(128))}"


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """Draw a group that Kafka's assignors can handle."""
    random = draw(st.randoms(use_true_random=True))
    racks = draw(st.sampled_from([[], ["a"], ["a", "b"], ["a", "b", "c", "d"]]))
    cluster = cluster_of(
        random, draw(st.integers(1, 6)), draw(st.sampled_from([1, 4, 12, 40])), racks
    )
    count = draw(st.sampled_from([1, 2, 3, 5, 8, 14, 30]))
    alike, claims = draw(st.booleans()), draw(st.sampled_from(["none", "fair", "wild"]))
    versions = draw(st.sampled_from([[3], [0, 1, 2, 3]]))
    newest = draw(st.integers(-1, 5))
    every = partitions(cluster)
    random.shuffle(every)
    common = _topics(random, cluster)
    members = {}
    for place in range(count):
        # A member that is not in the newest generation is more likely.
        generation_id = random.choice([newest] * 4 + [random.randint(-1, max(newest, -1))])
        topics = common if alike else _topics(random, cluster)
        owned = _owned(random, claims, every, 2 * len(every) // count + 1)
        members[member_id(random)] = Member(
            topics=topics,
            # test_differences.py shows Kafka's result for other claims.
            owned=tuple(sorted(each for each in owned if claims != "wild" or each.topic in topics)),
            generation_id=newest if claims != "wild" else generation_id,
            rack_id=random.choice([*racks, None]),
            group_instance_id=random.choice([None, f"instance-{random.random()}-{place}"]),
            version=random.choice(versions),
        )
    return Group(cluster, members)


def _topics(random: Random, cluster: Described) -> tuple[str, ...]:
    known = sorted([*cluster, MISSING])
    return tuple(sorted(random.sample(known, random.randint(1, len(known)))))


def _owned(
    random: Random, claims: str, every: list[TopicPartition], most: int
) -> list[TopicPartition]:
    if claims == "none":
        return []
    if claims == "wild":
        return random.sample(every, random.randint(0, len(every)))
    # Removed from the others, so that no two members own the same partition.
    taken = every[: random.randint(0, most)]
    del every[: len(taken)]
    return taken
