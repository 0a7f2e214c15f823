"""A schema registry runs during its context."""

import json
import re
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from spark_kafka_source.errors import ClosedError
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import IncompatibleSchemaError, RegistryClient, RegistryConfig
from spark_kafka_source.testing import JarsError, LocalRegistry, RegistryFailedError
from spark_kafka_source.testing import jars as module
from spark_kafka_source.testing.jars import unpacked
from spark_kafka_source.values import SchemaText, SchemaType
from tests.testing.fake_java import FakeJava

COORDINATE = "org.example:thing:1.0"
ARCHIVE = 'mkdir a && echo hello >a/runner && tar czf "$folder/thing-1.0-all.tar.gz" a'
ENDS = """
case $* in *runner.jar*) echo "java.net.BindException: in use"; exit 3 ;; esac
"""


def field(kind: str) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]})


def property_of(kind: str) -> str:
    return json.dumps({"type": "object", "properties": {"a": {"type": kind}}})


def message(kind: str) -> str:
    return f'syntax = "proto3"; message M {{ {kind} a = 1; }}'


def test_an_archive_is_unpacked_once(
    fake_java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fake_java.write(ARCHIVE)
    with pytest.raises(JarsError) as caught:
        unpacked(COORDINATE, classifier="all", sha256="0" * 64)
    found = re.search(r"its SHA-256 is ([0-9a-f]{64}), and should be 0000", str(caught.value))
    assert found is not None
    fake_java.write(f'cp "{tmp_path}/kept.tar.gz" "$folder/thing-1.0-all.tar.gz"')
    (kept,) = (tmp_path / "cache").glob("partial-*/*.tar.gz")
    kept.rename(tmp_path / "kept.tar.gz")
    folders = [unpacked(COORDINATE, classifier="all", sha256=found[1]) for _ in range(2)]
    assert folders[0] == folders[1]
    assert (folders[0] / "a" / "runner").read_text() == "hello\n"
    assert not list(folders[0].glob("*.tar.gz"))
    assert len(fake_java.calls) == 2
    assert "-settings" in fake_java.calls[0]
    text = (folders[0] / "ivy.xml").read_text()
    assert 'm:classifier="all"/></dependency>' in text


def test_one_that_does_not_start_is_told_by_its_log(
    fake_java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / "app-runner.jar").touch()
    monkeypatch.setattr(
        "spark_kafka_source.testing.local_registry.unpacked", lambda *_, **__: folder
    )
    fake_java.write(ENDS)
    with pytest.raises(RegistryFailedError, match="ended with 3 while it started") as caught:
        LocalRegistry().__enter__()
    assert "BindException: in use" in str(caught.value)


def test_it_is_a_context_manager() -> None:
    with pytest.raises(ClosedError, match="use it in a `with` statement"):
        assert LocalRegistry().url


@pytest.mark.registry
def test_no_process_is_left() -> None:
    before = set(psutil.Process().children())
    with LocalRegistry() as registry:
        assert registry.url.endswith("/apis/ccompat/v7")
        started = [
            each
            for child in set(psutil.Process().children()) - before
            for each in (child, *child.children(recursive=True))
        ]
        assert any("runner.jar" in " ".join(each.cmdline()) for each in started)
    psutil.wait_procs(started, timeout=10)
    assert not [each for each in started if each.is_running()]
    with pytest.raises(ClosedError):
        assert registry.url


def test_what_was_downloaded_before_is_not_downloaded_anew() -> None:
    """The folder's name depends on Ivy's arguments."""
    told = module._ivy_module([module._ivy_dependency(COORDINATE, True)])
    assert told.splitlines()[0] == '<ivy-module version="2.0">'


@pytest.mark.registry
@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [
        (SchemaType.AVRO, field("long"), field("string")),
        (SchemaType.AVRO, field("int"), field("long")),
        (SchemaType.JSON, property_of("integer"), property_of("string")),
        (SchemaType.PROTOBUF, message("int64"), message("string")),
    ],
)
def test_a_version_that_cannot_read_the_last_one_is_refused(
    real_registry: LocalRegistry, topic: str, kind: SchemaType, first: str, second: str
) -> None:
    config = RegistryConfig.from_settings(Settings({"schema.registry.url": real_registry.url}))
    with closing(RegistryClient(config)) as client:
        client.register(topic, SchemaText(kind, first))
        if "long" in second:
            assert client.register(topic, SchemaText(kind, second))
            return
        with pytest.raises(IncompatibleSchemaError):
            client.register(topic, SchemaText(kind, second))
