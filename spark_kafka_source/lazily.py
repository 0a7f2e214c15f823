"""Packages whose names are imported when they are first asked for.

Spark makes a process for each step of a query, and each one imports what it needs: options of
writers, say, are known to a reader, and a producer is not.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def importing(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package (PEP 562); `homes` says in which module a name is."""

    def of_package(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return of_package
