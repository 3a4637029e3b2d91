"""
A trial's status, derived from its approval, log and verdict; and which trial of a session may start next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from trials.rules.runs import LogState, Role

Status = Literal[
    "planned",
    "awaiting_approval",
    "ready",
    "running",
    "awaiting_log",
    "needs_verdict",
    "measured",
    "decided",
    "closed",
]
STATUSES: tuple[Status, ...] = get_args(Status)

STARTED = frozenset({"running", "stopped"})
ENDED_WITHOUT_START = frozenset({"declined", "withdrawn", "expired", "revoked"})


@dataclass(frozen=True, kw_only=True)
class Standing:
    """
    What a trial's status comes from.

    `approval` is the state of its last approval, None while it has none. `log` is None or `awaiting` until
    the driver's word on it is recorded. `is_overtaken` means that a later trial of the session has started;
    `is_cancelled`, that the session was cancelled.
    """

    trial: str
    position: int
    role: Role
    approval: str | None = None
    log: LogState | None = None
    has_verdict: bool = False
    is_overtaken: bool = False
    is_cancelled: bool = False

    @property
    def has_started(self) -> bool:
        return self.approval in STARTED

    @property
    def has_stopped(self) -> bool:
        return self.approval == "stopped"


def status(trial: Standing) -> Status:
    if is_closed(trial):
        return "closed"
    if trial.approval is None:
        return "planned"
    if trial.approval == "stopped":
        return _after_run(trial)
    return _BEFORE_STOP[trial.approval]


def is_closed(trial: Standing) -> bool:
    """
    Its last approval ended without a start, or its session went on or was called off before it had one
    (C4-09).
    """
    if trial.approval is None:
        return trial.is_overtaken or trial.is_cancelled
    return trial.approval in ENDED_WITHOUT_START


def is_closed_for_good(trial: Standing) -> bool:
    """Closed, and no new request can be filed for it."""
    return is_closed(trial) and (trial.is_overtaken or trial.is_cancelled)


def needs_request(trial: Standing) -> bool:
    """Whether naming a device files a request for it: it never had one, or the last ended without a start."""
    return (trial.approval is None or is_closed(trial)) and not (trial.is_overtaken or trial.is_cancelled)


def blocking(trials: Sequence[Standing], position: int) -> Standing | None:
    """
    The first earlier trial that has neither stopped nor closed (C4-02), or None when this position may start.
    """
    earlier = sorted(
        (trial for trial in trials if trial.position < position), key=lambda trial: trial.position
    )
    return next((trial for trial in earlier if not (trial.has_stopped or is_closed(trial))), None)


_BEFORE_STOP: dict[str, Status] = {
    "requested": "awaiting_approval",
    "issued": "ready",
    "running": "running",
}


def _after_run(trial: Standing) -> Status:
    if trial.has_verdict:
        return "decided"
    if trial.log in (None, "awaiting"):
        return "awaiting_log"
    return "measured" if trial.role == "control" else "needs_verdict"
