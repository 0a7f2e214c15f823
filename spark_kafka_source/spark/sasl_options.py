"""The options `kafka.sasl.*` in words. `SaslSettings` reads them together, by mechanism.

https://kafka.apache.org/documentation/#security_sasl
"""

from typing import Any

from spark_kafka_source.spark.declaration import Option, Use
from spark_kafka_source.spark.kinds import as_written

_TEXT, _SECRET, _CLASS = "a text", "a secret text", "the name of a Java class"
_FROM_0, _FROM_1 = "a whole number from 0 to 3600000", "a whole number from 1 to 3600000"
_INSTEAD = "with OAUTHBEARER; or `clientId`, `clientSecret` and `scope` in `kafka.sasl.jaas.config`"
_OF_JAVA = "Kafka's and Amazon's classes for tokens tell the mechanism; others are refused"

_IN_WORDS: dict[str, tuple[str, str, str]] = {
    "mechanism": (
        "`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `AWS_MSK_IAM`, `GSSAPI`",
        "",
        "how the client logs in; needed where the other options do not tell it",
    ),
    "mechanisms": ("as `kafka.sasl.mechanism`", "", "librdkafka's name for it"),
    "username": (_TEXT, "", "for PLAIN and SCRAM"),
    "password": (_SECRET, "", "for PLAIN and SCRAM"),
    "jaas.config": (_SECRET, "", "a login module and its options, in place of others; as in Java"),
    "kerberos.service.name": (_TEXT, "kafka", "with GSSAPI: the first part of brokers' principals"),
    "oauthbearer.token.endpoint.url": ("`https://…`", "", "where to ask for tokens"),
    "oauthbearer.client.credentials.client.id": (_TEXT, "", _INSTEAD),
    "oauthbearer.client.credentials.client.secret": (_SECRET, "", _INSTEAD),
    "oauthbearer.scope": (_TEXT, "", _INSTEAD),
    "oauthbearer.header.urlencode": (
        "`true`, `false`",
        "false",
        "encodes id and secret (RFC 6749)",
    ),
    "oauthbearer.jwt.retriever.class": (_CLASS, "", _OF_JAVA),
    "login.refresh.window.factor": (
        "0.5 to 1.0",
        "0.8",
        "renews a token after this part of its life",
    ),
    "login.refresh.window.jitter": (
        "0.0 to 0.25",
        "0.05",
        "renews a token later by a random part of its life, up to this one",
    ),
    "login.refresh.min.period.seconds": (
        "a whole number from 0 to 900",
        "60",
        "renews a token no sooner than this, unless its life is too short",
    ),
    "login.refresh.buffer.seconds": (
        "a whole number from 0 to 3600",
        "300",
        "renews a token this long before its end, unless its life is too short",
    ),
    "login.connect.timeout.ms": (_FROM_1, "10000", "at the token endpoint"),
    "login.read.timeout.ms": (_FROM_1, "10000", "at the token endpoint"),
    "login.retry.backoff.ms": (_FROM_0, "100", "at the token endpoint"),
    "login.retry.backoff.max.ms": (_FROM_0, "10000", "at the token endpoint"),
    "login.class": (_CLASS, "", _OF_JAVA),
    "login.callback.handler.class": (_CLASS, "", _OF_JAVA),
    "client.callback.handler.class": (_CLASS, "", _OF_JAVA),
}


OPTIONS: tuple[Option[Any], ...] = tuple(
    Option(f"kafka.sasl.{name}", as_written(takes, default), meaning, Use.BOTH)
    for name, (takes, default, meaning) in _IN_WORDS.items()
)
"""All options of `net.SASL_OPTIONS`."""
