"""The size and the fingerprint of rows do not depend on how they are divided."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_kafka_source.records.batch import crc32c
from spark_kafka_source.records.fingerprint import FINGERPRINTS, fingerprint_of, size_of

BYTES = pa.binary()
Rows = list[tuple[Any, Any]]
ROWS: Rows = [(b"k", b"v1"), (None, b"v2"), (b"", b""), (b"k", None)]
WIDTHS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
LENGTHS = [*range(40), *(16 * width + more for width in WIDTHS for more in (-1, 0, 1)), 5_000]


def batch(rows: Rows, kind: pa.DataType = BYTES) -> pa.RecordBatch:
    keys, values = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict(
        {"key": pa.array(keys, kind), "value": pa.array(values, kind)}
    )


def values(*texts: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array(texts)})


# -- the definition, in plain Python ---------------------------------------------------------------


def mixed(word: int) -> int:
    for constant in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = (word ^ word >> 33) * constant % (1 << 64)
    return word ^ word >> 33


ODD = [mixed(number) | 1 for number in range(1, 515)]


def added(text: bytes) -> int:
    words = [int.from_bytes(text[at : at + 8], "little") for at in range(0, len(text), 8)]
    sums = (odd * (word ^ word >> 29) for odd, word in zip(ODD[2:], words, strict=False))
    return sum(sums)


def number(text: bytes | None) -> int:
    """Return the number of a key or a value."""
    if text is None:
        return -ODD[0]
    length = len(text)
    if length > 16 * WIDTHS[-1]:
        return length * ODD[0] + crc32c(text)
    if length < 8:
        return length * ODD[0] + added(text)
    width = next(each for each in WIDTHS if 16 * each >= length)
    return length * ODD[0] + added(text[: 8 * width] + text[-8 * width :])


def slow(rows: Rows) -> int:
    return (
        sum(mixed((number(key) * ODD[1] + number(value)) % (1 << 64)) for key, value in rows)
        % FINGERPRINTS
    )


# -- the rows --------------------------------------------------------------------------------------


def drawn(random: Random) -> Rows:
    """Return rows of all kinds of length, or of few kinds."""
    lengths = random.choice([LENGTHS, range(5_001), range(8), [150], [3, 150, 5_000]])

    def text() -> bytes | None:
        return random.randbytes(random.choice(lengths)) if random.random() < 0.9 else None

    return [(text(), text()) for _ in range(random.randrange(60))]


@pytest.mark.parametrize("seed", range(40))
def test_drawn_rows_in_any_order_and_division_have_the_fingerprint_of_the_definition(
    seed: int,
) -> None:
    random = Random(seed)
    rows = drawn(random)
    expected = slow(rows)
    random.shuffle(rows)
    for kind in (BYTES, pa.large_binary()):
        whole = batch([*ROWS, *rows, *ROWS], kind).slice(len(ROWS), len(rows))
        at = random.randrange(len(rows) + 1)
        parts = whole.slice(0, at), whole.slice(at)
        assert fingerprint_of(whole) == expected
        assert sum(map(fingerprint_of, parts)) % FINGERPRINTS == expected
        assert size_of(whole) == sum(len(text or b"") for row in rows for text in row)


def test_more_rows_than_are_read_at_once() -> None:
    rows = [(b"%d" % row, b"%0*d" % (row % 300, row)) for row in range(10_000)]
    assert fingerprint_of(batch(rows)) == slow(rows)


def test_no_version_has_another_fingerprint() -> None:
    """It is kept in decisions."""
    rows = [(b"k", b"v"), (None, bytes(range(200)))]
    assert fingerprint_of(batch(rows)) == 2262312499661518459


def test_texts_are_their_bytes_and_no_column_of_keys_is_null_keys() -> None:
    for kind in (pa.string(), pa.large_string()):
        assert fingerprint_of(batch([("k", "é")], kind)) == slow([(b"k", "é".encode())])
    assert fingerprint_of(values("a", "bc")) == slow([(None, b"a"), (None, b"bc")])
    nulls = pa.RecordBatch.from_pydict({"key": pa.nulls(2), "value": ["a", "bc"]})
    assert fingerprint_of(nulls) == fingerprint_of(values("a", "bc"))
    hidden = pa.Array.from_buffers(
        BYTES, 2, [pa.py_buffer(b"\2"), *pa.array([b"x", b"y"]).buffers()[1:]]
    )
    bytes_of_a_null = pa.RecordBatch.from_pydict({"value": hidden})
    assert fingerprint_of(bytes_of_a_null) == slow([(None, None), (None, b"y")])


def test_the_size_is_that_of_keys_and_values() -> None:
    assert size_of(batch(ROWS)) == 6
    assert size_of(batch([("k", "é")], pa.string())) == 3
    assert size_of(values("a", "bc")) == 3
    assert size_of(batch([(None, None)])) == 0


@pytest.mark.parametrize("length", LENGTHS)
def test_one_changed_bit_of_any_byte_changes_the_fingerprint(length: int) -> None:
    """All rows together are a change of each byte. No two of them may have the same number."""
    random = Random(length)
    text = random.randbytes(length)
    places = range(length) if length < 300 else random.sample(range(length), 300)
    for bit in (1, 128, 1 << random.randrange(8)):
        changed = [text[:at] + bytes([text[at] ^ bit]) + text[at + 1 :] for at in places]
        texts = [text, text + b"\0", b"\0" + text, *changed]
        found = {fingerprint_of(batch([(None, each)])) for each in texts}
        assert len(found) == len(set(texts))


def test_the_last_bytes_of_two_words_change_independently() -> None:
    """They are the ones of two big-endian numbers, and the highest bytes of the words."""
    texts = [
        one.to_bytes(8, "big") + other.to_bytes(8, "big")
        for one in range(64)
        for other in range(64)
    ]
    assert len({fingerprint_of(batch([(None, each)])) for each in texts}) == len(texts)
    pairs = [(each[:8], each[8:]) for each in texts]
    assert len({fingerprint_of(batch([each])) for each in pairs}) == len(texts)


@pytest.mark.parametrize("length", [8, 24, 48])
def test_two_bits_that_change_at_like_places(length: int) -> None:
    """As the signs of two floats. Some words of these rows count twice."""
    bits = range(8 * length)
    changes = {1 << one | 1 << other for one in bits for other in bits if (one - other) % 8 == 0}
    texts = [change.to_bytes(length, "little") for change in (0, *changes)]
    assert len({fingerprint_of(batch([(None, each)])) for each in texts}) == len(texts)


@pytest.mark.parametrize(
    ("some", "others"),
    [
        ([(b"k", b"v")], [(b"k", b"w")]),
        ([(b"k", b"v")], [(b"v", b"k")]),
        ([(b"k", b"v")], [(b"kv", b"")]),
        ([(b"k", None)], [(None, b"k")]),
        ([(b"k", None)], [(b"k", b"")]),
        ([(None, b"v")], [(b"", b"v")]),
        ([(None, None)], [(b"", b"")]),
        ([(b"a", b"1"), (b"b", b"2")], [(b"a", b"2"), (b"b", b"1")]),
        ([(b"a", b"1" * 150), (b"b", b"2" * 150)], [(b"a", b"2" * 150), (b"b", b"1" * 150)]),
        ([(b"a", b"1")], [(b"a", b"1")] * 2),
    ],
)
def test_other_rows_have_another_fingerprint(some: Rows, others: Rows) -> None:
    assert fingerprint_of(batch(some)) != fingerprint_of(batch(others))
