"""Threads at the end of the interpreter."""

import threading


def start(thread: threading.Thread) -> bool:
    """Start a thread. Return False if none starts any more, since the interpreter ends.

    That is so from Python 3.12 on. A producer that nobody has closed still sends its last records
    then, and the caller does the work of the thread. Raises `RuntimeError` if the process can have
    no more threads.
    """
    try:
        thread.start()
    except RuntimeError as error:
        if "interpreter shutdown" not in str(error):
            raise
        return False
    return True
