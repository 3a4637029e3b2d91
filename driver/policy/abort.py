"""When a stage must stop: the sheet's abort rules and the box's own limits, asked on every tick."""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from driver.bodies.base import Array, State
from driver.policy.order import AbortRule, Limits, Stage

Readings = Mapping[str, float | None]

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def rules_for(stage: Stage, rules: Sequence[AbortRule], limits: Limits) -> tuple[AbortRule, ...]:
    """The sheet's rules that are meant for this stage, and the box's own. What hangs may tilt."""
    meant = tuple(rule for rule in rules if not rule.stages or stage.name in rule.stages)
    tilt = (AbortRule(metric="tilt_deg", op=">", value=limits.tilt_deg),) if stage.free_standing else ()
    return (
        *meant,
        *tilt,
        AbortRule(metric="temp_c", op=">", value=limits.temp_c),
        AbortRule(metric="joint_vel_rad_s", op=">", value=limits.joint_vel_rad_s),
    )


def tilt_threshold(rules: Sequence[AbortRule]) -> float | None:
    """The tilt at which the stage is stopped, by the strictest rule; None when no rule would."""
    return min(
        (rule.value for rule in rules if rule.metric == "tilt_deg" and rule.op in (">", ">=")), default=None
    )


def tilt_deg(gravity: Array) -> float | None:
    """The angle between the body's down and gravity; None where the vector is no direction."""
    x, y, z = gravity.tolist()
    norm = math.sqrt(x * x + y * y + z * z)
    if not 0.5 <= norm <= 1.5:
        return None
    return math.degrees(math.acos(max(-1.0, min(1.0, -z / norm))))


def blindness(state: State) -> str | None:
    """Why a rule on the tilt would not see a fall in this reading, in words; None where it would."""
    if tilt_deg(state.gravity) is None:
        x, y, z = state.gravity.tolist()
        return f"the body's gravity ({x:.3g}, {y:.3g}, {z:.3g}) is no direction, so a fall would not be seen"
    if not np.isfinite(state.ang_vel).all():
        return "the body's angular velocity is not finite, so a fall would not be seen"
    return None


def readings(
    state: State,
    *,
    gap_s: float | None,
    command_age_s: float | None = None,
    targets: Array | None = None,
    action: Array | None = None,
) -> dict[str, float | None]:
    """What every abort metric reads on this tick; None for what is not measured."""
    return {
        "tilt_deg": tilt_deg(state.gravity),
        "joint_error_rad": None if targets is None else float(np.abs(targets - state.joint_pos).max()),
        "joint_vel_rad_s": float(np.abs(state.joint_vel).max()),
        "temp_c": _hottest(state.temps_c),
        "battery_v": state.battery_v,
        "loop_gap_ms": _ms(gap_s),
        "action_abs": None if action is None else float(np.abs(action).max()),
        "state_age_ms": _ms(state.age_s),
        "command_age_ms": _ms(command_age_s),
    }


def _hottest(temps_c: Array | None) -> float | None:
    known = [] if temps_c is None else [value for value in temps_c.tolist() if math.isfinite(value)]
    return max(known, default=None)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000.0 * seconds


@dataclass
class AbortWatch:
    """Remembers since when each rule has been broken."""

    rules: Sequence[AbortRule]
    since: dict[int, float] = field(default_factory=dict)

    def tripped(self, readings: Readings, now: float) -> AbortRule | None:
        """The first rule that has been broken for long enough. What is not measured breaks nothing."""
        for place, rule in enumerate(self.rules):
            value = readings.get(rule.metric)
            if value is None or not _COMPARE[rule.op](value, rule.value):
                self.since.pop(place, None)
            elif now - self.since.setdefault(place, now) >= rule.for_s - 1e-9:
                return rule
        return None
