"""Faults of the brokers while records are written, one per round."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tools.reliability.writing.cluster import BROKERS, Cluster
from tools.reliability.writing.load import Load
from tools.traffic import wait_until

_CUT_SECONDS = 2.0
_CUT_RATE = 0.1
_MOVES = 4
_MIX_ACTIONS = 4
# The cluster replaces a broker that is silent for three seconds. It ignores a shorter pause.
_SHORT_FREEZE_SECONDS = 1.5

Fault = Callable[[Cluster, str, Load], int]
"""A function that makes a fault, and returns how often."""


def killed(cluster: Cluster, topic: str, load: Load) -> int:
    """Kill one broker, and start it again."""
    broker = cluster.kafka.broker(cluster.chance.choice(BROKERS))
    broker.kill()
    load.await_progress()
    broker.start()
    load.await_progress()
    cluster.await_in_sync(topic)
    return 1


def moved(cluster: Cluster, topic: str, load: Load) -> int:
    """Give all partitions other leaders, again and again."""
    made = 0
    for _ in range(_MOVES):
        made += cluster.move_leaders(topic)
        load.await_progress()
    return made


def frozen(cluster: Cluster, topic: str, load: Load) -> int:
    """Pause a broker, until the cluster replaces it or for less, and resume it."""
    broker = cluster.kafka.broker(cluster.chance.choice(BROKERS))
    broker.pause()
    try:
        if cluster.chance.random() < 0.5:
            time.sleep(cluster.chance.uniform(0, _SHORT_FREEZE_SECONDS))
        else:
            load.await_progress()
    finally:
        broker.resume()
    load.await_progress()
    cluster.await_in_sync(topic)
    return 1


def cut(cluster: Cluster, topic: str, load: Load) -> int:
    """Cut connections at Produce requests; see `Gate`."""
    del topic
    before = cluster.cuts
    with cluster.cutting(_CUT_RATE):
        time.sleep(_CUT_SECONDS)
        wait_until(lambda: cluster.cuts > before)  # A busy machine sends few requests meanwhile.
        load.await_progress()
    return cluster.cuts - before


def mixed(cluster: Cluster, topic: str, load: Load) -> int:
    """Make all faults in any order, cuts together with others. At most one broker is missing."""
    made, before = 0, cluster.cuts
    for _ in range(_MIX_ACTIONS):
        rate = cluster.chance.choice([0.0, _CUT_RATE / 2, _CUT_RATE])
        act = cluster.chance.choice([killed, moved, frozen, _nothing])
        with cluster.cutting(rate):
            made += act(cluster, topic, load)
    return made + cluster.cuts - before


def _nothing(cluster: Cluster, topic: str, load: Load) -> int:
    del topic
    time.sleep(cluster.chance.uniform(0, _SHORT_FREEZE_SECONDS))
    load.await_progress()
    return 0


FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        "brokers killed and started again": killed,
        "leaders moved": moved,
        "a leader frozen": frozen,
        "connections cut before an answer": cut,
        "all of it at random": mixed,
    }
)
