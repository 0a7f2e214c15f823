"""What it means that a registry answers with another status than 200, and which option mends it."""

from spark_kafka_source.net import HttpAnswer
from spark_kafka_source.registry.config import TOKEN_OPTION, USER_INFO_OPTION, RegistryConfig
from spark_kafka_source.registry.errors import (
    IncompatibleSchemaError,
    InvalidSchemaError,
    RegistryDeniedError,
    RegistryError,
    SchemaNotFoundError,
)
from spark_kafka_source.registry.stored import json_object
from spark_kafka_source.registry.url import URL_OPTION

GUIDS = "/schemas/guids/"

_NOT_FOUND = range(40_400, 40_500)
_MOST_SHOWN = 1_000
_CREDENTIALS = f"'{USER_INFO_OPTION}' or '{TOKEN_OPTION}'"


def may_heal(status: int) -> bool:
    """Whether the same question may be answered later, or by another url."""
    return status in (408, 429) or status >= 500


def said(answer: HttpAnswer, config: RegistryConfig) -> str:
    """The status and the registry's own message, of which no one needs to read megabytes."""
    message = json_object(answer.body[:65_536]).get("message")
    if not isinstance(message, str) or not message:
        return f"status {answer.status}"
    # Before it is cut: half a password is one, too.
    return f"status {answer.status}, {config.without_secrets(message)[:_MOST_SHOWN]!r}"


def refusal(answer: HttpAnswer, what: str, path: str, config: RegistryConfig) -> RegistryError:
    """The error for an answer that says no, to what was asked by this path."""
    text = f"{what}: {said(answer, config)}"
    match answer.status:
        case 401 | 403:
            return RegistryDeniedError(f"{text}. {_advice(answer.status, config)}")
        case 404:
            return _not_found(answer, text, path)
        case 409:
            return IncompatibleSchemaError(text)
        case 422:
            return InvalidSchemaError(text)
    return RegistryError(f"{text}. Check '{URL_OPTION}'")


def _not_found(answer: HttpAnswer, text: str, path: str) -> RegistryError:
    """A registry says by a code what it does not have; others do not know the path."""
    code = json_object(answer.body).get("error_code")
    # Not all registries know of GUIDs, and whoever writes a record may invent one.
    if code in _NOT_FOUND or path.startswith(GUIDS):
        return SchemaNotFoundError(text)
    found = "without the code of a registry's"
    return RegistryError(f"{text}, {found}. Check '{URL_OPTION}', its path too")


def _advice(status: int, config: RegistryConfig) -> str:
    has_shown = any(config.authorization(url) for url in config.urls)
    if status == 403 and has_shown:
        return f"Have it allowed there, or give who is allowed to by {_CREDENTIALS}"
    if has_shown:
        return f"Check {_CREDENTIALS}"
    return f"Say who asks by {_CREDENTIALS}"
