"""PKCS12 stores (RFC 7292), read by the library `cryptography`, which the extra `tls` installs."""

import secrets

from spark_kafka_source.net.pem import Block, pem_blocks
from spark_kafka_source.secret import Secret


class LibraryMissingError(Exception):
    """`cryptography` is not installed."""


def pkcs12_blocks(data: bytes, password: Secret) -> tuple[list[Block], Secret]:
    """Return the certificates (the key's first), the key, and a new password for the key.

    Raises `ValueError` for a wrong password or data that is no such store, and
    `LibraryMissingError`.
    """
    try:
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError:
        raise LibraryMissingError from None
    try:
        found = pkcs12.load_pkcs12(data, password.reveal().encode() if password else None)
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    own = [found.cert] if found.cert else []
    pem = [
        each.certificate.public_bytes(serialization.Encoding.PEM)
        for each in (*own, *found.additional_certs)
    ]
    one_time = Secret(secrets.token_hex(32))
    if found.key is not None:
        # OpenSSL reads a key only from a file, so it must be encrypted there.
        key = found.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(one_time.reveal().encode()),
        )
        pem.append(key)
    return pem_blocks(b"".join(pem).decode()), one_time
