"""The producers that an executor's Python worker keeps from one task to the next."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from spark_kafka_source.producer import KafkaProducer, ProducerConfig

IDLE_SECONDS = 600.0
"""How long one is kept that no task takes: about as long as brokers keep idle connections."""

# A worker that writes to more clusters than this in turn connects anew.
_MOST_KEPT = 8
# All that it was given has been written by then.
_CLOSE_SECONDS = 5.0


@dataclass(eq=False, slots=True)
class _Kept:
    producer: KafkaProducer
    timer: threading.Timer


class Producers:
    """Producers that have written all they were given, by their configurations."""

    def __init__(
        self,
        make: Callable[[ProducerConfig], KafkaProducer] = KafkaProducer.of,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._make = make
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._kept: dict[ProducerConfig, _Kept] = {}

    def take(self, config: ProducerConfig) -> KafkaProducer:
        """Return one that belongs to the caller alone until it is put back."""
        with self._lock:
            kept = self._kept.pop(config, None)
        if kept is None:
            return self._make(config)
        kept.timer.cancel()
        return kept.producer

    def put(self, config: ProducerConfig, producer: KafkaProducer) -> None:
        """Keep one that has written all it was given, or close it where there are enough."""
        timer = threading.Timer(self._idle_seconds, self._close_idle, (config, producer))
        timer.daemon = True
        with self._lock:
            is_kept = config not in self._kept and len(self._kept) < _MOST_KEPT
            if is_kept:
                self._kept[config] = _Kept(producer, timer)
        if is_kept:
            timer.start()
        else:
            producer.close(_CLOSE_SECONDS)

    def _close_idle(self, config: ProducerConfig, producer: KafkaProducer) -> None:
        with self._lock:
            kept = self._kept.get(config)
            if kept is None or kept.producer is not producer:
                return  # A task was faster.
            del self._kept[config]
        producer.close(_CLOSE_SECONDS)


kept_producers = Producers()
