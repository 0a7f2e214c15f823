"""A PostgreSQL of a test's own, as a child process: Debian's packages, or any other's, have it."""

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

# Debian has them there, for several versions, and not on the PATH.
_DIRECTORIES = (Path("/usr/lib/postgresql"), Path("/usr/local/pgsql"), Path("/opt/homebrew/opt"))
_USER = "postgres"
_START_SECONDS = 60.0


def program(name: str) -> str | None:
    """The path of `postgres` or `initdb`, the newest of several; None where there is none."""
    found = shutil.which(name)
    if found is not None:
        return found
    candidates = [each for root in _DIRECTORIES for each in root.glob(f"*/bin/{name}")]
    return str(max(candidates)) if candidates else None


@contextmanager
def postgres() -> Iterator[str]:
    """The connection string of an empty database, reached by a socket in a directory of its own."""
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        # It refuses to be run by root.
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
                process.send_signal(signal.SIGQUIT)  # At once.
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
