"""What goes wrong when a client says who it is."""

import traceback
from pathlib import Path

from spark_kafka_source.errors import KafkaError, Remedy, RemoteError


class AuthenticationError(RemoteError):
    """A broker, or who gives out its tokens, does not accept this client, or makes no sense.

    Names the mechanism, what was found and which option to look at. Never holds a secret. Not to
    be tried again: the same credentials fail the same way, and may lock an account.
    """

    def __init__(
        self, mechanism: str, found: str, expected: str = "Check the options 'kafka.sasl.*'"
    ) -> None:
        super().__init__(mechanism, found, expected)
        self.mechanism, self.found, self.expected = mechanism, found, expected

    def _text(self) -> str:
        return f"{self.mechanism}: {self.found}. {self.expected}"


class TokenUnavailableError(AuthenticationError):
    """No token can be had for the moment: who gives them out is not there, or has a fault."""

    remedy = Remedy.RETRY


def refuses_login(error: KafkaError) -> bool:
    """Whether it says that the same login is not to be tried anywhere: that may lock an account."""
    return isinstance(error, AuthenticationError) and not error.retriable


def kind_and_place(error: Exception) -> str:
    """What may be shown of an error in the code of others: `KeyError (provider.py, line 12)`."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({Path(frame.filename).name}, line {frame.lineno})"
