"""AWS's own library asks a local server that answers as Glue does."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from spark_kafka_source.errors import ClosedError, ConfigurationError
from spark_kafka_source.net import Retry, run
from spark_kafka_source.options.declaration import Settings
from spark_kafka_source.registry import (
    GlueClient,
    GlueConfig,
    RegistryDeniedError,
    RegistryError,
    RegistryUnavailableError,
    SchemaNotFoundError,
)
from spark_kafka_source.registry import glue as glue_module
from spark_kafka_source.values import SchemaError, SchemaText, SchemaType
from tests.client.clock import Clock, deadlines_by
from tests.consumer.consumers import eventually
from tests.registry.glue_server import GONE, ID, LONG, Glue, glue, version

__all__ = ["glue"]


@pytest.fixture
def client(glue: Glue) -> Iterator[GlueClient]:
    with_client = GlueClient(GlueConfig(timeout_ms=60_000))
    yield with_client
    with_client.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Only pauses advance this clock, so that each answer is in time."""
    deadlines_by(clock := Clock(), monkeypatch)
    monkeypatch.setattr(glue_module, "run", partial(run, block=clock.block))
    return clock


def test_a_version_is_asked_for_once_and_one_that_is_not_there_again(
    glue: Glue, client: GlueClient
) -> None:
    glue.versions[str(ID)] = version()
    for _ in range(2):
        assert client.schema(ID) == SchemaText(SchemaType.AVRO, LONG)
        with pytest.raises(SchemaNotFoundError, match="EntityNotFoundException"):
            client.schema(GONE)
    asked = [each["SchemaVersionId"] for each in glue.asked]
    assert asked == [str(ID), str(GONE), str(GONE)]


def test_a_schema_has_a_name_a_registry_or_an_arn(glue: Glue, client: GlueClient) -> None:
    for name in ("default-registry/t", "mine/t", "arn:aws:glue:x:1:schema/mine/t"):
        glue.versions[name] = version(text='"int"')
    for subject in ("t", "mine/t", "arn:aws:glue:x:1:schema/mine/t"):
        assert client.by_subject(subject).schema.text == '"int"'
    assert client.by_subject("t", 3).version == 3
    numbers = [each["SchemaVersionNumber"] for each in glue.asked]
    assert numbers == [{"LatestVersion": True}] * 3 + [{"VersionNumber": 3}]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ((400, "AccessDeniedException"), RegistryDeniedError),
        ((400, "UnrecognizedClientException"), RegistryDeniedError),
        ((400, "ExpiredTokenException"), RegistryDeniedError),
        ((400, "ThrottlingException"), RegistryUnavailableError),
        ((500, "InternalServiceException"), RegistryUnavailableError),
        ((400, "InvalidInputException"), RegistryError),
    ],
)
def test_what_glue_says_is_an_error_by_its_kind(
    glue: Glue,
    client: GlueClient,
    clock: Clock,
    failure: tuple[int, str],
    kind: type[RegistryError],
) -> None:
    glue.error = failure
    with pytest.raises(kind, match=f"AWS Glue in eu-test-1.*{failure[1]}") as caught:
        client.schema(ID)
    assert type(caught.value) is kind
    # All of the minute is used where it may heal.
    assert (clock.now_seconds > 40) == (kind is RegistryUnavailableError)


@pytest.mark.parametrize("failure", [(400, "ThrottlingException"), (503, "Busy"), (500, "Broken")])
def test_what_can_heal_is_tried_again_until_the_timeout(
    glue: Glue, client: GlueClient, clock: Clock, failure: tuple[int, str]
) -> None:
    glue.versions[str(ID)] = version()
    glue.first = [failure] * 5
    assert client.schema(ID).text == LONG
    assert len(glue.asked) == 6


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({"DataFormat": "XML"}, SchemaError, "the format 'XML'"),
        ({"SchemaDefinition": None, "Status": "FAILURE"}, RegistryError, "status is 'FAILURE'"),
        ({"SchemaVersionId": "x"}, RegistryError, "is no UUID"),
    ],
)
def test_an_answer_is_checked(
    glue: Glue, client: GlueClient, fields: dict[str, Any], kind: type[Exception], text: str
) -> None:
    glue.versions[str(ID)] = version(**fields)
    with pytest.raises(kind, match=text):
        client.schema(ID)


def test_a_silent_server_is_given_up(glue: Glue) -> None:
    glue.speaks.clear()
    seldom = Retry(backoff_ms=100, backoff_max_ms=100)
    client = GlueClient(GlueConfig(timeout_ms=1_000), retry=seldom)
    with pytest.raises(RegistryUnavailableError, match="within 1000 ms"):
        client.schema(ID)
    # Each question had a half of the time that was left.
    eventually(lambda: len(glue.asked) > 0)
    assert len(glue.asked) < 10
    client.end()
    with pytest.raises(ClosedError):
        client.schema(GONE)


def test_without_credentials_or_a_region_it_is_said(
    glue: Glue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(RegistryDeniedError, match="glue:GetSchemaVersion"):
        GlueClient(GlueConfig()).schema(ID)
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(ConfigurationError, match=r"'schema\.registry\.glue\.region': is missing"):
        GlueClient(GlueConfig())
    with pytest.raises(ConfigurationError, match=r"cannot be used: .*[^.]\. Give a region"):
        GlueClient(GlueConfig("not a region!"))
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(ConfigurationError, match="extra 'aws'"):
        GlueClient(GlueConfig())


def test_options_of_another_registry_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"has no effect where 'value\.framing'"):
        GlueConfig.from_settings(Settings({"schema.registry.url": "http://a"}))
