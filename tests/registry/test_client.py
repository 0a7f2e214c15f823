"""A registry's client with a correct registry."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from spark_kafka_source.errors import ClosedError, ConfigurationError
from spark_kafka_source.net import Deadline
from spark_kafka_source.registry import (
    RegisteredSchema,
    RegistryClient,
    SchemaId,
    SchemaNotFoundError,
    SchemaReference,
    cache,
)
from spark_kafka_source.registry.cache import SharedCache
from spark_kafka_source.registry.client import MOST_KEPT
from spark_kafka_source.registry.schemas import ApicurioId
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType
from tests.client.clock import Clock
from tests.consumer.consumers import eventually
from tests.registry.conftest import MakeClient
from tests.registry.server import Reply, TestRegistry, Then, error, schema, version

GUID = UUID("01234567-89ab-cdef-0123-456789abcdef")
LONG = SchemaText(SchemaType.AVRO, '"long"')
KIND = "application/vnd.schemaregistry.v1+json"


def test_a_schema_is_asked_for_once(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("/schemas/ids/7", schema())
    assert client.schema(7) == client.schema(7) == LONG
    assert client.by_id(7) == RegisteredSchema(7, None, None, LONG)
    (asked,) = registry.asked
    assert asked.method == "GET"
    assert asked.headers["Accept"].startswith(KIND)
    assert asked.headers["Host"] == registry.url.removeprefix("http://")
    assert "Authorization" not in asked.headers


def test_the_connection_is_kept(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("*", schema())
    for id in range(20):
        client.schema(id)
    assert len(registry.asked) == 20
    assert len(registry.links) == 1


def test_a_kept_connection_that_was_closed_over_there_is_made_anew(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("*", Reply(json={"schema": "1"}, headers={"Connection": "close"}), schema("2"))
    assert [client.schema(id).text for id in (1, 2)] == ["1", "2"]
    assert len(registry.links) == 2


def test_guids_have_a_path_of_their_own(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on(f"/schemas/guids/{GUID}", schema(schemaType="JSON", guid=str(GUID)))
    assert client.by_id(GUID) == RegisteredSchema(
        GUID, None, None, SchemaText(SchemaType.JSON, '"long"')
    )


def test_versions_are_kept_and_the_latest_is_not(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("/subjects/s/versions/latest", version("1", 5, 1), version("2", 6, 2))
    registry.on("/subjects/s/versions/1?deleted=true", version("1", 5, 1))
    latest = [client.by_subject("s") for _ in range(2)]
    assert [(each.id, each.version, each.schema.text) for each in latest] == [
        (5, 1, "1"),
        (6, 2, "2"),
    ]
    assert client.by_subject("s", 1) == client.by_subject("s", 1) == latest[0]
    assert len(registry.asked) == 3


@pytest.mark.parametrize(
    ("subject", "path"),
    [
        ("orders-value", "orders-value"),
        ("a/b?c#d e%", "a%2Fb%3Fc%23d%20e%25"),
        (":.ctx:s", "%3A.ctx%3As"),
        ("é\ud800", "%C3%A9%3F"),
        ("a..b", "a..b"),
    ],
)
def test_subjects_are_encoded(
    registry: TestRegistry, client: RegistryClient, subject: str, path: str
) -> None:
    registry.on(f"/subjects/{path}/versions/latest", version("1", 5))
    assert client.by_subject(subject).id == 5


@pytest.mark.parametrize("subject", ["", ".", ".."])
def test_what_servers_take_for_a_folder_is_no_subject(client: RegistryClient, subject: str) -> None:
    with pytest.raises(ConfigurationError, match="is no subject"):
        client.by_subject(subject)


def test_the_path_of_the_url_comes_first(registry: TestRegistry, client_of: MakeClient) -> None:
    registry.on("/apis/ccompat/v7/schemas/ids/7", schema())
    assert client_of(f"{registry.url}/apis/ccompat/v7/").schema(7) == LONG


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({"basic_auth_user_info": "me:secret"}, "Basic bWU6c2VjcmV0"),
        ({"bearer_auth_token": "a.b-c"}, "Bearer a.b-c"),
    ],
)
def test_who_asks_is_said(
    registry: TestRegistry, client_of: MakeClient, options: dict[str, str], header: str
) -> None:
    registry.on("*", schema())
    client_of(registry.url, **options).schema(7)
    assert registry.asked[0].headers["Authorization"] == header


def test_each_url_is_shown_what_stands_before_it(
    registry: TestRegistry, other: TestRegistry, client_of: MakeClient
) -> None:
    registry.on("*", error(503))
    other.on("*", schema())
    ours = registry.url.replace("//", "//me:secret@")
    client_of(f"{ours},{other.url}").schema(7)
    assert registry.asked[0].headers["Authorization"] == "Basic bWU6c2VjcmV0"
    assert "Authorization" not in other.asked[0].headers


@pytest.mark.parametrize("id", [7, GUID, ApicurioId("globalId", 7)], ids=str)
def test_an_id_that_one_url_does_not_have_is_asked_of_the_others(
    registry: TestRegistry, other: TestRegistry, client_of: MakeClient, id: SchemaId
) -> None:
    """A replica may lag behind."""
    core = "/apis/registry/v2/ids/globalIds/7"
    for path in ("/schemas/ids/7", f"/schemas/guids/{GUID}"):
        other.on(path, schema())
    other.on(core, Reply(json="long"))
    other.on(f"{core}/references", Reply(json=[]))
    missing = Reply(404, {"error_code": 404, "name": "ArtifactNotFoundException"})
    registry.on(core, missing)
    assert client_of(f"{registry.url},{other.url}").schema(id) == LONG
    assert (len(registry.asked), len(other.asked)) == (1, 2 if isinstance(id, ApicurioId) else 1)


def test_an_id_that_no_url_has_is_one_question_each(
    registry: TestRegistry, other: TestRegistry, client_of: MakeClient
) -> None:
    client = client_of(f"{registry.url},{other.url}")
    for _ in range(2):
        with pytest.raises(SchemaNotFoundError):
            client.schema(7)
    assert (len(registry.asked), len(other.asked)) == (2, 2)
    # One that is out of order says nothing about the id.
    other.on("*", error(503))
    with pytest.raises(SchemaNotFoundError):
        client.schema(7)
    assert (len(registry.asked), len(other.asked)) == (3, 3)
    # A subject's absence is one answer, which a registration may follow.
    with pytest.raises(SchemaNotFoundError):
        client.by_subject("s")
    assert len(registry.asked) + len(other.asked) <= 8


def test_many_unknown_ids_are_slowed_down(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(cache, "time", clock)
    known, deadline = SharedCache[int, int](MOST_KEPT), Deadline.after_ms(1_000)

    def make() -> int:
        raise SchemaNotFoundError("no")

    def ask(count: int) -> float:
        before = clock.now_seconds
        for id in range(count):
            with pytest.raises(SchemaNotFoundError):
                known.get(id, make, deadline)
        return clock.now_seconds - before

    assert ask(cache.MOST_UNKNOWN) == pytest.approx(0)
    assert ask(500) == pytest.approx(500 / cache.UNKNOWN_A_SECOND)
    assert known.get(-1, lambda: 1, deadline) == 1
    clock.now_seconds += 60
    assert ask(cache.MOST_UNKNOWN) == pytest.approx(0)


def test_what_is_not_there(registry: TestRegistry, client: RegistryClient) -> None:
    with pytest.raises(SchemaNotFoundError, match=r"127.0.0.1:\d+: the schema with the id 7: sta"):
        client.schema(7)
    registry.on("/subjects/s/versions/latest", error(404, 40401, "Subject 's' not found."))
    with pytest.raises(SchemaNotFoundError, match="of subject 's': status 404, \"Subject 's' not"):
        client.by_subject("s")
    # The schema may exist the next time. The caller must remember a miss.
    registry.on("/schemas/ids/7", schema())
    assert client.schema(7) == LONG


def test_looking_up(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("/subjects/s", Reply(json={"id": 5, "version": 2, "schema": '"long"'}))
    assert client.look_up("s", LONG) == RegisteredSchema(5, 2, "s", LONG)
    (asked,) = registry.asked
    assert (asked.method, asked.json) == ("POST", {"schema": '"long"'})
    assert asked.headers["Content-Type"] == KIND
    registry.on("/subjects/s", error(404, 40403))
    assert client.look_up("s", LONG) is None


def test_registering(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("/subjects/a%2Fb/versions?normalize=true", Reply(json={"id": 9}))
    schema = SchemaText(SchemaType.PROTOBUF, "message M {}", (("b.proto", "message B {}"),))
    reference = SchemaReference("b.proto", "b", 3)
    assert client.register("a/b", schema, references=[reference], normalize=True) == 9
    assert registry.asked[0].json == {
        "schema": "message M {}",
        "schemaType": "PROTOBUF",
        "references": [{"name": "b.proto", "subject": "b", "version": 3}],
    }
    with pytest.raises(SchemaError, match=r"it refers to b\.proto\. Say in `references`"):
        client.register("a/b", schema)
    with pytest.raises(SchemaError, match=r"it refers to b\.proto"):
        client.look_up("a/b", schema)


def refers(*names: str) -> list[dict[str, object]]:
    return [{"name": name, "subject": f"{name}-s", "version": 1} for name in names]


def test_references_come_each_behind_its_own(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("/schemas/ids/7", schema("top", references=refers("a", "b")))
    for name, names in {"a": ["c"], "b": ["c", "d"], "c": ["d"], "d": []}.items():
        reply = version(f"text {name}", 1, references=refers(*names))
        registry.on(f"/subjects/{name}-s/versions/1?deleted=true", reply)
    found = client.by_id(7)
    assert found.schema.references == tuple((name, f"text {name}") for name in "dcab")
    assert [each.name for each in found.references] == ["a", "b"]
    assert len(registry.asked) == 5
    registry.on("/subjects/s/versions/latest", version("top", 7, references=refers("a")))
    assert [name for name, _ in client.by_subject("s").schema.references] == ["d", "c", "a"]
    assert len(registry.asked) == 6


def test_a_circle_of_references_is_refused(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("/schemas/ids/7", schema("top", references=refers("a")))
    for name, to in (("a", "b"), ("b", "a")):
        reply = version("x", 1, references=refers(to))
        registry.on(f"/subjects/{name}-s/versions/1?deleted=true", reply)
    expected = (
        r"at a \(a-s version 1\) -> b \(b-s version 1\) -> a \(a-s version 1\): the reference"
    )
    with pytest.raises(SchemaError, match=expected + " refers to itself"):
        client.schema(7)


def test_references_are_only_so_deep(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("/schemas/ids/7", schema("top", references=refers("r0")))
    for number in range(40):
        reply = version("x", 1, references=refers(f"r{number + 1}"))
        registry.on(f"/subjects/r{number}-s/versions/1?deleted=true", reply)
    with pytest.raises(SchemaError, match="is more than 32 references deep"):
        client.schema(7)
    assert len(registry.asked) == 33


def test_references_are_only_so_many(registry: TestRegistry, client: RegistryClient) -> None:
    names = [f"r{number}" for number in range(600)]
    registry.on("*", version("x", 1))
    registry.on("/schemas/ids/7", schema("top", references=refers(*names)))
    with pytest.raises(SchemaError, match="leads to more than 500 schemas or 16777216 characters"):
        client.schema(7)
    assert len(registry.asked) == 502


def test_a_reference_that_is_gone_is_the_schemas_fault(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("/schemas/ids/7", schema("top", references=refers("a")))
    with pytest.raises(SchemaError, match=r"at a \(a-s version 1\): the reference is not there: "):
        client.schema(7)


def test_ten_threads_ask_once(
    registry: TestRegistry, client: RegistryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.on("*", schema())
    began, waiting = threading.Event(), threading.Semaphore(0)
    found = RegistryClient._find_id

    def slow(self: RegistryClient, id: int | UUID, deadline: object) -> RegisteredSchema:
        began.set()
        for _ in range(9):
            assert waiting.acquire(timeout=60)
        return found(self, id, deadline)  # type: ignore[arg-type]

    wait = SharedCache._wait

    def waits(*arguments: object) -> object:
        waiting.release()
        return wait(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(RegistryClient, "_find_id", slow)
    monkeypatch.setattr(SharedCache, "_wait", waits)
    with ThreadPoolExecutor(10) as threads:
        answers = [threads.submit(client.schema, 7) for _ in range(10)]
        assert [each.result(60) for each in answers] == [LONG] * 10
    assert began.is_set()
    assert registry.paths() == ["/schemas/ids/7"]


def test_several_threads_take_turns_at_one_connection(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("*", schema())
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(client.schema, range(100)))
    assert found == [LONG] * 100
    assert len(registry.asked) == 100
    assert len(registry.links) == 1


def test_what_is_kept_has_a_bound(registry: TestRegistry, client: RegistryClient) -> None:
    registry.on("*", schema())
    kept: Callable[[int], object] = client.schema
    for id in range(MOST_KEPT + 1):
        kept(id)
    asked = len(registry.asked)
    kept(MOST_KEPT)
    kept(1)
    assert len(registry.asked) == asked
    kept(0)
    assert len(registry.asked) == asked + 1


def test_a_client_that_is_ended_ends_who_waits(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("/schemas/ids/1", Reply(raw=b"", then=Then.HANG))
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.schema, 1)
        eventually(lambda: bool(registry.asked))
        client.end()
        with pytest.raises(ClosedError):
            waiting.result(20)
    registry.closing.set()
    with pytest.raises(ClosedError):
        client.schema(2)


def test_a_client_that_is_closed_meanwhile_asks_again(
    registry: TestRegistry, client: RegistryClient
) -> None:
    registry.on("/schemas/ids/1", Reply(raw=b"", then=Then.HANG), schema())
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(client.schema, 1)
        eventually(lambda: bool(registry.asked))
        client.close()
        assert waiting.result(20) == LONG
    registry.closing.set()
