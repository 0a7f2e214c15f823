"""Settings of all Kafka Java clients, compared with ours, and the settings that we leave out."""

from collections.abc import Mapping

from spark_kafka_source.client.arguments import Vocabulary
from spark_kafka_source.options.declaration import Use
from spark_kafka_source.options.other_names import other_names
from tools.java_clients.rows import Setting, Verdict

REPORTERS = "objects, as `PrometheusReporter()`; Java's is JMX"
ONLY_OWN = "brokers get the client's own metrics only"

_WITH_JAVAS_DEFAULT = """
    bootstrap.servers connections.max.idle.ms enable.metrics.push metadata.cluster.check.enable
    metadata.max.age.ms metrics.num.samples
    metrics.sample.window.ms request.timeout.ms
    reconnect.backoff.max.ms reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url
    security.protocol socket.connection.setup.timeout.ms ssl.cipher.suites
    ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.key.password
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
    ssl.protocol ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
    """
_OF_OTHERS = ("it is a producer's", "it is a consumer's")
_JAVA_CLASSES = (
    "Kafka's own classes and Amazon's name the mechanism; for others use `token_provider`"
)
_REFUSED_OF_SECURITY = """
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.jwt.validator.class
    ssl.engine.factory.class
    """


def _security_instead(name: str) -> str:
    why = other_names(Use.CONSUMER).refused[f"kafka.{name}"]
    return why[0].lower() + why[1:]


def as_javas(names: str) -> dict[str, Setting]:
    """Return rows of settings that have Java's default here."""
    return dict.fromkeys(names.split(), Setting(Verdict.HERE))


OF_ANY_CLIENT: Mapping[str, Setting] = {
    **as_javas(_WITH_JAVAS_DEFAULT),
    **dict.fromkeys(
        ("receive.buffer.bytes", "send.buffer.bytes"),
        Setting(Verdict.HERE, "-1 by default: as large as the system makes them", "-1"),
    ),
    **dict.fromkeys(
        ("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
        Setting(Verdict.BETTER, "10 s by default; Java waits without a limit", "10000"),
    ),
    "sasl.mechanism": Setting(
        Verdict.BETTER, "by default the one mechanism that the other settings allow", ""
    ),
    "sasl.kerberos.service.name": Setting(
        Verdict.BETTER, "`kafka` by default; Java has no default", "kafka"
    ),
    "sasl.jaas.config": Setting(Verdict.BETTER, "or `sasl_username` and `sasl_password`"),
    **dict.fromkeys(
        ("ssl.keystore.type", "ssl.truststore.type"),
        Setting(
            Verdict.HERE,
            "the content decides: PEM or PKCS12. JKS is refused, with the command that converts it",
            "",
        ),
    ),
    **dict.fromkeys(
        (
            "sasl.client.callback.handler.class",
            "sasl.login.callback.handler.class",
            "sasl.login.class",
        ),
        Setting(Verdict.HERE, _JAVA_CLASSES),
    ),
    "sasl.oauthbearer.jwt.retriever.class": Setting(Verdict.HERE, _JAVA_CLASSES, ""),
    **{
        name: Setting(Verdict.LEFT_OUT, _security_instead(name))
        for name in _REFUSED_OF_SECURITY.split()
    },
}
"""By Java's name. The reason of an omission is also our error text for this setting."""


def left_out_by(vocabulary: Vocabulary) -> dict[str, Setting]:
    """Return rows of settings that a client leaves out, except options of other clients."""
    others = vocabulary.others()
    reasons = {**others.reasons, **others.refused}
    of_any_client = {f"kafka.{name}" for name in OF_ANY_CLIENT}
    return {
        option.removeprefix("kafka."): Setting(
            Verdict.LEFT_OUT, why + _as_with(others.done.get(option))
        )
        for option, why in reasons.items()
        if option not in of_any_client and not why.startswith(_OF_OTHERS)
    }


def _as_with(done: str | None) -> str:
    return f", as with `{done}`" if done else ""
