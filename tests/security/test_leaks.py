"""No secret is visible: canaries replace secrets, and a search covers all traces of a query."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType

import pytest

from spark_kafka_source import Secret
from spark_kafka_source.testing import LocalKafka, peer_jars
from tests.security import leaky_driver, leaky_registry
from tests.security.canaries import Canaries
from tests.security.leaky_driver import Case, Orders
from tests.security.options import (
    ENCRYPTED,
    Options,
    certificate_options,
    options_of,
    token_options,
)

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TIMEOUT_SECONDS = 1_800
# Spark's default expression misses private keys in options, and a user with a password.
REDACTION = {
    "spark.redaction.regex": r"(?i)secret|password|token|access[.]?key|keystore[.]key|user[.]info"
}
FEW = "works-mtls-inline|refused-PLAIN|jaas-in-startingOffsets|registry-(user-info|denies)$"
_SASL = ("SASL_SSL", "SCRAM-SHA-512")
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def works(secured: LocalKafka, canaries: Canaries) -> Iterator[Case]:
    """Yield all logins with a secret that can be a canary."""
    for mechanism in ("PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"):
        options = options_of(secured, "SASL_SSL", mechanism, user="canary")
        yield Case(f"works-{mechanism}", options, works=True)
    password = canaries.new("kafka.sasl.password")
    secured.add_scram_user("named", Secret(password))
    options = options_of(secured, *_SASL)
    del options["kafka.sasl.jaas.config"]
    named = {"kafka.sasl.username": "named", "kafka.sasl.password": password}
    yield Case("works-password", options | named, works=True)
    token = secured.delegation_token("canary")
    hmac = canaries.known("hmac", token.hmac.reveal())
    yield Case(
        "works-hmac", options_of(secured, *_SASL) | token_options(token.token_id, hmac), works=True
    )
    for form in ("inline", "PKCS12"):
        options = options_of(secured, "MTLS", form=form)
        for option in ("key.password", "keystore.password", "truststore.password"):
            if f"kafka.ssl.{option}" in options:
                canaries.known(f"{form} {option}", options[f"kafka.ssl.{option}"])
        if form == "inline":
            canaries.known("keystore.key", options["kafka.ssl.keystore.key"].splitlines()[1])
        yield Case(f"works-mtls-{form}", options, works=True)
    certificate = secured.authority.issue("alice")
    canaries.known("key.password of PEM", certificate.password.reveal())
    encrypted = {"kafka.bootstrap.servers": secured.bootstrap_servers_of("MTLS")}
    encrypted = options_of(secured, "SSL") | encrypted | certificate_options(certificate, ENCRYPTED)
    yield Case("works-mtls-encrypted", encrypted, works=True)
    text = canaries.known("token", secured.token_server.token("canary").reveal())
    yield Case("works-provider", of_provider(secured), token=text, works=True)


def of_provider(secured: LocalKafka) -> Options:
    options = options_of(secured, "SASL_SSL", "OAUTHBEARER")
    kept = ("oauth", "handler", "jaas")
    return {name: value for name, value in options.items() if not any(k in name for k in kept)}


def fails_remotely(secured: LocalKafka, canaries: Canaries) -> Iterator[Case]:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"):
        wrong = canaries.new(f"wrong {mechanism}")
        options = options_of(secured, "SASL_SSL", mechanism, password=wrong)
        yield Case(f"refused-{mechanism}", options)
    secret = canaries.new("wrong hmac")
    yield Case("refused-hmac", options_of(secured, *_SASL) | token_options("id", secret))
    yield Case("refused-token", of_provider(secured), token=canaries.new("wrong token"))
    yield Case("provider-raises", of_provider(secured), raises=canaries.new("raised"))
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1"}
    good = options_of(secured, *_SASL, password=canaries.new("unreachable"))
    yield Case("unreachable", good | nowhere)
    endpoint = {"kafka.sasl.oauthbearer.token.endpoint.url": "http://localhost:1/token"}
    endpoint["kafka.sasl.login.retry.backoff.ms"] = "0"
    secret = canaries.new("unreachable endpoint")
    options = options_of(secured, "SASL_SSL", "OAUTHBEARER", password=secret)
    yield Case("endpoint-unreachable", options | endpoint)
    for listener in ("SSL_OTHER_AUTHORITY", "SSL_OTHER_HOST", "SSL_EXPIRED", "CLIENT", "MTLS"):
        where = {"kafka.bootstrap.servers": secured.bootstrap_servers_of(listener)}
        options = options_of(secured, *_SASL, password=canaries.new(f"to {listener}"))
        yield Case(f"tls-{listener}", options | where)
    options = options_of(secured, "SASL_SSL", "PLAIN", password=canaries.new("in plaintext"))
    yield Case("plaintext", options | {"kafka.security.protocol": "SASL_PLAINTEXT"})
    gone = options_of(secured, "SASL_SSL", "PLAIN", user="canary")
    yield Case("no-topic", gone | {"subscribe": "nothing-of-that-name"})


def fails_locally(secured: LocalKafka, canaries: Canaries) -> Iterator[Case]:
    def case(name: str, *without: str, **changed: str) -> Case:
        """`kafka_sasl_x` stands for `kafka.sasl.x`."""
        options = options_of(secured, *_SASL, password=canaries.new(f"beside {name}"))
        options = {key: value for key, value in options.items() if key not in without}
        return Case(name, options | {key.replace("_", "."): text for key, text in changed.items()})

    for option in (
        "startingOffsets",
        "kafka_fetch_min_bytes",
        "columns",
        "maxOffsetsPerTrigger",
        "kafka_security_protocol",
        "kafka_ssl_protocol",
    ):
        yield case(f"bad-{option}", **{option: "nonsense"})
    for slip in (
        "kafka.sasl.pasword",
        "kafka.ssl.keystore.pasword",
        "kafka.sasl.jaas.confg",
        "kafka.ssl.keystore.kye",
        "sasl.password",
        "kafka.password",
        "pasword",
        "kafka.sasl.oauthbearer.client.credentials.client.secrt",
    ):
        yield case(f"slip-{slip}", **{slip.replace(".", "_"): canaries.new(f"slip {slip}")})
    key = secured.authority.issue("alice").key.read_text()
    # Options in a wrong place, where an error would show the value.
    for option in ("kafka_ssl_keystore_location", "kafka_ssl_truststore_location"):
        yield case(f"pem-in-{option}", **{option: key})
    jaas = f'{_PLAIN} required username="u" password="{{}}";'
    for option in (
        "kafka_sasl_mechanism",
        "kafka_sasl_username",
        "kafka_security_protocol",
        "kafka_sasl_login_callback_handler_class",
        "startingOffsets",
    ):
        yield case(f"jaas-in-{option}", **{option: jaas.format(canaries.new(f"jaas in {option}"))})
    for option in (
        "kafka_sasl_mechanism",
        "kafka_ssl_keystore_type",
        "kafka_ssl_keystore_location",
        "kafka_ssl_truststore_type",
        "kafka_ssl_enabled_protocols",
        "kafka_ssl_cipher_suites",
        "kafka_security_protocol",
        "kafka_ssl_endpoint_identification_algorithm",
        "kafka_sasl_login_callback_handler_class",
        "kafka_sasl_login_refresh_window_factor",
        "kafka_sasl_oauthbearer_token_endpoint_url",
    ):
        yield case(f"password-in-{option}", **{option: canaries.new(f"password in {option}")})
    url = f"https://user:{canaries.new('user info of a url')}@localhost:1/"
    oauth = options_of(secured, "SASL_SSL", "OAUTHBEARER")
    yield Case("url-user-info", oauth | {"kafka.sasl.oauthbearer.token.endpoint.url": url})
    servers = f"user:{canaries.new('user info of servers')}@localhost:1"
    yield case("servers-user-info", kafka_bootstrap_servers=servers)
    yield case("both-differ", kafka_sasl_password=canaries.new("differs"))
    for name, text in {
        "unclosed": f'{_PLAIN} required username="u" password="{{}}',
        "no-module": "{}",
        "unquoted": f"{_PLAIN} required username=u password={{}}!;",
        "twice": f'{_PLAIN} required password="{{0}}" password="{{0}}";',
        "aws": 'software.amazon.msk.auth.iam.IAMLoginModule required awsRoleSecretAccessKey="{}";',
        "no-name": f'{_PLAIN} required password="{{}}";',
        "extension": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
        ' extension_a1="{}";',
    }.items():
        wrong = text.format(canaries.new(f"jaas {name}"))
        yield case(f"jaas-{name}", "kafka.sasl.mechanism", kafka_sasl_jaas_config=wrong)
    store = options_of(secured, "MTLS", form="PKCS12")
    for option in ("kafka.ssl.keystore.password", "kafka.ssl.truststore.password"):
        yield Case(f"wrong-{option}", store | {option: canaries.new(f"wrong {option}")})
    pem = options_of(secured, "SSL") | certificate_options(
        secured.authority.issue("alice"), ENCRYPTED
    )
    wrong = canaries.new("wrong key password")
    yield Case("wrong-key-password", pem | {"kafka.ssl.key.password": wrong})
    body = canaries.new("garbage key")
    garbage = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    inline = options_of(secured, "MTLS", form="inline")
    yield Case("garbage-key", inline | {"kafka.ssl.keystore.key": garbage})
    yield Case("no-pem", inline | {"kafka.ssl.keystore.key": canaries.new("no pem")})


def run(
    directory: Path,
    cases: list[Case],
    format: str = "pykafka",
    settings: Mapping[str, str] = MappingProxyType(REDACTION),
) -> dict[str, list[bool]]:
    """Run a driver in its own process. Its output is in the directory, too."""
    for name in ("temporary", "site", "logs"):
        (directory / name).mkdir(parents=True)
    (directory / "site" / "sitecustomize.py").write_text(leaky_driver.SITE)
    (directory / "site" / "log4j2.properties").write_text(leaky_driver.LOG4J)
    java = (
        f"-Dlog4j2.configurationFile={directory}/site/log4j2.properties"
        f" -Dleaky.log={directory}/logs/jvm.log -Djava.io.tmpdir={directory}/temporary"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(directory / "site"), *filter(None, sys.path)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": f'--driver-java-options "{java}" pyspark-shell',
        "TMPDIR": str(directory / "temporary"),
    }
    jars = ",".join(map(str, peer_jars())) if format == "kafka" else ""
    orders = Orders(str(directory), cases, format, jars, dict(settings))
    with (
        (directory / "logs" / "stdout").open("wb") as stdout,
        (directory / "logs" / "stderr").open("wb") as stderr,
    ):
        command = [sys.executable, "-m", "tests.security.leaky_driver"]
        told = json.dumps(asdict(orders)).encode() + b"\n"
        subprocess.run(
            command,
            input=told,
            env=environment,
            stdout=stdout,
            stderr=stderr,
            timeout=TIMEOUT_SECONDS,
            check=True,
        )
    outcome: dict[str, list[bool]] = json.loads((directory / "outcome.json").read_text())
    return outcome


def all_cases(secured: LocalKafka, topic: str, canaries: Canaries) -> list[Case]:
    canaries.known("password of canary", "CnryPasswordOfTheUserCanary")
    found = [
        *works(secured, canaries),
        *fails_remotely(secured, canaries),
        *fails_locally(secured, canaries),
    ]
    common = {"subscribe": topic, "fetchOffset.numRetries": "0"}
    return [replace(each, options=common | each.options) for each in found]


# The search finds these words in all places, so it would find a canary there.
REACHED = {
    "thousand": "objects plan-text progress listener jvm.log events checkpoints ui-rest ui-pages",
    "kafka": "explain batch-error stream-error producer-error write-error",
    "written-by-leaks": "producer jvm.log",
    leaky_registry.SUBJECT: "objects plan-text ui-pages batch-error stream-error write-error",
}


def reached(directory: Path, word: str) -> set[str]:
    """Return the places that contain a word of the queries."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    having = [
        str(path.relative_to(directory)) for path in files if word in path.read_text("latin-1")
    ]
    places = REACHED[word].split()
    return {place for place in places if any(place in each for each in having)}


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(FEW, id="few", marks=pytest.mark.reliability_full),
        pytest.param(".*", id="all", marks=pytest.mark.reliability_full),
    ],
)
def test_no_secret_is_seen_anywhere(
    secured: LocalKafka, thousand: str, tmp_path: Path, wanted: str
) -> None:
    canaries = Canaries()
    secured.create_topic(leaky_driver.WRITTEN)
    with ExitStack() as opened:
        opened.callback(secured.delete_topic, leaky_driver.WRITTEN)
        cases = all_cases(secured, thousand, canaries)
        cases += leaky_registry.cases(secured, canaries, opened)
        cases = [each for each in cases if re.match(wanted, each.name)]
        outcome = run(tmp_path / "left", cases)
    assert canaries.found_in(tmp_path / "left") == []
    for word, places in REACHED.items():
        assert reached(tmp_path / "left", word) == set(places.split())
    assert {name: done[:2] for name, done in outcome.items()} == {
        each.name: [each.works] * 2 for each in cases
    }
    # Some errors of a query are no errors of a writer.
    assert all(all(outcome[each.name]) for each in cases if each.works)
