"""A command's output: always read, so that it never blocks, and only its end is kept."""

import os
import threading

KEPT = 64 * 1024


class Output:
    """Reads a pipe to its end in its own thread. What is beyond the last 64 kB is counted and dropped."""

    def __init__(self, handle: int) -> None:
        self.total = 0
        self._handle, self._tail = handle, bytearray()
        self._thread = threading.Thread(target=self._read, name="stage-output", daemon=True)
        self._thread.start()

    def tail(self, *, wait_s: float) -> bytes:
        """The last of it. A process that got away may hold the pipe open, so the wait has an end."""
        self._thread.join(wait_s)
        return bytes(self._tail[-KEPT:])

    def _read(self) -> None:
        with open(self._handle, "rb", buffering=0) as pipe:  # noqa: PTH123  # a handle, not a path
            while chunk := os.read(pipe.fileno(), KEPT):
                self.total += len(chunk)
                self._tail = (self._tail + chunk)[-KEPT:]
