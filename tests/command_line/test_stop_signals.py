"""Signals end a command only at safe points."""

import signal
import threading

import pytest

from spark_kafka_source.command_line.stop_signals import Stopped, StopSignals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_where_it_is_allowed_the_first_one_ends_it(number: int) -> None:
    with StopSignals() as stops, pytest.raises(Stopped) as stopped, stops.allowed():
        signal.raise_signal(number)
    assert stopped.value.status == 128 + number


def test_elsewhere_it_waits_until_it_is_allowed() -> None:
    with StopSignals() as stops:
        with stops.allowed():
            pass
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped) as stopped, stops.allowed():
            pytest.fail("it goes on")
    assert stopped.value.status == 143


def test_the_second_ends_it_anywhere() -> None:
    with StopSignals():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Stopped) as stopped:
            signal.raise_signal(signal.SIGINT)
    assert stopped.value.status == 130


def test_afterwards_all_is_as_it_was() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with StopSignals():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_in_another_thread_there_are_none() -> None:
    done = []

    def work() -> None:
        with StopSignals() as stops, stops.allowed():
            done.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.getsignal(signal.SIGTERM)]
