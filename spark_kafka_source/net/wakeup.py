"""How one thread ends another's wait for connections."""

import contextlib
import socket


class Wakeup:
    """Something that `readable` waits for, until any thread calls `wake`."""

    def __init__(self) -> None:
        self._heard, self._said = socket.socketpair()
        self._heard.setblocking(False)
        self._said.setblocking(False)

    def wake(self) -> None:
        """Ends the wait, or the next one. Never raises, also not once it is closed."""
        with contextlib.suppress(OSError):  # One that is full wakes as well.
            self._said.send(b"\0")

    def clear(self) -> None:
        """Forgets all calls of `wake` so far."""
        with contextlib.suppress(OSError):
            while self._heard.recv(4096):
                pass

    def fileno(self) -> int:
        """Readable once it is to wake; -1 once it is closed."""
        return self._heard.fileno()

    def __del__(self) -> None:
        # Another thread may still wait when its user closes all: it is closed with its last user.
        if hasattr(self, "_said"):
            self.close()

    def close(self) -> None:
        """Close it. A thread that waits must be woken before."""
        self._said.close()
        self._heard.close()
