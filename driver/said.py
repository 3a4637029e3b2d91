"""What a stage's command said at its stop: a TRIAL-STOP line, or what the box config's patterns find."""

import json
import math
from typing import Any

from driver.config import StageCommand
from driver.wire import canonical, shape
from driver.wire.vocabulary import STOPPED_BY

MARK = "TRIAL-STOP "

_NUMBER = shape.or_null(shape.number())
_TEMPS = shape.table(key=shape.joint, value=_NUMBER, most=256)
_VOLTS = shape.record({}, {"start_v": _NUMBER, "end_v": _NUMBER})


def _battery(value: canonical.JSON, path: str, errors: shape.Errors) -> None:
    (_VOLTS if isinstance(value, dict) else _NUMBER)(value, path, errors)


_KEYS = {
    "stopped_by": shape.one_of(*STOPPED_BY),
    "reason": shape.text(most=2000),
    "motor_temps_c": _TEMPS,
    "battery_v": _battery,
    "fell": shape.flag,
    "tilt_protection": shape.record({"armed": shape.flag, "threshold_deg": _NUMBER}),
    "clamped_ticks": shape.integer(least=0),
    "simulated_clock": shape.flag,
}


def read(output: bytes, command: StageCommand) -> dict[str, Any]:
    """What was said, key by key; a value that cannot be read was not said."""
    lines = output.decode("utf-8", "replace").splitlines()
    marked = [line for line in lines if line.startswith(MARK)]
    said = _parsed(marked[-1].removeprefix(MARK)) if marked else _found("\n".join(lines), command)
    return {
        key: value for key, value in said.items() if key in _KEYS and not shape.errors_in(value, _KEYS[key])
    }


def _parsed(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        said = None
    if isinstance(said, dict):
        return said
    # It may have said that a rule stopped it, so "completed" would be a guess.
    return {"stopped_by": "command_failed", "reason": "its TRIAL-STOP line cannot be read"}


def _found(text: str, command: StageCommand) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if command.temps:
        temps = {motor: _number(value) for motor, value in command.temps.findall(text)}
        said["motor_temps_c"] = {motor: value for motor, value in temps.items() if value is not None}
    if command.battery and (volts := command.battery.findall(text)):
        said["battery_v"] = _number(volts[-1])
    return said


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
