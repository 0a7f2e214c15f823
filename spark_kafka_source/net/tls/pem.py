"""PEM in files and options: blocks of base64 between two lines (RFC 7468, KIP-651)."""

import re
from typing import NamedTuple

_BLOCK = (
    r"-----BEGIN (?P<label>[A-Z0-9 ]{1,40})-----"
    r"(?P<body>[^-]*(?:-(?!----)[^-]*)*)"
    r"-----END (?P=label)-----"
)
_CERTIFICATES = ("CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE")


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


def _lines(label: str, body: str) -> str:
    if ":" in body:  # The headers of an old encrypted key are on lines of their own.
        content = body.strip()
    else:
        base64 = "".join(body.split())
        content = "\n".join(base64[start : start + 64] for start in range(0, len(base64), 64))
    return f"-----BEGIN {label}-----\n{content}\n-----END {label}-----\n"
