"""
What a log says about the criteria that were written down before the run (C4-11 … C4-15).

A margin is positive when a limit is met and says by how much; negative, by how much it is missed. It is limit
− value for `<=`, `<` and `<=control`, value − limit for `>=` and `>`, −|value − limit| for `==`, and
tolerance − |value − sim| for `as_in_sim`. Comparisons with a limit are exact; the two that subtract first
allow for the rounding of decimals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from driver.wire.vocabulary import AGAINST_CONTROL, AS_IN_SIM
from hub.campaigns.rules.gates import Gate, measurable, meets, number_of
from trials.rules.bracket import ROUNDING
from trials.rules.noise import ControlPair, mean_of, spread
from trials.rules.runs import TRACKING, Measure, Run, Sides, Summary, hub_view, value_of

Outcome = Literal["PASS", "FAIL", "as_in_sim", "differs_from_sim", "pending", "unmeasured"]
Criterion = Mapping[str, Any]  # of a run sheet


class ControlSaid(TypedDict):
    """One number a control log, in the session's order; null where that log does not have it."""

    mean: float | None
    runs: list[float | None]
    hub_mean: NotRequired[float | None]


class JudgedCriterion(TypedDict):
    """
    The answer of shapes.md; a key that has nothing to say is left out.

    With `disputed`, `hub_value` is the hub's own number for this run and `control.hub_mean` its own mean of
    the controls. `decides` is there, and false, once the bracket does not hold: then the comparison decides
    nothing.
    """

    id: str
    metric: str
    joint: NotRequired[str]
    op: str
    threshold: NotRequired[float | None]
    value: float | None
    control: NotRequired[ControlSaid]
    baseline: NotRequired[float]
    control_source: NotRequired[Literal["session", "baseline"]]
    sim_value: NotRequired[float]
    tolerance: NotRequired[float | None]
    result: Outcome
    margin: NotRequired[float]
    noise_floor: NotRequired[float | None]
    disputed: NotRequired[Literal[True]]
    hub_value: NotRequired[float | None]
    decides: NotRequired[Literal[False]]
    source: Literal["sheet", "gate"]


@dataclass(frozen=True, kw_only=True)
class Case:
    """
    Everything one trial is judged by.

    `controls` are the session's control runs; a control is never compared with a mean that it is part of, so
    its own run may be among them. `measured` is what simulation gave this checkpoint for each gate,
    `baseline` the summary of the promoted policy as the session froze it, `past` earlier control pairs of
    this device, `holds` the bracket's word.
    """

    own: Run
    controls: Sequence[Run]
    criteria: Sequence[Criterion]
    sides: Sides
    gates: Sequence[Gate] = ()
    measured: Mapping[str, float | None] = field(default_factory=dict)
    baseline: Summary | None = None
    past: Sequence[ControlPair] = ()
    holds: bool | None = None


def judge(case: Case) -> list[JudgedCriterion]:
    """
    The sheet's criteria in its order, then the locked gates the log can measure and the sheet does not
    repeat.
    """
    written = {_sameness(criterion) for criterion in case.criteria}
    gates = [gate for gate in case.gates if measurable(gate) and _sameness(gate) not in written]
    return [
        *(_judged(case, criterion, "sheet") for criterion in case.criteria),
        *(_judged(case, {**gate, "id": gate["key"]}, "gate") for gate in gates),
    ]


def _sameness(criterion: Criterion | Gate) -> tuple[object, ...]:
    return tuple(criterion.get(key) for key in ("metric", "joint", "op", "threshold"))


def _judged(case: Case, criterion: Criterion, source: Literal["sheet", "gate"]) -> JudgedCriterion:
    measure = Measure(criterion["metric"], criterion.get("joint"))
    value = value_of(case.own.measured, measure, case.sides)
    judged: JudgedCriterion = {
        "id": criterion["id"],
        "metric": measure.metric,
        "op": criterion["op"],
        "value": value,
        "result": "unmeasured",
        "source": source,
    }
    if measure.joint is not None:
        judged["joint"] = measure.joint
    _dispute(judged, value_of(hub_view(case.own), measure, case.sides))
    sim = _sim_value(case, criterion)
    if sim is not None:
        judged["sim_value"] = sim
    if judged["op"] == AGAINST_CONTROL:
        _against_control(judged, case, measure)
    elif judged["op"] == AS_IN_SIM:
        _against_sim(judged, case, number_of(criterion.get("tolerance")))
    else:
        judged["threshold"] = number_of(criterion.get("threshold"))
        _against_limit(judged, case, judged["threshold"])
    return judged


def _dispute(judged: JudgedCriterion, hub_value: float | None) -> None:
    if hub_value != judged["value"]:
        judged["disputed"] = True
        judged["hub_value"] = hub_value


def _sim_value(case: Case, criterion: Criterion) -> float | None:
    """
    The criterion's own, else what simulation gave for its gate, or else for the first gate on that number.
    """
    if "sim_value" in criterion:
        return number_of(criterion["sim_value"])
    about = (criterion["metric"], criterion.get("joint"))
    gates = [gate for gate in case.gates if (gate["metric"], gate.get("joint")) == about]
    same = [gate for gate in gates if _sameness(gate) == _sameness(criterion)] or gates
    return number_of(case.measured.get(same[0]["key"])) if same else None


def _is_pending(judged: JudgedCriterion, case: Case, *, is_awaited: bool = False) -> bool:
    """Whether its own log is still to come, or the one that its number would be compared with."""
    return case.own.is_awaited or (is_awaited and judged["value"] is not None)


def _against_limit(
    judged: JudgedCriterion, case: Case, limit: float | None, *, is_awaited: bool = False
) -> None:
    value = judged["value"]
    if _is_pending(judged, case, is_awaited=is_awaited):
        judged["result"] = "pending"
    elif value is not None and limit is not None:
        op = "<=" if judged["op"] == AGAINST_CONTROL else judged["op"]
        judged["result"] = "PASS" if meets(value, op, limit) else "FAIL"
        _set_margin(judged, _margin(op, value, limit))


def _against_sim(judged: JudgedCriterion, case: Case, tolerance: float | None) -> None:
    judged["tolerance"] = tolerance
    value, sim = judged["value"], judged.get("sim_value")
    if _is_pending(judged, case):
        judged["result"] = "pending"
    elif value is not None and sim is not None and tolerance is not None:
        _set_likeness(judged, value, sim, tolerance)


def _set_likeness(judged: JudgedCriterion, value: float, sim: float, tolerance: float) -> None:
    # A tracking error is judged by its size, whichever sign simulation wrote down.
    margin = tolerance - abs(value - (abs(sim) if judged["metric"] == TRACKING else sim))
    if -ROUNDING <= margin < 0:
        margin = 0.0
    judged["result"] = "as_in_sim" if margin >= 0 else "differs_from_sim"
    _set_margin(judged, margin)


def _against_control(judged: JudgedCriterion, case: Case, measure: Measure) -> None:
    others = sorted(
        (run for run in case.controls if run.trial != case.own.trial), key=lambda run: run.position
    )
    logged = [run for run in others if run.measured is not None]
    baseline = value_of(case.baseline, measure, case.sides)
    if baseline is not None:
        judged["baseline"] = baseline
    judged["noise_floor"] = None
    if case.holds is False:
        judged["decides"] = False
    if logged:
        _against_session(judged, case, measure, logged, is_awaited=any(run.is_awaited for run in others))
    elif any(run.is_awaited for run in others):
        _against_limit(judged, case, None, is_awaited=True)
    else:
        if baseline is not None:
            judged["control_source"] = "baseline"
        _against_limit(judged, case, baseline)


def _against_session(
    judged: JudgedCriterion, case: Case, measure: Measure, logged: Sequence[Run], *, is_awaited: bool
) -> None:
    values = [value_of(run.measured, measure, case.sides) for run in logged]
    hub_values = [value_of(hub_view(run), measure, case.sides) for run in logged]
    mean = _mean(values)
    judged["control"] = {"mean": mean, "runs": values}
    judged["control_source"] = "session"
    if hub_values != values:
        judged["disputed"] = True
        judged["control"]["hub_mean"] = _mean(hub_values)
    found = spread(case.past, measure, case.sides)
    if found is not None and mean is not None:
        floor = found.floor_of_mean(sum(value is not None for value in values))
        judged["noise_floor"] = number_of(floor)
    _against_limit(judged, case, mean, is_awaited=is_awaited and mean is None)


def _mean(values: Sequence[float | None]) -> float | None:
    return mean_of([value for value in values if value is not None])


def _margin(op: str, value: float, limit: float) -> float:
    if op == "==":
        return 0.0 - abs(value - limit)
    return limit - value if op in ("<=", "<") else value - limit


def _set_margin(judged: JudgedCriterion, margin: float) -> None:
    finite = number_of(margin)
    if finite is not None:
        judged["margin"] = finite
