"""One sound document of each kind. A test changes one thing in it."""

from datetime import UTC, datetime
from typing import Any

from driver.wire import sheet, statements, token

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DIGEST = "0123456789abcdef" * 4
CONTRACT = "unitree-g1-29/0123456789ab"


def run_sheet(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "trial_id": "trl_01",
        "session_id": "ses_01",
        "position": 1,
        "role": "control",
        "checkpoint": {
            "id": "ckp_01",
            "run": "walk-7",
            "step": 700,
            "onnx_sha256": DIGEST,
            "contract": CONTRACT,
        },
        "stages": [
            {
                "name": "hang",
                "duration_s": 4.0,
                "judged": False,
                "free_standing": False,
                "values": {"command": [0, 0, 0]},
                "gate": [{"metric": "asym_max_deg", "op": "<=", "threshold": 10.0}],
            },
            {
                "name": "floor",
                "duration_s": 10.0,
                "judged": True,
                "free_standing": True,
                "values": {"command": [0, 0, 0]},
            },
            {
                "name": "teleop",
                "duration_s": None,
                "judged": False,
                "free_standing": True,
                "values": {"command_script": "walk-and-turn"},
            },
        ],
        "gain_profile": "policy",
        "kd_scale": 1.0,
        "power_scale": 1.0,
        "environment": {"floor": "lab rubber", "ambient_c": None, "battery_min_v": None, "notes": ""},
        "abort_rules": [
            {"metric": "tilt_deg", "op": ">", "value": 45.0, "for_s": 0.0, "stages": ["floor", "teleop"]}
        ],
        "judging": {
            "formulas": 1,
            "stage": "floor",
            "pairs": [{"name": "knee", "left": "left_knee_joint", "right": "right_knee_joint", "mirror": 1}],
        },
        "predictions": [
            {
                "gate": "tilt_mean",
                "metric": "tilt_mean_deg",
                "sim_value": 1.2,
                "conditions": {"sim": "mujoco 4.0.0", "terrain": "flat", "friction": 1.0, "seeds": 16},
            }
        ],
        "criteria": [
            {"id": "tilt-vs-control", "metric": "tilt_mean_deg", "op": "<=control"},
            {
                "id": "knee-tracking",
                "metric": "tracking_error_rad",
                "joint": "knee",
                "op": "<=",
                "threshold": 0.1,
            },
            {
                "id": "asym-as-sim",
                "metric": "asym_max_deg",
                "op": "as_in_sim",
                "sim_value": 1.3,
                "tolerance": 0.5,
            },
        ],
        **changes,
    }


def summary(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "judged_stage": "floor",
        "window": {"t0": 5.0, "t1": 10.0, "rows": 250},
        "tilt_mean_deg": 1.18,
        "tilt_max_deg": 2.65,
        "asym_max_deg": 2.56,
        "asym_deg": {"knee": 2.56},
        "tracking_error_rad": {"left_knee_joint": -0.031},
        "loop_hz": 50.0,
        "log_hz": 50.0,
        "temp_max_c": None,
        "motor_temps_c": {},
        "battery": {"start_v": None, "end_v": None},
        "falls": 0,
        "tilt_protection": {"armed": True, "threshold_deg": 45.0},
        "clamped_ticks": 0,
        "stopped_by": "completed",
        "reason": None,
        "stages": [
            {"name": "hang", "status": "done", "t0_s": 0.0, "duration_s": 4.0, "rows": 200, "reason": None}
        ],
        "clock": {"dups": 0, "gaps": 0},
        "dropped": {"torn_tail": 0, "blank_lines": 0, "empty_cells": 0},
        "simulated": False,
        "warnings": [],
        **changes,
    }


def trial_log(**changes: Any) -> dict[str, Any]:
    payload = statements.trial_log_payload(
        approval_id="apr_01",
        device_id="dev_01",
        trial_id="trl_01",
        state="uploaded",
        files=[{"name": "02-floor.csv", "stage": "floor", "sha256": DIGEST, "bytes": 457808, "rows": 500}],
        summary=summary(),
        detail=None,
        at=NOON,
    )
    return {**payload, **changes}


EVENT_DATA: dict[str, dict[str, Any]] = {
    "run_started": {
        "boot_id": "b3e1",
        "battery_v": 25.2,
        "motor_temps_c": {"left_knee_joint": 31.5},
        "ambient_c": None,
        "minutes_since_last_run": 12.5,
        "go_by": "local",
    },
    "stage_started": {"stage": "floor", "at_s": 4.2},
    "stage_finished": {"stage": "floor", "at_s": 14.2, "status": "done", "reason": None},
    "run_stopped": {
        "boot_id": "b3e1",
        "battery_v": None,
        "motor_temps_c": None,
        "ambient_c": None,
        "minutes_since_last_run": None,
        "go_by": None,
    },
    "refused": {"reason": "kd_scale 2.0 is outside this box's limits 0.5 to 1.5"},
    "journal_lost": {},
    "heartbeat": {
        "version": "0.1.0",
        "state": "idle",
        "waiting_for_go": False,
        "free_bytes": 10**9,
        "unsent": 0,
        "skew_s": -0.2,
    },
}


def event(kind: str, /, **changes: Any) -> dict[str, Any]:
    payload = statements.device_event_payload(
        approval_id="apr_01",
        device_id="dev_01",
        trial_id="trl_01",
        kind=kind,
        seq=7,
        data=EVENT_DATA[kind],
        at=NOON,
    )
    return {**payload, **changes}


def approval_token(**changes: Any) -> dict[str, Any]:
    payload = token.token_payload(
        approval_id="apr_01",
        session_id="ses_01",
        trial_id="trl_01",
        position=1,
        device_id="dev_01",
        robot="unitree-g1-29",
        contract=CONTRACT,
        checkpoint_id="ckp_01",
        onnx_sha256=DIGEST,
        onnx_bytes=760_000,
        run_sheet_sha256=sheet.sheet_digest(run_sheet()),
        issued_at=NOON,
        expires_at=NOON.replace(hour=23),
        approver="ana@example.org",
    )
    return {**payload, **changes}
