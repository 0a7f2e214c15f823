"""Objects that users give to a client, checked when they are given.

A class in place of an object, or a method with a mistyped name, would fail later, or have no effect
at all.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.options.unknown import nearest

_ALMOST = 0.9
_NOTHING_AWAITS = "Give a function that returns the result: nothing awaits it"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def refuse_class(argument: str, given: object) -> None:
    """Raise `ConfigurationError` for a class."""
    if isinstance(given, type):
        found = "is the class {}"
        raise ConfigurationError(argument, found, "Give an object of it", given.__name__)


def own(given: object, name: str, base: type | None = None) -> Any:
    """Return an attribute of an object, or None if it has none but that of `base`."""
    if base is not None and inspect.getattr_static(given, name, None) is vars(base).get(name):
        return None
    return getattr(given, name, None)


def refuse_slips(
    argument: str, given: object, missing: Collection[str], synonyms: Mapping[str, str]
) -> None:
    """Raise `ConfigurationError` if the object has a `missing` method under almost its name.

    Java's `onPartitionsLost` is almost `on_partitions_lost`. `synonyms` has more names of methods.
    """
    for name in dir(given):
        if name.startswith("_") or name in missing:
            continue
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        meant = synonyms.get(name) or nearest(words, missing, _ALMOST)
        if meant in missing:
            found = f"has `{name}`, which is never called"
            raise ConfigurationError(argument, found, f"Did you mean `{meant}`?")


def method(
    argument: str, given: object, name: str, base: type | None = None, *, may_wait: bool = False
) -> Any:
    """Return a method that the object may have, or None.

    Raises `ConfigurationError` for an attribute that cannot be called, or whose result would have
    to be awaited, unless `may_wait`.
    """
    called = own(given, name, base)
    if called is None:
        return None
    if not callable(called):
        raise ConfigurationError(argument, f"has `{name}`, which is no method", "Give a method")
    if not may_wait:
        refuse_async(argument, called, f"method `{name}`")
    return called


def refuse_async(argument: str, called: Callable[..., Any], named: str) -> None:
    """Raise `ConfigurationError` for a function whose result would have to be awaited."""
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise ConfigurationError(argument, f"is an asynchronous {named}", _NOTHING_AWAITS)


def refuse_awaitable(argument: str, result: object, named: str) -> None:
    """Raise `ConfigurationError` for a result that would have to be awaited.

    Such is that of a lambda that calls an asynchronous function.
    """
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()  # Else Python warns of it, too.
        found = f"is a {named} that returned something to await"
        raise ConfigurationError(argument, found, _NOTHING_AWAITS)


def check_call(argument: str, called: Callable[..., Any], what: str, *parameters: str) -> None:
    """Raise `ConfigurationError` if a function cannot be called with these, by position.

    `what` begins the error, as in "is a function".
    """
    try:
        signature = inspect.signature(called)
    except (TypeError, ValueError):  # Some functions written in C have no signature.
        return
    try:
        signature.bind(*parameters)
    except TypeError as error:
        found = f"{what} that cannot be called with ({', '.join(parameters)}): {error}"
        raise ConfigurationError(argument, found, "Take these arguments") from None


def needed_arguments(called: Callable[..., Any], of_any: int) -> int:
    """Return how many arguments to call a function with, or 0 if there is no way.

    Its positional parameters without a default tell. `of_any` is the result for `*arguments`.
    """
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # Some functions in C have no signature, as `int` has none.
        return 1
    positional = [each for each in parameters if each.kind in _POSITIONAL]
    needed = [each for each in positional if each.default is each.empty]
    if any(each.kind is each.KEYWORD_ONLY and each.default is each.empty for each in parameters):
        return 0
    if needed:
        return len(needed)
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return of_any
    return 1 if positional else 0


def configure(
    argument: str, given: object, configuration: Mapping[str, object], *more: object
) -> None:
    """Call an object's `configure`, if it has one, with the client's arguments and `more`.

    Raises `ConfigurationError` for its errors.
    """
    called = method(argument, given, "configure")
    if called is None:
        return
    try:
        called(dict(configuration), *more)
    except ConfigurationError:
        raise
    except Exception as error:  # Its text may have a secret of the configuration.
        found = f"raised {type(error).__name__} in `configure`"
        raise ConfigurationError(argument, found, "The cause has more") from error
