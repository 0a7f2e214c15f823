"""The decisions of this process whose transactions it has not all seen committed.

A user's code can swallow the error of a commit and go on. Then tasks of the next micro-batch may
begin new transactions under the same ids, and brokers no longer tell how the decided ones ended.
"""

import threading

from spark_kafka_source.client import KafkaClient
from spark_kafka_source.exactly_once.decision import Decision
from spark_kafka_source.exactly_once.names import Names

# A process that decides under more prefixes than this by turns forgets the oldest.
_MOST = 1_000


class Unsettled:
    """The last decision under each prefix, from before it is made until all of it is committed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._decisions: dict[tuple[object, str], Decision] = {}

    def add(self, client: KafkaClient, names: Names, decision: Decision) -> None:
        """Remember a decision that is about to be made."""
        with self._lock:
            self._decisions.pop(_key(client, names), None)
            self._decisions[_key(client, names)] = decision
            if len(self._decisions) > _MOST:
                del self._decisions[next(iter(self._decisions))]

    def remove(self, client: KafkaClient, names: Names) -> None:
        """Forget a decision of which all is committed."""
        with self._lock:
            self._decisions.pop(_key(client, names), None)

    def has(self, client: KafkaClient, names: Names, decision: Decision) -> bool:
        """Whether this process has made this decision, and not seen all of it committed."""
        with self._lock:
            return self._decisions.get(_key(client, names)) == decision


def _key(client: KafkaClient, names: Names) -> tuple[object, str]:
    return client.config.bootstrap_servers, names.prefix


UNSETTLED = Unsettled()
