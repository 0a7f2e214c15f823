"""An `AIOConsumer` with the calls of a `KafkaConsumer`: each is held on a loop of its own."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from spark_kafka_source.aio import AIOConsumer
from spark_kafka_source.consumer.consumer_records import ConsumerRecord


class HeldConsumer:
    """`AIOConsumer` whose calls block until they are done."""

    def __init__(self, *positional: Any, **configuration: Any) -> None:
        self._loop = asyncio.new_event_loop()
        try:
            self._consumer = AIOConsumer(*positional, **configuration)
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> "HeldConsumer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._consumer, name)
        return self._blocking(found) if callable(found) else found

    def __iter__(self) -> Iterator[ConsumerRecord]:
        records = aiter(self._consumer)
        while True:
            yield self._loop.run_until_complete(anext(records))

    def close(self, *arguments: Any, **more: Any) -> None:
        if self._loop.is_closed():
            return
        try:
            self._blocking(self._consumer.close)(*arguments, **more)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def _blocking(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def blocking(*arguments: Any, **more: Any) -> Any:
            called = call(*arguments, **more)
            is_awaited = inspect.iscoroutine(called)
            return self._loop.run_until_complete(called) if is_awaited else called

        return blocking
