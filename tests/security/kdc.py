"""A Kerberos realm for tests: MIT's KDC on loopback, with all its files in one folder.

https://web.mit.edu/kerberos/krb5-latest/doc/admin/install_kdc.html
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from spark_kafka_source.testing.child import Child
from spark_kafka_source.testing.ports import free_ports
from spark_kafka_source.testing.properties import LOOPBACK

REALM = "TEST.EXAMPLE"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")

_TIMEOUT_SECONDS = 30
_CLIENT = """
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = {address}
 }}
"""
_SERVER = """
[kdcdefaults]
 kdc_listen = {address}
 kdc_tcp_listen = {address}
[realms]
 {realm} = {{
  database_name = {directory}/principals
  key_stash_file = {directory}/stash
  max_life = 1h
 }}
[dbmodules]
 db_module_dir = {modules}
"""


def missing_parts() -> str:
    """Return the missing parts of Kerberos as a reason to skip tests, or an empty text."""
    missing = [name for name in PROGRAMS if _find(name) is None]
    try:
        import gssapi  # noqa: F401, PLC0415 - a check that it exists
    except (ImportError, OSError):
        missing.append("python's gssapi")
    named = ", ".join(missing)
    return named and f"not installed: {named} (krb5-kdc, krb5-user; the extra 'gssapi')"


class Kdc:
    """A KDC with its principals and keytabs. `environment` is for processes that use it."""

    def __init__(self, directory: Path, port: int) -> None:
        self._directory = directory
        kdc = Path(_find("krb5kdc") or "").resolve()
        modules = next(kdc.parents[1].glob("lib/**/krb5/plugins/kdb"), directory)
        names = {"realm": REALM, "address": f"{LOOPBACK}:{port}", "directory": directory}
        self.configuration = directory / "krb5.conf"
        self.configuration.write_text(_CLIENT.format(**names))
        (directory / "kdc.conf").write_text(_SERVER.format(**names, modules=modules))
        self.environment: Mapping[str, str] = {
            "KRB5_CONFIG": str(self.configuration),
            "KRB5_KDC_PROFILE": str(directory / "kdc.conf"),
            "KRB5CCNAME": str(directory / "no-tickets"),
        }
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def keytab(self, principal: str) -> Path:
        """Return a keytab with new keys of a principal, which may be new. Old keys become void."""
        path = self._directory / f"{principal.replace('/', '-')}-{time.monotonic_ns()}.keytab"
        if principal not in self.run("kadmin.local", "-r", REALM, "listprincs"):
            self.run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
        self.run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path

    def tickets(self, principal: str, keytab: Path, *options: str) -> Path:
        """Return a cache with a ticket for a principal. `options` go to kinit."""
        cache = self._directory / f"tickets-{time.monotonic_ns()}"
        self.run("kinit", "-c", str(cache), *options, "-k", "-t", str(keytab), principal)
        return cache

    def run(self, program: str, *arguments: str) -> str:
        """Run one of MIT's programs. Return its output."""
        run = subprocess.run(
            [_find(program) or program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | self.environment,
            timeout=_TIMEOUT_SECONDS,
        )
        assert not run.returncode, f"{program}: {run.stderr}"
        return run.stdout


@contextmanager
def kdc(directory: Path) -> Iterator[Kdc]:
    """Run a KDC during the context."""
    (port,) = free_ports(1)
    made = Kdc(directory, port)
    settings = [f"{name}={value}" for name, value in made.environment.items()]
    log = directory / "kdc.log"
    child = Child(["env", *settings, _find("krb5kdc") or "", "-n"], output=log, errors=log)
    try:
        _wait_for(port, log)
        yield made
    finally:
        child.close()


def _wait_for(port: int, log: Path) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        try:
            socket.create_connection((LOOPBACK, port), _TIMEOUT_SECONDS).close()
            return
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)


def _find(program: str) -> str | None:
    # PATH may lack the folders of servers.
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
