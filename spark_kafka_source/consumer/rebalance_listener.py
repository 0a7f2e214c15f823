"""Listeners to rebalances, as users write them.

https://kafka.apache.org/documentation/#consumerapi, `ConsumerRebalanceListener`.
"""

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from spark_kafka_source.client.given_objects import (
    method,
    needed_arguments,
    refuse_awaitable,
    refuse_class,
    refuse_slips,
)
from spark_kafka_source.errors import ConfigurationError
from spark_kafka_source.topic_partition import TopicPartition


class ConsumerRebalanceListener:
    """Listener to rebalances. `poll`, `unsubscribe` and `close` call it.

    A listener may use the consumer: commit or store offsets of revoked partitions, seek in assigned
    ones. It may not `poll`. `poll` raises the listener's errors once the rebalance is done.

    A method takes the partitions, as here, or the consumer and the partitions. It gets the consumer
    if it has two parameters without a default. A listener needs not be a subclass of this class. An
    object with methods `on_partitions_revoked` and `on_partitions_assigned` is one, too. With
    `AIOConsumer` the methods may be `async`.
    """

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Handle revoked partitions. This is the last moment to commit their offsets."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Handle new partitions. Called after each rebalance, also without new partitions."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """Handle partitions that another member may own already. Commits are not possible.

        The default calls `on_partitions_revoked`, as for a listener that has no such method.
        """
        self.on_partitions_revoked(partitions)


class HasRebalanceMethods(Protocol):
    """An object with the methods of a listener."""

    @property
    def on_partitions_revoked(self) -> Callable[..., object]:
        """The function of the partitions, or of the consumer and the partitions."""

    @property
    def on_partitions_assigned(self) -> Callable[..., object]:
        """The function of the partitions, or of the consumer and the partitions."""


RebalanceListener: TypeAlias = ConsumerRebalanceListener | HasRebalanceMethods
ListenerMethod: TypeAlias = Callable[[Collection[TopicPartition]], Awaitable[None]]

_REVOKED, _ASSIGNED = "on_partitions_revoked", "on_partitions_assigned"
_LOST = "on_partitions_lost"
_METHODS = (_REVOKED, _ASSIGNED, _LOST)
# Those of confluent-kafka, and short forms.
_SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        name: meant
        for meant, names in (
            (_REVOKED, ("on_revoke", "on_revoked")),
            (_ASSIGNED, ("on_assign", "on_assigned")),
            (_LOST, ("on_lost",)),
        )
        for name in names
    }
)
_WITH_CONSUMER = 2


@dataclass(frozen=True, slots=True)
class GivenListener:
    """A listener that was checked. Its functions take the partitions."""

    revoked: ListenerMethod
    assigned: ListenerMethod
    lost: ListenerMethod


def given_listener(
    argument: str, given: object, consumer: object, *, may_wait: bool = False
) -> GivenListener | None:
    """Return the given listener, or None for None. With `may_wait` its methods may be `async`.

    `argument` names it in errors. Raises `ConfigurationError` for a class, for an object without
    the methods, for a method under a mistyped name, and for one that takes something else.
    """
    if given is None:
        return None
    refuse_class(argument, given)
    base = ConsumerRebalanceListener if isinstance(given, ConsumerRebalanceListener) else None
    methods = {name: method(argument, given, name, base, may_wait=may_wait) for name in _METHODS}
    refuse_slips(argument, given, [name for name in _METHODS if methods[name] is None], _SYNONYMS)
    lacking = [name for name in (_REVOKED, _ASSIGNED) if methods[name] is None]
    if base is None and lacking:
        said = f"is of type {type(given).__name__}, which has no method `{lacking[0]}`"
        expected = f"Give an object with `{_REVOKED}` and `{_ASSIGNED}`"
        raise ConfigurationError(argument, said, expected)
    if not any(methods.values()):
        said = f"is of type {type(given).__name__}, which does nothing"
        raise ConfigurationError(argument, said, f"Give it one of {', '.join(_METHODS)}")
    listening = {
        name: _listening(argument, name, methods[name], consumer, may_wait) for name in _METHODS
    }
    revoked = listening[_REVOKED] or _nothing
    return GivenListener(revoked, listening[_ASSIGNED] or _nothing, listening[_LOST] or revoked)


def _listening(
    argument: str, name: str, called: Callable[..., Any] | None, consumer: object, may_wait: bool
) -> ListenerMethod | None:
    if called is None:
        return None
    needed = needed_arguments(called, 1)
    if needed not in (1, _WITH_CONSUMER):
        found = f"has `{name}`, which takes neither (partitions) nor (consumer, partitions)"
        raise ConfigurationError(argument, found, "Give its other parameters defaults")
    with_consumer = partial(called, consumer) if needed == _WITH_CONSUMER else called

    async def told(partitions: Collection[TopicPartition]) -> None:
        result = with_consumer(partitions)
        if not may_wait:
            refuse_awaitable(argument, result, f"method `{name}`")
        elif inspect.isawaitable(result):
            await result

    return told


async def _nothing(_: Collection[TopicPartition]) -> None:
    pass


NO_LISTENER = GivenListener(_nothing, _nothing, _nothing)
"""The listener where no listener is given."""
