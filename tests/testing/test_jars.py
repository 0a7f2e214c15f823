"""Jars are downloaded once, completely, by one process at a time. Without JVM and network."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.testing import (
    JarsError,
    JavaError,
    cache_directory,
    kafka_jars,
    peer_jars,
    resolve,
)
from tests.testing.fake_java import FakeJava

TIMEOUT_SECONDS = 120
COORDINATE = "org.example:thing:1.0"
RESOLVES = 'touch "$folder/thing-1.0.jar" "$folder/also-2.jar"'
UNRESOLVED = """
cat <<'END'
:: resolving dependencies :: a#b;working@vm
		::::::::::::::::::::::::::::::::::::::::::::::
		::          UNRESOLVED DEPENDENCIES         ::
		:: org.example#thing;1.0: not found
		::::::::::::::::::::::::::::::::::::::::::::::
END
exit 1
"""
RESOLVE = f"from spark_kafka_source.testing import resolve; print(len(resolve(['{COORDINATE}'])))"


def names(jars: list[Path]) -> list[str]:
    return [jar.name for jar in jars]


@contextmanager
def resolving_process() -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", RESOLVE],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_jars_are_downloaded_once(
    fake_java: FakeJava, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fake_java.write(RESOLVES)
    jars = resolve([COORDINATE])
    assert names(jars) == ["also-2.jar", "thing-1.0.jar"]
    assert all(jar.exists() and tmp_path / "cache" in jar.parents for jar in jars)
    assert resolve([COORDINATE]) == jars
    assert len(fake_java.calls) == 1
    assert [record.message.split(", once")[0] for record in caplog.records] == [
        f"Downloading {COORDINATE}"
    ]


def test_other_coordinates_are_other_jars(fake_java: FakeJava) -> None:
    fake_java.write(RESOLVES)
    first = resolve([COORDINATE])
    assert resolve([COORDINATE], transitive=False) != first
    assert resolve(["org.example:thing:2.0"]) != first
    assert len(fake_java.calls) == 3


def test_ivy_is_told_what_to_get(fake_java: FakeJava, tmp_path: Path) -> None:
    fake_java.write(RESOLVES)
    (module,) = {jar.with_name("ivy.xml") for jar in resolve([COORDINATE], transitive=False)}
    assert (
        '<dependency org="org.example" name="thing" rev="1.0" conf="default" transitive="false"/>'
        in module.read_text()
    )
    assert f"-cache {tmp_path / 'cache' / 'ivy'}" in fake_java.calls[0]


def test_ivy_is_told_the_classifier(fake_java: FakeJava) -> None:
    fake_java.write(RESOLVES)
    (module,) = {jar.with_name("ivy.xml") for jar in resolve([f"{COORDINATE}:test"])}
    text = module.read_text()
    artifact = '<artifact name="thing" type="jar" ext="jar" m:classifier="test"/></dependency>'
    assert f'transitive="true">{artifact}' in text
    assert 'xmlns:m="http://ant.apache.org/ivy/maven"' in text


def test_a_failure_is_tried_once_more(fake_java: FakeJava) -> None:
    fake_java.write(f'[ -e "$folder/tried" ] || {{ touch "$folder/tried"; exit 1; }}\n{RESOLVES}')
    assert names(resolve([COORDINATE])) == ["also-2.jar", "thing-1.0.jar"]
    assert len(fake_java.calls) == 2


def test_what_cannot_be_had_is_named_and_not_kept(fake_java: FakeJava) -> None:
    fake_java.write(UNRESOLVED)
    with pytest.raises(JarsError) as failure:
        resolve([COORDINATE])
    assert failure.value.coordinates == (COORDINATE,)
    assert failure.value.reason == ":: org.example#thing;1.0: not found"
    assert str(failure.value).startswith(f"Could not download {COORDINATE}. ")
    fake_java.write(RESOLVES)
    assert names(resolve([COORDINATE])) == ["also-2.jar", "thing-1.0.jar"]


def test_an_unforeseen_failure_is_told_by_the_end_of_ivys_log(fake_java: FakeJava) -> None:
    fake_java.write("echo 'No space left on device' >&2; exit 1")
    with pytest.raises(JarsError, match="No space left on device"):
        resolve([COORDINATE])


@pytest.mark.parametrize("coordinate", ["thing", "a:b", "a:b:c:d:e", "a:b:", 'a:b:1"/><x y="'])
def test_what_is_no_coordinate_is_refused(fake_java: FakeJava, coordinate: str) -> None:
    fake_java.write(RESOLVES)
    with pytest.raises(ConfigurationError, match="organisation:name:revision"):
        resolve([coordinate])
    assert not fake_java.calls


def test_an_old_java_is_refused(fake_java: FakeJava) -> None:
    fake_java.write(RESOLVES, 'openjdk version "11.0.2"')
    with pytest.raises(JavaError, match="is Java 11"):
        resolve([COORDINATE])


def test_a_download_that_was_killed_is_not_taken_for_whole(
    fake_java: FakeJava, tmp_path: Path
) -> None:
    began = tmp_path / "began"
    os.mkfifo(began)
    fake_java.write(f'touch "$folder/half.jar"; echo >"{began}"; exec sleep 1000')
    with resolving_process():
        began.read_text()
    fake_java.write(RESOLVES)
    assert names(resolve([COORDINATE])) == ["also-2.jar", "thing-1.0.jar"]


def test_two_processes_at_once_download_once(fake_java: FakeJava, tmp_path: Path) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    fake_java.write(f'echo >"{began}"; cat "{go}"\n{RESOLVES}')
    with resolving_process() as first, resolving_process() as second:
        began.read_text()
        go.write_text("")
        found = [each.communicate(timeout=TIMEOUT_SECONDS)[0] for each in (first, second)]
    assert found == ["2\n", "2\n"]
    assert len(fake_java.calls) == 1


def test_kafka_is_its_broker_its_tools_and_a_log(fake_java: FakeJava) -> None:
    fake_java.write(RESOLVES)
    module = kafka_jars("4.3.0")[0].with_name("ivy.xml").read_text()
    assert 'name="kafka_2.13" rev="4.3.0"' in module
    assert 'name="kafka-tools" rev="4.3.0"' in module
    assert 'name="log4j-slf4j-impl"' in module
    assert 'transitive="false"' not in module


def test_the_peer_comes_without_what_spark_has(fake_java: FakeJava) -> None:
    fake_java.write(RESOLVES)
    module = peer_jars()[0].with_name("ivy.xml").read_text()
    assert 'name="spark-sql-kafka-0-10_2.13"' in module
    assert module.count("<dependency ") == module.count('transitive="false"') == 4


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"SPARK_KAFKA_SOURCE_CACHE": "/mine"}, "/mine"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/spark-kafka-source"),
        ("linux", {}, "/home/me/.cache/spark-kafka-source"),
        ("darwin", {}, "/home/me/Library/Caches/spark-kafka-source"),
    ],
)
def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("SPARK_KAFKA_SOURCE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_directory() == Path(expected)
