"""SCRAM: both sides prove that they know the password, https://www.rfc-editor.org/rfc/rfc5802.

Neither side sends the password. SHA-256 is as in RFC 7677, and delegation tokens are Kafka's
extension (KIP-48). Names and passwords are plain UTF-8, without SASLprep: Kafka's brokers and tools
do not use it either (`ScramFormatter.normalize`), and would refuse prepared ones. They refuse names
that are not ASCII altogether.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from functools import lru_cache

from spark_kafka_source.net.sasl.errors import AuthenticationError
from spark_kafka_source.net.sasl.logins import PasswordLogin
from spark_kafka_source.secret import Secret

MINIMUM_ITERATIONS = 4096
MAXIMUM_ITERATIONS = 1_000_000
"""A limit for the work that a broker can demand from a client: about a second."""
MAXIMUM_MESSAGE_BYTES = 16 * 1024
"""A limit for messages. None of SCRAM's is nearly as long."""

# No channel binding, and no other identity to act for.
_GS2_HEADER = "n,,"
_NONCE = r"[\x21-\x2B\x2D-\x7E]+"
_BASE64 = r"[A-Za-z0-9+/]+={0,2}"
_EXTENSIONS = r"(?:,[A-Za-z]=[^,\x00]+)*"
_SERVER_FIRST = re.compile(
    rf"r=(?P<nonce>{_NONCE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>[^,\x00]+)|v=(?P<signature>{_BASE64})){_EXTENSIONS}")
_KNOWN_ERRORS = frozenset(
    {
        "invalid-encoding",
        "extensions-not-supported",
        "invalid-proof",
        "channel-bindings-dont-match",
        "server-does-support-channel-binding",
        "channel-binding-not-supported",
        "unsupported-channel-binding-type",
        "unknown-user",
        "invalid-username-encoding",
        "no-resources",
        "other-error",
    }
)
_LOOK_AT_LOGIN = "Check the user name and the password in 'kafka.sasl.jaas.config'"
_LOOK_AT_BROKER = "Check that 'kafka.bootstrap.servers' names the brokers that you mean"


@dataclass(frozen=True, slots=True)
class _Challenge:
    """The server's first message."""

    text: str
    nonce: str
    salt: bytes
    iterations: int


class Scram:
    """One authentication by SCRAM with `hash_name`, "sha256" or "sha512".

    `nonce` is for tests. It must be printable, without a comma, and never used twice.
    """

    def __init__(
        self, name: str, hash_name: str, login: PasswordLogin, *, nonce: str | None = None
    ) -> None:
        self.name = name
        self._hash_name = hash_name
        self._login = login
        self._nonce = nonce or secrets.token_urlsafe(24)
        self._server_signature: bytes | None = None
        self._satisfied = False

    def first(self) -> bytes:
        """Return the first message: the name and a nonce."""
        return (_GS2_HEADER + self._first_bare()).encode()

    def next(self, challenge: bytes) -> bytes | None:
        """Return the proof, then None once the server has proved itself.

        Raises `AuthenticationError` for a challenge that RFC 5802 does not allow, for an iteration
        count out of bounds, for a server that does not know the password, and for an error that it
        names.
        """
        if self._server_signature is None:
            return self._prove(self._server_first(challenge))
        self._check_server(challenge)
        return None

    def _first_bare(self) -> str:
        username = self._login.username.replace("=", "=3D").replace(",", "=2C")
        extension = ",tokenauth=true" if self._login.token_auth else ""
        return f"n={username},r={self._nonce}{extension}"

    def _server_first(self, challenge: bytes) -> _Challenge:
        text = self._text(challenge)
        match = _SERVER_FIRST.fullmatch(text)
        if not match:
            self._refuse_error(text)
            raise self._malformed("first")
        nonce, iterations = match["nonce"], int(match["iterations"])
        if not nonce.startswith(self._nonce) or len(nonce) == len(self._nonce):
            raise self._refused(
                "the broker's nonce does not begin with ours, as in a replay", _LOOK_AT_BROKER
            )
        if not MINIMUM_ITERATIONS <= iterations <= MAXIMUM_ITERATIONS:
            raise self._refused(
                f"the broker asks for {iterations} iterations",
                f"Store the password with {MINIMUM_ITERATIONS} to {MAXIMUM_ITERATIONS} of them",
            )
        return _Challenge(text, nonce, self._base64(match["salt"], "first"), iterations)

    def _prove(self, challenge: _Challenge) -> bytes:
        salted = _salted_password(
            self._hash_name, self._login.password, challenge.salt, challenge.iterations
        )
        channel = base64.b64encode(_GS2_HEADER.encode()).decode()
        without_proof = f"c={channel},r={challenge.nonce}"
        signed = f"{self._first_bare()},{challenge.text},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        stored_key = hashlib.new(self._hash_name, client_key).digest()
        signature = self._hmac(stored_key, signed)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def _check_server(self, challenge: bytes) -> None:
        text = self._text(challenge)
        self._refuse_error(text)
        match = _SERVER_FINAL.fullmatch(text)
        if not match or self._satisfied:
            raise self._malformed("final")
        signature = self._base64(match["signature"], "final")
        if not hmac.compare_digest(signature, self._server_signature or b""):
            raise self._refused("the broker does not know the password either", _LOOK_AT_BROKER)
        self._satisfied = True

    def _refuse_error(self, text: str) -> None:
        match = _SERVER_FINAL.fullmatch(text)
        if match and match["error"] is not None:
            error = match["error"] if match["error"] in _KNOWN_ERRORS else "an unlisted error"
            raise self._refused(f"the broker answered with {error}", _LOOK_AT_LOGIN)

    def _text(self, challenge: bytes) -> str:
        if len(challenge) > MAXIMUM_MESSAGE_BYTES:
            raise self._refused(f"found a message of {len(challenge)} bytes", _LOOK_AT_BROKER)
        try:
            return challenge.decode()
        except UnicodeDecodeError:
            raise self._refused("found a message that is not UTF-8", _LOOK_AT_BROKER) from None

    def _base64(self, text: str, which: str) -> bytes:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise self._malformed(which) from None

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash_name)

    def _malformed(self, which: str) -> AuthenticationError:
        return self._refused(f"the broker's {which} message is not SCRAM's", _LOOK_AT_BROKER)

    def _refused(self, found: str, expected: str) -> AuthenticationError:
        return AuthenticationError(self.name, found, expected)


# The hash takes thousands of rounds, and all connections to brokers use the same salt.
@lru_cache(maxsize=32)
def _salted_password(hash_name: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(hash_name, password.reveal().encode(), salt, iterations)
