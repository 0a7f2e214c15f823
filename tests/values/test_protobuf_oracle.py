"""Random files and messages, with evolutions and damage: the same results and faults as upb."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.values import Encoded
from spark_kafka_source.values.typing import ProtobufTyping
from tests.values.protobuf_oracle import agrees, decoded, laid, plain, reader_of
from tests.values.protobuf_schemas import (
    Files,
    evolved,
    file_set,
    filled,
    message_class,
    odd,
)
from tools.fuzz.mutations import edited, random_edits

drawn = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, (1 << 32) - 1)
EACH = pytest.mark.usefixtures("engine")


def typings(random: Random) -> ProtobufTyping:
    return ProtobufTyping(*(random.random() < 0.3 for _ in range(4)))


def sound(random: Random, file: Any, most: int = 6) -> list[bytes]:
    kind = message_class(file)
    return [filled(random, kind()).SerializeToString() for _ in range(random.randint(0, most))]


@EACH
@drawn
@given(SEEDS)
def test_what_was_written_is_read(seed: int) -> None:
    random = Random(seed)
    file, typing = Files(random).file(), typings(random)
    rows = sound(random, file)
    agrees(file, rows, decoded(reader_of(file, typing), rows), typing)


@EACH
@drawn
@given(SEEDS)
def test_odd_bytes_are_read(seed: int) -> None:
    random = Random(seed)
    file = Files(random).file()
    descriptor = message_class(file).DESCRIPTOR
    rows = [odd(random, row, descriptor) for row in sound(random, file)]
    rows += [row + odd(random, row, descriptor) for row in sound(random, file, 2)]
    agrees(file, rows, decoded(reader_of(file), rows))


@EACH
@pytest.mark.parametrize("is_known", [True, False], ids=["registry", "no registry"])
@drawn
@given(SEEDS)
def test_another_file_wrote_it(is_known: bool, seed: int) -> None:
    """Without a registry, fields that the columns lack may stand between any two others."""
    random = Random(seed)
    file = Files(random).file()
    other = evolved(random, file, alike=is_known)
    for writer, reader in ((file, other), (other, file)):
        rows = sound(random, writer)
        agrees(reader, rows, decoded(reader_of(reader), rows, writer if is_known else None))


@EACH
@drawn
@given(SEEDS)
def test_broken_bytes_are_read_as_upb_reads_them_or_bad(seed: int) -> None:
    random = Random(seed)
    file = Files(random).file()
    good, *rest = [*sound(random, file), b""]
    broken = [edited(row, random_edits(random)) for row in rest]
    found = decoded(reader_of(file), [good, *broken, good])
    assert found.status[0] == found.status[-1]
    rows = plain(found.array)
    assert rows[0] == rows[-1]
    agrees(file, [good, *broken, good], found)


@drawn
@given(SEEDS)
def test_rows_of_several_writers_keep_their_places(seed: int) -> None:
    random = Random(seed)
    file = Files(random).file()
    writers = [file, evolved(random, file)]
    of = [random.randint(-1, 1) for _ in range(random.randint(0, 12))]
    kinds = [message_class(each) for each in writers]
    rows = [filled(random, kinds[n]()).SerializeToString() for n in of]
    reader = reader_of(file)
    programs = [reader.program(_bytes(each)) for each in writers]
    found = reader.decode(programs, Encoded(*laid(rows), program_of=np.array(of, np.int64)))
    alone = decoded(reader, rows)
    for place, number in enumerate(of):
        assert (found.status[place] > 0) == (number < 0 or alone.status[place] > 0)
        if number >= 0:
            assert plain(found.array)[place] == plain(alone.array)[place]


def _bytes(file: Any) -> bytes:
    return bytes(file_set(file).SerializeToString())
