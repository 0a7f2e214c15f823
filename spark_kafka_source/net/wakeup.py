"""A way for one thread to end another's wait for connections."""

import contextlib
import socket


class Wakeup:
    """An object that `readable` waits for, until any thread calls `wake`."""

    def __init__(self) -> None:
        self._heard, self._said = socket.socketpair()
        self._heard.setblocking(False)
        self._said.setblocking(False)

    def wake(self) -> None:
        """End the wait, or the next one. Never raises, not even once it is closed."""
        with contextlib.suppress(OSError):  # A full buffer wakes the reader as well.
            self._said.send(b"\0")

    def clear(self) -> None:
        """Forget all calls of `wake` so far."""
        with contextlib.suppress(OSError):
            while self._heard.recv(4096):
                pass

    def fileno(self) -> int:
        """Return a descriptor: readable once it is woken, -1 once it is closed."""
        return self._heard.fileno()

    def __del__(self) -> None:
        # Another thread may still wait while the owner closes everything. So the last user closes
        # the sockets.
        if hasattr(self, "_said"):
            self.close()

    def close(self) -> None:
        """Close it. Wake a waiting thread first."""
        self._said.close()
        self._heard.close()
