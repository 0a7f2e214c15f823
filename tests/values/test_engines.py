"""All engines give equal faults, paths of faults, and columns."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.values import Decoded, Encoded
from spark_kafka_source.values.avro import Program, decode
from tests.fuzz.test_fuzz import EDITS
from tests.values.avro_oracle import laid, program, written
from tests.values.avro_schemas import evolved, records, values
from tests.values.engines import ALL, WRITTEN, using
from tests.values.test_avro_oracle import drawn
from tools.fuzz.mutations import Edit, edited

SOME = pytest.mark.parametrize(
    "engines", [WRITTEN, pytest.param(ALL, marks=pytest.mark.slow)], ids=["written", "compiled"]
)


def agree(
    engines: tuple[str, ...], layout: Any, programs: list[Program], *rows: Any, **more: Any
) -> Decoded:
    """Return the result of the engines. Check that all give the same one."""
    first: Decoded | None = None
    for name in engines:
        with using(name):
            found = decode(layout, programs, Encoded(*rows, **more))
        found.array.validate(full=True)
        if first is None:
            first = found
            continue
        assert found.status.tolist() == first.status.tolist(), name
        assert found.paths == first.paths, name
        same = found.array.equals(first.array)
        assert same or "nan" in str(found.array), name
    assert first is not None
    return first


@SOME
@drawn
@given(st.data(), st.lists(EDITS, max_size=6))
def test_engines_agree_on_broken_bytes(
    engines: tuple[str, ...], data: st.DataObject, edits: list[list[Edit]]
) -> None:
    writer = data.draw(records())
    reader = data.draw(evolved(writer))
    writers = [writer, reader, {**writer, "fields": writer["fields"][::-1]}]
    read_with = program(writer, reader)[0]
    programs = [program(each, reader)[1] for each in writers]
    rows = written(writer, data.draw(st.lists(values(writer), min_size=1, max_size=4)))
    rows += [edited(rows[n % len(rows)], each) for n, each in enumerate(edits)]
    rows += [a[: len(a) // 2] + b[len(b) // 2 :] for a, b in zip(rows, rows[::-1], strict=True)]
    number = st.integers(-1, len(programs) - 1)
    program_of = np.array([data.draw(number) for _ in rows])
    null = np.array([data.draw(st.booleans()) and data.draw(st.booleans()) for _ in rows])
    agree(engines, read_with.layout, programs, *laid(rows), program_of=program_of, null=null)
