"""The numbers of a trial, from its logs: the same functions on the box, at the hub and offline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driver.wire import formulas
from driver.wire.csvlog import Log, is_listed
from driver.wire.formulas import Column
from driver.wire.robot import Pair
from driver.wire.vocabulary import FORMULAS

SAME = 1e-6  # numbers of hub and driver that differ by no more agree
FAR_ASYM_DEG = 10.0  # so far from the control's while hanging, joints are likely in another order
FAR_TRACKING_RAD = 0.3


# What overflows is null in the end, and no reader of a log's numbers is helped by a line on stderr.
_QUIET = np.errstate(all="ignore")


@dataclass(frozen=True, kw_only=True)
class Protection:
    """Whether a stage command watched the tilt, and from where on it would have stopped."""

    armed: bool = False
    threshold_deg: float | None = None


@dataclass(frozen=True, kw_only=True)
class StageLog:
    """One stage as it ran. `log` is None for a stage that did not run or left none."""

    name: str
    log: Log | None = None
    status: str = "done"
    free_standing: bool = False
    reason: str | None = None
    t0_s: float | None = None
    duration_s: float | None = None
    protection: Protection = Protection()
    simulated_clock: bool = False

    @property
    def has_run(self) -> bool:
        return self.status != "not_run"


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What the run sheet says about judging, and nothing else decides."""

    stage: str
    pairs: Sequence[Pair] = ()
    formulas: int = FORMULAS

    @classmethod
    def of_sheet(cls, sheet: Mapping[str, Any]) -> "Judging":
        said = sheet["judging"]
        pairs = tuple(Pair(**pair) for pair in said["pairs"])
        return cls(stage=said["stage"], pairs=pairs, formulas=said["formulas"])


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What the logs cannot say about a run."""

    stopped_by: str | None = None
    reason: str | None = None
    simulated: bool = False
    motor_temps_c: Mapping[str, float | None] | None = None
    battery_start_v: float | None = None
    battery_end_v: float | None = None
    clamped_ticks: int | None = None
    warnings: Sequence[str] = field(default_factory=tuple)


@_QUIET
def summarize(stages: Sequence[StageLog], *, judging: Judging, run: RunFacts) -> dict[str, Any]:
    """The whole summary, in the shape that a device signs."""
    judged = _judged(stages, judging)
    derived = rederive(stages, judging)
    temps, temps_said = _temps(stages, run)
    battery, battery_said = _battery(stages, run)
    said = [*run.warnings, *temps_said, *battery_said, *_warnings(stages, judged, derived)]
    return {
        "version": 1,
        "judged_stage": judging.stage,
        "window": _window(judged),
        **derived,
        "loop_hz": _loop_hz(judged),
        "log_hz": _log_hz(judged),
        "temp_max_c": max(_known(temps.values()), default=None),
        "motor_temps_c": temps,
        "battery": battery,
        "falls": _falls(stages),
        "tilt_protection": _protection(stages, judging),
        "clamped_ticks": run.clamped_ticks,
        "stopped_by": run.stopped_by,
        "reason": run.reason,
        "stages": [_stage(stage) for stage in stages],
        "clock": {
            "dups": sum(log.dups for log in _logs(stages)),
            "gaps": sum(formulas.gaps(log.array("t")) for log in _logs(stages)),
        },
        "dropped": _dropped(stages),
        "simulated": run.simulated,
        "warnings": said[:50],
    }


@_QUIET
def rederive(stages: Sequence[StageLog], judging: Judging) -> dict[str, Any]:
    """The numbers that the log alone gives: what the hub checks a driver's summary against."""
    judged = _judged(stages, judging)
    log = judged.log if judged else None
    if log is None or (start := _start(log)) is None:
        return {
            "tilt_mean_deg": None,
            "tilt_max_deg": None,
            "asym_max_deg": None,
            "asym_deg": {pair.name: None for pair in judging.pairs},
            "tracking_error_rad": {},
        }
    joints = [name[2:] for name in log.columns if name.startswith("q:")]
    tracked = [joint for joint in joints if f"tgt:{joint}" in log.columns]
    names = [f"q:{joint}" for joint in joints] + [f"tgt:{joint}" for joint in tracked]
    columns = log.tail([*names, *formulas.gravity_columns(log.columns)], start=start)
    tilt = formulas.readings(formulas.tilt(columns, log.rows - start))
    asym = {pair.name: formulas.asymmetry(pair, columns) for pair in judging.pairs}
    return {
        "tilt_mean_deg": formulas.mean(tilt),
        "tilt_max_deg": formulas.number(tilt.max()) if tilt.size else None,
        "asym_max_deg": _worst(asym.values()),
        "asym_deg": asym,
        "tracking_error_rad": {joint: formulas.tracking(joint, columns) for joint in tracked},
    }


def compare(driver: Mapping[str, Any], hub: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a driver's summary says what the hub derived from the same bytes, number by number."""
    mine, theirs = _flat(hub), _flat({key: driver.get(key) for key in hub})
    differences = [
        {"key": key, "driver": theirs.get(key), "hub": mine.get(key)}
        for key in sorted({*mine, *theirs})
        if not _agree(theirs.get(key), mine.get(key))
    ]
    return {"state": "differs" if differences else "agrees", "differences": differences}


@_QUIET
def tilt_deg(log: Log) -> Column:
    """How far the body leans, row by row; NaN where the log cannot tell."""
    return formulas.tilt(log.tail(formulas.gravity_columns(log.columns)), log.rows)


def joint_order_warning(hang: Mapping[str, Any], control: Mapping[str, Any]) -> str | None:
    """
    Say when a robot that hangs looks as if its joints had been read in another order.

    Both are what `rederive` gives of a hang stage, of this run and of the session's control.
    """
    mine, theirs = hang["asym_max_deg"], control["asym_max_deg"]
    if mine is not None and theirs is not None and abs(mine - theirs) > FAR_ASYM_DEG:
        return f"joint order? the asymmetry while hanging is {mine:.1f}°, the control's is {theirs:.1f}°"
    for joint, error in hang["tracking_error_rad"].items():
        other = control["tracking_error_rad"].get(joint)
        if error is not None and other is not None and abs(error - other) > FAR_TRACKING_RAD:
            return (
                f"joint order? {joint} misses its target by {error:.2f} rad, the control's by {other:.2f} rad"
            )
    return None


def _judged(stages: Sequence[StageLog], judging: Judging) -> StageLog | None:
    return next((stage for stage in stages if stage.name == judging.stage), None)


def _logs(stages: Sequence[StageLog]) -> list[Log]:
    return [stage.log for stage in stages if stage.log is not None]


def _start(log: Log) -> int | None:
    """The window's first row, or nothing where it has fewer than two."""
    inside = formulas.window_rows(log.array("t"))
    return int(inside.argmax()) if np.count_nonzero(inside) >= 2 else None


def _window(judged: StageLog | None) -> dict[str, Any]:
    log = judged.log if judged else None
    if log is None or (start := _start(log)) is None:
        return {"t0": None, "t1": None, "rows": 0}
    t = log.array("t")
    return {
        "t0": formulas.number(t[start] - t[0]),
        "t1": formulas.number(t[-1] - t[0]),
        "rows": log.rows - start,
    }


def _log_hz(judged: StageLog | None) -> float | None:
    if judged is None or judged.log is None:
        return None
    t = judged.log.array("t")
    return formulas.rate(judged.log.rows - 1, t[-1] - t[0])


def _loop_hz(judged: StageLog | None) -> float | None:
    """The control loop's own rate. A simulated clock keeps no time, so it has none."""
    log = judged.log if judged else None
    if judged is None or log is None or judged.simulated_clock or "tick" not in log.columns:
        return None
    tick, t = log.array("tick"), log.array("t")
    read = np.flatnonzero(~np.isnan(tick))
    if not read.size:
        return None
    first, last = read[0], read[-1]
    return formulas.rate(tick[last] - tick[first], t[last] - t[first])


def _falls(stages: Sequence[StageLog]) -> int | None:
    """Rising edges of `fall`; unknown unless a fall would have been seen on every free-standing stage."""
    ran = [stage for stage in stages if stage.has_run]
    standing = [stage for stage in ran if stage.free_standing]
    if not standing or not all(stage.protection.armed and _shows_falls(stage) for stage in standing):
        return None
    return sum(
        formulas.rising_edges(stage.log.array("fall"))
        for stage in ran
        if stage.log is not None and _shows_falls(stage)
    )


def _shows_falls(stage: StageLog) -> bool:
    """Whether the log has a reading of `fall`; a column of empty cells is no standing robot."""
    log = stage.log
    return log is not None and "fall" in log.columns and log.ends("fall")[0] is not None


def _protection(stages: Sequence[StageLog], judging: Judging) -> dict[str, Any]:
    standing = [stage for stage in stages if stage.has_run and stage.free_standing]
    armed = bool(standing) and all(stage.protection.armed for stage in standing)
    judged = [stage for stage in standing if stage.name == judging.stage]
    threshold = next((stage.protection.threshold_deg for stage in [*judged, *standing]), None)
    return {"armed": armed, "threshold_deg": threshold if armed else None}


def _temps(stages: Sequence[StageLog], run: RunFacts) -> tuple[dict[str, float | None], list[str]]:
    """The motors' temperatures at the stop, and where they are from when the stage command said nothing."""
    if run.motor_temps_c is not None:
        return dict(run.motor_temps_c), []
    found: dict[str, float | None] = {}
    for log in _logs(stages):
        last = log.last([name for name in log.columns if name.startswith("temp:")])
        found |= {name[5:]: formulas.number(temp) for name, temp in last.items() if temp is not None}
    said = ["motor temperatures are the last ones of the log's temp: columns"] if found else []
    return found, said


def _battery(stages: Sequence[StageLog], run: RunFacts) -> tuple[dict[str, float | None], list[str]]:
    ends = [log.ends("bat_v") for log in _logs(stages) if "bat_v" in log.columns]
    readings = [tuple(None if value is None else formulas.number(value) for value in pair) for pair in ends]
    start, end = run.battery_start_v, run.battery_end_v
    first = next(_known(reading[0] for reading in readings), None)
    last = next(_known(reading[1] for reading in reversed(readings)), None)
    taken = (start is None and first is not None) or (end is None and last is not None)
    said = ["battery voltages are from the log's bat_v column"] if taken else []
    return {"start_v": first if start is None else start, "end_v": last if end is None else end}, said


def _stage(stage: StageLog) -> dict[str, Any]:
    duration = stage.duration_s
    if duration is None and stage.log is not None:
        t = stage.log.array("t")
        duration = formulas.number(t[-1] - t[0])
    return {
        "name": stage.name,
        "status": stage.status,
        "t0_s": stage.t0_s,
        "duration_s": duration,
        "rows": stage.log.rows if stage.log else 0,
        "reason": stage.reason,
    }


def _dropped(stages: Sequence[StageLog]) -> dict[str, int]:
    counts = [log.dropped for log in _logs(stages)]
    return {
        "torn_tail": sum(count.torn_tail for count in counts),
        "blank_lines": sum(count.blank_lines for count in counts),
        "empty_cells": sum(count.empty_cells for count in counts),
    }


def _warnings(stages: Sequence[StageLog], judged: StageLog | None, derived: Mapping[str, Any]) -> list[str]:
    said = []
    others = [_steady_tilt(stage) for stage in stages if stage is not judged]
    tilts = list(_known([derived["tilt_mean_deg"], *others]))
    if tilts and min(tilts) > 90:
        said.append("gravity looks inverted: the mean tilt is above 90° in every stage")
    for stage in stages:
        if stage.log is not None:
            said += [f"{stage.name}: {sentence}" for sentence in _oddities(stage.log)]
    return said


def _steady_tilt(stage: StageLog) -> float | None:
    if stage.log is None or (start := _start(stage.log)) is None:
        return None
    columns = stage.log.tail(formulas.gravity_columns(stage.log.columns), start=start)
    return formulas.mean(formulas.readings(formulas.tilt(columns, stage.log.rows - start)))


def _oddities(log: Log) -> Iterable[str]:
    """What was tolerated and has no number of its own in the summary."""
    if log.dropped.nul_bytes:
        yield f"{log.dropped.nul_bytes} NUL bytes behind the last line end, as after a loss of power"
    if log.dropped.bom:
        yield "the log starts with a byte order mark"
    if log.dropped.crlf:
        yield "the log has CRLF line ends"
    if others := sum(not is_listed(name) for name in log.columns):
        yield f"{others} columns that version 1 does not know were not looked at"


def _worst(values: Iterable[float | None]) -> float | None:
    """The largest, unless one is unknown, which may be larger."""
    found = list(values)
    known = list(_known(found))
    return max(known) if known and len(known) == len(found) else None


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)


def _flat(numbers: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in numbers.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def _agree(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= SAME
