"""One node: a listening socket and its connections, in the event loop of the broker's thread."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from spark_kafka_source.protocol import (
    ApiVersionsRequest,
    Request,
    RequestHeader,
    Response,
    ResponseHeader,
    Versions,
    decode,
    decode_prefix,
    encode,
    request_header_version,
    response_header_version,
    versions,
)
from tests.memory_broker.answers import Action, Raw
from tests.memory_broker.cluster import REQUESTS
from tests.memory_broker.handlers import HOST, code

Respond = Callable[[int, Request[Any], int], Awaitable[Response | Raw | Action]]


class Node:
    """Frames in, frames out; `respond` says what with. Used within the event loop only."""

    def __init__(self, node_id: int, spoken: dict[int, Versions], respond: Respond) -> None:
        self.node_id = node_id
        self.port = 0
        self.accepted = 0
        self._spoken, self._respond = spoken, respond
        self._server: asyncio.Server | None = None
        self._conversations: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self) -> int:
        """Listens: on a free port at first, on the same one after a `stop`."""
        self._server = await asyncio.start_server(self._connected, HOST, self.port)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    async def stop(self) -> None:
        """Listens no more, and ends all conversations."""
        if self._server is not None:
            self._server.close()
            await self.hang_up()
            await self._server.wait_closed()
            self._server = None

    async def hang_up(self) -> None:
        """Closes all connections, but goes on listening."""
        ended = dict(self._conversations)
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        for writer in ended.values():  # A task that never began has not closed its own.
            await _close(writer)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._conversations[task] = writer
        task.add_done_callback(self._conversations.pop)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._answer_next(reader, writer):
                    pass
        finally:
            await _close(writer)

    async def _answer_next(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answers one request; whether to go on."""
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4)))
        request_type = REQUESTS[int.from_bytes(frame[:2])]
        version = int.from_bytes(frame[2:4])
        if not self._speaks(request_type, version):
            return False
        header, body = decode_prefix(
            RequestHeader, request_header_version(request_type, version), frame
        )
        answer = await self._respond(self.node_id, decode(request_type, version, body), version)
        if answer is Action.SILENCE:
            await asyncio.Event().wait()
        if not isinstance(answer, Action):
            writer.write(
                answer.data
                if isinstance(answer, Raw)
                else _frame(request_type, version, header.correlation_id, answer)
            )
            await writer.drain()
        return answer is not Action.CLOSE and not (isinstance(answer, Raw) and answer.close)

    def _speaks(self, request_type: type[Request[Any]], version: int) -> bool:
        """A real broker, too, hangs up on a version that it did not offer."""
        return request_type is ApiVersionsRequest or version in self._spoken[
            request_type.KEY
        ].common(versions(request_type))


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def _frame(
    request_type: type[Request[Any]], version: int, correlation_id: int, response: Response
) -> bytes:
    header_version = response_header_version(request_type, version)
    refused = getattr(response, "error_code", 0) == code("UNSUPPORTED_VERSION")
    if request_type is ApiVersionsRequest and refused:
        version = 0  # Whatever was asked for, the client must be able to read it (KIP-511).
    content = encode(ResponseHeader(correlation_id), header_version) + encode(response, version)
    return len(content).to_bytes(4) + content
