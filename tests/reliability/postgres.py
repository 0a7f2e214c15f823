"""A PostgreSQL server for a test, as a child process. Debian's or other packages have it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

# Directories of packages that put several versions outside the PATH, such as Debian's.
_DIRECTORIES = (Path("/usr/lib/postgresql"), Path("/usr/local/pgsql"), Path("/opt/homebrew/opt"))
_USER = "postgres"
_START_SECONDS = 60.0


def program(name: str) -> str | None:
    """Return the path of `postgres` or `initdb`, the last of several; None if there is none."""
    found = shutil.which(name)
    if found is not None:
        return found
    candidates = [each for root in _DIRECTORIES for each in root.glob(f"*/bin/{name}")]
    return str(max(candidates)) if candidates else None


@contextmanager
def postgres() -> Iterator[str]:
    """Yield the connection string of an empty database, by a socket in a temporary directory."""
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        # PostgreSQL refuses to run as root.
        options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": directory}
        if os.geteuid() == 0:
            shutil.chown(directory, _USER, _USER)
            options |= {"user": _USER, "group": _USER, "extra_groups": []}
        data = directory / "data"
        initdb = [str(program("initdb")), "-D", str(data), "-U", _USER, "--auth=trust", "-N"]
        subprocess.run([*initdb, "-E", "UTF8", "--locale=C"], check=True, **options)
        settings = {"listen_addresses": "", "unix_socket_directories": directory, "fsync": "off"}
        command = [str(program("postgres")), "-D", str(data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, **options) as process:
            try:
                yield _awaited(f"host={directory} user={_USER} dbname={_USER}")
            finally:
                process.send_signal(signal.SIGQUIT)  # An immediate shutdown.
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _awaited(conninfo: str) -> str:
    ends = time.monotonic() + _START_SECONDS
    while True:
        try:
            psycopg.connect(conninfo).close()
        except psycopg.OperationalError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)
        else:
            return conninfo
