"""One stage while it runs: watched every 20 ms, stopped for what must stop it, and stopped for good."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from driver import said
from driver.box import Box
from driver.orders import StageCall
from driver.permission import End
from driver.stages import POLL_S, Ended, StageProcess, run_to_end
from driver.watch import Watch

log = logging.getLogger("driver")

GRACE_S = 10.0  # beyond duration and ramp, for a command that ends by itself: loading, settling, closing
SLOW_SIMULATION = 20.0  # a simulated body keeps its own clock; only a stuck one is cut off by ours
STOP_COMMAND_S = 20.0


class Cause(Enum):
    """Why the daemon stopped a stage's command."""

    OPERATOR = "operator"
    REVOKED = "revoked"
    DEADLINE = "deadline"
    LINK_LOST = "link_lost"
    LEAVING = "driver_stopped"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a stage ended, and whether that ends the run."""

    status: str
    reason: str | None
    end: End | None
    said: Mapping[str, Any]
    is_operators: bool  # an open-ended stage, ended as planned: by the operator
    output: bytes


def run_stage(box: Box, call: StageCall, watch: Watch, *, t0_s: float) -> Outcome:
    """Start the stage's command, watch it, stop it. Afterwards nothing of it is alive."""
    order = box.run_folder(call.accepted.approval_id) / f"{call.n:02d}-{call.name}.order.json"
    order.write_bytes(call.order(t0_s=t0_s))
    process = StageProcess(
        call.words(),
        approval_id=call.accepted.approval_id,
        environment=call.environment(),
        folder=box.config.folder,
        stdin=order,
        waits=box.waits,
    )
    cause = None
    try:
        cause = _watched(box, call, watch, process)
    finally:
        ended = process.stop()
        if not ended.was_clean:
            make_safe(box, call)
    return _outcome(call, cause, ended)


def _watched(box: Box, call: StageCall, watch: Watch, process: StageProcess) -> Cause | None:
    """Wait for the command's end or for a cause to stop it; None when it ended by itself."""
    began = box.clock.monotonic()
    most = longest_s(call)
    while process.status() is None:
        watch.check()
        if box.console.stop_asked.is_set():
            if call.stage["duration_s"] is None:
                box.console.stop_asked.clear()  # it has ended this stage; another one ends the run
            return Cause.OPERATOR
        if box.leaving.by is not None:
            return Cause(box.leaving.by)
        if watch.revoked.is_set():
            return Cause.REVOKED
        if box.clock.monotonic() - began > most:
            return Cause.DEADLINE
        # A stage with an end of its own goes on to it; one that a person steers remotely does not.
        if call.stage["duration_s"] is None and watch.offline_s() > box.config.limits.max_offline_s:
            return Cause.LINK_LOST
        time.sleep(POLL_S)
    return None


def longest_s(call: StageCall) -> float:
    """How long the command may run by this box's clock."""
    limits = call.config.limits
    duration = call.stage["duration_s"]
    if duration is None:
        most = limits.max_stage_s
    else:
        most = min(duration, limits.max_stage_s) + limits.ramp_s + GRACE_S
    return float(most * SLOW_SIMULATION if call.config.device.simulated else most)


def make_safe(box: Box, call: StageCall) -> None:
    """Run the stop command after an unclean end. When it fails too, a person must look first."""
    words = call.stop_words()
    if not words:
        return
    process = StageProcess(
        words,
        approval_id=call.accepted.approval_id,
        environment=call.environment(),
        folder=box.config.folder,
        waits=box.waits,
    )
    ended = run_to_end(process, within_s=STOP_COMMAND_S)
    if not ended.was_clean:
        log.error("the stop command of %s failed: %s", call.name, ended.in_words())
        box.journal.attend(f"the stop command of stage {call.name} failed: {ended.in_words()}")


def _outcome(call: StageCall, cause: Cause | None, ended: Ended) -> Outcome:
    words = said.read(ended.output, call.command)
    status, reason, end = _judged(call, cause, ended, words)
    is_operators = cause is Cause.OPERATOR and end is None
    return Outcome(
        status=status, reason=reason, end=end, said=words, is_operators=is_operators, output=ended.output
    )


def _judged(
    call: StageCall, cause: Cause | None, ended: Ended, words: Mapping[str, Any]
) -> tuple[str, str | None, End | None]:
    """Status and reason of the stage, and the end of the run where it is one."""
    reason, stopped_by = words.get("reason"), words.get("stopped_by", "completed")
    by_itself = stopped_by not in ("completed", "operator")  # a rule, an emergency stop: what the command saw
    if cause in (None, Cause.DEADLINE, Cause.OPERATOR) and not ended.was_clean:
        is_cut_short = cause is Cause.OPERATOR and call.stage["duration_s"] is not None
        usual = "operator" if is_cut_short else "command_failed"
        reason = reason or ended.in_words()
        return "failed", reason, End(stopped_by if by_itself else usual, f"{call.name}: {reason}")
    if by_itself or (cause is None and stopped_by == "operator"):
        return "aborted", reason, End(stopped_by, reason)
    if cause is None:
        return "done", reason, None
    if cause is Cause.DEADLINE:
        return "done", "stopped by the daemon at the end of its time", None
    if cause is Cause.OPERATOR and call.stage["duration_s"] is None:
        return "done", "ended by the operator", None
    return "aborted", _REASONS[cause], End(cause.value, f"{call.name}: {_REASONS[cause]}")


_REASONS = {
    Cause.OPERATOR: "stopped at the box",
    Cause.REVOKED: "the consent was revoked",
    Cause.LINK_LOST: "the hub was out of reach for longer than limits.max_offline_s",
    Cause.LEAVING: "the daemon was asked to leave",
}
