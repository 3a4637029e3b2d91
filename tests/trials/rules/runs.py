"""Runs and summaries for the tests of the rules."""

from datetime import UTC, datetime, timedelta

from trials.rules.noise import ControlPair
from trials.rules.runs import Run

NINE = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
PAIRS = [{"name": "knee", "left": "left_knee", "right": "right_knee", "mirror": 1}]
SIDES = {"knee": ("left_knee", "right_knee")}


def summary(**numbers):
    whole = {
        "judged_stage": "floor",
        "tilt_mean_deg": 1.2,
        "tilt_max_deg": 2.6,
        "asym_max_deg": 2.0,
        "tracking_error_rad": {"left_knee": -0.03, "right_knee": 0.02},
        "loop_hz": 50.0,
        "temp_max_c": None,
        "falls": 0,
    }
    return whole | numbers


def run(
    trial="trl_x", *, role="candidate", position=2, checkpoint="ckp_x", minutes=None, log="uploaded", **facts
):
    """A run with an uploaded log of ordinary numbers; `minutes` after nine it started, for five minutes."""
    started = None if minutes is None else NINE + timedelta(minutes=minutes)
    whole = {
        "summary": summary() if log == "uploaded" else None,
        "started_at": started,
        "stopped_at": started and started + timedelta(minutes=5),
    }
    return Run(
        trial=trial, position=position, role=role, checkpoint=checkpoint, log=log, **{**whole, **facts}
    )


def control(position=1, *, checkpoint="ckp_c", **facts):
    return run(f"trl_c{position}", role="control", position=position, checkpoint=checkpoint, **facts)


def past(*differences, metric="tilt_mean_deg"):
    """Control pairs of earlier sessions whose last run differed from the first by so much."""
    return [
        ControlPair(summary(**{metric: 2.0}), summary(**{metric: 2.0 + difference}))
        for difference in differences
    ]
