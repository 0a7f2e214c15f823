"""A Java that can run Kafka, and command lines for it."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_kafka_source.testing.errors import JavaError

JAVA_NEEDED = 17
"""The lowest Java version for Kafka 4's brokers and for Spark 4."""

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options that start a short-lived JVM sooner, but make its code slower later."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True, slots=True)
class Runtime:
    """A Java with the jars, the log4j2 configuration and other options for Kafka's main classes."""

    java: str
    jars: tuple[Path, ...]
    log_configuration: Path
    options: tuple[str, ...] = ()

    def command(
        self,
        main_class: str,
        *arguments: str,
        java_options: Sequence[str] = QUICK_START,
        log_level: str = "INFO",
    ) -> list[str]:
        """Return the command line for a main class. It logs to standard error."""
        logging = f"-Dlog4j2.configurationFile={self.log_configuration}"
        class_path = os.pathsep.join(str(jar) for jar in self.jars)
        options = (*java_options, *self.options, logging, f"-Dkafka.log.level={log_level}")
        return [self.java, *options, "-cp", class_path, main_class, *arguments]


def find_java() -> str:
    """Return the path of the `java` in `JAVA_HOME`, or else on the `PATH`. Raises `JavaError`."""
    java = _java_of_home() or shutil.which("java")
    if java is None:
        raise JavaError(
            f"There is no 'java' on the PATH, and JAVA_HOME is not set."
            f" Kafka needs Java {JAVA_NEEDED} or newer"
        )
    _check_version(java)
    return java


def _java_of_home() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if not home:
        return None
    java = Path(home, "bin", "java")
    if not os.access(java, os.X_OK):
        raise JavaError(f"JAVA_HOME is '{home}', but there is no program {java}")
    return str(java)


def _check_version(java: str) -> None:
    text = _version_text(java)
    found = _VERSION.search(text)
    if not found:
        raise JavaError(f"'{java} -version' does not say its version but: {text.strip()}")
    if int(found[1]) < JAVA_NEEDED:
        raise JavaError(f"{java} is Java {found[1]}. Kafka needs Java {JAVA_NEEDED} or newer")


def _version_text(java: str) -> str:
    try:
        run = subprocess.run(
            [java, "-version"],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaError(f"'{java} -version' failed: {error}") from error
    return run.stderr + run.stdout
