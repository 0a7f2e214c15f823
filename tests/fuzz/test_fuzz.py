"""The short run: every seed, and some hundred edits of every seed, keep the promises.

`make fuzz` runs longer. A fixed finding gets a test beside the fixed code. A new kind of input also
becomes a seed.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.protocol import decode, encode
from tests.traced import traced
from tools.fuzz import judge, run
from tools.fuzz.__main__ import Outcome, table
from tools.fuzz.judge import MOST_TIMES, check, finding
from tools.fuzz.mutations import (
    Edit,
    edited,
    pairs_of_bytes,
    pairs_of_numbers,
    random_edits,
    records_edited,
    swept,
)
from tools.fuzz.responses import RESPONSES, bombs
from tools.fuzz.targets import BEFORE_RECORDS, CORPUS, TARGETS, Target

EDITS = st.lists(
    st.builds(
        Edit,
        st.integers(0, 255),
        st.integers(0, 65535),
        st.integers(0, 255),
        st.integers(0, (1 << 32) - 1),
    ),
    min_size=1,
    max_size=4,
)
SLOW = {"pem": 1, "pkcs12": 3, "logs": 4, "handshakes": 5, "protobuf": 4}
"""Number of examples for targets with slow libraries (milliseconds per input)."""

EACH = pytest.mark.parametrize("target", TARGETS.values(), ids=lambda target: target.name)


@EACH
def test_seeds_keep_the_promises(target: Target) -> None:
    for data in target.seeds():
        check(target.name, target.function, data)


@EACH
def test_edited_seeds_keep_the_promises(target: Target) -> None:
    """Each edit applies to every seed, since to draw an edit takes longer than to try it."""
    seeds = target.seeds()

    @settings(
        max_examples=SLOW.get(target.name, 12),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(EDITS)
    def edited_seeds(edits: list[Edit]) -> None:
        for data in seeds:
            changed = target.change(data, edits)[: target.most_bytes]
            found = finding(target.name, target.function, changed)
            assert found is None, f"{found} by {changed.hex()}"

    edited_seeds()


OF_RECORDS = pytest.mark.parametrize("name", ["batches", "rewritten", "recompressed"])


@OF_RECORDS
def test_tiny_batches_keep_the_promises_whatever_byte_is_changed(name: str) -> None:
    target = TARGETS[name]
    for data in target.tiny_seeds():
        for changed in swept(data):
            found = finding(name, target.function, changed)
            assert found is None, f"{found} by {changed.hex()}"


@pytest.mark.parametrize(
    ("seed", "changes", "after"),
    [("tiny-none", pairs_of_bytes, BEFORE_RECORDS), ("tiny-zstd", pairs_of_numbers, 12)],
)
def test_batches_keep_the_promises_whatever_two_places_are_changed(
    seed: str, changes: Callable[[bytes], Iterator[bytes]], after: int
) -> None:
    """The two places are bytes of records, or counts. One length can hide another wrong length."""
    data = (CORPUS / "rewritten" / seed).read_bytes()
    for changed in changes(data[after:]):
        found = finding("rewritten", TARGETS["rewritten"].function, data[:after] + changed)
        assert found is None, f"{found} by {changed.hex()}"


@EACH
def test_inputs_may_be_empty_or_one_byte_long(target: Target) -> None:
    for data in (b"", b"\0", b"\xff"):
        check(target.name, target.function, data)


def test_a_response_full_of_the_smallest_elements_is_within_the_bound() -> None:
    """These responses use the most memory per byte."""
    newest = dict(RESPONSES)  # The last version of each class is the newest.
    times = []
    for message_type, version in newest.items():
        for message in bombs(message_type, version, 500):
            data = encode(message, version)
            decode(message_type, version, data)  # Compile before the measurement.
            with traced() as memory:
                decode(message_type, version, data)
            times.append(memory.peak_bytes / len(data))
    assert 20 < max(times) < MOST_TIMES


def test_the_corpus_stays_small() -> None:
    sizes = [path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(sizes) < 300_000
    assert {path.name for path in CORPUS.iterdir()} < set(TARGETS)


def broken(data: bytes) -> None:
    """A reader that does not check the length of its input."""
    if data[:1] == b"\x07":
        data[data[1]]


def test_a_raw_error_is_found() -> None:
    found = finding("broken", broken, b"\x07\x09")
    assert found is not None
    assert found.error == "IndexError: index out of range"
    assert found.where.startswith("test_fuzz.py:")
    with pytest.raises(AssertionError, match="IndexError"):
        check("broken", broken, b"\x07\x09")


def endless(_: bytes) -> None:
    """A reader that does not advance."""
    while True:
        pass


def test_a_hang_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "MOST_SECONDS", 0.01)
    found = finding("endless", endless, b"")
    assert found is not None
    assert found.error.startswith("HangError")


def greedy(_: bytes) -> None:
    """A reader that trusts a claimed length."""
    assert bytes(100 << 20)


def test_memory_beyond_the_bound_is_found() -> None:
    with pytest.raises(AssertionError):
        check("greedy", greedy, b"")


def test_the_blind_engine_keeps_the_first_of_each_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.fuzz.targets.TARGETS", {"broken": Target("broken", broken)})
    for name in ("corpus", "findings"):
        (tmp_path / name).mkdir()
    (tmp_path / "corpus" / "seed").write_bytes(b"\x07\x01")
    monkeypatch.setattr(run, "_BETWEEN_LOOKS", 2000)
    run.blind("broken", tmp_path, 0.001, seed=1)  # type: ignore[arg-type]  # for one round
    (line,) = (tmp_path / "findings.jsonl").read_text().splitlines()
    kept = tmp_path / "findings" / json.loads(line)["file"]
    assert finding("broken", broken, kept.read_bytes())


def test_outcomes_add_up() -> None:
    outcomes = [Outcome("frames", "blind", "written", 1, 10.0, 1000, 0, 0)] * 2
    outcomes.append(Outcome("batches", "guided", "compiled", 1, 10.0, 500, 1, 2))
    lines = table(outcomes).splitlines()
    assert "| batches | guided | compiled | 10 | 500 | 50 | 1 | 2 |" in lines
    assert "| frames | blind |  | 20 | 2,000 | 100 | 0 | 0 |" in lines
    assert lines[-1] == "| all | | | 30 | 2,500 | | 1 | 2 |"


def test_edits_are_of_all_kinds_and_the_same_for_the_same_numbers() -> None:
    data, random = bytes(range(100)), Random(7)
    drawn = [random_edits(random) for _ in range(500)]
    changed = [edited(data, edits) for edits in drawn]
    assert changed == [edited(data, edits) for edits in drawn]
    lengths = {len(each) for each in changed}
    assert min(lengths) < 50
    assert max(lengths) > 150


def test_a_record_that_is_edited_keeps_the_lengths_right() -> None:
    records = b"\x04ab\x04cd\x04ef"
    removed = records_edited(records, [Edit(1, 0, 1, 0)])
    assert removed == b"\x04ab\x04ef"
    longer = records_edited(records, [Edit(4, 0, 1, 0x01020304)])
    assert longer == b"\x04ab\x08\x01\x02cd\x04ef"
    assert records_edited(b"\xff\xff\xff\xff\xff\xff", []) == b"\xff" * 6
