"""A new topic that matches the pattern of three members. One of them looks for topics often."""

from collections.abc import Iterable

from spark_kafka_source.testing import LocalKafka
from tools.reliability.deaf.clients import Client
from tools.reliability.deaf.diary import Diary, Where, now_ms
from tools.reliability.deaf.outcome import SPREAD, Outcome
from tools.reliability.deaf.running import PATIENCE_SECONDS, Patience, name, running, seconds
from tools.traffic import wait_until

_OLD, _NEW = 3, 6
_OFTEN_MS, _SELDOM_MS = 500, 60_000


def new_topic(
    kafka: LocalKafka, client: Client, patience_seconds: float = PATIENCE_SECONDS
) -> tuple[Outcome, list[list[int]]]:
    """Return the outcome, and how many new partitions each member had after each rebalance."""
    prefix = name("pattern")
    old, new = f"{prefix}-old", f"{prefix}-new"
    kafka.create_topic(old, _OLD)
    ages_ms = iter((_OFTEN_MS, _SELDOM_MS, _SELDOM_MS))

    def settings(_: Client) -> dict[str, object]:
        return {"group.id": prefix, "metadata.max.age.ms": next(ages_ms)}

    order = f"match {prefix}-.*"
    with running([client] * 3, kafka.bootstrap_servers, settings, order) as members:
        diaries = [each.diary for each in members]
        wait_until(lambda: _numbers(diaries, old) == [1, 1, 1])
        before = [len(each.owned) for each in diaries]
        made_ms = now_ms()
        kafka.create_topic(new, _NEW)
        # Brokers with KIP-848 balance each member's partitions over all topics, not per topic.
        spread_ms = Patience(patience_seconds).until(lambda: _is_balanced(diaries))
        poll = max(each.longest_poll_ms(made_ms) for each in diaries) / 1000
        found = {SPREAD: seconds(None if spread_ms is None else spread_ms - made_ms)}
        errors = tuple(error for each in diaries for error in each.errors())
        return Outcome(client, found, poll, errors=errors), _by_generation(diaries, before, new)


def _numbers(diaries: Iterable[Diary], topic: str) -> list[int]:
    """Return how many partitions of a topic each member has."""
    return [_of(topic, each.owned[-1].partitions if each.owned else ()) for each in diaries]


def _is_balanced(diaries: Iterable[Diary]) -> bool:
    """Whether each member has a third of all partitions."""
    owned = [each.owned[-1].partitions for each in diaries]
    return [len(each) for each in owned] == [3, 3, 3] and len(frozenset().union(*owned)) == 9


def _by_generation(diaries: list[Diary], before: list[int], topic: str) -> list[list[int]]:
    """Return how many partitions of a topic each member had, for each generation since then."""
    owned = [each.owned[seen:] for each, seen in zip(diaries, before, strict=True)]
    generations = sorted({each.generation for of_one in owned for each in of_one} - {-1})
    return [
        [
            sum(_of(topic, each.partitions) for each in of_one if each.generation == generation)
            for of_one in owned
        ]
        for generation in generations
    ]


def _of(topic: str, partitions: Iterable[Where]) -> int:
    return sum(each[0] == topic for each in partitions)
