"""What users of Kafka's Java clients write themselves, and what takes its place here.

Java's interfaces are those that settings name, and those that methods take.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tools.java_clients.rows import ROOT, Verdict
from tools.marks import Marks

PAGE = ROOT / "docs" / "contributors" / "measured" / "java-clients.md"
MARKS = Marks("<!-- extensions: written by make java-clients -->", "<!-- end of extensions -->")


class Extension(NamedTuple):
    """Java's interface, where Java takes it (settings, by spaces, or a method), and ours."""

    interface: str
    settings: str
    method: str
    verdict: Verdict
    ours: str


HERE, LEFT_OUT = Verdict.HERE, Verdict.LEFT_OUT
_NO_WRAPPING = "a function of yours around {} does the same, and Python shows where"

EXTENSIONS = (
    Extension(
        "Deserializer",
        "key.deserializer value.deserializer",
        "",
        HERE,
        "`key_deserializer`, `value_deserializer`: [a function, an object with Java's methods, or a"
        " name](../../consumer.md#deserializers)",
    ),
    Extension(
        "Serializer",
        "key.serializer value.serializer",
        "",
        HERE,
        "`key_serializer`, `value_serializer`: [the same](../../producer.md#records)",
    ),
    Extension(
        "Partitioner",
        "partitioner.class",
        "",
        HERE,
        "`partitioner`: [a function, or an object with Java's"
        " methods](../../producer.md#partitions), which gets the cluster, too",
    ),
    Extension(
        "ConsumerPartitionAssignor",
        "partition.assignment.strategy",
        "",
        HERE,
        "`assignors`: objects of a subclass of"
        " [`Assignor`](../clients-in-detail.md#an-assignor-of-your-own), which get the cluster,"
        " too",
    ),
    Extension(
        "ConsumerRebalanceListener",
        "",
        "subscribe",
        HERE,
        "`listener`, of `subscribe` or of the constructor."
        " [Its methods](../clients-in-detail.md#listeners) may take the consumer",
    ),
    Extension("OffsetCommitCallback", "", "commitAsync", HERE, "`callback` of `commit_async`"),
    Extension("Callback", "", "send", HERE, "`on_delivery` of `send`, or the future"),
    Extension(
        "MetricsReporter",
        "metric.reporters",
        "",
        HERE,
        "`metric_reporters`: [objects with Java's"
        " methods](../../monitoring.md#consumers-and-producers), and `PrometheusReporter`",
    ),
    Extension(
        "AuthenticateCallbackHandler",
        "sasl.client.callback.handler.class sasl.login.callback.handler.class",
        "",
        HERE,
        "`token_provider`: [an object that gives tokens](../../security.md#oauth)",
    ),
    Extension("Login", "sasl.login.class", "", HERE, "`token_provider`, too"),
    Extension(
        "JwtRetriever", "sasl.oauthbearer.jwt.retriever.class", "", HERE, "`token_provider`, too"
    ),
    Extension(
        "ConsumerInterceptor",
        "interceptor.classes",
        "",
        LEFT_OUT,
        _NO_WRAPPING.format("`poll` and in the callback of a commit"),
    ),
    Extension(
        "ProducerInterceptor",
        "interceptor.classes",
        "",
        LEFT_OUT,
        _NO_WRAPPING.format("`send` and in `on_delivery`"),
    ),
    Extension(
        "ConfigProvider",
        "config.providers",
        "",
        LEFT_OUT,
        "it lets a file of properties name a secret; a Python program reads it from where it is,"
        " and may hide it in a `Secret`",
    ),
    Extension(
        "JwtValidator",
        "sasl.oauthbearer.jwt.validator.class",
        "",
        LEFT_OUT,
        "the broker checks a token",
    ),
    Extension(
        "SslEngineFactory",
        "ssl.engine.factory.class",
        "",
        LEFT_OUT,
        "it makes objects of Java's TLS; [certificates are files or texts](../../security.md)",
    ),
    Extension(
        "SecurityProviderCreator",
        "security.providers",
        "",
        LEFT_OUT,
        "it registers Java's own providers of cryptography",
    ),
    Extension(
        "ClusterResourceListener",
        "",
        "",
        LEFT_OUT,
        "Java tells the cluster's id to a serializer or a reporter that has this interface",
    ),
)


def render() -> str:
    """Return the table in Markdown."""
    return "\n".join(_rows())


def _rows() -> Iterator[str]:
    yield "| Java's | given by | here |"
    yield "|---|---|---|"
    for each in EXTENSIONS:
        names = [*each.settings.split(), *filter(None, [each.method])]
        given = ", ".join(f"`{name}`" for name in names)
        reason = f"left out: {each.ours}" if each.verdict is LEFT_OUT else each.ours
        yield f"| `{each.interface}` | {given} | {reason} |"
