"""PEM in files and options: blocks of base64 between two lines (RFC 7468, KIP-651)."""

import binascii
import re
from typing import NamedTuple

_BLOCK = (
    r"-----BEGIN (?P<label>[A-Z0-9 ]{1,40})-----"
    r"(?P<body>[^-]*(?:-(?!----)[^-]*)*)"
    r"-----END (?P=label)-----"
)
_CERTIFICATES = ("CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE")

# Schemes that OpenSSL 3 reads only with its provider `legacy`, by object identifiers in DER
# (RFC 8018, RFC 7292).
_OLDER_SCHEMES = {
    "06092a864886f70d010501": "PBE-MD2-DES",
    "06092a864886f70d010503": "PBE-MD5-DES",
    "06092a864886f70d010504": "PBE-MD2-RC2-64",
    "06092a864886f70d010506": "PBE-MD5-RC2-64",
    "06092a864886f70d01050a": "PBE-SHA1-DES",
    "06092a864886f70d01050b": "PBE-SHA1-RC2-64",
    "060a2a864886f70d010c0101": "PBE-SHA1-RC4-128",
    "060a2a864886f70d010c0102": "PBE-SHA1-RC4-40",
    "060a2a864886f70d010c0105": "PBE-SHA1-RC2-128",
    "060a2a864886f70d010c0106": "PBE-SHA1-RC2-40",
    "06052b0e030207": "DES-CBC",
    "06082a864886f70d0302": "RC2-CBC",
    "06082a864886f70d0304": "RC4",
    "06092b0601040197550102": "BF-CBC",
}
_MOST_HEAD_BYTES = 200
_OLD_HEADER = r"DEK-Info: *(?!AES-|DES-EDE3-|CAMELLIA-|ARIA-)([A-Z0-9-]{1,40}),"


class Block(NamedTuple):
    """One object: its label and its whole text."""

    label: str
    text: str

    @property
    def is_certificate(self) -> bool:
        """Whether it is a certificate."""
        return self.label in _CERTIFICATES

    @property
    def is_key(self) -> bool:
        """Whether it is a private key."""
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        """Whether a password is needed to read it."""
        return self.label.startswith("ENCRYPTED") or "4,ENCRYPTED" in self.text

    def __repr__(self) -> str:
        return f"Block({self.label!r})"


def pem_blocks(text: str) -> list[Block]:
    """Return the blocks of a text, without the text between them. They may be on one line."""
    return [
        Block(match["label"], _lines(match["label"], match["body"]))
        for match in re.finditer(_BLOCK, text)
    ]


def older_scheme(key: str) -> str | None:
    """Return the name of the scheme that encrypts a key in PEM, if OpenSSL 3 may not read it."""
    old = re.search(_OLD_HEADER, key)
    if old:
        return old[1]
    try:
        head = binascii.a2b_base64(key.split("-----")[2])[:_MOST_HEAD_BYTES].hex()
    except ValueError:
        return None
    return next((name for oid, name in _OLDER_SCHEMES.items() if oid in head), None)


def _lines(label: str, body: str) -> str:
    if ":" in body:  # The headers of an old encrypted key are on lines of their own.
        content = body.strip()
    else:
        base64 = "".join(body.split())
        content = "\n".join(base64[start : start + 64] for start in range(0, len(base64), 64))
    return f"-----BEGIN {label}-----\n{content}\n-----END {label}-----\n"
