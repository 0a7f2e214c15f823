"""A `java` that is a shell script, for tests of what runs Java without a JVM."""

from dataclasses import dataclass
from pathlib import Path

import pytest

SEVENTEEN = 'openjdk version "17.0.15" 2025-04-15'

_SCRIPT = """\
#!/bin/sh
if [ "$1" = -version ]; then
    echo '{version}' >&2
    exit 0
fi
echo "$@" >>'{calls}'
for argument; do
    case $argument in */\\[artifact\\]*) folder=${{argument%/*}} ;; esac
done
{resolves}
"""


@dataclass(frozen=True, slots=True)
class FakeJava:
    """Where the script is, and where it writes each of its calls."""

    path: Path
    calls_file: Path

    def write(self, resolves: str, version: str = SEVENTEEN) -> None:
        """Makes the script; `resolves` is the shell that stands for Ivy, with jars in $folder."""
        text = _SCRIPT.format(version=version, calls=self.calls_file, resolves=resolves)
        self.path.write_text(text)
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """The arguments of each call but those for the version."""
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """A fake `java` as the only one there is, and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("SPARK_KAFKA_SOURCE_CACHE", str(tmp_path / "cache"))
    return FakeJava(folder / "java", tmp_path / "calls")
