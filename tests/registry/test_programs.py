"""One program for each writer schema, built once, and rows without a program."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.registry import (
    ConfluentFraming,
    Framed,
    Indexes,
    NoFraming,
    RegistryDeniedError,
    RegistryUnavailableError,
    RowPrograms,
    SchemaId,
    SchemaKey,
    SchemaNotFoundError,
    ShippedSchemas,
    WriterPrograms,
    programs,
)
from spark_kafka_source.values import (
    SchemaError,
    SchemaText,
    SchemaType,
    UnresolvableError,
)
from tests.client.clock import Clock
from tests.registry.framing_oracle import laid
from tests.registry.test_framing import by_guid, by_id, message

GUID = UUID(int=9)


def text(of: object) -> SchemaText:
    return SchemaText(SchemaType.AVRO, str(of))


class Reader:
    """A reader whose program is the writer's text and message. "bad" and messages over 1 fail."""

    arrow_type = pa.int64()

    def __init__(self) -> None:
        self.made: Counter[tuple[str, tuple[int, ...]]] = Counter()

    def program(self, writer: SchemaText, message: Sequence[int] = ()) -> Any:
        self.made[writer.text, tuple(message)] += 1
        if writer.text == "bad":
            raise UnresolvableError("a.b", "found a string", "Give a long")
        if any(index > 1 for index in message):
            raise SchemaError("", f"there is no message {list(message)}", "Give one")
        return writer.text, tuple(message)

    def decode(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


class Source:
    """A source of some schemas that counts its requests."""

    def __init__(self, known: dict[SchemaId, str]) -> None:
        self.known, self.asked = known, Counter[SchemaId]()
        self.outage: Exception | None = None

    def schema(self, id: SchemaId) -> SchemaText:
        self.asked[id] += 1
        if self.outage is not None:
            raise self.outage
        if id not in self.known:
            raise SchemaNotFoundError(f"no {id}")
        return text(self.known[id])


def framed(*rows: bytes | None, indexes: Indexes = Indexes.NONE) -> Framed:
    data, starts, ends, null = laid(rows)
    return ConfluentFraming(indexes=indexes).frame(data, starts, ends, null=null)


def of_rows(found: RowPrograms) -> list[Any]:
    """Return the program of each row, or None."""
    if found.program_of is None:
        return [found.programs[0]]
    return [None if place < 0 else found.programs[place] for place in found.program_of.tolist()]


def test_each_schema_has_its_program_made_once() -> None:
    reader, source = Reader(), Source({1: "one", 2: "two", GUID: "guid"})
    writers = WriterPrograms(reader, source)
    rows = framed(by_id(2), by_id(1), None, by_id(2), by_guid(GUID))
    for _ in range(3):
        found = writers.of(rows)
        assert of_rows(found) == [("two", ()), ("one", ()), None, ("two", ()), ("guid", ())]
    assert (found.key(0), found.key(2)) == (SchemaKey(2), None)
    assert set(source.asked.values()) == set(reader.made.values()) == {1}


def test_rows_of_one_schema_need_no_numbers() -> None:
    writers = WriterPrograms(Reader(), Source({1: "one"}))
    for rows in (framed(by_id(1), by_id(1)), framed(by_id(1), None)):
        found = writers.of(rows)
        assert (found.programs, found.program_of) == ((("one", ()),), None)
    assert writers.of(framed(by_id(1), b"{}")).program_of is not None


def test_without_a_framing_there_is_the_schema_that_is_shipped() -> None:
    data, starts, ends, null = laid([b"a", None])
    rows = NoFraming(SchemaKey(0)).frame(data, starts, ends, null=null)
    found = WriterPrograms(Reader(), ShippedSchemas({0: text("given")})).of(rows)
    assert (found.programs, found.program_of) == ((("given", ()),), None)


def test_what_is_bad_says_why() -> None:
    reader, source = Reader(), Source({1: "one", 2: "bad"})
    writers = WriterPrograms(reader, source)
    rows = framed(by_id(1), by_id(2), by_id(3), b"{}", by_id(2), None)
    for _ in range(3):
        found = writers.of(rows)
        assert of_rows(found) == [("one", ()), None, None, None, None, None]
        assert found.reason(1) == found.reason(4)
        assert found.reason(1) == "schema 2: Schema, at a.b: found a string. Give a long"
        assert found.reason(2) == "the registry has no schema 3"
        assert found.reason(3) == "no schema id, found 7b"
        assert [found.key(row) for row in range(3)] == [SchemaKey(id) for id in (1, 2, 3)]
    assert source.asked == {1: 1, 2: 1, 3: 1}
    # A later batch asks again: the schema may be registered by then.
    source.known[3] = "three"
    assert of_rows(WriterPrograms(reader, source).of(rows))[2] == ("three", ())


def test_only_bad_rows() -> None:
    found = WriterPrograms(Reader(), Source({})).of(framed(by_id(3), b"{}"))
    assert found.programs == ()
    assert found.program_of is not None
    assert found.program_of.tolist() == [-1, -1]


@pytest.mark.parametrize("error", [RegistryUnavailableError("503"), RegistryDeniedError("401")])
def test_an_outage_is_no_bad_row(error: Exception) -> None:
    source = Source({1: "one", 2: "two"})
    writers = WriterPrograms(Reader(), source)
    assert of_rows(writers.of(framed(by_id(1)))) == [("one", ())]
    source.outage = error
    assert of_rows(writers.of(framed(by_id(1)))) == [("one", ())]
    with pytest.raises(type(error)):
        writers.of(framed(by_id(1), by_id(2)))
    source.outage = None
    assert of_rows(writers.of(framed(by_id(1), by_id(2)))) == [("one", ()), ("two", ())]


def test_what_was_unknown_is_asked_for_again_after_a_while() -> None:
    source, clock = Source({1: "one"}), Clock()
    writers = WriterPrograms(Reader(), source, clock=clock.monotonic)
    rows = framed(by_id(2), by_id(1))
    for share, asked in ((0, 1), (0.9, 1), (0.2, 2), (0.9, 2)):
        clock.now_seconds += share * programs.UNKNOWN_SECONDS
        found = writers.of(rows)
        assert (of_rows(found), found.reason(0)) == (
            [None, ("one", ())],
            "the registry has no schema 2",
        )
        assert source.asked == {1: 1, 2: asked}
    source.known[2] = "two"
    clock.now_seconds += programs.UNKNOWN_SECONDS
    assert of_rows(writers.of(rows)) == [("two", ()), ("one", ())]


def test_after_any_garbage_a_new_schema_is_found() -> None:
    source = Source({1: "one", 7_777: "late"})
    writers = WriterPrograms(Reader(), source)
    rows = framed(by_id(1), *(by_id(id) for id in range(10_000, 13_000)), by_id(7_777))
    assert of_rows(writers.of(rows)) == [("one", ()), *[None] * 3_000, ("late", ())]
    assert set(source.asked.values()) == {1}


def test_where_the_first_bad_row_is_enough_garbage_is_only_so_many_questions() -> None:
    source = Source({1: "one", 7_777: "late"})
    writers = WriterPrograms(Reader(), source, most_unknown=100)
    found = writers.of(framed(by_id(1), *(by_id(id) for id in range(1_000, 1_200))))
    assert len(source.asked) == 101
    assert found.reason(1) == "the registry has no schema 1000"
    assert found.reason(150) == "the schema 1149 is not looked for, after 100 unknown ones"
    # Of other rows it says nothing.
    assert of_rows(writers.of(framed(by_id(1), by_id(7_777)))) == [("one", ()), ("late", ())]


def test_answers_that_come_one_by_one_have_an_end() -> None:
    """Each takes longer than an id stays unknown, and other rows come between."""
    source, clock, later = Source({1: "one", 9: "nine"}), Clock(), set[SchemaId]()

    class OneByOne:
        def schema(self, id: SchemaId) -> SchemaText:
            if id in later:
                later.remove(id)
                return source.schema(id)
            later.add(id)
            raise LookupError

    writers = WriterPrograms(Reader(), OneByOne(), clock=clock.monotonic)
    rows, others = framed(*(by_id(id) for id in range(2, 10))), framed(by_id(1))
    for _ in range(8):
        with pytest.raises(LookupError):
            writers.of(rows)
        clock.now_seconds += 2 * programs.UNKNOWN_SECONDS
        with suppress(LookupError):
            writers.of(others)
    assert of_rows(writers.of(rows)) == [*[None] * 7, ("nine", ())]
    assert set(source.asked.values()) == {1}
    # The next rows with these ids are asked for anew.
    with pytest.raises(LookupError):
        writers.of(rows)


def test_messages_of_an_unknown_schema_are_one_question() -> None:
    source = Source({})
    writers = WriterPrograms(Reader(), source)
    rows = [by_id(5, message(index)) for index in range(300)]
    writers.of(framed(*rows, indexes=Indexes.ZIGZAG))
    assert source.asked == {5: 1}


def test_messages_that_a_schema_does_not_have_are_only_so_much_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(programs, "MOST_KEPT", 50)
    reader, source = Reader(), Source({5: "five"})
    writers = WriterPrograms(reader, source)
    good = framed(by_id(5, message(1)), indexes=Indexes.ZIGZAG)
    assert of_rows(writers.of(good)) == [("five", (1,))]
    rows = [by_id(5, message(index)) for index in range(2, 500)]
    found = writers.of(framed(*rows, indexes=Indexes.ZIGZAG))
    assert found.reason(0).startswith("schema 5: Schema, at the top: there is no message [2]")
    assert found.reason(400) == "the schema 5, after 100 of its messages were of no use"
    assert len(reader.made) == 101
    # They have not displaced useful programs.
    assert of_rows(writers.of(good)) == [("five", (1,))]
    assert reader.made["five", (1,)] == 1


def test_what_is_put_out_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_KEPT", 3)
    source = Source({id: str(id) for id in range(10)})
    writers = WriterPrograms(Reader(), source)
    garbage = framed(*(by_id(id) for id in range(500, 700)))
    for _ in range(2):
        found = writers.of(framed(*(by_id(id) for id in range(10))))
        assert of_rows(found) == [(str(id), ()) for id in range(10)]
        writers.of(garbage)


def test_shipped_schemas_come_before_others() -> None:
    source = Source({1: "not this one", 2: "two"})
    shipped = ShippedSchemas({1: text("one")}, source)
    assert (shipped.schema(1), shipped.schema(2)) == (text("one"), text("two"))
    assert source.asked == {2: 1}
    with pytest.raises(SchemaNotFoundError):
        shipped.schema(3)
    with pytest.raises(SchemaNotFoundError, match="the schema 2 is not among the 1 known"):
        ShippedSchemas({1: text("one")}).schema(2)


@given(st.lists(st.one_of(st.none(), st.integers(0, 6)), max_size=20))
def test_no_row_has_an_influence_on_another(ids: list[int | None]) -> None:
    known: dict[SchemaId, str] = {0: "zero", 1: "one", 2: "bad", 3: "three"}
    rows = framed(*(None if id is None else by_id(id) for id in ids))
    found = WriterPrograms(Reader(), Source(known)).of(rows)
    for row, id in enumerate(ids):
        alone = WriterPrograms(Reader(), Source(known)).of(
            framed(None if id is None else by_id(id))
        )
        if found.program_of is None:
            expected = [found.programs[0] if id is not None else None]
        else:
            expected = [of_rows(found)[row]]
        assert (of_rows(alone) if id is not None else [None]) == expected
        if expected == [None] and id is not None:
            assert found.reason(row) == alone.reason(0)


def test_rows_that_describe_themselves_need_no_schema_that_is_there() -> None:
    source = Source({1: "one", 2: "bad"})
    writers = WriterPrograms(Reader(), source, needs_schemas=False)
    rows = framed(by_id(1), by_id(2), by_id(3))
    for _ in range(2):
        assert of_rows(writers.of(rows)) == [("one", ()), None, ("", ())]
    assert source.asked == {1: 1, 2: 1, 3: 1}
