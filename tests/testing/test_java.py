"""The chosen Java can run Kafka. Otherwise the error lists all found Javas."""

from pathlib import Path

import pytest

from spark_kafka_source.testing import JavaError
from spark_kafka_source.testing.java import Runtime, find_java
from tests.testing.fake_java import FakeJava


@pytest.mark.parametrize("version", ['openjdk version "17.0.15" 2025', 'java version "25" 2025'])
def test_the_java_of_the_path_is_found(fake_java: FakeJava, version: str) -> None:
    fake_java.write("", version)
    assert find_java() == str(fake_java.path)


def test_java_home_goes_before_the_path(
    fake_java: FakeJava, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java.write("")
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    fake_java.path.rename(home / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java() == str(home / "bin" / "java")


def test_a_java_home_without_java_is_named(
    fake_java: FakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java.write("")
    monkeypatch.setenv("JAVA_HOME", "/no/where")
    with pytest.raises(JavaError, match=r"JAVA_HOME is '/no/where', .* /no/where/bin/java"):
        find_java()


@pytest.mark.parametrize(
    ("version", "found"),
    [('openjdk version "11.0.2" 2019-01-15', "11"), ('java version "1.8.0_392"', "8")],
)
def test_an_old_java_is_named_with_what_is_needed(
    fake_java: FakeJava, version: str, found: str
) -> None:
    fake_java.write("", version)
    with pytest.raises(JavaError, match=f"{fake_java.path} is Java {found}. .* Java 17 or newer"):
        find_java()


def test_a_missing_java_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaError, match=r"no 'java' on the PATH, and JAVA_HOME is not set.* 17"):
        find_java()


def test_what_is_no_java_is_quoted(fake_java: FakeJava) -> None:
    fake_java.write("", "Please install Java from the shop")
    with pytest.raises(JavaError, match="does not say its version but: Please install"):
        find_java()


def test_a_java_that_cannot_be_run_is_named(fake_java: FakeJava) -> None:
    fake_java.path.write_text("#!/no/such/interpreter\n")
    fake_java.path.chmod(0o755)
    with pytest.raises(JavaError, match=f"'{fake_java.path} -version' failed"):
        find_java()


def test_a_command_line_has_options_before_the_class_and_arguments_after_it() -> None:
    runtime = Runtime("java", (Path("/a.jar"), Path("/b.jar")), Path("/log4j2.properties"))
    assert runtime.command("kafka.Kafka", "x", java_options=["-Xmx1g"], log_level="WARN") == [
        "java",
        "-Xmx1g",
        "-Dlog4j2.configurationFile=/log4j2.properties",
        "-Dkafka.log.level=WARN",
        "-cp",
        "/a.jar:/b.jar",
        "kafka.Kafka",
        "x",
    ]
