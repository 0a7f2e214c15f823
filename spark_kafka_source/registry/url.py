"""Urls of a schema registry, as users write them in `schema.registry.url`."""

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.net import Address
from spark_kafka_source.secret import Secret

URL_OPTION = "schema.registry.url"

_PORTS = {"http": 80, "https": 443}
_EXPECTED = "Give 'https://host:port', or several separated by commas"


@dataclass(frozen=True, slots=True)
class RegistryUrl:
    """One url of the registry. `user_info` is the `user:password` before its host, if any."""

    address: Address
    has_tls: bool
    path: str
    user_info: Secret

    def __str__(self) -> str:
        return f"{'https' if self.has_tls else 'http'}://{self.address}"

    def target_at_same_place(self, location: str) -> str | None:
        """Return the path and query of a redirection, or None if it leads to another server."""
        try:
            parts = urlsplit(location)
            if parts.scheme or parts.netloc:
                scheme = parts.scheme or self._scheme
                if (scheme, _address(parts, scheme)) != (self._scheme, self.address):
                    return None
        except ValueError:
            return None
        is_plain = parts.path.startswith("/") and location.isascii() and location.isprintable()
        if not is_plain or " " in location:
            return None
        return parts.path + (f"?{parts.query}" if parts.query else "")

    @property
    def _scheme(self) -> str:
        return "https" if self.has_tls else "http"


def parse_urls(text: str) -> tuple[RegistryUrl, ...]:
    """Parse a comma-separated list of urls. The result keeps the order, without repeats.

    Raises `ConfigurationError`, whose text shows nothing that may be a password.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigurationError(URL_OPTION, "is missing", _EXPECTED)
    return tuple(dict.fromkeys(_parse_url(part) for part in parts))


def _parse_url(text: str) -> RegistryUrl:
    # A password may stand before the host. A text without a scheme may be a password as a whole.
    shown = text.rpartition("@")[2].partition("?")[0] if "://" in text else Secret(text)
    try:
        parts = urlsplit(text)
        address = _address(parts, parts.scheme)
    except ValueError:
        raise _refused("{} is not a url", shown) from None
    if parts.scheme not in _PORTS or not text.isascii() or not text.isprintable() or " " in text:
        raise _refused("{} is not a url of http or https", shown)
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise _refused("{} has more than a host, a port and a path", shown)
    info = unquote(parts.netloc.rpartition("@")[0])
    return RegistryUrl(address, parts.scheme == "https", parts.path.rstrip("/"), Secret(info))


def _address(parts: SplitResult, scheme: str) -> Address:
    """Return host and port. Raises `ValueError` for a missing host and for port 0."""
    if not parts.hostname or parts.port == 0:
        raise ValueError
    return Address(parts.hostname, parts.port or _PORTS.get(scheme, 0))


def _refused(found: str, shown: str | Secret) -> ConfigurationError:
    return ConfigurationError(URL_OPTION, found, _EXPECTED, shown)
