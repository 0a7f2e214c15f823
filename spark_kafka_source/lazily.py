"""Packages that import the module of a name when the name is first used.

Spark starts a process for each step of a query, and each process imports what it needs. A reader
needs the options of writers, for example, but no producer.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def importing(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__` (PEP 562).

    `names` has the names that each module gives, with spaces between them.
    """
    homes = {name: module for module, given in names.items() for name in given.split()}

    def of_package(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return of_package
