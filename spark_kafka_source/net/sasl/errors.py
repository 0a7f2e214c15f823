"""Errors of authentication."""

import importlib
import traceback
from pathlib import Path
from typing import Any

from spark_kafka_source.errors import ConfigurationError, KafkaError, Remedy, RemoteError
from spark_kafka_source.extras import install_extra


def library(module: str, *, mechanism: str, package: str, extra: str) -> Any:
    """Return the module. Import it only here, so that other mechanisms do not need it.

    Raises `ConfigurationError` if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConfigurationError(
            "kafka.sasl.mechanism",
            f"{mechanism} needs the library {package}, which is not installed",
            f"{install_extra(extra)} on the driver and on every executor",
        ) from None


class AuthenticationError(RemoteError):
    """A broker or a token issuer does not accept this client, or answers nonsense.

    The text names the mechanism, what was found, and the option to check. It never holds a secret.
    Do not try again: the same credentials fail the same way, and may lock an account.
    """

    def __init__(
        self, mechanism: str, found: str, expected: str = "Check the options 'kafka.sasl.*'"
    ) -> None:
        super().__init__(mechanism, found, expected)
        self.mechanism, self.found, self.expected = mechanism, found, expected

    def _text(self) -> str:
        return f"{self.mechanism}: {self.found}. {self.expected}"


class TokenUnavailableError(AuthenticationError):
    """No token is available at the moment: its issuer cannot be reached, or has a fault."""

    remedy = Remedy.RETRY


def refuses_login(error: KafkaError) -> bool:
    """Whether no other broker should see the same login, because that may lock an account."""
    return isinstance(error, AuthenticationError) and not error.retriable


def kind_and_place(error: Exception) -> str:
    """Return what may be shown of an error in foreign code: `KeyError (provider.py, line 12)`."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({Path(frame.filename).name}, line {frame.lineno})"
