"""An OAuth 2 token server on the loopback: it gives signed tokens for client credentials.

See RFC 6749, section 4.4; RFC 7519 for tokens, RFC 7517 for keys; in Kafka KIP-768.
"""

import base64
import binascii
import json
import secrets
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from spark_kafka_source.secret import Secret
from spark_kafka_source.testing.properties import LOOPBACK

LIFETIME_SECONDS = 3600
SCOPE = "kafka"

_KEY_BITS = 2048
_TOKEN, _KEYS = "/token", "/keys"
_MAX_REQUEST_BYTES = 1 << 16
_TIMEOUT_SECONDS = 10


class TokenServer:
    """A server of tokens for clients that know their secret, for as long as the context lasts.

    `clients` are secrets by client id. The token's subject, Kafka's principal, is the client id.
    `issued` counts the tokens given to clients, and `refused` counts the refusals.
    """

    def __init__(
        self, clients: Mapping[str, str], *, lifetime_seconds: int = LIFETIME_SECONDS
    ) -> None:
        self.lifetime_seconds = lifetime_seconds
        self.issued = 0
        self.refused = 0
        self._clients = dict(clients)
        self._key = rsa.generate_private_key(65537, _KEY_BITS)
        self._key_id = secrets.token_hex(4)
        self._server = _Server((LOOPBACK, 0), self)
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    @property
    def token_url(self) -> str:
        """The address for tokens, `sasl.oauthbearer.token.endpoint.url`."""
        return f"{self.issuer}{_TOKEN}"

    @property
    def keys_url(self) -> str:
        """The address of the public key for brokers, `sasl.oauthbearer.jwks.endpoint.url`."""
        return f"{self.issuer}{_KEYS}"

    @property
    def issuer(self) -> str:
        """The issuer in the tokens."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def token(self, subject: str, *, lifetime_seconds: int | None = None, **claims: Any) -> Secret:
        """Return a signed token for any subject. With a negative lifetime it has expired.

        `claims` are added to the usual ones, and override them.
        """
        now = int(time.time())
        lifetime = self.lifetime_seconds if lifetime_seconds is None else lifetime_seconds
        usual = {"sub": subject, "iss": self.issuer, "scope": SCOPE}
        times = {"iat": min(now, now + lifetime), "exp": now + lifetime}
        header = {"alg": "RS256", "typ": "JWT", "kid": self._key_id}
        signed = f"{_encoded_json(header)}.{_encoded_json({**usual, **times, **claims})}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return Secret(f"{signed}.{_encoded(signature)}")

    def keys(self) -> dict[str, Any]:
        """Return the public key as a JSON Web Key Set."""
        numbers = self._key.public_key().public_numbers()
        modulus = numbers.n.to_bytes(_KEY_BITS // 8, "big")
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self._key_id}
        return {"keys": [{**key, "n": _encoded(modulus), "e": _encoded(b"\1\0\1")}]}

    def grant(self, authorization: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer to a request for a token."""
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        client, secret = _credentials(authorization, form)
        # RFC 6749 has URL-encoded texts in the header. Kafka encodes them only if configured to.
        if self._clients.get(client) != secret:
            client, secret = unquote_plus(client), unquote_plus(secret)
        if self._clients.get(client) != secret:
            self.refused += 1
            return 401, {"error": "invalid_client"}
        self.issued += 1
        token = self.token(client, scope=form.get("scope", SCOPE)).reveal()
        kind = {"token_type": "Bearer", "expires_in": self.lifetime_seconds}
        return 200, {"access_token": token, **kind}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], tokens: TokenServer) -> None:
        super().__init__(address, _Handler)
        self.tokens = tokens


class _Handler(BaseHTTPRequestHandler):
    timeout = _TIMEOUT_SECONDS
    server: _Server

    def do_GET(self) -> None:
        known = self.path == _KEYS
        self._answer(200 if known else 404, self.server.tokens.keys() if known else {})

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isdecimal() else 0
        if self.path != _TOKEN or size > _MAX_REQUEST_BYTES:
            return self._answer(404, {})
        body = self.rfile.read(size).decode(errors="replace")
        form = {key: values[0] for key, values in parse_qs(body).items()}
        authorization = self.headers.get("Authorization", "")
        return self._answer(*self.server.tokens.grant(authorization, form))

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing, to keep requests out of the test's output."""

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _credentials(authorization: str, form: Mapping[str, str]) -> tuple[str, str]:
    """Return client id and secret, from the header or else the form (RFC 6749, section 2.3.1)."""
    kind, _, encoded = authorization.partition(" ")
    if kind.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        client, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return client, secret


def _encoded_json(value: Mapping[str, Any]) -> str:
    return _encoded(json.dumps(value).encode())


def _encoded(content: bytes) -> str:
    """Return URL-safe base 64 without padding, as in RFC 7515."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
