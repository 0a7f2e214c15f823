"""What goes wrong when a client says who it is."""

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

    def __str__(self) -> str:
        return f"{self.mechanism}: {self.found}. {self.expected}"


class TokenUnavailableError(AuthenticationError):
    """No token can be had for the moment: who gives them out is not there, or has a fault."""

    remedy = Remedy.RETRY


def refuses_login(error: KafkaError) -> bool:
    """Whether it says that the same login is not to be tried anywhere: that may lock an account."""
    return isinstance(error, AuthenticationError) and not error.retriable
