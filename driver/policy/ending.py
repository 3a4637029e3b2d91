"""How a stage ended, and the line that says so to the daemon."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TextIO

from driver.bodies.base import State


class Stopped(Exception):
    """The stage must end now; `stopped_by` is one of the vocabulary's words."""

    def __init__(self, stopped_by: str, reason: str | None = None) -> None:
        super().__init__(f"{stopped_by}: {reason}" if reason else stopped_by)
        self.stopped_by = stopped_by
        self.reason = reason


class Orphaned(Exception):
    """Whoever started the stage is gone: damping at once, without holding the last target first."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What the last line of stdout says."""

    stopped_by: str
    reason: str | None
    motor_temps_c: Mapping[str, float] | None
    battery_v: float | None
    fell: bool | None
    tilt_protection: Mapping[str, bool | float | None]
    clamped_ticks: int
    simulated_clock: bool

    @property
    def as_planned(self) -> bool:
        """False where it was the command itself that failed, which its exit code tells too."""
        return self.stopped_by != "command_failed"


def refused(reason: str) -> Ending:
    """Before anything was touched."""
    return Ending(
        stopped_by="command_failed",
        reason=reason,
        motor_temps_c=None,
        battery_v=None,
        fell=None,
        tilt_protection={"armed": False, "threshold_deg": None},
        clamped_ticks=0,
        simulated_clock=False,
    )


def failed(ending: Ending, reason: str) -> Ending:
    """The same, except that the command has failed in the end; what had stopped it before is said too."""
    before = (
        ending.reason
        if ending.stopped_by == "command_failed"
        else str(Stopped(ending.stopped_by, ending.reason))
    )
    said = reason if not before or before == reason else f"{reason} (before that: {before})"
    return replace(ending, stopped_by="command_failed", reason=said)


def say(ending: Ending, out: TextIO) -> None:
    print("TRIAL-STOP " + json.dumps(asdict(ending), allow_nan=False), file=out, flush=True)


def known(value: float | None) -> float | None:
    """The value, when it is a reading at all."""
    return value if value is not None and math.isfinite(value) else None


def temperatures(joints: tuple[str, ...], state: State | None) -> dict[str, float] | None:
    """Joint -> °C for the motors that have a reading; None where the body has none at all."""
    if state is None or state.temps_c is None:
        return None
    pairs = zip(joints, state.temps_c.tolist(), strict=True)
    return {joint: value for joint, value in pairs if math.isfinite(value)}
