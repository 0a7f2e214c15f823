"""Users' Java options give the mechanism and the credentials."""

import pickle

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import SASL_OPTIONS, SaslMechanism, SaslSettings
from spark_kafka_source.net.sasl import settings as sasl_settings
from spark_kafka_source.net.sasl.logins import (
    AwsLogin,
    KerberosLogin,
    PasswordLogin,
    TokenEndpoint,
    TokenLogin,
)
from spark_kafka_source.net.sasl.tokens import RefreshSettings
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.secret import Secret
from tests.net.sasl.tokens_of_tests import Fixed, Source

KAFKA = "org.apache.kafka.common.security"
PLAIN = f"{KAFKA}.plain.PlainLoginModule"
SCRAM = f"{KAFKA}.scram.ScramLoginModule"
OAUTH = f"{KAFKA}.oauthbearer.OAuthBearerLoginModule"
CLIENT = "clientId=a clientSecret=b"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule"
IAM_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
IAM_OAUTH_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
URL = "https://login.example.com/token"
CANARY = "hunter2-canary"
REFRESH = RefreshSettings()


def read(
    given: dict[str, str], *, tls: bool = True, token_provider: Fixed | None = None
) -> SaslSettings:
    values = {f"kafka.sasl.{name}": value for name, value in given.items()}
    assert values.keys() <= SASL_OPTIONS.keys()
    return SaslSettings.from_settings(Settings(values), tls=tls, token_provider=token_provider)


@pytest.mark.parametrize("shading", ["", "kafkashaded.", "shadedmskiam."])
@pytest.mark.parametrize(
    ("given", "mechanism", "login"),
    [
        (
            {"jaas.config": f'{PLAIN} required username="a" password="b";'},
            SaslMechanism.PLAIN,
            PasswordLogin("a", Secret("b")),
        ),
        (
            {"mechanism": "PLAIN", "username": "a", "password": "b"},
            SaslMechanism.PLAIN,
            PasswordLogin("a", Secret("b")),
        ),
        (
            {
                "mechanism": " scram-sha-512 ",
                "mechanisms": "SCRAM-SHA-512",
                "jaas.config": f'{SCRAM} required username="a" password="b" tokenauth="true";',
            },
            SaslMechanism.SCRAM_SHA_512,
            PasswordLogin("a", Secret("b"), token_auth=True),
        ),
        (
            {"mechanisms": "SCRAM-SHA-256", "username": "a", "password": "b"},
            SaslMechanism.SCRAM_SHA_256,
            PasswordLogin("a", Secret("b")),
        ),
        (
            {
                "jaas.config": f'{OAUTH} required clientId="a" clientSecret="b" scope="c"'
                " extension_logicalCluster='lkc-1';",
                "oauthbearer.token.endpoint.url": URL,
                "login.callback.handler.class": f"{KAFKA}.oauthbearer.secured"
                ".OAuthBearerLoginCallbackHandler",
            },
            SaslMechanism.OAUTHBEARER,
            TokenLogin(
                TokenEndpoint(URL, "a", Secret("b"), "c"), REFRESH, (("logicalCluster", "lkc-1"),)
            ),
        ),
        (
            {
                "mechanism": "OAUTHBEARER",
                "oauthbearer.token.endpoint.url": URL,
                "oauthbearer.client.credentials.client.id": "a",
                "oauthbearer.client.credentials.client.secret": "b",
                "oauthbearer.scope": "c",
                "oauthbearer.header.urlencode": "true",
                "login.connect.timeout.ms": "1",
                "login.read.timeout.ms": "2",
                "login.retry.backoff.ms": "3",
                "login.retry.backoff.max.ms": "4",
                "login.refresh.window.factor": "0.5",
                "login.refresh.window.jitter": "0",
                "login.refresh.min.period.seconds": "5",
                "login.refresh.buffer.seconds": "6",
            },
            SaslMechanism.OAUTHBEARER,
            TokenLogin(
                TokenEndpoint(URL, "a", Secret("b"), "c", True, 1, 2, 3, 4),
                RefreshSettings(0.5, 0.0, 5, 6),
            ),
        ),
        (
            {
                "mechanism": "AWS_MSK_IAM",
                "jaas.config": f"{IAM} required;",
                "client.callback.handler.class": IAM_HANDLER,
            },
            SaslMechanism.AWS_MSK_IAM,
            AwsLogin(REFRESH),
        ),
        (
            {"jaas.config": f'{IAM} required awsProfileName="dev";'},
            SaslMechanism.AWS_MSK_IAM,
            AwsLogin(REFRESH, "dev"),
        ),
        (
            {
                "mechanism": "OAUTHBEARER",
                "jaas.config": f'{OAUTH} required awsRoleArn="arn:r" awsRoleSessionName=s;',
                "login.callback.handler.class": IAM_OAUTH_HANDLER,
            },
            SaslMechanism.AWS_MSK_IAM,
            AwsLogin(REFRESH, None, "arn:r", "s"),
        ),
        (
            {
                "jaas.config": f'{KRB5} required useKeyTab=true keyTab="/k" principal="p@R"'
                ' serviceName="broker" storeKey=true;'
            },
            SaslMechanism.GSSAPI,
            KerberosLogin("broker", "p@R", "/k"),
        ),
        (
            {"jaas.config": f"{KRB5} required useTicketCache=true ticketCache='/c';"},
            SaslMechanism.GSSAPI,
            KerberosLogin("kafka", None, None, "/c"),
        ),
        (
            {"kerberos.service.name": "broker"},
            SaslMechanism.GSSAPI,
            KerberosLogin("broker"),
        ),
    ],
)
def test_options_as_users_have_them(
    shading: str, given: dict[str, str], mechanism: SaslMechanism, login: object
) -> None:
    for option in ("jaas.config", "client.callback.handler.class", "login.callback.handler.class"):
        if option in given:
            given = given | {option: shading + given[option]}
    assert read(given) == SaslSettings(mechanism, login)  # type: ignore[arg-type]  # one of many cases


@pytest.mark.parametrize(
    ("given", "option", "fault"),
    [
        ({}, "mechanism", "is missing. Give one of PLAIN, SCRAM-SHA-256"),
        ({"username": "a", "password": CANARY}, "mechanism", "is missing"),
        (
            {"jaas.config": f"{SCRAM} required username=a password={CANARY};"},
            "mechanism",
            "is missing. Give one of SCRAM-SHA-256, SCRAM-SHA-512",
        ),
        ({"mechanism": "DIGEST-MD5"}, "mechanism", "found 'DIGEST-MD5'. Give one of PLAIN,"),
        ({"mechanism": "PLAIN", "mechanisms": "GSSAPI"}, "mechanisms", "differs from"),
        (
            {"mechanism": "GSSAPI", "jaas.config": f"{PLAIN} required password={CANARY};"},
            "jaas.config",
            "has a login module for PLAIN, but the mechanism is GSSAPI",
        ),
        ({"jaas.config": f"{CANARY} required;"}, "jaas.config", f"Give one of {PLAIN}, {SCRAM}"),
        ({"jaas.config": f"{PLAIN} required;"}, "username", "is missing or empty"),
        ({"mechanism": "PLAIN", "username": "a"}, "password", "is missing or empty"),
        # As a file often does that Kubernetes mounts.
        (
            {"mechanism": "PLAIN", "username": "a", "password": "p\n"},
            "password",
            "ends with a newline",
        ),
        ({"mechanism": "PLAIN", "username": "a\n", "password": "p"}, "username", "ends with a"),
        (
            {"jaas.config": f"{PLAIN} required username=a password={CANARY};", "username": "b"},
            "username",
            "differs from 'username' in 'kafka.sasl.jaas.config'. Give one of them",
        ),
        (
            {"mechanism": "PLAIN", "username": "a", "password": f"{CANARY}\0"},
            "password",
            "has the character NUL",
        ),
        (
            {"mechanism": "PLAIN", "username": "a", "password": f"{CANARY}\ud800"},
            "password",
            "is not Unicode text",
        ),
        (
            {"mechanism": "OAUTHBEARER"},
            "oauthbearer.token.endpoint.url",
            "no token provider was registered",
        ),
        (
            {"mechanism": "OAUTHBEARER", "oauthbearer.token.endpoint.url": f"file:///{CANARY}"},
            "oauthbearer.client.credentials.client.id",
            "is missing",
        ),
        (
            {
                "jaas.config": f"{OAUTH} required clientId=a clientSecret={CANARY};",
                "oauthbearer.token.endpoint.url": f"http://example.com/{CANARY}",
            },
            "oauthbearer.token.endpoint.url",
            "is not https",
        ),
        (
            {
                "jaas.config": f"{OAUTH} required clientId=a clientSecret={CANARY};",
                "oauthbearer.token.endpoint.url": URL,
                "login.refresh.window.factor": "0.4",
            },
            "login.refresh.window.factor",
            "is out of bounds. Give a number from 0.5 to 1.0",
        ),
        (
            {
                "jaas.config": f"{OAUTH} required {CLIENT} extension_auth={CANARY};",
                "oauthbearer.token.endpoint.url": URL,
            },
            "jaas.config",
            "an 'extension_...' that cannot be sent",
        ),
        (
            {
                "jaas.config": f'{OAUTH} required {CLIENT} extension_a="\\1{CANARY}";',
                "oauthbearer.token.endpoint.url": URL,
            },
            "jaas.config",
            "an 'extension_...' that cannot be sent",
        ),
        (
            {"jaas.config": f"{IAM} required awsRoleArn=a awsRoleExternalId={CANARY};"},
            "jaas.config",
            "gives 'awsRoleExternalId', which has no use here",
        ),
        (
            {"jaas.config": f"{IAM} required awsRoleArn=a awsProfileName=b;"},
            "jaas.config",
            "gives 'awsProfileName' and 'awsRoleArn'",
        ),
        ({"jaas.config": f"{KRB5} required useKeyTab=true;"}, "jaas.config", "gives no 'keyTab'"),
        (
            {"mechanism": "PLAIN", "client.callback.handler.class": IAM_HANDLER},
            "mechanism",
            "is PLAIN, but a callback handler is for AWS_MSK_IAM",
        ),
        *(
            ({"mechanism": "PLAIN", option: "com.example.Mine"}, option, "'com.example.Mine', and")
            for option in (
                "client.callback.handler.class",
                "login.callback.handler.class",
                "login.class",
                "oauthbearer.jwt.retriever.class",
            )
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_used(given: dict[str, str], option: str, fault: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(given)
    assert refused.value.option == f"kafka.sasl.{option}"
    assert fault in str(refused.value)
    assert CANARY not in str(refused.value) + repr(refused.value)


def test_a_token_provider_serves_where_no_endpoint_is_given() -> None:
    provider = Fixed(CANARY)
    found = read({"mechanism": "OAUTHBEARER"}, token_provider=provider)
    assert found.login == TokenLogin(provider, REFRESH)
    given = {
        "jaas.config": f"{OAUTH} required {CLIENT};",
        "oauthbearer.token.endpoint.url": URL,
    }
    assert read(given, token_provider=provider) == read(given)
    plain = {"mechanism": "PLAIN", "username": "a", "password": "b"}
    assert read(plain, token_provider=provider) == read(plain)


def test_a_provider_that_cannot_be_one() -> None:
    class Unhashable(Source):
        __hash__ = None  # type: ignore[assignment]  # as in a dataclass that is not frozen

    for provider in (object(), Unhashable, Fixed([])):  # type: ignore[arg-type]  # has no hash
        unusable = provider if not isinstance(provider, type) else Unhashable.__new__(Unhashable)
        with pytest.raises(ConfigurationError, match="Give a frozen dataclass"):
            read({"mechanism": "OAUTHBEARER"}, token_provider=unusable)  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize(
    "given",
    [
        {"jaas.config": f"{SCRAM} required username=a password={CANARY};", "mechanism": "PLAIN"},
        {"mechanism": "SCRAM-SHA-256", "username": "a", "password": CANARY},
        {
            "jaas.config": f"{OAUTH} required clientId=a clientSecret={CANARY};",
            "oauthbearer.token.endpoint.url": URL,
        },
        {"mechanism": "OAUTHBEARER"},
        {"kerberos.service.name": "kafka"},
    ],
)
def test_they_travel_are_keys_and_show_nothing(given: dict[str, str]) -> None:
    if given.get("mechanism") == "PLAIN":
        given = given | {"mechanism": "SCRAM-SHA-512"}
    found = read(given, token_provider=Fixed(CANARY))
    there = pickle.loads(pickle.dumps(found))  # our own bytes
    assert there == found
    assert hash(there) == hash(found)
    assert CANARY not in f"{found} {found!r} {found.login!r}"


def test_without_tls_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    sasl_settings._warn_of_no_tls.cache_clear()
    plain = {"mechanism": "PLAIN", "username": "a", "password": CANARY}
    read(plain)
    read({"mechanism": "SCRAM-SHA-256", "username": "a", "password": CANARY}, tls=False)
    assert not caplog.records
    read(plain, tls=False)
    read(plain, tls=False)
    assert [each.getMessage() for each in caplog.records] == [
        "PLAIN without TLS sends the password so that anyone on the way can read it; use"
        " 'kafka.security.protocol' SASL_SSL"
    ]
