"""`produce` with a fake producer: sent columns, counts, and messages."""

import io
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.command_line import produce as command
from spark_kafka_source.command_line.main import main
from spark_kafka_source.errors import KafkaError, KafkaTimeoutError
from spark_kafka_source.producer import BufferFullError, ProducerConfig
from spark_kafka_source.records import Record, RowTooLargeError, UnencodableRowError
from spark_kafka_source.testing.memory import MemoryBroker
from tests.producer.writing import written

BROKER_FAILED = KafkaTimeoutError("no answer from broker 1")


class FakeFuture:
    """A future of columns. A test sets its outcome."""

    def __init__(self, columns: pa.RecordBatch, *, is_known: bool) -> None:
        self.columns, self.is_known = columns, is_known
        self.error: KafkaError | None = None
        self.asked: list[float | None] = []

    def done(self) -> bool:
        return self.is_known

    def exception(self, timeout_seconds: float | None = None) -> KafkaError | None:
        self.asked.append(timeout_seconds)
        if not self.is_known and timeout_seconds is not None:
            raise KafkaTimeoutError("they are on their way")
        return self.error


class FakeProducer:
    """A producer that sends columns unless `take` raises. `futures` has the sent columns."""

    def __init__(self) -> None:
        self.futures: list[FakeFuture] = []
        self.topics: set[str | None] = set()
        self.closed: list[float | None] = []
        self.is_known = True
        self.take: Callable[[pa.RecordBatch], None] = lambda _: None
        self.config: ProducerConfig | None = None

    def of(self, config: ProducerConfig) -> "FakeProducer":
        self.config = config
        return self

    def __enter__(self) -> "FakeProducer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, timeout_seconds: float | None = None) -> None:
        self.closed.append(timeout_seconds)

    def partitions_for(self, topic: str) -> list[Any]:
        self.topics.add(topic)
        return []

    def send_columns(self, topic: str | None, columns: pa.RecordBatch) -> FakeFuture:
        self.take(columns)
        self.topics.add(topic)
        self.futures.append(FakeFuture(columns, is_known=self.is_known))
        return self.futures[-1]

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [row for future in self.futures for row in future.columns.to_pylist()]


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> FakeProducer:
    fake = FakeProducer()
    monkeypatch.setattr(command, "KafkaProducer", fake)
    return fake


class Stdin(io.BytesIO):
    """An input of pieces. A piece may be a function to call first."""

    def __init__(self, *pieces: bytes | Callable[[], object]) -> None:
        super().__init__()
        self._pieces: Iterator[bytes | Callable[[], object]] = iter(pieces)

    def read1(self, _: int | None = -1, /) -> bytes:
        for piece in self._pieces:
            if isinstance(piece, bytes):
                return piece
            piece()
        return b""


Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*pieces: bytes | Callable[[], object], words: tuple[str, ...] = ()) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Stdin(*pieces)))
        return main(["produce", "t", "-b", "a:1", *words])

    return run


Said = Callable[[], str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def said() -> str:
        out, err = capsys.readouterr()
        assert out == ""
        return err

    return said


def values(*texts: str) -> list[dict[str, Any]]:
    return [{"value": each.encode()} for each in texts]


def test_a_line_is_a_record(producer: FakeProducer, run: Run, said: Said) -> None:
    assert run(b"a\nb", b"c\n\nd") == 0
    assert producer.sent == values("a", "bc", "", "d")
    assert producer.topics == {"t"}
    assert said() == "Topic 't': 4 records are written\n"
    assert producer.closed == [None]


def test_nothing_is_nothing(producer: FakeProducer, run: Run, said: Said) -> None:
    assert run() == 0
    assert not producer.futures
    assert said() == "Topic 't': 0 records are written\n"


@pytest.mark.parametrize("separator", [":", r"\t"])
def test_keys(producer: FakeProducer, run: Run, said: Said, separator: str) -> None:
    line = b"k\tv" if separator == r"\t" else b"k:v"
    assert run(line, words=("--key-separator", separator)) == 0
    assert producer.sent == [{"key": b"k", "value": b"v"}]
    assert said() == "Topic 't': 1 record is written\n"


def test_json(producer: FakeProducer, run: Run) -> None:
    assert run(b'{"value": "v", "partition": 3}\n', words=("--json",)) == 0
    assert producer.sent == [{"value": b"v", "partition": 3}]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--json", "--key-separator", ":"), "'--key-separator': has no effect with '--json'"),
        (("--config", "acks=2"), "Option 'acks': found '2'"),
        (("--config", "retires=2"), "'retires' is not an option"),
        (("--config", "lingr.ms=2"), "Option 'lingr.ms': is no configuration of this producer"),
    ],
)
def test_what_is_misused(
    producer: FakeProducer, run: Run, said: Said, words: tuple[str, ...], text: str
) -> None:
    assert run(b"a", words=words) == 2
    assert text in said()
    assert not producer.futures


def test_the_configuration_is_a_producers(producer: FakeProducer, run: Run) -> None:
    assert run(b"a", words=("--config", "acks=1", "--config", "compression.type=lz4")) == 0
    assert producer.config is not None
    assert (str(producer.config.acks), str(producer.config.compression_type)) == ("1", "lz4")


# -- errors ----------------------------------------------------------------------------------------


def test_a_line_that_is_none_ends_it_and_what_is_before_it_is_written(
    producer: FakeProducer, run: Run, said: Said
) -> None:
    assert run(b"a:1\n", b"b:2\nc\nd:4\n", b"e:5\n", words=("--key-separator", ":")) == 1
    assert [row["key"] for row in producer.sent] == [b"a", b"b"]
    assert said() == (
        "spark-kafka-source: Topic 't': Line 3: has no ':' between a key and a value. "
        "2 records are written\n"
    )


def refuse(columns: pa.RecordBatch) -> None:
    """Raise like the producer: the first kind of fault in its order of checks, at its first row."""
    texts = [row["value"] for row in columns.to_pylist()]
    if b"large" in texts:
        raise RowTooLargeError([texts.index(b"large")], "it is too large")
    if b"odd" in texts:
        raise UnencodableRowError([texts.index(b"odd")], "it is odd")


def test_so_does_a_record_that_cannot_be_sent(producer: FakeProducer, run: Run, said: Said) -> None:
    producer.take = refuse
    assert run(b"a\nb\n", b"c\nodd\nd\nlarge\ne\n") == 1
    assert producer.sent == values("a", "b", "c")
    assert said() == ("spark-kafka-source: Topic 't': Line 4: it is odd. 3 records are written\n")


def test_lines_of_json_keep_their_numbers(producer: FakeProducer, run: Run, said: Said) -> None:
    producer.take = refuse
    assert run(b'\n{"value": "a"}\n\n{"value": "large"}\n', words=("--json",)) == 1
    assert producer.sent == values("a")
    assert "Line 4: it is too large. 1 record is written" in said()


def test_what_a_broker_refuses_is_named_by_its_lines(
    producer: FakeProducer, run: Run, said: Said
) -> None:
    """The command waits for later columns, and counts them."""
    producer.is_known = False

    def answer() -> None:
        for future in producer.futures:
            future.is_known = True
        producer.futures[1].error = BROKER_FAILED

    assert run(b"a\nb\n", b"c\nd\n", b"e\n", answer, b"f\n", b"g\n") == 1
    assert producer.sent == values("a", "b", "c", "d", "e", "f")
    assert said() == (
        "spark-kafka-source: Topic 't': Lines 3 to 4: no answer from broker 1. "
        "4 records are written, 2 more may be\n"
    )


def test_no_room_is_named_by_the_lines_that_had_none(
    producer: FakeProducer, run: Run, said: Said
) -> None:
    def full(columns: pa.RecordBatch) -> None:
        if producer.futures:
            raise BufferFullError("no room")

    producer.take = full
    assert run(b"a\n", b"b\nc\n") == 1
    assert "Lines 2 to 3: no room. 1 record is written, 2 more may be" in said()


def test_a_line_that_never_ends(
    producer: FakeProducer, run: Run, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_LONGEST_LINE_BYTES", 10)
    assert run(b"a\n", b"x" * 8, b"x" * 8) == 1
    assert producer.sent == values("a")
    assert "Line 2: is longer than 10 bytes. 1 record is written" in said()


def test_no_more_is_on_the_way_than_half_of_the_memory(producer: FakeProducer, run: Run) -> None:
    """So the command waits where a signal can stop it."""
    producer.is_known = False
    asked_before: list[int] = []
    producer.take = lambda _: asked_before.append(
        sum(bool(future.asked) for future in producer.futures)
    )
    line = b"x" * 400 + b"\n"
    assert run(*[line] * 5, words=("--config", "buffer.memory=2000")) == 0
    assert asked_before == [0, 0, 1, 2, 3]


# -- with a broker ---------------------------------------------------------------------------------


def test_what_tail_shows_it_writes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with MemoryBroker() as broker:
        logs = broker.create_topic("from", 2)
        logs[0].append(Record(b"k", b"\xfe", [("h", b"\xff"), ("h", None)], 1_777_896_000_000))
        logs[1].append(Record(None, b"", [], 1_777_896_000_001), Record(b"a\nb", None, [], 0))
        broker.create_topic("to", 2)
        shown = []
        for words in (["tail", "from"], ["produce", "to"], ["tail", "to"]):
            where = ["--from", "earliest"] if words[0] == "tail" else []
            assert main([*words, *where, "--json", "-b", str(broker.address())]) == 0
            out, err = capsys.readouterr()
            assert err in {"", "Topic 'to': 3 records are written\n"}
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
            shown.append(sorted(out.replace('"topic": "from"', '"topic": "to"').splitlines()))
    assert shown[0] == shown[2]
    assert len(shown[0]) == 3


ODD_JSON = [
    b'{"a":1}', b'{"a": 1}', b'"text"', b"text", b"null", b"5", b"1.10", b"[1e5]", b"1e400",
    b"[NaN]", b'{"a":1,"a":2}', b"\xff", b'"\\ud800"', b'"\\u00e4"', '{"ä":"\u2028"}'.encode(),
    b"[" * 800 + b"]" * 800, b"[" * 100_000, "[]".encode("utf-16"), b"\xef\xbb\xbf[1]", b"",
    b"12345678901234567890", b"1" * 5000, None,
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("text", []),
        ("json", []),
        ("hex", []),
        ("json", ["--config", "value.format=json", "--config", "key.format=json"]),
    ],
)
def test_whatever_tail_shows_is_json_and_the_same_bytes_arrive(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    form: str,
    words: list[str],
) -> None:
    with MemoryBroker() as broker:
        where = ["--json", "-b", str(broker.address())]
        (log,), (copy,) = broker.create_topic("from"), broker.create_topic("to")
        log.append(*(Record(each, each, [("h", each)]) for each in ODD_JSON))
        forms = ["--key", form, "--value", form]
        assert main(["tail", "from", "--from", "earliest", *forms, *where]) == 0
        out = capsys.readouterr().out
        for line in out.splitlines():
            json.loads(line, parse_constant=pytest.fail)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
        assert main(["produce", "to", *words, *where]) == 0
        found = written(copy)
    assert [each.key for each in found] == ODD_JSON
    assert [each.value for each in found] == ODD_JSON
    assert [each.headers for each in found] == [[("h", each)] for each in ODD_JSON]


# -- an early end ----------------------------------------------------------------------------------


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def terminate() -> None:
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(("stop", "status"), [(interrupt, 130), (terminate, 143)])
def test_one_who_is_stopped_says_what_is_written(
    producer: FakeProducer, run: Run, said: Said, stop: Callable[[], None], status: int
) -> None:
    def first_is_written() -> None:
        producer.futures[0].is_known = True

    producer.is_known = False
    assert run(b"a\nb\n", b"c\n", first_is_written, stop, b"d\n") == status
    assert producer.sent == values("a", "b", "c")
    assert said() == "Topic 't': stopped. 2 records are written, 1 more may be\n"
    assert producer.closed == [0, None]


def test_it_is_not_stopped_in_the_middle_of_sending(
    producer: FakeProducer, run: Run, said: Said
) -> None:
    producer.take = lambda _: interrupt()
    assert run(b"a\nb\n", b"c\n") == 130
    assert producer.sent == values("a", "b")
    assert said() == "Topic 't': stopped. 2 records are written\n"


def test_who_is_stopped_twice_waits_no_more(
    producer: FakeProducer, run: Run, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeFuture, "exception", lambda *_: terminate())
    producer.is_known = False
    assert run(b"a\n", interrupt) == 130
    assert said() == "Topic 't': stopped. 0 records are written, 1 more may be\n"
    assert producer.closed == [0, None]


def test_progress_is_seen_on_a_terminal(
    producer: FakeProducer, run: Run, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_PROGRESS_SECONDS", 0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(b"a\nb\n", b"c\n") == 0
    shown = re.split(r"\r|\x1b\[K", said())
    assert [each for each in shown if each] == [
        "0 records are written",
        "2 records are written",
        "Topic 't': 3 records are written\n",
    ]
