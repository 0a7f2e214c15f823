"""The demo that kills its driver: what it counts, how it ends, and what it leaves behind."""

import re
import signal
from pathlib import Path

import psutil
import pytest

from spark_kafka_source.demo.events import Written
from spark_kafka_source.demo.exactly_once import _claims, _Copy, _Open, _said_of
from tests.command_line.test_process import ctrl_c_ends_processes
from tests.demo.processes import OTHER_SPARK, read_until, started
from tests.testing.processes import still_there

__all__ = ["ctrl_c_ends_processes"]

MODULE = "spark_kafka_source.demo.exactly_once"
ONCE, AT_LEAST = _Copy(10, 10, 12), _Copy(13, 10, 13)


def failed(
    acknowledged: int = 10, events: int = 10, once: _Copy = ONCE, at_least: _Copy = AT_LEAST
) -> list[str]:
    claims = _claims(Written(10, acknowledged), events, once, at_least)
    assert len(claims) == 3
    return [text for holds, text in claims if not holds]


def test_what_does_not_hold_is_said() -> None:
    assert failed() == []
    assert failed(acknowledged=9) == ["produced: 10 events into 'events', 9 acknowledged"]
    assert len(failed(events=9)) == 1
    (lost,) = failed(once=_Copy(9, 9, 9))
    assert "1 events are lost, 0 are doubled" in lost
    (doubled,) = failed(once=_Copy(12, 10, 12))
    assert "0 events are lost, 2 are doubled" in doubled
    assert len(failed(once=_Copy(10, 9, 10))) == 1
    (lost,) = failed(at_least=_Copy(12, 9, 12))
    assert lost.startswith("at least once: 12 rows")


def test_that_no_row_was_doubled_by_chance_is_said() -> None:
    texts = [_claims(Written(10, 10), 10, ONCE, each)[-1][1] for each in (AT_LEAST, ONCE)]
    assert ["no kill came between" in text for text in texts] == [False, True]


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (_Open(), "no transaction is open"),
        (
            _Open(("a",), 0, 1_000),
            "1 transaction open, 1,000 rows: not decided, the next driver aborts it",
        ),
        (
            _Open(("a", "b"), 2, 9),
            "2 transactions open, 9 rows: decided, the next driver commits them",
        ),
        (
            _Open(("a", "b", "c"), 2, 9),
            "3 transactions open, 9 rows: 2 decided, the next driver commits these alone",
        ),
    ],
)
def test_what_a_killed_driver_leaves_open_is_said(left: _Open, said: str) -> None:
    assert _said_of(left) == said


KILL = (
    r"SIGKILL to the \d+ processes of driver 1, (amid micro-batch \d+|between two micro-batches):"
)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_it_kills_a_driver_and_counts(tmp_path: Path) -> None:
    with started("-m", MODULE, "--kills", "1", TMPDIR=str(tmp_path)) as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert re.search(KILL, said)
    assert re.search(r"driver 2 has (.* of them, and )?finished micro-batch \d", said)
    # Three micro-batches of 1,200 rows for each driver.
    assert "yes  produced: 7,200 events into 'events', 7,200 acknowledged" in said
    assert "yes  exactly once: 7,200 rows, read with read_committed:\n" in said
    assert "       0 events are lost, 0 are doubled\n" in said
    assert "yes  at least once: " in said
    assert [line for line in said.splitlines() if len(line) > 80 and " -m " not in line] == []
    assert list(tmp_path.iterdir()) == []


# Records of the copy are deleted before they are counted.
ONE_IS_LOST = """
import sys
from spark_kafka_source.demo import exactly_once
from spark_kafka_source.topic_partition import TopicPartition

counted = exactly_once._counted

def less(stage, written):
    stage.kafka.delete_records({TopicPartition("events-exactly-once", 0): 1})
    return counted(stage, written)

exactly_once._counted = less
sys.argv[1:] = ["--kills", "0"]
sys.exit(exactly_once.main())
"""


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
def test_a_lost_row_is_seen_and_ends_it_with_1() -> None:
    with started("-c", ONE_IS_LOST, **OTHER_SPARK) as process:
        said, _ = process.communicate()
    assert "NO   exactly once: 3,599 rows, read with read_committed:\n" in said
    assert "       1 events are lost, 0 are doubled\n" in said
    assert process.returncode == 1


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize(
    "word",
    ["micro-batch 0", pytest.param("driver 1 starts", marks=pytest.mark.reliability_full)],
    ids=["copying", "starting"],
)
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_no_process_is_left(word: str, sign: signal.Signals, tmp_path: Path) -> None:
    with started("-m", MODULE, TMPDIR=str(tmp_path)) as process:
        read_until(process, word)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(sign)
        said, errors = process.communicate()
        assert process.returncode == (0 if sign == signal.SIGINT else -sign)
        assert ("Ctrl-C: the demo stops" in said) == (sign == signal.SIGINT)
        assert errors == ""
        assert not still_there(children)
    if sign == signal.SIGINT:
        assert list(tmp_path.iterdir()) == []
