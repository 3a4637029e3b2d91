"""Locked gates: their shape, what passes one, and the verdict in simulation that follows."""

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, cast

from driver.wire import shape
from driver.wire.canonical import JSON
from driver.wire.shape import Errors
from driver.wire.vocabulary import COMPARISONS, METRICS

MAX_GATES = 32  # a drafted sheet has a criterion for each, and room for 64
MAX_RESULTS = 256
MAX_SEEDS = 1_000_000
MAX_CONDITIONS = 32

_MEETS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}


class Gate(TypedDict):
    key: str
    metric: str
    op: str
    threshold: float
    conditions: Mapping[str, Any]
    joint: NotRequired[str]


class Result(TypedDict):
    """What simulation measured of one checkpoint: a value for each gate, and how many seeds stayed up."""

    checkpoint: str
    seeds_run: int
    seeds_upright: int
    measured: Mapping[str, float | None]


class Sim(TypedDict):
    verdict: Literal["PASS", "FAIL"]
    gates_passed: int
    gates: int
    seeds_upright: int
    seeds_run: int


class BadShape(ValueError):
    """Something written down about a round is not of its shape; `errors` says where and what."""

    def __init__(self, errors: Errors) -> None:
        super().__init__("; ".join(f"{where}: {said[0]}" for where, said in errors.items()))
        self.errors = errors


class BadGates(BadShape):
    pass


class BadResults(BadShape):
    pass


def number_of(value: object) -> float | None:
    """The value when it is a finite number, else None; true and false are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= sys.float_info.max else None


def meets(value: float | None, op: str, limit: float | None) -> bool:
    """Compare without any rounding; what is not measured, or not finite, meets nothing."""
    value, limit = number_of(value), number_of(limit)
    return value is not None and limit is not None and _MEETS[op](value, limit)


def passes(gate: Gate, measured: float | None) -> bool:
    return meets(measured, gate["op"], gate["threshold"])


def measurable(gate: Gate) -> bool:
    """Whether the log of a real run can measure the gate too."""
    return gate["metric"] in METRICS


def sim_verdict(gates: Sequence[Gate], result: Result) -> Sim:
    """PASS when every gate passes. A gate without a measurement has not passed; no gates at all pass."""
    passed = sum(passes(gate, result["measured"].get(gate["key"])) for gate in gates)
    return {
        "verdict": "PASS" if passed == len(gates) else "FAIL",
        "gates_passed": passed,
        "gates": len(gates),
        "seeds_upright": result["seeds_upright"],
        "seeds_run": result["seeds_run"],
    }


def check_gates(gates: object) -> None:
    """:raises BadGates: naming every fault by its path, such as `gates.0.op`"""
    errors: Errors = {}
    _GATES(cast("JSON", gates), "gates", errors)
    if not errors and isinstance(gates, list):
        _check_gates_together(gates, errors)
    if errors:
        raise BadGates(errors)


def check_results(results: object, gates: Sequence[Gate]) -> None:
    """
    Check results against the gates they answer; a gate that is left out was not measured.

    :raises BadResults: naming every fault by its path, such as `results.0.measured.tilt`
    """
    errors: Errors = {}
    _RESULTS(cast("JSON", results), "results", errors)
    if not errors and isinstance(results, list):
        _check_results_together(results, {gate["key"] for gate in gates}, errors)
    if errors:
        raise BadResults(errors)


def _finite(value: JSON, path: str, errors: Errors) -> None:
    if number_of(value) is None:
        shape.add(errors, path, "must be a finite number")


def _condition(value: JSON, path: str, errors: Errors) -> None:
    if isinstance(value, str):
        _WORDS(value, path, errors)
    elif value is not None and not isinstance(value, bool):
        _finite(value, path, errors)


_NAME = shape.text(
    most=64, pattern=r"[A-Za-z0-9][A-Za-z0-9_.-]*", means="letters, digits, dot, dash, underscore"
)
_WORDS = shape.text(most=200)
_SEEDS = shape.integer(least=0, most=MAX_SEEDS)

_GATE = shape.record(
    {
        "key": _NAME,
        "metric": _NAME,
        "op": shape.one_of(*COMPARISONS),
        "threshold": _finite,
        "conditions": shape.table(key=shape.text(least=1, most=200), value=_condition, most=MAX_CONDITIONS),
    },
    {"joint": shape.joint},
)
_RESULT = shape.record(
    {
        "checkpoint": shape.text(least=1, most=40),
        "seeds_run": _SEEDS,
        "seeds_upright": _SEEDS,
        "measured": shape.table(key=_NAME, value=shape.or_null(_finite), most=MAX_GATES),
    }
)
_GATES = shape.list_of(_GATE, most=MAX_GATES)
_RESULTS = shape.list_of(_RESULT, most=MAX_RESULTS)


def _check_gates_together(gates: Sequence[Any], errors: Errors) -> None:
    shape.add_repeats([gate["key"] for gate in gates], "gates", errors, what="gate")
    for place, gate in enumerate(gates):
        if "joint" in gate and gate["metric"] != "tracking_error_rad":
            shape.add(errors, f"gates.{place}.joint", f"{gate['metric']} is about no joint")


def _check_results_together(results: Sequence[Any], keys: set[str], errors: Errors) -> None:
    shape.add_repeats([result["checkpoint"] for result in results], "results", errors, what="checkpoint")
    for place, result in enumerate(results):
        run, upright = result["seeds_run"], result["seeds_upright"]
        if upright > run:
            said = f"{upright} of {run} seeds cannot have stayed upright"
            shape.add(errors, f"results.{place}.seeds_upright", said)
        for key in result["measured"].keys() - keys:
            shape.add(errors, f"results.{place}.measured.{key}", "is the key of no gate of this round")
