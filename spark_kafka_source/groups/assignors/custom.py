"""The argument `assignors`: objects of the user's own classes, and names of Kafka's assignors."""

from collections.abc import Iterable, Mapping
from typing import Any

from spark_kafka_source.client.given_objects import (
    check_call,
    configure,
    method,
    own,
    refuse_class,
    refuse_slips,
)
from spark_kafka_source.errors import ConfigurationError, LocalError
from spark_kafka_source.groups.assignors import Assignor, RebalanceProtocol, assignors_named

ARGUMENT = "assignors"
_METHODS: Mapping[str, tuple[str, ...]] = {
    "assign": ("cluster", "subscriptions"),
    "user_data": ("topics",),
    "on_assignment": ("assignment", "generation_id"),
}
_ATTRIBUTES = ("name", "protocol", *_METHODS)
_JAVAS = {"supported_protocols": "protocol", "supportedProtocols": "protocol"}
_SYNONYMS = {**_JAVAS, "subscription_user_data": "user_data", "subscriptionUserData": "user_data"}
_LIST = "Give a list of objects, and of names of Kafka's, as [Mine(), 'range']"


def given_assignors(given: object, configuration: Mapping[str, object]) -> tuple[Assignor, ...]:
    """Return the given assignors, configured; none for None.

    Raises `ConfigurationError` for an empty list, for a class, for an object that is no assignor,
    for a method under a mistyped name, for an unknown name, and for two assignors with one name.
    """
    if given is None:
        return ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigurationError(ARGUMENT, f"is of type {type(given).__name__}", _LIST)
    by_name: dict[str, Assignor] = {}
    for assignor in (made for one in given for made in _as_assignors(one)):
        if assignor.name in by_name:
            raise ConfigurationError(ARGUMENT, "has {} twice", "Give each a name", assignor.name)
        by_name[assignor.name] = assignor
    if not by_name:
        raise ConfigurationError(ARGUMENT, "is empty", f"{_LIST}, or leave it out")
    for assignor in by_name.values():
        configure(ARGUMENT, assignor, configuration)
    return tuple(by_name.values())


def _as_assignors(given: Any) -> list[Assignor]:
    if isinstance(given, str):
        return assignors_named(given, ARGUMENT)
    refuse_class(ARGUMENT, given)
    base = Assignor if Assignor in type(given).__mro__ else None
    lacking = [name for name in _ATTRIBUTES if own(given, name, base) is None]
    refuse_slips(ARGUMENT, given, lacking, _SYNONYMS)
    for name in _ATTRIBUTES:
        if getattr(given, name, None) is None:
            problem = f"has an object of type {type(given).__name__}, which has no `{name}`"
            expected = "Make its class a subclass of `Assignor`, which has all but `name`, `assign`"
            raise ConfigurationError(ARGUMENT, problem, expected)
    for name, parameters in _METHODS.items():
        called = method(ARGUMENT, given, name)
        check_call(ARGUMENT, called, f"has an object with a method `{name}`", *parameters)
    _check_values(given)
    return [given]


def _check_values(given: Any) -> None:
    kind = type(given).__name__
    if not isinstance(given.name, str) or not given.name:
        raise ConfigurationError(ARGUMENT, f"has {kind}, whose `name` is no text", "Give a name")
    if not isinstance(given.protocol, RebalanceProtocol):
        problem = f"has {kind}, whose `protocol` is no `RebalanceProtocol`"
        raise ConfigurationError(ARGUMENT, problem, "Give RebalanceProtocol.EAGER or COOPERATIVE")


def check_user_data(name: str, user_data: object) -> None:
    """Raise `LocalError` if the user data of the assignor with this name is no bytes, nor None."""
    if user_data is not None and not isinstance(user_data, bytes | bytearray):
        raise LocalError(
            f"assignor {name!r} has user data of type {type(user_data).__name__}: give bytes, as "
            "text.encode(), or None"
        )
