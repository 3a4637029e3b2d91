"""The run sheet as it is drafted at planning (C4-16), and as a person may still change it (C4-17)."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from driver.wire import canonical
from driver.wire.robot import Pair
from driver.wire.shape import Errors
from driver.wire.sheet import BadSheet, check_sheet
from driver.wire.vocabulary import AGAINST_CONTROL, AS_IN_SIM, FORMULAS
from hub.campaigns.rules.gates import Gate, measurable, number_of
from trials.rules.runs import TRACKING, Measure, Role, Summary, value_of

Sheet: TypeAlias = dict[str, Any]

CHANGEABLE = (
    "stages",
    "gain_profile",
    "kd_scale",
    "power_scale",
    "environment",
    "abort_rules",
    "criteria",
)
HANG_ASYMMETRY_DEG = 10.0  # a wrong joint order shows in the hang before it falls on the floor
TILT_DEG = 45.0
SILENCE_MS = 100.0
TEMPERATURE_C = 80.0
SIM_TOLERANCE = 0.2
LEAST_TOLERANCE = {"deg": 0.5, "rad": 0.02}

# What a null in a change stands for; a key that is not here cannot be cleared.
_CLEARED: Mapping[str, Any] = {
    "environment": {"floor": "", "ambient_c": None, "battery_min_v": None, "notes": ""},
    "abort_rules": [],
    "criteria": [],
}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """
    The trial that a sheet is for, and the checkpoint that it runs. `run` and `step` name the checkpoint too.
    """

    trial: str
    session: str
    position: int
    role: Role
    checkpoint: str
    run: str
    step: int
    onnx_sha256: str
    contract: str


class BadChange(BadSheet):
    """A change to what never changes in a sheet, or a null where nothing can be cleared."""


def draft_sheet(
    subject: Subject,
    *,
    pairs: Sequence[Pair],
    gates: Sequence[Gate] = (),
    measured: Mapping[str, float | None] | None = None,
    baseline: Summary | None = None,
) -> Sheet:
    """
    Draft a trial's sheet from the review.

    `measured` is what simulation gave this checkpoint for each locked gate, None where no round measured it:
    then the sheet predicts nothing. `baseline` is the promoted policy's summary as the session froze it.

    A robot without pairs gets no asymmetry gate and no asymmetry criterion, because neither could ever be
    measured.
    """
    sheet: Sheet = {
        "version": 1,
        "trial_id": subject.trial,
        "session_id": subject.session,
        "position": subject.position,
        "role": subject.role,
        "checkpoint": {
            "id": subject.checkpoint,
            "run": subject.run,
            "step": subject.step,
            "onnx_sha256": subject.onnx_sha256,
            "contract": subject.contract,
        },
        "stages": _stages(has_pairs=bool(pairs)),
        "gain_profile": "policy",
        "kd_scale": 1.0,
        "power_scale": 1.0,
        "environment": copy.deepcopy(_CLEARED["environment"]),
        "abort_rules": _abort_rules(),
        "judging": {"formulas": FORMULAS, "stage": "floor", "pairs": [pair.as_json() for pair in pairs]},
        "predictions": [] if measured is None else _predictions(gates, measured),
        "criteria": [
            *(_against_control(has_pairs=bool(pairs)) if subject.role == "candidate" else []),
            *(_against_baseline(baseline, pairs) if subject.role == "candidate" else []),
            {"id": "no-falls", "metric": "falls", "op": "==", "threshold": 0},
            *_as_in_sim(gates, measured or {}),
        ],
    }
    check_sheet(sheet)
    return sheet


def patch_sheet(sheet: Sheet, changes: Mapping[str, Any]) -> Sheet:
    """
    The sheet with a change written into it; what is absent stays, and null clears what can be empty.

    Lists are replaced whole, `environment` key by key. `judging.stage` follows the stage that is judged. An
    abort rule for every stage, or for every free-standing one, goes on to be that when the stages change and
    it is not sent too. A key that never changes may be sent as it is.

    :raises BadChange: for what never changes, an unknown key, or a null that clears nothing
    :raises BadSheet: when the sheet would be of the wrong shape or contradict itself
    """
    changed = copy.deepcopy(sheet)
    for key in CHANGEABLE:
        if key in changes:
            changed[key] = _written(key, sheet[key], changes[key])
    if "stages" in changes and "abort_rules" not in changes:
        changed["abort_rules"] = _follow(sheet["abort_rules"], sheet["stages"], changed["stages"])
    judged = _names(changed["stages"], "judged")
    if len(judged) == 1:
        changed["judging"]["stage"] = judged[0]
    _check_fixed(changed, changes)
    check_sheet(changed)
    return changed


def _stages(*, has_pairs: bool) -> list[dict[str, Any]]:
    still = {"command": [0, 0, 0]}
    hang: dict[str, Any] = {
        "name": "hang",
        "duration_s": 4.0,
        "judged": False,
        "free_standing": False,
        "values": still,
    }
    if has_pairs:
        hang["gate"] = [{"metric": "asym_max_deg", "op": "<=", "threshold": HANG_ASYMMETRY_DEG}]
    return [
        hang,
        {
            "name": "floor",
            "duration_s": 10.0,
            "judged": True,
            "free_standing": True,
            "values": copy.deepcopy(still),
        },
        # Its commands come from the box, and it ends at the operator's stop.
        {"name": "teleop", "duration_s": None, "judged": False, "free_standing": True, "values": {}},
    ]


def _abort_rules() -> list[dict[str, Any]]:
    return [
        _abort("tilt_deg", TILT_DEG, ["floor", "teleop"]),
        _abort("state_age_ms", SILENCE_MS, ["hang", "floor", "teleop"]),
        _abort("loop_gap_ms", SILENCE_MS, ["hang", "floor", "teleop"]),
        _abort("temp_c", TEMPERATURE_C, ["hang", "floor", "teleop"]),
    ]


def _abort(metric: str, value: float, stages: list[str]) -> dict[str, Any]:
    return {"metric": metric, "op": ">", "value": value, "for_s": 0.0, "stages": stages}


def _predictions(gates: Sequence[Gate], measured: Mapping[str, float | None]) -> list[dict[str, Any]]:
    return [
        {
            "gate": gate["key"],
            "metric": gate["metric"],
            "sim_value": number_of(measured.get(gate["key"])),
            "conditions": dict(gate["conditions"]),
        }
        for gate in gates
    ]


def _against_control(*, has_pairs: bool) -> list[dict[str, Any]]:
    """
    A candidate's alone: a control would be held against itself, and how controls differ is the bracket's
    matter.
    """
    tilt = {"id": "tilt-vs-control", "metric": "tilt_mean_deg", "op": AGAINST_CONTROL}
    asymmetry = {"id": "asym-vs-control", "metric": "asym_max_deg", "op": AGAINST_CONTROL}
    return [tilt, asymmetry] if has_pairs else [tilt]


def _against_baseline(baseline: Summary | None, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """
    No worse than the promoted policy was when it was promoted: its numbers become thresholds of the sheet.

    They stand beside `<=control` and never in its place. The control ran in the same hour on the same floor;
    the baseline may be months old, and takes the control's place only where every control log is lost.
    """
    metrics = {"tilt-vs-baseline": "tilt_mean_deg"}
    if pairs:
        metrics["asym-vs-baseline"] = "asym_max_deg"
    values = {name: value_of(baseline, Measure(metric), {}) for name, metric in metrics.items()}
    return [
        {"id": name, "metric": metrics[name], "op": "<=", "threshold": value}
        for name, value in values.items()
        if value is not None
    ]


def _as_in_sim(gates: Sequence[Gate], measured: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """
    One for each gate that a log can measure and simulation did; a tracking error needs its joint for that.
    """
    drafted = []
    for gate in gates:
        sim = number_of(measured.get(gate["key"]))
        if sim is None or not measurable(gate) or (gate["metric"] == TRACKING and "joint" not in gate):
            continue
        criterion: dict[str, Any] = {"id": f"{gate['key']}-as-sim", "metric": gate["metric"], "op": AS_IN_SIM}
        if "joint" in gate:
            criterion["joint"] = gate["joint"]
        drafted.append({**criterion, "sim_value": sim, "tolerance": _tolerance(gate["metric"], sim)})
    return drafted


def _tolerance(metric: str, sim: float) -> float:
    least = LEAST_TOLERANCE.get(metric.rpartition("_")[2], 0.0)
    return round(max(SIM_TOLERANCE * abs(sim), least), 6)


def _written(key: str, before: Any, after: Any) -> Any:
    if after is None:
        return copy.deepcopy(_CLEARED.get(key))
    if key != "environment" or not isinstance(after, Mapping):
        return copy.deepcopy(after)
    blank = _CLEARED["environment"]
    written = {name: blank.get(name) if value is None else value for name, value in after.items()}
    return {**before, **written}


def _follow(rules: Sequence[Mapping[str, Any]], before: Any, after: Any) -> list[dict[str, Any]]:
    names, free = _names(before), _names(before, "free_standing")
    new_names, new_free = _names(after), _names(after, "free_standing")
    if not new_names or (names, free) == (new_names, new_free):
        return [dict(rule) for rule in rules]
    followed = []
    for rule in rules:
        stages = list(rule["stages"])
        if set(stages) == set(names):
            stages = new_names
        elif set(stages) == set(free):
            stages = new_free or new_names
        followed.append({**rule, "stages": stages})
    return followed


def _names(stages: Any, flag: str | None = None) -> list[str]:
    """The names of the stages, or of those with a flag. It is asked before the stages' shape is checked."""
    return [
        stage["name"]
        for stage in (stages if isinstance(stages, list) else ())
        if isinstance(stage, Mapping) and isinstance(stage.get("name"), str)
        if flag is None or stage.get(flag) is True
    ]


def _check_fixed(changed: Sheet, changes: Mapping[str, Any]) -> None:
    errors: Errors = {}
    for key, value in changes.items():
        if key not in changed:
            errors[key] = [f"unknown key; what can change is {', '.join(CHANGEABLE)}"]
        elif key not in CHANGEABLE and not _is_equal(value, changed[key]):
            errors[key] = [f"never changes; what can change is {', '.join(CHANGEABLE)}"]
        elif value is None and key in CHANGEABLE and key not in _CLEARED:
            errors[key] = ["cannot be cleared"]
    if errors:
        raise BadChange(errors)


def _is_equal(value: Any, other: Any) -> bool:
    """As canonical JSON, where 1 and 1.0 are one number and true is none."""
    return canonical.dumps(value) == canonical.dumps(other)
