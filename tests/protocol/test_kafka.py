"""Our declarations, our bytes and our table of errors against Kafka's own."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_kafka_source.errors import ERRORS
from spark_kafka_source.protocol import (
    Message,
    Request,
    Versions,
    encode,
    request_header_version,
    response_header_version,
    versions,
)
from spark_kafka_source.protocol.declaration import Array, Kind, WireField, wire_fields
from spark_kafka_source.protocol.wire import NEVER_COMPACT_STRING, ZERO_UUID
from tests.protocol.messages import MESSAGES, REQUESTS, all_versions
from tests.protocol.oracle import Oracle
from tests.protocol.strategies import messages_in_a_version

pytestmark = [pytest.mark.java, pytest.mark.long]

Definitions = dict[str, dict[str, Any]]

_NEWEST_OF_CLIENTS = {"AddPartitionsToTxnRequest": 3}
"""The newest versions for clients, where newer ones are only between brokers."""


@pytest.fixture(scope="session")
def definitions(kafka_jars: list[Path]) -> Definitions:
    """Return Kafka's own definitions of messages, by name."""
    (clients,) = (jar for jar in kafka_jars if re.fullmatch(r"kafka-clients-[\d.]+\.jar", jar.name))
    with zipfile.ZipFile(clients) as jar:
        texts = [
            jar.read(name).decode()
            for name in jar.namelist()
            if re.fullmatch(r"common/message/\w+(Request|Response|Header)\.json", name)
            or re.fullmatch(r"common/message/ConsumerProtocol\w+\.json", name)
        ]
    parsed = [json.loads(re.sub(r"(?m)^\s*//.*$", "", text)) for text in texts]
    return {definition["name"]: definition for definition in parsed}


@pytest.mark.parametrize("message_type", MESSAGES)
def test_a_message_is_declared_as_kafka_defines_it(
    message_type: Any, definitions: Definitions
) -> None:
    definition = definitions[message_type.__name__]
    assert _stable_versions(message_type.__name__, definitions) == message_type.VERSIONS
    assert definition["flexibleVersions"] == message_type.FLEXIBLE
    assert getattr(message_type, "KEY", None) == definition.get("apiKey")
    shared = {each["name"]: each["fields"] for each in definition.get("commonStructs", [])}
    _assert_same_fields(message_type, definition["fields"], versions(message_type), shared)


def _stable_versions(name: str, definitions: Definitions) -> str:
    """Return the versions for clients. Newer ones are unstable, or only between brokers."""
    request = definitions[name.replace("Response", "Request")]
    valid = Versions.parse(definitions[name]["validVersions"])
    stable = Versions(valid.lowest, valid.highest - bool(request.get("latestVersionUnstable")))
    newest = _NEWEST_OF_CLIENTS.get(request["name"], stable.highest)
    return str(stable.common(Versions(0, newest)))


def test_versions_that_only_brokers_speak_are_kafkas(oracle: Oracle) -> None:
    for name, newest in _NEWEST_OF_CLIENTS.items():
        assert oracle.constant(name, "LAST_CLIENT_VERSION") == newest


def _assert_same_fields(
    struct: type, defined: list[dict[str, Any]], spoken: Versions, shared: dict[str, Any]
) -> None:
    """Compare fields. `shared` has the fields of structs that are used in several places."""
    # Leave out a field that exists only in an unstable version.
    defined = [field for field in defined if Versions.parse(field["versions"]).common(spoken)]
    ours = wire_fields(struct)
    assert [_ours(field) for field in ours] == [_kafkas(field) for field in defined]
    for field, its_definition in zip(ours, defined, strict=True):
        kind = field.kind.element if isinstance(field.kind, Array) else field.kind
        if isinstance(kind, type):
            fields = its_definition.get("fields") or shared[kind.__name__]
            _assert_same_fields(kind, fields, spoken, shared)


def _ours(field: WireField) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": _type_name(field.kind),
        "versions": str(field.versions),
        "nullable": str(field.nullable),
        "tag": field.tag,
        "tagged": str(field.tagged),
        "ignorable": field.ignorable,
        "flexible": "none" if field.kind is NEVER_COMPACT_STRING else None,
        "default": None if isinstance(field.kind, Array | type) else field.default(),
    }


def _type_name(kind: Kind) -> str:
    if isinstance(kind, Array):
        return f"[]{_type_name(kind.element)}"
    return kind.__name__ if isinstance(kind, type) else kind.name


def _kafkas(field: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": re.sub(r"(?<!^)(?=[A-Z])", "_", field["name"]).lower(),
        "type": field["type"],
        "versions": field["versions"],
        "nullable": field.get("nullableVersions", "none"),
        "tag": field.get("tag"),
        "tagged": field.get("taggedVersions", "none"),
        "ignorable": field.get("ignorable", False),
        "flexible": field.get("flexibleVersions"),
        "default": _default(field["type"], field.get("default")),
    }


def _default(type_name: str, text: str | int | None) -> Any:
    """Return the default. README.md next to Kafka's definitions gives the implicit defaults."""
    if text == "null":
        return None
    if type_name == "string":
        return text or ""
    if type_name == "bool":
        return text == "true"
    if "int" in type_name and not type_name.startswith("[]"):
        return int(str(text or 0), 0)
    return {"uuid": ZERO_UUID, "bytes": b""}.get(type_name)


@pytest.mark.parametrize("message_type", MESSAGES)
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_kafka_reads_our_bytes_and_writes_the_same(
    message_type: type[Message], oracle: Oracle, data: st.DataObject
) -> None:
    message, version = data.draw(messages_in_a_version(message_type))
    ours = encode(message, version)
    assert oracle.rewrite(message_type.__name__, version, ours) == ours


@pytest.mark.parametrize("request_type", REQUESTS)
def test_header_versions_are_kafkas(request_type: type[Request[Any]], oracle: Oracle) -> None:
    for version in all_versions(request_type):
        ours = (
            request_header_version(request_type, version),
            response_header_version(request_type, version),
        )
        assert ours == oracle.header_versions(request_type.KEY, version)


def test_the_table_of_errors_is_kafkas(oracle: Oracle) -> None:
    ours = [(row.code, row.name, row.remedy.name) for row in ERRORS.values()]
    assert ours == oracle.errors()
