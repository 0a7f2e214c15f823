"""Random types and texts, with damage: texts give the same results together and alone."""

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.values import Decoded, Encoded
from spark_kafka_source.values.ddl import array_of
from spark_kafka_source.values.json import JsonReader, compiled, fast, kernels
from spark_kafka_source.values.json.compiled import Kernels
from tests.values import json_values
from tests.values.avro_oracle import laid, plain
from tests.values.json_values import FAST_STRUCTS, LEAVES, STRUCTS, TYPES, rows
from tools.fuzz.judge import replaced

drawn = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
ONE_BY_ONE = 1 << 60


class Strict:
    """An array that refuses negative indices. numpy would count them from the end."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def _checked(self, index: Any) -> Any:
        for place, size in zip(np.atleast_1d(index), self.array.shape, strict=True):
            assert 0 <= place < size
        return index

    def __getitem__(self, index: Any) -> Any:
        return self.array[self._checked(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[self._checked(index)] = value


def strict(kernel: Callable[..., int]) -> Callable[..., int]:
    def checked(*arrays: Any) -> int:
        return kernel(*map(Strict, arrays))

    return checked


AS_WRITTEN = Kernels(strict(kernels.tokenize), strict(kernels.copy_texts))


@cache
def machine_code() -> Kernels | None:
    return compiled.load() if find_spec("numba") else None


ENGINES: dict[str, tuple[int, Callable[[], Kernels | None]]] = {
    "pyarrow": (1, lambda: None),
    "pyarrow and row by row": (3, lambda: None),
    "tokens": (1, lambda: AS_WRITTEN),
    "compiled": (1, machine_code),
}
BY_EACH = pytest.mark.parametrize(
    "engine",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "compiled")) for name in ENGINES],
)
"""All engines. Compiling takes a while on a machine without a cache of it."""


def decoded(
    reader: JsonReader, texts: Sequence[bytes], few: int, with_kernels: Kernels | None = None
) -> Decoded:
    with replaced(fast, "FEW", few), replaced(compiled, "kernels", lambda _: with_kernels):
        found = reader.decode([None], Encoded(*laid(texts)))
    found.array.validate(full=True)
    assert found.array.type == reader.arrow_type
    assert len(found.array) == len(texts)
    return found


def by(engine: str, reader: JsonReader, texts: Sequence[bytes]) -> Decoded:
    few, load = ENGINES[engine]
    return decoded(reader, texts, few, load())


def same(one: Decoded, other: Decoded) -> None:
    assert one.status.tolist() == other.status.tolist()
    assert one.paths == other.paths
    values = plain(one.array)
    assert values == plain(other.array)
    # A dictionary would hide a repeated key of a map.
    assert one.array.equals(other.array) or "nan" in str(values)


@BY_EACH
@drawn
@given(st.data())
def test_rows_are_read_together_as_each_is_by_itself(engine: str, data: st.DataObject) -> None:
    kind = data.draw(FAST_STRUCTS if engine.startswith("pyarrow") else TYPES)
    texts = data.draw(rows(kind))
    reader = JsonReader(kind)
    assert reader._fast.can_read or not engine.startswith("pyarrow")
    same(by(engine, reader, texts), decoded(reader, texts, ONE_BY_ONE))


@BY_EACH
@drawn
@given(st.data())
def test_columns_of_one_type_are_read_as_each_value_is(engine: str, data: st.DataObject) -> None:
    kind = data.draw(LEAVES)
    values = data.draw(st.lists(json_values.texts(kind), max_size=40))
    texts = [f'{{"a":{value}}}'.encode() for value in values]
    reader = JsonReader(pa.struct([("a", kind)]))
    same(by(engine, reader, texts), decoded(reader, texts, ONE_BY_ONE))


TRICKS = {
    "two rows make one, and one two": [b'{"a":[', b'{"b":1}]}', b"{}{}"],
    "a string over the end of a row": [b'{"a":"x}', b'{","b":1}', b"{}{}"],
    "the end of all in the middle": [b"{}{}", b"{}\0", b"{}"],
    "more ends than begins": [b"{}}", b"{{}", b"{}"],
    "null between objects": [b"{}null{}", b"{}"],
    "nothing but null": [b"null", b"null"],
    "a field of whatever is around": [b'{"a":[]},"w":{}', b"{}"],
    "a comment over the end of a row": [b"{}/*{}", b"{*/}", b"{}{}"],
    "a list that is given up": [b'{"a":[{"b":5},{"b":6},', b'{"a":[null,{}]}'],
    "a list twice": [b'{"a":[{"b":5}],"a":[{"b":6}]}', b'{"a":[{}]}'],
    "a number, then null": [b'{"b":5,"b":null}', b'{"b":null,"b":6}'],
    "bytes that go on in the next row": [b'{"x":"\xe2\x82"}', b'{"x":"\xac"}'],
}


@BY_EACH
@pytest.mark.parametrize("texts", TRICKS.values(), ids=TRICKS)
def test_no_row_has_an_influence_on_another(engine: str, texts: list[bytes]) -> None:
    kind = pa.struct([("a", array_of(pa.struct([("b", pa.int64())]))), ("b", pa.int64())])
    reader = JsonReader(kind)
    whole = [b'{"b":7}', *texts, b'{"b":8}']
    found = by(engine, reader, whole)
    same(found, decoded(reader, whole, ONE_BY_ONE))
    assert plain(found.array)[0] == {"a": None, "b": 7}
    assert plain(found.array)[-1] == {"a": None, "b": 8}


@BY_EACH
def test_doubles_are_exact(engine: str) -> None:
    random = Random(7)
    digits = [f"{random.random() * 10 ** random.randint(-3, 3)!r}" for _ in range(300)]
    digits += [f"{random.getrandbits(60)}e{random.randint(-30, 30)}" for _ in range(300)]
    found = by(engine, JsonReader(pa.struct([("a", pa.float64())])),
               [f'{{"a":{each}}}'.encode() for each in digits])  # fmt: skip
    assert plain(found.array) == [{"a": repr(float(each))} for each in digits]


EDGES = bytes.fromhex("41 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 ff")
ENDS = bytes.fromhex("41 80 bf c2")


@BY_EACH
def test_bytes_are_text_where_python_says_so(engine: str) -> None:
    parts = [*product(EDGES, ENDS), *product(EDGES[8:], EDGES, ENDS)]
    texts = [bytes(each) for each in [*parts, *product(EDGES[-6:], EDGES, ENDS[:3], ENDS[:3])]]
    reader = JsonReader(pa.struct([("a", pa.string())]))
    found = by(engine, reader, [b'{"a":"' + text + b'"}' for text in texts])
    sound = [text.decode(errors="replace").encode() == text for text in texts]
    assert (found.status == 0).tolist() == sound
    kept = [text.decode() for text, is_sound in zip(texts, sound, strict=True) if is_sound]
    assert [row["a"] for row in found.array.to_pylist() if row] == kept


@drawn
@given(st.data())
def test_fields_are_read_as_they_are_among_all(data: st.DataObject) -> None:
    """This holds for valid rows. A row with another wrong field is valid without this field."""
    kind = data.draw(STRUCTS)
    texts = data.draw(rows(kind))
    name = data.draw(st.sampled_from([each.name for each in kind if "." not in each.name] or [""]))
    if not name:
        return
    whole = decoded(JsonReader(kind), texts, ONE_BY_ONE)
    part = decoded(JsonReader(kind, [name]), texts, 1)
    for row, fault in enumerate(whole.status.tolist()):
        if not fault:
            assert not part.status[row]
    sound = pa.array(whole.status == 0, pa.bool_())
    column = plain(whole.array.filter(sound))
    only = plain(part.array.filter(sound))
    assert only == [each and {name: each[name]} for each in column]
