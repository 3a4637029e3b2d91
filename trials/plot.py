"""A small drawing of a series for a page: numbers in, coordinates out. The template writes the SVG."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 720.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 8.0, 18.0, 22.0


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class StageBand:
    name: str
    x0: float
    width: float


@dataclass(frozen=True)
class Drawing:
    """Coordinates in a box of WIDTH × HEIGHT; `band` is the outline of least and greatest."""

    band: str
    stages: Sequence[StageBand]
    judged: StageBand | None
    limit: Tick | None
    ticks: Sequence[Tick]
    seconds: float
    greatest: float | None
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    bottom: float = HEIGHT - BOTTOM


@dataclass(frozen=True)
class _Scale:
    """Seconds and degrees to coordinates."""

    t0: float
    t1: float
    top: float

    def x(self, t: float) -> float:
        return round(LEFT + (t - self.t0) / max(self.t1 - self.t0, 1e-9) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - min(value, self.top) / self.top * (HEIGHT - TOP - BOTTOM), 1)


def tilt(series: Mapping[str, Any], *, summary: Mapping[str, Any], sheet: Mapping[str, Any]) -> Drawing:
    """The tilt of a run in degrees, its stages, the judged window, and the strictest limit of the sheet."""
    channel, stages = series["channels"]["tilt"], series["stages"]
    greatest = max((value for value in channel["max"] if value is not None), default=None)
    limit = _limit(sheet)
    shown = [value for value in (greatest, limit if _is_near(greatest, limit) else None) if value is not None]
    scale = _Scale(
        t0=stages[0]["t0"] if stages else 0.0,
        t1=stages[-1]["t1"] if stages else 1.0,
        top=_nice(max(shown, default=1.0)),
    )
    return Drawing(
        band=_outline(channel, scale),
        stages=[_band(stage["name"], stage["t0"], stage["t1"], scale) for stage in stages],
        judged=_judged(stages, summary, scale),
        limit=Tick(scale.y(limit), f"limit {limit:g}°") if limit is not None and limit <= scale.top else None,
        ticks=[Tick(scale.y(part * scale.top), f"{part * scale.top:g}°") for part in (0.0, 0.5, 1.0)],
        seconds=scale.t1 - scale.t0,
        greatest=greatest,
    )


def _outline(channel: Mapping[str, Any], scale: _Scale) -> str:
    """Along the greatest values and back along the least: one spike stays a spike."""
    rows = [
        row for row in zip(channel["t"], channel["min"], channel["max"], strict=True) if row[1] is not None
    ]
    there = [f"{scale.x(t)},{scale.y(most)}" for t, _, most in rows]
    back = [f"{scale.x(t)},{scale.y(least)}" for t, least, _ in reversed(rows)]
    return " ".join(there + back)


def _judged(
    stages: Sequence[Mapping[str, Any]], summary: Mapping[str, Any], scale: _Scale
) -> StageBand | None:
    """The half of the judged stage that the numbers come from."""
    window = summary.get("window")
    named = [stage for stage in stages if stage["name"] == summary.get("judged_stage")]
    if not window or not named:
        return None
    return _band("judged", (named[0]["t0"] + named[0]["t1"]) / 2, named[0]["t1"], scale)


def _band(name: str, t0: float, t1: float, scale: _Scale) -> StageBand:
    return StageBand(name, scale.x(t0), round(scale.x(t1) - scale.x(t0), 1))


def _limit(sheet: Mapping[str, Any]) -> float | None:
    rules = [rule["value"] for rule in sheet["abort_rules"] if rule["metric"] == "tilt_deg"]
    return min(rules, default=None)


def _is_near(greatest: float | None, limit: float | None) -> bool:
    """A limit far above everything would press the run into the floor of the drawing."""
    return limit is not None and greatest is not None and greatest > limit / 4


def _nice(value: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(value, 1e-3)))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if value <= step * power)
