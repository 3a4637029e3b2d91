"""How a simulated body differs from its model: the query of `mujoco:PATH?latency_ticks=1&noise=1`."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from driver.bodies.base import BodyError


@dataclass(frozen=True, kw_only=True)
class Options:
    """
    `noise`, `spread` and `pushes` are shares of a usual amount: 0 is none, 1 what a policy is trained with.

    `seed` chooses the individual (its `spread`); without one, each run's own seed does.
    """

    model: Path
    latency_ticks: int = 0  # control periods between a target and the motor's acting on it
    noise: float = 0.0  # of gyro, gravity and joint readings, and of the pose at the start
    spread: float = 0.0  # from one individual to the next: mass, gains, friction, zero points
    pushes: float = 0.0  # shoves while it stands on its own
    friction: float | None = None  # of every contact, instead of the model's
    power: float = 1.0  # share of its torque that a motor gives
    mass: float = 1.0  # of the base
    seed: int | None = None
    keyframe: str | None = None  # the pose at the start; otherwise the model's first keyframe, if it has one
    hang_from: str | None = None  # the body that the ropes hold; otherwise the base
    lift: float = 0.1  # how high they hold it, as a share of the model's own height
    imu: str | None = None  # the site of the IMU; otherwise that of the gyro, otherwise the base
    realtime: bool = False  # keep pace with the world's clock
    silent_after_s: float | None = None  # from then on no sensor speaks, as when an e-stop cuts the bus


_MOST = {
    "latency_ticks": 50,
    "noise": 20,
    "spread": 2,
    "pushes": 20,
    "friction": 10,
    "power": 2,
    "mass": 10,
    "lift": 10,
}
_ABOVE_ZERO = ("friction", "power", "mass")


def parse_options(text: str) -> Options:
    """
    Options from `PATH?name=value&…`.

    :raises BodyError: for an unknown name or a value that cannot be meant
    """
    path, _, query = text.partition("?")
    pairs = _pairs(query)
    if len(dict(pairs)) != len(pairs):
        raise BodyError(f"an option stands twice in {query!r}")
    return options_from({**dict(pairs), "model": path})


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError:
        raise BodyError(f"{query!r} is not made of name=value, joined by &") from None


def options_from(values: Mapping[str, Any]) -> Options:
    """Options from a table whose values may still be text."""
    known = {field.name: field for field in fields(Options)}
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, list(known), n=1)
            raise BodyError(
                f"{name!r} is no option of the body{f'; did you mean {near[0]!r}?' if near else ''}"
            )
    read = {name: _read(name, value) for name, value in values.items()}
    missing = [name for name, field in known.items() if field.default is MISSING and not read.get(name)]
    if missing:
        raise BodyError(f"the body needs its {missing[0]}: mujoco:robot.xml?…")
    return Options(**read)


def _read(name: str, value: Any) -> Any:
    if name == "model":
        return Path(value) if value else None
    if name in ("keyframe", "imu", "hang_from"):
        return str(value)
    if name == "realtime":
        return _flag(name, value)
    return _number(name, value, whole=name in ("latency_ticks", "seed"))


def _flag(name: str, value: Any) -> bool:
    said = str(value).lower()
    if said not in ("1", "true", "0", "false"):
        raise BodyError(f"{name} is {value!r}; it must be true or false")
    return said in ("1", "true")


def _number(name: str, value: Any, *, whole: bool) -> float:
    try:
        number = int(value) if whole else float(value)
    except (TypeError, ValueError):
        raise BodyError(f"{name} is {value!r}; it must be a {'whole ' if whole else ''}number") from None
    if not math.isfinite(number) or number < 0 or number > _MOST.get(name, 2**53):
        raise BodyError(f"{name} is {value!r}; it must be from 0 to {_MOST.get(name, 2**53)}")
    if number == 0 and name in _ABOVE_ZERO:
        raise BodyError(f"{name} must be above 0")
    return number
