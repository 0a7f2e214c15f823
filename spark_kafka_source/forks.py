"""Clients and forks: a client belongs to the process that made it.

After `os.fork` the child has copies of its parent's sockets, but none of its threads. A request of
the child would take the parent's answers off the socket, and a wait for a thread would never end.
So a client in a child raises at once, and leaves the parent's sockets alone.
"""

import os
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from spark_kafka_source.errors import LocalError

C = TypeVar("C", bound=type[Any])

_SPECIAL = frozenset({"__enter__", "__iter__"})
_CHECKING = frozenset({"send"})
"""The methods that compare `ThisProcess.pid` themselves: a call for each record is dear."""


class ThisProcess:
    """The present process, for calls for which a system call is dear.

    It hears of Python's forks, but not of each fork of a server in C that embeds Python.
    """

    pid = os.getpid()

    @classmethod
    def changed(cls) -> None:
        """Take the present process, after a fork."""
        cls.pid = os.getpid()


os.register_at_fork(after_in_child=ThisProcess.changed)


class ForkedError(LocalError):
    """A client was used in a child of the process that made it, after a fork."""


class OwnProcess:
    """The process that made an object. Only that process may use the object."""

    __slots__ = ("_what", "pid")

    def __init__(self, what: str) -> None:
        """Take the present process. `what` names the object in an error, as in "producer"."""
        self._what = what
        self.pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is the process. False after a fork, in the child."""
        return self.pid == os.getpid()

    def check(self) -> None:
        """Raise `ForkedError` in any other process."""
        if not self.is_here:
            raise ForkedError(
                f"This {self._what} was made by process {self.pid}, and this is process "
                f"{os.getpid()}, a fork of it: a fork has neither the threads of its parent's "
                f"clients nor sockets of its own. Make the {self._what} in the child, after the "
                "fork. The parent's goes on"
            )


def used_where_made(client: C) -> C:
    """Make all public methods and properties of a class raise `ForkedError` after a fork.

    Each object has its `OwnProcess` as `_process`. Its context manager does nothing at the end of a
    block in a child: the block began in the parent, and the parent ends it.
    """
    for name, member in list(vars(client).items()):
        if name in _CHECKING or (name.startswith("_") and name not in _SPECIAL):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(client, name, property(_checked(member.fget), doc=member.__doc__))
        elif callable(member):
            setattr(client, name, _checked(member))
    if hasattr(client, "__exit__"):
        client.__exit__ = _only_where_made(client.__exit__)
    return client


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    if iscoroutinefunction(method):  # And so is what is made of it: mocks and frameworks ask.

        @wraps(method)
        async def checked_awaited(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            self._process.check()
            return await method(self, *args, **kwargs)

        return checked_awaited

    @wraps(method)
    def checked(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._process.check()
        return method(self, *args, **kwargs)

    return checked


def _only_where_made(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def only_where_made(self: Any, /, *args: Any) -> Any:
        return method(self, *args) if self._process.is_here else None

    return only_where_made
