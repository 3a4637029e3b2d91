"""How long a process outlives another one, by the kernel: a pidfd is readable once its process has ended."""

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

TICK_S = 0.002


def outlived_s(process: subprocess.Popen[bytes], child: int, *, within_s: float = 10.0) -> float:
    """Kill a process outright, and give how long the child went on after its end."""
    with ExitStack() as stack:
        ends = [os.pidfd_open(pid) for pid in (process.pid, child)]
        for end in ends:
            stack.callback(os.close, end)
        os.kill(process.pid, signal.SIGKILL)
        began, gone = (_ended(end, within_s) for end in ends)
    process.wait()
    return max(0.0, gone - began)


def _ended(end: int, within_s: float) -> float:
    found, _, _ = select.select([end], [], [], within_s)
    assert found, f"it still lives after {within_s} s"
    return time.monotonic()


class Lateness:
    """How late this machine woke somebody up at the worst, while a thread asked to be woken all the time."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._is_over = threading.Event()

    def measure(self) -> None:
        while not self._is_over.is_set():
            before = time.monotonic()
            time.sleep(TICK_S)
            self.worst_s = max(self.worst_s, time.monotonic() - before - TICK_S)

    def end(self) -> None:
        self._is_over.set()


@contextmanager
def lateness() -> Iterator[Lateness]:
    measured = Lateness()
    thread = threading.Thread(target=measured.measure)
    thread.start()
    try:
        yield measured
    finally:
        measured.end()
        thread.join()
