"""OAUTHBEARER: a bearer token, https://www.rfc-editor.org/rfc/rfc7628 (KIP-255)."""

import json

from spark_kafka_source.net.sasl.errors import AuthenticationError
from spark_kafka_source.net.sasl.tokens import MECHANISM, Token, TokenCache
from spark_kafka_source.secret import shown

MAXIMUM_MESSAGE_BYTES = 16 * 1024
"""A limit for messages. No broker's error is nearly as long."""

_SEPARATOR = "\x01"


class OAuthBearer:
    """One authentication by OAUTHBEARER."""

    name = MECHANISM

    def __init__(self, tokens: TokenCache, extensions: tuple[tuple[str, str], ...] = ()) -> None:
        self._tokens = tokens
        self._extensions = extensions
        self._token: Token | None = None
        self._refused: AuthenticationError | None = None

    def first(self) -> bytes:
        """Return the token and the extensions.

        Raises `AuthenticationError` if there is no token.
        """
        self._token = self._tokens.token()
        fields = [("auth", f"Bearer {self._token.value.reveal()}"), *self._extensions]
        text = "".join(f"{name}={value}{_SEPARATOR}" for name, value in fields)
        return f"n,,{_SEPARATOR}{text}{_SEPARATOR}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        """Return None for an empty answer. Acknowledge an error, as the protocol demands.

        After an acknowledged error, raises it as `AuthenticationError`.
        """
        if self._refused:
            raise self._refused
        if not challenge:
            return None
        if self._token:
            # The token may have been revoked: the next connection asks for another one.
            self._tokens.discard(self._token)
        self._refused = AuthenticationError(
            self.name,
            f"the broker refused the token: {self._status(challenge)}",
            "Check that the broker trusts its issuer, and check its audience and scope",
        )
        return _SEPARATOR.encode()

    def _status(self, challenge: bytes) -> str:
        answer: object = None
        if len(challenge) <= MAXIMUM_MESSAGE_BYTES:
            try:
                answer = json.loads(challenge)
            except (ValueError, RecursionError):
                answer = None
        status = answer.get("status") if isinstance(answer, dict) else None
        if not isinstance(status, str):
            return "it does not say why"
        secret = self._token.value.reveal() if self._token else ""
        return shown(status.replace(secret, "...") if secret else status)
