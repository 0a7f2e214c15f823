"""Random faults, one at a time, each followed by a pause."""

import time
from collections.abc import Callable, Mapping
from random import Random

from tools.reliability.leaders import make_whole
from tools.reliability.writing.cluster import BROKERS, Cluster
from tools.soak.cast import COPYING, DRIVERS, READER, Cast, Diary
from tools.soak.rows import COPIES, ORDERS

_AWAY_SECONDS = 2.0, 12.0
_CUT_SECONDS = 5.0, 15.0
_CUT_RATE = 0.1
_DELAYS_SECONDS = 0.005, 0.05


class Nemesis:
    """A series of faults by a seed."""

    def __init__(self, cluster: Cluster, cast: Cast, diary: Diary, chance: Random) -> None:
        self._cluster, self._cast, self._diary = cluster, cast, diary
        self._chance = chance
        # The number of random draws for details varies. So the order has its own generator.
        self._order = Random(chance.random())
        self._of_brokers: Mapping[str, Callable[[], str]] = {
            "broker killed": self._broker_killed,
            "broker frozen": self._broker_frozen,
            "connections cut": self._cut,
            "broker slowed": self._slowed,
            "leaders moved": self._moved,
        }
        self._actions: Mapping[str, Callable[[], str]] = {
            **self._of_brokers,
            "driver killed": self._driver_killed,
            "Python worker killed": self._worker_killed,
            "consumer killed": self._consumer_killed,
        }
        self._left: list[str] = []

    def spare_processes(self) -> None:
        """Harm only brokers from now on. So processes live for long enough to tell growth."""
        self._actions = self._of_brokers
        self._left = [each for each in self._left if each in self._actions]

    def strike(self) -> None:
        """Make one fault, and repair it. Each round has each fault once."""
        if not self._left:
            self._left = list(self._actions)
            self._order.shuffle(self._left)
        what = self._left.pop()
        whom = self._actions[what]()
        if whom:
            self._diary.note(what, whom)
        make_whole(self._cluster.kafka, ORDERS, COPIES)

    def _wait(self, bounds: tuple[float, float]) -> None:
        time.sleep(self._chance.uniform(*bounds))

    def _broker_killed(self) -> str:
        broker = self._cluster.kafka.broker(self._chance.choice(BROKERS))
        broker.kill()
        self._wait(_AWAY_SECONDS)
        broker.start()
        return f"broker {broker.node_id}"

    def _broker_frozen(self) -> str:
        broker = self._cluster.kafka.broker(self._chance.choice(BROKERS))
        broker.pause()
        try:
            self._wait(_AWAY_SECONDS)
        finally:
            broker.resume()
        return f"broker {broker.node_id}"

    def _cut(self) -> str:
        before = self._cluster.cuts
        with self._cluster.cutting(_CUT_RATE):
            self._wait(_CUT_SECONDS)
        return f"{self._cluster.cuts - before} connections"

    def _slowed(self) -> str:
        node_id = self._chance.choice(BROKERS)
        gate = self._cluster.gates[node_id - 1]
        gate.delay_seconds = self._chance.uniform(*_DELAYS_SECONDS)
        try:
            self._wait(_CUT_SECONDS)
        finally:
            gate.delay_seconds = 0.0
        return f"broker {node_id}"

    def _moved(self) -> str:
        moved = sum(map(self._cluster.move_leaders, (ORDERS, COPIES)))
        return f"{moved} partitions"

    def _driver_killed(self) -> str:
        name = self._chance.choice(DRIVERS)
        self._cast.kill(name)
        return name

    def _worker_killed(self) -> str:
        """Kill a Python worker. Return an empty text if there was none."""
        return COPYING if self._cast.kill_worker(COPYING, self._chance.choice) else ""

    def _consumer_killed(self) -> str:
        self._cast.kill(READER)
        return READER
