"""A trial's summary from what its stages left: the wire's formulas, fed with what this box knows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from driver.journal import Run, StageRun
from driver.logs import Found
from driver.wire.csvlog import Log
from driver.wire.summary import Judging, Protection, RunFacts, StageLog, summarize

T = TypeVar("T")
Sheet = Mapping[str, Any]


def of_run(run: Run, found: Sequence[Found], sheet: Sheet, *, simulated: bool) -> dict[str, Any]:
    """The numbers of a whole run; a stage without a readable log counts with its reason and no rows."""
    logs = {each.stage.n: each for each in found}
    planned = zip(run.stages, sheet["stages"], strict=True)
    stages = [_stage_log(stage, plan, logs.get(stage.n), simulated=simulated) for stage, plan in planned]
    return summarize(stages, judging=Judging.of_sheet(sheet), run=_facts(run, simulated=simulated))


def of_stage(sheet: Sheet, plan: Mapping[str, Any], log: Log) -> dict[str, Any]:
    """The numbers of one stage alone, as if it were the judged one."""
    judging = replace(Judging.of_sheet(sheet), stage=plan["name"])
    stage = StageLog(name=plan["name"], log=log, free_standing=plan["free_standing"])
    return summarize([stage], judging=judging, run=RunFacts())


def metric(numbers: Mapping[str, Any], name: str, joints: Sequence[str]) -> float | None:
    """One metric; of `tracking_error_rad`, the worst of the joints meant, null where one of them is."""
    if name != "tracking_error_rad":
        value: float | None = numbers.get(name)
        return value
    errors = [numbers.get(name, {}).get(joint) for joint in joints]
    return None if None in errors or not errors else max(abs(error) for error in errors)


def _stage_log(stage: StageRun, plan: Mapping[str, Any], found: Found | None, *, simulated: bool) -> StageLog:
    said = stage.said or {}
    log = found.log if found else None
    return StageLog(
        name=stage.name,
        log=log,
        status=stage.status,
        free_standing=plan["free_standing"],
        reason="; ".join(text for text in (stage.reason, found.problem if found else None) if text) or None,
        t0_s=stage.t0_s,
        # A simulated body's seconds are not ours: the log's own clock says how long the stage was.
        duration_s=None if simulated and log is not None else stage.duration_s,
        protection=Protection(**said["tilt_protection"]) if said.get("tilt_protection") else Protection(),
        simulated_clock=said.get("simulated_clock", simulated),
    )


def _facts(run: Run, *, simulated: bool) -> RunFacts:
    said = [stage.said for stage in run.stages if stage.said]
    latest = said[::-1]
    clamped = [each["clamped_ticks"] for each in said if "clamped_ticks" in each]
    return RunFacts(
        stopped_by=run.stopped_by,
        reason=run.reason,
        simulated=simulated,
        motor_temps_c=_first(each.get("motor_temps_c") or None for each in latest),
        battery_start_v=_first(_volts(each, "start_v") for each in said),
        battery_end_v=_first(_volts(each, "end_v") for each in latest),
        clamped_ticks=sum(clamped) if clamped else None,
    )


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


def _volts(said: Mapping[str, Any], key: str) -> float | None:
    """A command may say both voltages; one number is the one at its stop."""
    volts = said.get("battery_v")
    if isinstance(volts, Mapping):
        return volts.get(key)
    return volts if key == "end_v" else None
