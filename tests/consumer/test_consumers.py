"""The helpers of these tests lose no record while they wait."""

from spark_kafka_source.testing.memory import MemoryBroker
from tests.consumer.consumers import T0, consuming, fill, of, poll_all_until, poll_until, polled


def test_what_comes_while_a_test_waits_is_kept_for_it() -> None:
    with MemoryBroker() as broker:
        broker.create_topic("t")
        fill(broker, T0, 1)
        with consuming(broker, T0, max_poll_records=4) as consumer:
            poll_until(consumer, lambda: consumer.position(T0) >= 4)
            assert polled(consumer, 4) == of(T0, range(4))
            poll_until(consumer, lambda: consumer.position(T0) >= 8)
            poll_all_until(consumer, done=lambda: consumer.position(T0) == 10)
            assert polled(consumer, 0) == of(T0, range(4, 10)), "what was kept, without a poll"
            fill(broker, T0, 1)
            assert polled(consumer, 10) == of(T0, range(10, 20)), "nothing is told twice"
