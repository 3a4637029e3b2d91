"""The rows' way to the file, without ever holding up the loop."""

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from driver.policy.rows import Row
from driver.wire import csvlog

QUEUE_ROWS = 3000  # a minute at 50 Hz
CLOSE_WITHIN_S = 5.0


class CsvFile:
    """The log on disk: every row is handed to the system as it comes, and is on the disk at the end."""

    def __init__(self, path: Path, columns: tuple[str, ...]) -> None:
        self._file = path.open("wb")
        self._writer = csvlog.Writer(self._file, columns)

    def write(self, row: Sequence[float | None]) -> None:
        self._writer.write(row)
        self._file.flush()

    def close(self) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())


class Sink(Protocol):
    def write(self, row: Sequence[float | None]) -> None: ...

    def close(self) -> None: ...


OpenSink = Callable[[Path, tuple[str, ...]], Sink]


class LogFile:
    """
    Hands rows to a sink in a thread of its own, which also opens and closes it.

    Where the world does not wait, a full queue drops the row and counts it; a simulation waits instead.
    """

    def __init__(
        self,
        path: Path,
        *,
        may_wait: bool,
        size: int = QUEUE_ROWS,
        close_within_s: float = CLOSE_WITHIN_S,
        open_sink: OpenSink = CsvFile,
    ) -> None:
        self.error: OSError | None = None
        self.dropped = 0
        self._close_within_s = close_within_s
        self._path, self._may_wait, self._open_sink = path, may_wait, open_sink
        self._rows: queue.Queue[Row | None] = queue.Queue(size)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, columns: tuple[str, ...]) -> Self:
        """Begin the file. One without a single row is never begun."""
        self._thread = threading.Thread(target=self._drain, args=(columns,), daemon=True, name="log")
        self._thread.start()
        return self

    def write(self, row: Row) -> None:
        """:raises OSError: what kept the thread from writing"""
        if self.error is not None:
            raise self.error
        try:
            self._rows.put(row, block=self._may_wait)
        except queue.Full:
            self.dropped += 1

    def close(self) -> None:
        """
        Write what waits, then close the file. What a stuck disk still holds back after a while is lost.

        Whatever the file lacks then is in `error`.
        """
        if self._thread is None:
            return
        with contextlib.suppress(queue.Full):
            self._rows.put(None, timeout=self._close_within_s)
            self._thread.join(self._close_within_s)
        self.error = self.error or self._lost()

    def _lost(self) -> OSError | None:
        if self._thread is not None and self._thread.is_alive():
            waiting = self._rows.qsize() + self.dropped
            return OSError(
                f"its disk does not keep up: it is not closed, and up to {waiting + 1} rows are lost"
            )
        if self.dropped:
            return OSError(f"its disk does not keep up: {self.dropped} rows were dropped")
        return None

    def _drain(self, columns: tuple[str, ...]) -> None:
        waiting = iter(self._rows.get, None)
        try:
            with contextlib.closing(self._open_sink(self._path, columns)) as sink:
                for row in waiting:
                    sink.write(row)
        except OSError as error:
            self.error = error
            for _ in waiting:
                pass  # so that nobody waits for room in the queue
