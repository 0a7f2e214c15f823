"""Amazon's library signs tokens for Amazon MSK, if it is installed."""

import sys
from types import SimpleNamespace

import pytest

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net.sasl import AuthenticationError, SaslSettings
from spark_kafka_source.net.sasl.aws_msk_iam import AwsTokens, region_of
from spark_kafka_source.net.sasl.logins import AwsLogin
from spark_kafka_source.net.sasl.mechanism import mechanism_for
from spark_kafka_source.net.sasl.tokens import RefreshSettings
from spark_kafka_source.options.declaration import Settings

HOST = "b-1.mine.abcde.c2.kafka.eu-central-1.amazonaws.com"
REFRESH = RefreshSettings()


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Return the calls of Amazon's signer."""
    asked: list[tuple[object, ...]] = []

    def sign(*given: object, **more: object) -> tuple[str, int]:
        asked.append((*given, *more.items()))
        return f"signed-{len(asked)}", 0  # do not rely on the expiry

    library = SimpleNamespace(
        generate_auth_token=lambda region: sign("default", region),
        generate_auth_token_from_profile=lambda region, name: sign("profile", region, name),
        generate_auth_token_from_role_arn=lambda region, arn, **more: sign(
            "role", region, arn, **more
        ),
    )
    name = "aws_msk_iam_sasl_signer"
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(MSKAuthTokenProvider=library))
    monkeypatch.setitem(sys.modules, f"{name}.MSKAuthTokenProvider", library)
    return asked


@pytest.mark.parametrize(
    ("login", "asked"),
    [
        (AwsLogin(REFRESH), ("default", "us-east-1")),
        (AwsLogin(REFRESH, profile="dev"), ("profile", "us-east-1", "dev")),
        (AwsLogin(REFRESH, role_arn="arn:r"), ("role", "us-east-1", "arn:r")),
        (
            AwsLogin(REFRESH, role_arn="arn:r", role_session_name="s"),
            ("role", "us-east-1", "arn:r", ("sts_session_name", "s")),
        ),
    ],
)
def test_whose_credentials_sign(
    login: AwsLogin, asked: tuple[object, ...], signer: list[tuple[object, ...]]
) -> None:
    token = AwsTokens(login, "us-east-1").token()
    assert signer == [asked]
    assert token.value.reveal() == "signed-1"
    assert "signed" not in repr(token)


def test_it_goes_as_oauthbearer_and_is_kept(signer: list[tuple[object, ...]]) -> None:
    settings = SaslSettings.from_settings(
        Settings({"kafka.sasl.mechanism": "AWS_MSK_IAM"}), tls=True
    )
    for _ in range(3):
        mechanism = mechanism_for(settings, HOST)
        assert mechanism.name == "OAUTHBEARER"
        assert mechanism.first() == b"n,,\x01auth=Bearer signed-1\x01\x01"
    assert signer == [("default", "eu-central-1")]


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-central-1"),
        ("boot-abc.c1.kafka-serverless.us-west-2.amazonaws.com", "us-west-2"),
        ("B-1.mine.abcde.c2.Kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("broker.example.com", "us-gov-1"),
        ("b-1.kafka.eu-central-1.amazonaws.com.example.com", "us-gov-1"),
    ],
)
def test_the_region(host: str, region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-gov-1")
    assert region_of(host) == region


def test_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    with pytest.raises(ConfigurationError, match="set AWS_REGION in the environment"):
        region_of("broker.example.com")


def test_no_credentials(signer: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(region: str) -> None:
        raise AttributeError("hunter2")

    library = sys.modules["aws_msk_iam_sasl_signer.MSKAuthTokenProvider"]
    monkeypatch.setattr(library, "generate_auth_token", fail)
    with pytest.raises(AuthenticationError, match="no token could be signed: AttributeError") as no:
        AwsTokens(AwsLogin(REFRESH), "us-east-1").token()
    assert "hunter2" not in str(no.value)


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(ConfigurationError, match="with its extra 'aws'"):
        AwsTokens(AwsLogin(REFRESH), "us-east-1").token()
