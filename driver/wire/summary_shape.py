"""The shape of a summary, as a device signs it."""

from driver.wire import shape
from driver.wire.vocabulary import STAGE_STATUS, STOPPED_BY

_NUMBER = shape.or_null(shape.number())
_DEGREES = shape.or_null(shape.number(least=0))
_HZ = shape.or_null(shape.number(least=0))
_COUNT = shape.integer(least=0)
_COUNT_OR_NULL = shape.or_null(_COUNT)
_REASON = shape.or_null(shape.text(most=2000))
_BY_JOINT = shape.table(key=shape.joint, value=_NUMBER, most=512)

STAGE = shape.record(
    {
        "name": shape.stage_name,
        "status": shape.one_of(*STAGE_STATUS),
        "t0_s": shape.or_null(shape.number(least=0)),
        "duration_s": shape.or_null(shape.number(least=0)),
        "rows": _COUNT,
        "reason": _REASON,
    }
)

SUMMARY = shape.record(
    {
        "version": shape.one_of(1),
        "judged_stage": shape.stage_name,
        "window": shape.record({"t0": _NUMBER, "t1": _NUMBER, "rows": _COUNT}),
        "tilt_mean_deg": _DEGREES,
        "tilt_max_deg": _DEGREES,
        "asym_max_deg": _DEGREES,
        "asym_deg": shape.table(key=shape.text(least=1, most=100), value=_DEGREES, most=128),
        "tracking_error_rad": _BY_JOINT,
        "loop_hz": _HZ,
        "log_hz": _HZ,
        "temp_max_c": _NUMBER,
        "motor_temps_c": _BY_JOINT,
        "battery": shape.record({"start_v": _NUMBER, "end_v": _NUMBER}),
        "falls": _COUNT_OR_NULL,
        "tilt_protection": shape.record({"armed": shape.flag, "threshold_deg": _NUMBER}),
        "clamped_ticks": _COUNT_OR_NULL,
        "stopped_by": shape.one_of(*STOPPED_BY),
        "reason": _REASON,
        "stages": shape.list_of(STAGE, most=16),
        "clock": shape.record({"dups": _COUNT, "gaps": _COUNT}),
        "dropped": shape.record({"torn_tail": _COUNT, "blank_lines": _COUNT, "empty_cells": _COUNT}),
        "simulated": shape.flag,
        "warnings": shape.list_of(shape.text(most=500), most=50),
    }
)
