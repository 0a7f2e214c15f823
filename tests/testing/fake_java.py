"""A fake `java`, a shell script, for tests without a JVM."""

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
    """The script's path, and the file with all its calls."""

    path: Path
    calls_file: Path

    def write(self, resolves: str, version: str = SEVENTEEN) -> None:
        """Write the script. `resolves` is shell code in place of Ivy, with jars in $folder."""
        text = _SCRIPT.format(version=version, calls=self.calls_file, resolves=resolves)
        self.path.write_text(text)
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        """Return the arguments of each call, except calls for the version."""
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeJava:
    """Return a fake `java`. It is the only Java, and the cache is empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("SPARK_KAFKA_SOURCE_CACHE", str(tmp_path / "cache"))
    return FakeJava(folder / "java", tmp_path / "calls")
