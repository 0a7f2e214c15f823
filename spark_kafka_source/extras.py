"""The remedy where a library is missing that an extra of this package installs."""


def install_extra(extra: str) -> str:
    """Return the remedy, as the beginning of a sentence.

    It names no index and no command: the package may come from a checkout, a wheel or an index.
    """
    return f"Install this package with its extra '{extra}'"
