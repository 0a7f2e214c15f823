"""Waits that another thread can end."""

import threading

from spark_kafka_source.net import Deadline, Wakeup, readable

AT_ONCE, PATIENTLY = 0, 20_000


def test_a_wait_is_ended_from_elsewhere() -> None:
    wakeup = Wakeup()
    threading.Timer(0.01, wakeup.wake).start()
    assert readable([wakeup], Deadline.after_ms(PATIENTLY)) == [wakeup]
    wakeup.close()


def test_it_wakes_until_it_is_cleared_however_often_it_was_called() -> None:
    wakeup = Wakeup()
    assert readable([wakeup], Deadline.after_ms(AT_ONCE)) == []
    for _ in range(3_000):
        wakeup.wake()
    for _ in range(2):
        assert readable([wakeup], Deadline.after_ms(AT_ONCE)) == [wakeup]
    wakeup.clear()
    assert readable([wakeup], Deadline.after_ms(AT_ONCE)) == []
    wakeup.wake()
    assert readable([wakeup], Deadline.after_ms(AT_ONCE)) == [wakeup]
    wakeup.close()


def test_once_closed_it_holds_nobody_up_and_raises_nothing() -> None:
    wakeup = Wakeup()
    wakeup.close()
    wakeup.close()
    wakeup.wake()
    wakeup.clear()
    assert readable([wakeup], Deadline.after_ms(PATIENTLY)) == [wakeup]
