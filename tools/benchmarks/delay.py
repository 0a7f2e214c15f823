"""A proxy in its own process. It delays data in each direction by half the round trip.

The proxy does not parse the data. So the broker must tell its clients to connect to the proxy: see
`LocalKafka(advertised_ports=...)`.
"""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK_BYTES = 1 << 20
# Most chunks in flight. A real network holds its bandwidth times its delay.
_MOST_CHUNKS = 256


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_seconds: float
) -> None:
    loop = asyncio.get_running_loop()
    on_its_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_MOST_CHUNKS)

    async def deliver() -> None:
        while True:
            due_seconds, data = await on_its_way.get()
            if due_seconds > loop.time():
                await asyncio.sleep(due_seconds - loop.time())
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    delivering = asyncio.create_task(deliver())
    try:
        while data := await reader.read(_CHUNK_BYTES):
            await on_its_way.put((loop.time() + delay_seconds, data))
    except ConnectionError:
        pass
    await on_its_way.put((loop.time() + delay_seconds, b""))
    await delivering


async def _serve(port: int, target: int, round_trip_ms: float) -> None:
    delay_seconds = round_trip_ms / 2000

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", target, limit=_CHUNK_BYTES)
        for each in (writer, there[1]):
            each.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await asyncio.gather(
                _pass_on(reader, there[1], delay_seconds),
                _pass_on(there[0], writer, delay_seconds),
            )
        except (ConnectionError, asyncio.CancelledError):
            there[1].close()
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port, limit=_CHUNK_BYTES)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def delayed(port: int, target: int, round_trip_ms: float) -> Iterator[None]:
    """Listen on `port` for `target` until the context ends."""
    command = [sys.executable, "-m", __name__, str(port), str(target), str(round_trip_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
