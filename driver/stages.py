"""The command of a stage: starts it, says by looking whether it runs, stops it and all that it started."""

import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from driver import launch
from driver.output import Output

log = logging.getLogger("driver")

MARK = "TRIAL_APPROVAL_ID"  # in the environment of all that a stage starts
HEARTBEAT = "TRIAL_HEARTBEAT_FD"
POLL_S = 0.02
PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Waits:
    """How long a command has after SIGINT and after SIGTERM, before the next, harder word."""

    interrupt_s: float = 5.0
    terminate_s: float = 3.0
    kill_s: float = 5.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended. `was_clean`: by itself or when asked, with 0, leaving nothing behind."""

    code: int
    was_killed: bool
    leftovers: int
    output: bytes

    @property
    def was_clean(self) -> bool:
        return self.code == 0 and not self.was_killed and not self.leftovers

    def in_words(self) -> str:
        if self.was_killed:
            return "it did not stop when asked, and was killed"
        if self.code < 0:
            return f"it was ended by {signal.Signals(-self.code).name}"
        left = f", leaving {self.leftovers} processes behind" if self.leftovers else ""
        return f"it ended with {self.code}{left}"


class StageProcess:
    """One command in a session of its own, from its start on. `status` and `stop` as often as one likes."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        approval_id: str,
        environment: Mapping[str, str],
        folder: Path,
        stdin: Path = Path(os.devnull),
        waits: Waits = Waits(),
    ) -> None:
        self.approval_id, self.waits = approval_id, waits
        self._ended: Ended | None = None
        said, into = os.pipe()
        ear, self._heartbeat = os.pipe()  # our end closes when we die, whatever ends us
        try:
            with stdin.open("rb") as order:
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *words],
                    stdin=order,
                    stdout=into,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env={**environment, MARK: approval_id, HEARTBEAT: str(ear)},
                    pass_fds=(ear,),
                    start_new_session=True,
                )
        finally:
            os.close(ear)
            os.close(into)
        self.output = Output(said)

    def status(self) -> int | None:
        """The exit code, or None while it runs."""
        return self.process.poll()

    def stop(self) -> Ended:
        """Ask, ask harder, kill; afterwards nothing that the command started is alive."""
        if self._ended is None:
            was_killed = self._ask_to_stop()
            leftovers = end_leftovers(self.approval_id, besides=self.process.pid, waits=self.waits)
            os.close(self._heartbeat)
            output = self.output.tail(wait_s=1.0)
            self._ended = Ended(
                code=self.process.returncode, was_killed=was_killed, leftovers=leftovers, output=output
            )
        return self._ended

    def _ask_to_stop(self) -> bool:
        asks = ((signal.SIGINT, self.waits.interrupt_s), (signal.SIGTERM, self.waits.terminate_s))
        for asked, wait_s in asks:
            if self.process.poll() is not None:
                return False
            _signal_group(self.process.pid, asked)
            try:
                self.process.wait(wait_s)
            except subprocess.TimeoutExpired:
                log.warning("the stage's command goes on %s s after %s", wait_s, asked.name)
        if self.process.poll() is not None:
            return False
        _signal_group(self.process.pid, signal.SIGKILL)
        self.process.wait(self.waits.kill_s)
        return True


def _signal_group(group: int, asked: signal.Signals) -> None:
    try:
        os.killpg(group, asked)
    except ProcessLookupError:
        return


def end_leftovers(approval_id: str, *, besides: int | None = None, waits: Waits = Waits()) -> int:
    """
    End what a stage of this approval left running, also what has left its group or its session.

    The daemon is the reaper of its orphans, so what got away is still among its children.
    """
    found = leftovers(approval_id, besides=besides)
    if not found:
        return 0
    for asked, wait_s in ((signal.SIGTERM, waits.terminate_s), (signal.SIGKILL, waits.kill_s)):
        for process in found:
            _signal(process, asked)
        _, alive = psutil.wait_procs(found, timeout=wait_s)
        if not alive:
            break
    return len(found)


def leftovers(approval_id: str, *, besides: int | None = None) -> list[psutil.Process]:
    own = {
        child.pid for child in psutil.Process().children(recursive=True) if _is_of_another_session(child.pid)
    }
    return [
        process
        for process in psutil.process_iter()
        if process.pid not in (besides, os.getpid())
        and (process.pid in own or _is_marked(process, approval_id))
        and _is_alive(process)
    ]


def _is_of_another_session(pid: int) -> bool:
    try:
        return os.getsid(pid) != os.getsid(0)
    except ProcessLookupError:
        return False


def _is_marked(process: psutil.Process, approval_id: str) -> bool:
    try:
        return process.environ().get(MARK) == approval_id
    except (psutil.Error, OSError):
        return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        if process.status() != psutil.STATUS_ZOMBIE:
            return True
        process.wait(0)  # an orphan that became ours has nobody else to bury it
    except (psutil.Error, OSError):
        pass
    return False


def _signal(process: psutil.Process, asked: signal.Signals) -> None:
    try:
        process.send_signal(asked)
    except psutil.Error:
        return


def become_reaper() -> None:
    """Make orphans of a stage ours, however often their parents forked."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run_to_end(process: StageProcess, *, within_s: float) -> Ended:
    """Wait for a short command; one that takes too long is stopped and counts as killed."""
    until = time.monotonic() + within_s
    while process.status() is None and time.monotonic() < until:
        time.sleep(POLL_S)
    is_late = process.status() is None
    ended = process.stop()
    return replace(ended, was_killed=ended.was_killed or is_late)
