"""Text: UTF-8 is kept, other bytes are malformed, and rows do not affect each other."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.values import Encoded, Fault, TextReader
from tests.values.avro_oracle import laid

_VALUES = st.one_of(
    st.none(), st.binary(max_size=8), st.text(max_size=8).map(lambda text: text.encode())
)


@given(st.lists(_VALUES, max_size=20))
def test_text_is_what_python_decodes(values: list[bytes | None]) -> None:
    data, starts, ends = laid([each or b"" for each in values])
    null = np.array([each is None for each in values], np.bool_)
    found = TextReader().decode([], Encoded(data, starts, ends, null=null))
    expected = [None if each is None else _text(each) for each in values]
    assert found.array.to_pylist() == expected
    found.array.validate(full=True)
    bad = [each is not None and _text(each) is None for each in values]
    assert (found.status == Fault.TEXT).tolist() == bad
    assert all(found.reason(row) == Fault.TEXT.reason for row in np.flatnonzero(bad).tolist())


def test_a_row_without_a_program_is_bad() -> None:
    data, starts, ends = laid([b"a", b"b"])
    found = TextReader().decode([None], Encoded(data, starts, ends, program_of=np.array([0, -1])))
    assert found.array.to_pylist() == ["a", None]
    assert found.status.tolist() == [Fault.OK, Fault.NO_PROGRAM]


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
