"""A SCRAM server, written from RFC 5802 and not from our client."""

import base64
import hashlib
import hmac
from dataclasses import dataclass, field


@dataclass
class ScramServer:
    username: str
    password: str
    hash_name: str = "sha256"
    salt: bytes = b"salt of a test"
    iterations: int = 4096
    nonce: str = "of-the-server"
    extensions: dict[str, str] = field(default_factory=dict)
    _said: list[str] = field(default_factory=list)

    def first(self, message: bytes) -> bytes:
        header, bare = message.decode()[:3], message.decode()[3:]
        assert header == "n,,"
        name, nonce, *extensions = bare.split(",")
        assert name[:2] == "n="
        assert name[2:].replace("=2C", ",").replace("=3D", "=") == self.username
        assert nonce[:2] == "r="
        self.extensions = {each.split("=")[0]: each.split("=")[1] for each in extensions}
        salt = base64.b64encode(self.salt).decode()
        self._said = [bare, f"{nonce}{self.nonce},s={salt},i={self.iterations}"]
        return self._said[1].encode()

    def final(self, message: bytes) -> bytes:
        rest, proof = message.decode().split(",p=")
        assert rest == f"c=biws,{self._said[1].split(',')[0]}"
        signed = ",".join([*self._said, rest]).encode()
        salted = hashlib.pbkdf2_hmac(
            self.hash_name, self.password.encode(), self.salt, self.iterations
        )
        stored = self._digest(self._sign(salted, b"Client Key"))
        mask = self._sign(stored, signed)
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), mask, strict=True))
        if self._digest(key) != stored:
            return b"e=invalid-proof"
        return b"v=" + base64.b64encode(self._sign(self._sign(salted, b"Server Key"), signed))

    def _sign(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self.hash_name).digest()

    def _digest(self, message: bytes) -> bytes:
        return hashlib.new(self.hash_name, message).digest()
