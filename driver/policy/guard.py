"""What can end a stage from outside: a signal, or the end of the daemon that started it."""

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from types import FrameType

from driver.policy.ending import Orphaned, Stopped

HEARTBEAT_FD = "TRIAL_HEARTBEAT_FD"
GONE_WITHIN_S = 0.08  # after the daemon's end, however stuck the stage may be
GONE = 70
MAX_MEMORY = 6 * 1024**3
_PARENT_ENDED = signal.SIGUSR2
_PR_SET_PDEATHSIG = 1


class Guard:
    """`ask` raises what has been asked for. The first wish counts, but an orphan always stops at once."""

    def __init__(self) -> None:
        self._stop: str | None = None
        self._orphaned = False
        self._parent = os.getppid()

    def ask(self) -> None:
        """:raises Orphaned: where the daemon is gone; :raises Stopped: where somebody stops the stage"""
        if self._orphaned:
            raise Orphaned
        if self._stop is not None:
            raise Stopped("operator", self._stop)

    def leave_if_orphaned(self) -> None:
        """Where the daemon is gone nobody listens, and a Python that tidies up first takes half a second."""
        if self._orphaned:
            os._exit(GONE)

    def install(self) -> None:
        """Take the signals, watch the daemon's pipe, and bound the memory of this process."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_stop)
        signal.signal(_PARENT_ENDED, self._on_parent_ended)
        _signal_at_parents_end()
        heartbeat = os.environ.get(HEARTBEAT_FD)
        if heartbeat:
            self._watch(int(heartbeat))
        _bound_memory()

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        self._stop = self._stop or signal.Signals(number).name

    def _on_parent_ended(self, _number: int, _frame: FrameType | None) -> None:
        # The kernel also says so when only the thread that started us has ended.
        if os.getppid() != self._parent:
            self._orphan()

    def _watch(self, heartbeat: int) -> None:
        def read() -> None:
            while os.read(heartbeat, 64):
                pass
            self._orphan()

        threading.Thread(target=read, daemon=True, name="heartbeat").start()

    def _orphan(self) -> None:
        """Let the loop brake, and leave the process for certain soon after."""
        if not self._orphaned:
            self._orphaned = True
            threading.Thread(target=_leave, daemon=True, name="leave").start()


def _leave() -> None:
    time.sleep(GONE_WITHIN_S)
    os._exit(GONE)


def _signal_at_parents_end() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(_PARENT_ENDED))


def _bound_memory() -> None:
    """A model of a few bytes can ask for gigabytes; then it fails instead of the machine."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > MAX_MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, hard))
