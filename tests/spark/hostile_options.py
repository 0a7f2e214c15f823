"""Effects of options with hostile values: `python -m tests.spark.hostile_options`.

It needs its own process, since an audit hook (PEP 578) stays until the process ends. It prints JSON
with the number of tried values, and each event, error or delay that is wrong.
"""

import base64
import json
import logging
import os
import pickle
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import cloudpickle
from pyspark.sql.types import StructType

from spark_kafka_source.errors import KafkaError
from spark_kafka_source.options.declaration import Use
from spark_kafka_source.options.other_names import other_names
from spark_kafka_source.spark import KafkaDataSource
from spark_kafka_source.spark.all_options import OPTIONS
from spark_kafka_source.testing.certificates import CertificateAuthority

MOST_SECONDS = 5.0
A_WAIT_SECONDS = 20.0
"""A wait that no busy machine makes. The timeouts that an option could set in motion are longer."""
LONGEST_TEXT = 5_000
_MOST_KEPT = 1_000
# OpenSSL takes a key only from a file. The file is short-lived, and its name is new each time.
_KEY_FILE = re.compile(r"tmp\w{8}\.pem")
WATCHED = ("compile", "exec", "import", "open", "marshal.", "pickle.", "socket.", "subprocess.",
           "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "ctypes.", "urllib.",
           "ftplib.", "http.", "glob.", "os.listdir", "os.remove", "os.rename", "shutil.",
           "tempfile.", "code.", "builtins.input", "webbrowser.", "sqlite3.")  # fmt: skip
NESTED = 100_000
LONG = 100_000
LONGEST = 10_000_000


class Evil:
    """An object that runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch /tmp/unpickled-by-spark-kafka-source",)


PICKLE = base64.b64encode(pickle.dumps(Evil())).decode()
VALUES = (
    # Files and addresses.
    "/etc/passwd", "file:///etc/passwd", "../../etc/passwd", "~/.ssh/id_rsa", "/dev/zero",
    "/dev/stdin", "/proc/self/environ", "//localhost/share", "http://localhost:9/x",
    "https://localhost:9/x", "ftp://localhost:9/x", "jar:file:/x.jar!/y", "data:text/plain,x",
    "| touch /tmp/x", "$(touch /tmp/x)", "`touch /tmp/x`", "${env:HOME}", "%(HOME)s", "$HOME",
    # Code.
    PICKLE, "cos\nsystem\n(S'true'\ntR.", "__import__('os').system('true')",
    "eval(compile('1', '', 'eval'))", "!!python/object/apply:os.system ['true']", "os.system",
    "lambda: 0", "{0.__class__.__mro__}", "{}", "{x!r}", "%s%n%d", "{{7*7}}", "{% raw %}",
    "${jndi:ldap://localhost:9/a}", "${${::-j}ndi:rmi://localhost:9/a}",
    "com.sun.security.auth.module.JndiLoginModule required user.provider.url=\"ldap://localhost\";",
    '{"__class__": "os.system", "py/object": "os.system", "@type": "x"}',
    # Texts.
    "", " ", "\0", "a\0b", "a\nb\r\nINFO forged", "\x1b[2J\x1b]0;x\x07", "\u202ea\u2066b\u2069",
    "\ud800", "\ufeff", "\u2028", "'; DROP TABLE x; --", "<script>", "٣", "A" * LONG, "\n" * LONG,
    "a:1," * (LONG // 40), "," * LONG, " " * LONG, "'" * LONG,
    # Numbers.
    "1e999", "-0", "NaN", "Infinity", "-1", "0x10", "1_000", "9" * 19, "9" * 5_000, "9" * LONG,
    "2147483648", "-9223372036854775809", "1.0", "0.5" + "0" * 5_000,
    # Structure.
    "{" * NESTED, "[" * NESTED, '{"a":' * NESTED, '{"a":{"0":' + "9" * LONG + "}}",
    '{"a":{"' + "9" * 5_000 + '":0}}', '{"a":{"0":NaN}}', "[[[]]]", "0-2147483647",
    ",".join(["0-2147483647"] * 1_000),
    "-----BEGIN CERTIFICATE-----" * (LONG // 100), "-----BEGIN PRIVATE KEY-----\nAAAA\n",
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
    # Patterns.
    "(a+)+$", "(a|a)*b", "(.*a){20}", "(?:a{0,1000}){0,1000}", "(" * 5_000, "a{99999999999}",
    "[[", "(?P<x>a)(?P=y)", "\\", "(?i)(?<=a+)b",
)  # fmt: skip
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required username=a password=b;"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ROWS = StructType().add("value", "string").add("topic", "string")
PLAIN = {
    "kafka.bootstrap.servers": "127.0.0.1:1",
    "subscribe": "a",
    "kafka.default.api.timeout.ms": "1",
    "kafka.socket.connection.setup.timeout.ms": "50",
    "kafka.retry.backoff.max.ms": "1",
    "kafka.retry.backoff.ms": "1",
    "fetchOffset.numRetries": "0",
    "fetchOffset.retryIntervalMs": "1",
}


def bases(directory: Path) -> Iterator[dict[str, str]]:
    """Yield options that work, one set for each kind of security."""
    yield PLAIN
    authority = CertificateAuthority(directory)
    certificate = authority.issue("client")
    sasl = PLAIN | {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "SCRAM-SHA-256"}
    stores = {
        "kafka.ssl.truststore.location": str(authority.certificate),
        "kafka.ssl.keystore.location": str(certificate.keystore),
    }
    yield sasl | stores | {"kafka.sasl.jaas.config": JAAS}
    yield sasl | {
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.jaas.config": f"{OAUTH} clientId=a clientSecret=b;",
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
        "kafka.ssl.truststore.certificates": authority.certificate.read_text(),
    }


class Watch:
    """Audit events of one attempt, as a set of texts."""

    def __init__(self) -> None:
        self._events: set[str] = set()
        self._watching = False
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[object, ...]) -> None:
        if self._watching and event.startswith(WATCHED):
            # The first argument of a socket's events is the socket.
            kept = (
                args[1:] if event.startswith("socket.") and event != "socket.getaddrinfo" else args
            )
            text = _KEY_FILE.sub("tmp.pem", f"{event} {kept[:2]!r}")
            self._events.add(text[:_MOST_KEPT])

    def attempt(self, options: dict[str, str]) -> tuple[set[str], str, float]:
        """Return the events, the fault of the outcome ("" if none), and the seconds it took.

        They are those of the CPU, but for a long wait.
        """
        self._events = set()
        began_seconds, had_seconds = time.monotonic(), time.process_time()
        self._watching = True
        try:
            fault = _fault(read, options) or _fault(write, options)
        finally:
            waited_seconds = time.monotonic() - began_seconds
            used_seconds = time.process_time() - had_seconds
            _await_connections()
            self._watching = False
        is_wait = waited_seconds > A_WAIT_SECONDS
        return self._events, fault, waited_seconds if is_wait else used_seconds


def _fault(use: Callable[[dict[str, str]], None], options: dict[str, str]) -> str:
    """Return the fault of the outcome; "" if it is as it should be."""
    try:
        use(options)
    except KafkaError as error:
        text = str(error)
        return "" if len(text) < LONGEST_TEXT and text.isprintable() else f"text {text[:99]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


def _await_connections() -> None:
    """Wait for threads that connect, so that their events count for this attempt."""
    for each in threading.enumerate():
        if each.name.startswith("connecting to"):
            each.join(20)


def read(options: dict[str, str]) -> None:
    """Do as Spark does for a read: make a reader, pickle it, and plan its tasks."""
    source = KafkaDataSource(options)
    source.streamReader(source.schema())
    reader = source.reader(source.schema())
    cloudpickle.dumps((source, reader))  # type: ignore[no-untyped-call]
    reader.partitions()


def write(options: dict[str, str]) -> None:
    """Do as Spark does for a write, and run a task. A task without rows does not connect."""
    source = KafkaDataSource(options)
    writer = source.streamWriter(ROWS, overwrite=False)
    source.writer(ROWS, overwrite=False)
    shipped = cloudpickle.loads(cloudpickle.dumps(writer))  # type: ignore[no-untyped-call]
    shipped.commit([shipped.write(iter([]))])


def named(event: str, value: str) -> bool:
    """Whether the event concerns only the file or the address that the value names."""
    if event.startswith("open "):
        return bool(value) and event.startswith(f"open ({str(Path(value))!r},"[:_MOST_KEPT])
    hosts = {each.strip().rpartition(":")[0].strip("[]") for each in value.split(",")}
    of_host = (f"socket.getaddrinfo ({host!r}," for host in hosts)
    return len(hosts) < 100 and event.startswith(tuple(of_host))


class Run:
    """All attempts, and the failed ones."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.usual: set[str] = set()
        self.seen: set[str] = set()
        self.tried = 0
        self.slowest = (0.0, "", "")
        self.wrong: list[tuple[str, str, list[str], str, float]] = []

    def try_harmless(self, base: dict[str, str], names: list[str]) -> None:
        for name in names:
            for harmless in ("1", "true", "a", "/nowhere", "{", "(", "{}", '{"a":{"0":1}}'):
                self.usual |= self._watch.attempt(base | {name: harmless})[0]
        for harmless in ("", "x:1", "é:1"):
            self.usual |= self._watch.attempt(base | {"kafka.bootstrap.servers": harmless})[0]

    def try_value(self, options: dict[str, str], name: str, value: str) -> None:
        events, fault, seconds = self._watch.attempt(options)
        self.tried += 1
        self.slowest = max(self.slowest, (seconds, name, value[:60]))
        self.seen |= {each.split()[0] for each in events - self.usual if named(each, value)}
        more = sorted(each for each in events - self.usual if not named(each, value))
        if more or fault or seconds > MOST_SECONDS:
            self.wrong.append((name, value[:60], more[:5], fault, seconds))


def main() -> None:
    warnings.simplefilter("ignore")  # `re` itself warns of patterns like '[['.
    logging.disable(logging.CRITICAL)
    declared = set(OPTIONS)
    unheard = {"unheard.of", "kafka.unheard.of", "kafka.sasl.unheard.of"}
    ignored = {**other_names(Use.READ).reasons, **other_names(Use.WRITE).reasons}
    names = sorted({*declared, *ignored, *unheard})
    few = sys.argv[1:] == ["few"]
    values = [each for each in VALUES if len(each) < LONG][::8] if few else VALUES
    run = Run(Watch())
    with TemporaryDirectory() as directory:
        for base in bases(Path(directory)):
            run.usual = set()
            run.try_harmless(base, names)
            for value in values:
                for name in names:
                    run.try_value(base | {name: value}, name, value)
                if value:
                    name = "(a name)"
                    run.try_value(base | {f"kafka.ssl.{value}": "x", value: "x"}, name, value)
        if not few:
            for name in names:
                run.try_value(PLAIN | {name: "A" * LONGEST}, name, "A" * LONGEST)
    found = {"options": len(names), "values": len(values), "tried": run.tried}
    rest = {"slowest": run.slowest, "seen": sorted(run.seen), "wrong": run.wrong}
    print(json.dumps(found | rest))


if __name__ == "__main__":
    main()
