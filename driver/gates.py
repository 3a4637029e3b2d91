"""A stage's gate, judged on the box from the stage's own log: what is not measured does not pass."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from driver import summaries
from driver.wire.csvlog import Log

COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}


def failed(sheet: Mapping[str, Any], stage: Mapping[str, Any], log: Log | None) -> str | None:
    """The first condition of the gate that the log does not meet, in words, or nothing."""
    if not stage.get("gate"):
        return None
    numbers = summaries.of_stage(sheet, stage, log) if log is not None else {}
    for gate in stage["gate"]:
        value = summaries.metric(numbers, gate["metric"], _joints(gate, sheet))
        if value is None or not COMPARE[gate["op"]](value, gate["threshold"]):
            said = "was not measured" if value is None else f"is {value:.4g}"
            return f"gate: {gate['metric']} {said}, wanted {gate['op']} {gate['threshold']:g}"
    return None


def _joints(gate: Mapping[str, Any], sheet: Mapping[str, Any]) -> list[str]:
    """The joint that a condition names, or both of a pair that it names by what they have in common."""
    named = gate.get("joint")
    pairs = [pair for pair in sheet["judging"]["pairs"] if pair["name"] == named]
    return [pairs[0]["left"], pairs[0]["right"]] if pairs else [named] if named else []
