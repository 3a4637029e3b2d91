"""The A/B/A bracket (C4-06): did the control run the same at the end of the session as at its start?"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from driver.wire.shape import Errors
from driver.wire.vocabulary import METRICS
from hub.campaigns.rules.gates import BadShape, number_of
from trials.rules.noise import MIN_PAIRS, ControlPair, spread
from trials.rules.runs import Measure, Run, Sides, Summary, values_of

Reason = Literal["waiting", "no_second_control", "two_controls", "log_missing", "unmeasured"]
Source = Literal["fixed", "history"]

# Decimals have no exact binary form: 2.2 - 1.2 is a little more than 1.0. Far below what any log resolves.
ROUNDING = 1e-9


class Limit(TypedDict):
    value: float
    source: Source
    n: NotRequired[int]


class Tolerance(TypedDict):
    """
    What the plan says of one metric: whether it decides, and how far the two controls may be apart in it.
    """

    metric: str
    decides: bool
    tolerance: Limit | None


class Falls(TypedDict):
    first: float | None
    last: float | None
    equal: bool | None


class MetricDrift(TypedDict):
    """`difference` is last minus first; `within` is null where there is no difference or no limit for it."""

    metric: str
    decides: bool
    first: float | None
    last: float | None
    difference: float | None
    tolerance: Limit | None
    within: bool | None


class Bracket(TypedDict):
    holds: bool | None
    reason: Reason | None
    falls: Falls
    metrics: list[MetricDrift]


class BadTolerances(BadShape):
    pass


def _fixed(metric: str, value: float | None, *, decides: bool = False) -> Tolerance:
    limit: Limit | None = None if value is None else {"value": value, "source": "fixed"}
    return {"metric": metric, "decides": decides, "tolerance": limit}


DEFAULT = (
    _fixed("tilt_mean_deg", 1.0, decides=True),
    _fixed("tracking_error_rad", 0.05, decides=True),
    _fixed("asym_max_deg", 2.0),
    _fixed("tilt_max_deg", None),
    _fixed("loop_hz", None),
)
BRACKETED = tuple(metric for metric in METRICS if metric != "falls")


def bracket(controls: Sequence[Run], tolerances: Sequence[Tolerance], sides: Sides) -> Bracket:
    """
    Compare the session's first and last control run.

    Falls must be equal and every deciding metric within its limit. The tracking error is the worst |error|
    over the joints that were measured in either run. With falls null in both runs, falls do not decide.
    """
    first, last = _ends(controls)
    is_same = first is not None and last is not None and first.checkpoint == last.checkpoint
    falls = _falls(first, last, sides)
    metrics = [_drift(tolerance, first, last, sides, is_same=is_same) for tolerance in tolerances]
    reason = _reason(first, last, falls, metrics)
    holds = None if reason else _holds(falls, metrics)
    return {"holds": holds, "reason": reason, "falls": falls, "metrics": metrics}


def sentence(found: Bracket) -> str:
    """What the bracket says, for a page, a letter and the record."""
    if found["holds"]:
        return "The bracket holds. The control, first and last: " + _listed(found)
    if found["holds"] is False:
        return "The bracket does not hold: " + "; ".join(_broken(found)) + ". This session decides nothing."
    return _UNDECIDED[found["reason"] or "unmeasured"]


def plan_tolerances(
    asked: Sequence[Mapping[str, Any]], *, past: Sequence[ControlPair], sides: Sides
) -> list[Tolerance]:
    """
    The plan's tolerances: the defaults, with what was asked for in their place.

    An entry is `{"metric", "decides"?, "tolerance"?: {"source", "value"?} | null}`, as the bracket answers;
    what it leaves out stays as it is by default. `fixed` carries its value. `history` takes the limit from
    past control pairs of this device and needs three of them. A metric without a limit is shown and cannot
    decide.

    :raises BadTolerances: naming every fault by its path, such as `tolerances.0.metric`
    """
    errors: Errors = {}
    planned = {tolerance["metric"]: tolerance for tolerance in DEFAULT}
    names = [entry.get("metric") for entry in asked]
    for number, entry in enumerate(asked):
        try:
            if entry.get("metric") in names[:number]:
                raise _Fault("metric", "is there twice")
            tolerance = _planned(entry, planned, past, sides)
        except _Fault as fault:
            errors.setdefault(f"tolerances.{number}.{fault.field}", []).append(fault.said)
        else:
            planned[tolerance["metric"]] = tolerance
    if not errors and not any(tolerance["decides"] for tolerance in planned.values()):
        errors["tolerances"] = ["at least one metric has to decide"]
    if errors:
        raise BadTolerances(errors)
    return list(planned.values())


class _Fault(Exception):
    def __init__(self, field: str, said: str) -> None:
        super().__init__(said)
        self.field, self.said = field, said


def _planned(
    entry: Mapping[str, Any], planned: Mapping[str, Tolerance], past: Sequence[ControlPair], sides: Sides
) -> Tolerance:
    for key in entry:
        if key not in ("metric", "decides", "tolerance"):
            raise _Fault(key, "is not known here; known are metric, decides, tolerance")
    metric = entry.get("metric")
    if metric not in BRACKETED:
        raise _Fault("metric", f"is none of {', '.join(BRACKETED)}")
    default = planned.get(metric) or _fixed(metric, None)
    decides = entry.get("decides", default["decides"])
    if not isinstance(decides, bool):
        raise _Fault("decides", "is neither true nor false")
    limit = _limit(entry["tolerance"], metric, past, sides) if "tolerance" in entry else default["tolerance"]
    if decides and limit is None:
        raise _Fault("tolerance", "a metric that decides needs a limit")
    return {"metric": metric, "decides": decides, "tolerance": limit}


def _limit(asked: object, metric: str, past: Sequence[ControlPair], sides: Sides) -> Limit | None:
    if asked is None:
        return None
    if not isinstance(asked, Mapping) or not {"source"} <= asked.keys() <= {"source", "value"}:
        raise _Fault("tolerance", "is null or an object of source and value")
    if asked["source"] == "history":
        return _from_history(asked, metric, past, sides)
    value = number_of(asked.get("value"))
    if asked["source"] != "fixed":
        raise _Fault("tolerance.source", "is neither fixed nor history")
    if value is None or value < 0:
        raise _Fault("tolerance.value", "a fixed limit is a number from 0")
    return {"value": value, "source": "fixed"}


def _from_history(
    asked: Mapping[str, object], metric: str, past: Sequence[ControlPair], sides: Sides
) -> Limit:
    if "value" in asked:
        raise _Fault("tolerance.value", "comes from the history; leave it out")
    found = spread(past, Measure(metric), sides)
    if found is None:
        raise _Fault(
            "tolerance.source", f"history needs {MIN_PAIRS} past control pairs of this device with {metric}"
        )
    return {"value": found.limit, "source": "history", "n": found.n}


def _ends(controls: Sequence[Run]) -> tuple[Run | None, Run | None]:
    """The first and the last control run; no last one where there is only one."""
    ordered = sorted(controls, key=lambda run: run.position)
    return (ordered[0] if ordered else None), (ordered[-1] if len(ordered) > 1 else None)


def _falls(first: Run | None, last: Run | None, sides: Sides) -> Falls:
    before, after = _values(first, last, "falls", sides)
    equal = before == after if before is not None and after is not None else None
    return {"first": before, "last": after, "equal": equal}


def _values(
    first: Run | None, last: Run | None, metric: str, sides: Sides
) -> tuple[float | None, float | None]:
    return values_of(_measured(first), _measured(last), Measure(metric), sides)


def _measured(run: Run | None) -> Summary | None:
    return run.measured if run else None


def _drift(
    planned: Tolerance, first: Run | None, last: Run | None, sides: Sides, *, is_same: bool
) -> MetricDrift:
    before, after = _values(first, last, planned["metric"], sides)
    difference = number_of(after - before) if before is not None and after is not None else None
    limit, within = planned["tolerance"], None
    if is_same and difference is not None and limit is not None:
        within = abs(difference) <= limit["value"] + ROUNDING
    return {
        "metric": planned["metric"],
        "decides": planned["decides"],
        "first": before,
        "last": after,
        "difference": difference,
        "tolerance": limit,
        "within": within,
    }


def _reason(
    first: Run | None, last: Run | None, falls: Falls, metrics: Sequence[MetricDrift]
) -> Reason | None:
    if first is None or last is None:
        return "no_second_control"
    if first.checkpoint != last.checkpoint:
        return "two_controls"
    if first.is_lost or last.is_lost:
        return "log_missing"
    if first.is_awaited or last.is_awaited:
        return "waiting"
    is_half_known = (falls["first"] is None) != (falls["last"] is None)
    if is_half_known or any(metric["decides"] and metric["within"] is None for metric in metrics):
        return "unmeasured"
    return None


def _holds(falls: Falls, metrics: Sequence[MetricDrift]) -> bool:
    return falls["equal"] is not False and all(metric["within"] for metric in metrics if metric["decides"])


_UNDECIDED: Mapping[Reason, str] = {
    "waiting": "The bracket is open until both control runs have a log.",
    "no_second_control": "There is no second control run, so there is no bracket.",
    "two_controls": (
        "First and last control are two different checkpoints: their difference is shown, and it is no drift."
    ),
    "log_missing": "The log of a control run is missing or malformed, so the bracket cannot be decided.",
    "unmeasured": "A control's log lacks a number that decides, so the bracket cannot be decided.",
}


def _listed(found: Bracket) -> str:
    return ", ".join(_worded(metric) for metric in found["metrics"] if metric["decides"]) + "."


def _broken(found: Bracket) -> list[str]:
    falls = found["falls"]
    said = [f"falls {falls['first']} → {falls['last']}"] if falls["equal"] is False else []
    return said + [
        _worded(metric) for metric in found["metrics"] if metric["decides"] and not metric["within"]
    ]


def _worded(metric: MetricDrift) -> str:
    name, unit = _WORDS[metric["metric"]]
    limit = metric["tolerance"]
    bound = f" (limit ±{limit['value']:.3g}{unit})" if limit else ""
    return f"{name} {metric['first']:.4g}{unit} → {metric['last']:.4g}{unit}{bound}"


_WORDS = {
    "tilt_mean_deg": ("mean tilt", "°"),
    "tilt_max_deg": ("greatest tilt", "°"),
    "asym_max_deg": ("asymmetry", "°"),
    "tracking_error_rad": ("tracking error", " rad"),
    "loop_hz": ("loop rate", " Hz"),
    "temp_max_c": ("greatest motor temperature", " °C"),
}
