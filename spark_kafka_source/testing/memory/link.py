"""Connections of a node: a socket of the event loop, with or without TLS."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")

_STEP_BYTES = 64 * 1024


class Link(Protocol):
    """A connection of a node, plain or by TLS."""

    async def recv(self, size: int) -> bytes:
        """Return at most `size` bytes. At the end of the stream, return no byte."""
        ...

    async def sendall(self, data: bytes) -> None:
        """Send all bytes."""
        ...


class PlainLink:
    """A connection without TLS."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link

    async def recv(self, size: int) -> bytes:
        """Return at most `size` bytes. At the end of the stream, return no byte."""
        return await asyncio.get_running_loop().sock_recv(self._link, size)

    async def sendall(self, data: bytes) -> None:
        """Send all bytes."""
        await asyncio.get_running_loop().sock_sendall(self._link, data)


class TlsLink:
    """The server's side of a TLS connection; see `handshake`."""

    def __init__(self, link: socket.socket, context: ssl.SSLContext) -> None:
        self._link = PlainLink(link)
        self._socket = link
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def handshake(self) -> None:
        """Do the TLS handshake. A failure sends an alert and raises `ConnectionResetError`."""
        await self._through(self._tls.do_handshake)

    async def recv(self, size: int) -> bytes:
        """Return at most `size` bytes. At the end of the stream, return no byte."""
        return await self._through(lambda: self._tls.read(size))

    async def sendall(self, data: bytes) -> None:
        """Send all bytes."""
        await self._through(lambda: self._tls.write(data))

    async def _through(self, step: Callable[[], T]) -> T:
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                await self._flush()
                data = await self._link.recv(_STEP_BYTES)
                if not data:
                    raise ConnectionResetError from None
                self._incoming.write(data)
            except ssl.SSLError:
                await self._part()
                raise ConnectionResetError from None
            else:
                await self._flush()
                return done

    async def _flush(self) -> None:
        await self._link.sendall(self._outgoing.read())

    async def _part(self) -> None:
        """Send the alert, and read until the client closes: a reset could overtake the alert."""
        with contextlib.suppress(OSError):
            await self._flush()
            self._socket.shutdown(socket.SHUT_WR)
            while await self._link.recv(_STEP_BYTES):
                pass
