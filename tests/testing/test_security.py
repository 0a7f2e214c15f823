"""The properties of a secured broker, and errors before its start. There is no JVM here."""

import builtins
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.secret import Secret
from spark_kafka_source.testing import LocalKafka, Security, ToolError, access
from spark_kafka_source.testing.properties import Node, broker_properties
from spark_kafka_source.testing.secured import Secured, secure
from spark_kafka_source.testing.security import LISTENERS, MECHANISMS, login
from tests.testing.test_properties import read

PORTS = {name: 200 + place for place, name in enumerate(LISTENERS)}
NODE = Node(1, 101, 102, 103, secured_ports=PORTS)
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    with ExitStack() as undo:
        return secure(Security({"alice": "canary"}), tmp_path, undo)


def test_secured_listeners_stand_beside_the_plain_ones() -> None:
    found = read(broker_properties(NODE, [NODE], Path("/data"), {}))
    assert found["listeners"].startswith("CLIENT://127.0.0.1:101,INTERNAL://127.0.0.1:102,")
    for name, listener in LISTENERS.items():
        assert f",{name}://127.0.0.1:{PORTS[name]}" in found["listeners"]
        assert f",{name}://127.0.0.1:{PORTS[name]}" in found["advertised.listeners"]
        assert f",{name}:{listener.protocol}" in found["listener.security.protocol.map"]


def test_every_listener_is_told_what_its_protocol_takes(secured: Secured) -> None:
    for name, listener in LISTENERS.items():
        prefix = f"listener.name.{name.lower()}."
        own = {key for key in secured.properties if key.startswith(prefix)}
        assert (f"{prefix}ssl.keystore.location" in own) == listener.has_tls
        assert (f"{prefix}sasl.enabled.mechanisms" in own) == listener.has_sasl
        jaas = {f"{prefix}{each.lower()}.sasl.jaas.config" for each in MECHANISMS}
        assert (jaas <= own) == listener.has_sasl


def test_no_repr_shows_a_password(secured: Secured) -> None:
    assert "canary" in str(secured.properties)
    assert "canary" not in repr(secured) + repr(Security({"alice": "canary"}))
    # Nor does the list of processes: the command that formats the storage has no password.
    assert "canary" not in str(secured.format_arguments)


def test_an_address_is_that_of_its_listener_or_names_those_that_are() -> None:
    assert NODE.address_of("SASL_SSL") == f"127.0.0.1:{PORTS['SASL_SSL']}"
    with pytest.raises(ConfigurationError, match=r"none named 'PLAINTEXT'.* INTERNAL, SSL"):
        NODE.address_of("PLAINTEXT")
    with pytest.raises(ConfigurationError, match="`security` adds others"):
        Node(1, 101, 102, 103).address_of("SSL")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_a_password_is_quoted_whole(password: str) -> None:
    text = login("plain.PlainLoginModule", username="a", password=password)
    _, found = QUOTED.findall(text)
    assert re.sub(r"\\(.)", r"\1", found) == password
    assert text.endswith('";')


@pytest.mark.parametrize("name", ["", "a b", "a,b", 'a"', "é"])
def test_names_of_users_are_those_that_no_tool_stumbles_over(name: str) -> None:
    with pytest.raises(ConfigurationError, match="Option 'users'"):
        Security({name: "x"})


def test_without_security_there_is_none_to_use() -> None:
    for attribute in ("authority", "token_server"):
        with pytest.raises(ConfigurationError, match="Option 'security': there is none"):
            getattr(LocalKafka(), attribute)


def test_an_acl_is_about_one_resource() -> None:
    arguments = access.acl_arguments("allow", "bob", ["Read", "Write"], {"transactional_id": "t"})
    assert " ".join(arguments) == (
        "--add --allow-principal User:bob --operation Read --operation Write --transactional-id t"
    )
    for resource in ({}, {"topic": "a", "group": "b"}, {"table": "a"}):
        with pytest.raises(ConfigurationError, match="Give one of topic, group, transactional_id"):
            access.acl_arguments("deny", "bob", ["Read"], resource)


def test_only_scram_knows_users_that_come_later(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Give one of SCRAM-SHA-256, SCRAM-SHA-512"):
        access.add_scram_user(lambda: "", tmp_path, "PLAIN", "bob", Secret("x"))


def test_a_tool_that_shows_no_token_is_an_error(tmp_path: Path) -> None:
    def tool(*arguments: str, **_: Any) -> str:
        assert "canary" not in str(arguments)
        assert "canary" in Path(arguments[-1]).read_text()
        return "Calling create token operation"

    with pytest.raises(ToolError, match="showed no token"):
        access.create_delegation_token(tool, tmp_path, "bob", Secret("canary"))
    assert not list(tmp_path.iterdir())


def test_a_missing_cryptography_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "cryptography":
            raise ModuleNotFoundError(name="cryptography")
        return real(name, *more)

    for module in ("secured", "certificates", "token_server"):
        monkeypatch.delitem(sys.modules, f"spark_kafka_source.testing.{module}")
    monkeypatch.setattr(builtins, "__import__", without)
    kafka = LocalKafka(security=Security(), directory=tmp_path)
    monkeypatch.setattr("spark_kafka_source.testing.local_kafka.kafka_jars", lambda _: [])
    with pytest.raises(ConfigurationError, match=r"'cryptography' is not installed\. pip install"):
        kafka.__enter__()
