"""PLAIN: the name and the password as they are, https://www.rfc-editor.org/rfc/rfc4616."""

from spark_kafka_source.net.sasl.errors import AuthenticationError
from spark_kafka_source.net.sasl.logins import PasswordLogin


class Plain:
    """One authentication by PLAIN."""

    name = "PLAIN"

    def __init__(self, login: PasswordLogin) -> None:
        self._login = login

    def first(self) -> bytes:
        """Return the only message: the name and the password."""
        return f"\0{self._login.username}\0{self._login.password.reveal()}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        """Return None for an empty answer. Raises `AuthenticationError` for any other."""
        if challenge:
            raise AuthenticationError(
                self.name,
                f"the broker answered with {len(challenge)} bytes where there is nothing to say",
                "Check that 'kafka.bootstrap.servers' names Kafka brokers",
            )
        return None
