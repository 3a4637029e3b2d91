"""
The logs of a trial as channels on the trial's own clock, with the least and the greatest value of each
bucket.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from driver.wire.csvlog import Log
from driver.wire.summary import tilt_deg

Numbers: TypeAlias = "npt.NDArray[np.float64]"

TILT = "tilt"
DEFAULT_CHANNELS = (TILT,)
DEFAULT_BUCKETS = 1000
MAX_BUCKETS = 5000
MAX_CHANNELS = 16

_JOINT_CHANNELS = ("q:", "tgt:", "act:")
_DIRECTIONS = ({"g_x", "g_y", "g_z"}, {"quat_w", "quat_x", "quat_y", "quat_z"})


@dataclass(frozen=True)
class StagePart:
    """One stage's log; `t0_s` is where the summary puts its first row on the trial's clock."""

    name: str
    log: Log
    t0_s: float | None = None


class Channel(TypedDict):
    """`min` and `max` are null where rows have no reading; a bucket without rows is left out."""

    agg: Literal["minmax"]
    t: list[float]
    min: list[float | None]
    max: list[float | None]


class StageSpan(TypedDict):
    name: str
    t0: float
    t1: float
    rows: int


class Series(TypedDict):
    """
    `rows` counts the raw rows in the window. Not decimated, each row is there with its own t, and min equals
    max; else t is the start of a bucket of `bucket_s` seconds.
    """

    channels: dict[str, Channel]
    decimated: bool
    bucket_s: float | None
    rows: int
    stages: list[StageSpan]


class SeriesRefused(ValueError):
    """`field` is the part of the question that cannot be answered."""

    def __init__(self, field: str, said: str) -> None:
        super().__init__(said)
        self.field = field


class UnknownChannel(SeriesRefused):
    def __init__(self, channel: str, known: Sequence[str]) -> None:
        super().__init__(
            "channels", f"The log has no channel {channel[:100]!r}; it has {', '.join(known) or 'none'}."
        )
        self.channel, self.known = channel, tuple(known)


def channels_of(stages: Sequence[StagePart]) -> list[str]:
    """What can be asked of these logs: the tilt where gravity is known, and each joint's q, tgt and act."""
    columns = dict.fromkeys(column for stage in stages for column in stage.log.columns)
    joints = [column for column in columns if column.startswith(_JOINT_CHANNELS)]
    return [TILT, *joints] if any(_has_tilt(stage.log) for stage in stages) else joints


def series(
    stages: Sequence[StagePart],
    *,
    channels: Sequence[str] = DEFAULT_CHANNELS,
    buckets: int = DEFAULT_BUCKETS,
    t0: float | None = None,
    t1: float | None = None,
) -> Series:
    """
    Decimate the channels between t0 and t1, both included, into at most so many buckets of equal width.

    The same question about the same logs has the same answer to the last digit. No row is smoothed or left
    out, so that the greatest value of the answer is the greatest value of the log.

    :raises UnknownChannel: naming what there is
    :raises SeriesRefused: for a window or a number of buckets that makes no sense
    """
    _check_window(buckets, t0, t1)
    _check_channels(channels, channels_of(stages))
    clocks = list(_clocks(stages))
    clock = np.concatenate([*clocks, np.empty(0)])
    # Overlapping stages are a false statement of the box, and still one line of time.
    order = np.argsort(clock, kind="stable")
    clock = clock[order]
    first = 0 if t0 is None else int(np.searchsorted(clock, t0, side="left"))
    end = len(clock) if t1 is None else int(np.searchsorted(clock, t1, side="right"))
    seen = order[first:end]
    grid = _Grid.over(clock[first:end], buckets)
    columns = _columns(stages, list(dict.fromkeys(channels)))
    return {
        "channels": {name: grid.channel(values[seen]) for name, values in columns.items()},
        "decimated": grid.width is not None,
        "bucket_s": grid.width,
        "rows": len(seen),
        "stages": [
            {"name": stage.name, "t0": float(t[0]), "t1": float(t[-1]), "rows": len(t)}
            for stage, t in zip(stages, clocks, strict=True)
            if len(t)
        ],
    }


@dataclass(frozen=True)
class _Grid:
    """Where each bucket that has rows begins: as a time, and as a row of the window."""

    t: Numbers
    starts: npt.NDArray[np.intp] | None
    width: float | None

    @classmethod
    def over(cls, clock: Numbers, buckets: int) -> "_Grid":
        if len(clock) <= buckets:
            return cls(clock, None, None)
        low, width = float(clock[0]), float(clock[-1] - clock[0]) / buckets
        # A row of the very end belongs to the last bucket; without any width there is one bucket.
        bucket = (
            np.minimum((clock - low) / width, buckets - 1).astype(np.int64) if width else np.zeros_like(clock)
        )
        starts = np.concatenate([[0], np.flatnonzero(np.diff(bucket)) + 1])
        return cls(low + bucket[starts] * width, starts, width)

    def channel(self, values: Numbers) -> Channel:
        least, greatest = values, values
        if self.starts is not None:
            # fmin and fmax pass over NaN while the bucket has any reading.
            least = np.fmin.reduceat(values, self.starts)
            greatest = np.fmax.reduceat(values, self.starts)
        return {"agg": "minmax", "t": self.t.tolist(), "min": _listed(least), "max": _listed(greatest)}


def _check_window(buckets: int, t0: float | None, t1: float | None) -> None:
    if not 1 <= buckets <= MAX_BUCKETS:
        raise SeriesRefused("buckets", f"There can be 1 to {MAX_BUCKETS} buckets.")
    for field, moment in (("t0", t0), ("t1", t1)):
        if moment is not None and not math.isfinite(moment):
            raise SeriesRefused(field, "A time is a finite number of seconds.")
    if t0 is not None and t1 is not None and t0 > t1:
        raise SeriesRefused("t1", "The window ends before it begins.")


def _check_channels(channels: Sequence[str], known: Sequence[str]) -> None:
    if not 1 <= len(channels) <= MAX_CHANNELS:
        raise SeriesRefused("channels", f"Ask for 1 to {MAX_CHANNELS} channels at a time.")
    for channel in channels:
        if channel not in known:
            raise UnknownChannel(channel, known)


def _clocks(stages: Sequence[StagePart]) -> Iterator[Numbers]:
    """Each stage's rows on the trial's clock; a stage without a `t0_s` follows the one before it."""
    end = 0.0
    for stage in stages:
        t = stage.log.array("t")
        clock = (end if stage.t0_s is None else stage.t0_s) + (t - t[:1])
        if len(clock):
            end = float(clock[-1])
        yield clock


def _columns(stages: Sequence[StagePart], channels: Sequence[str]) -> dict[str, Numbers]:
    """Each channel over all rows of all stages; NaN where a stage did not measure it."""
    parts = [_part(stage.log, channels) for stage in stages]
    whole = {name: np.concatenate([*(part[name] for part in parts), np.empty(0)]) for name in channels}
    return {name: np.where(np.isfinite(values), values, np.nan) for name, values in whole.items()}


def _part(log: Log, channels: Sequence[str]) -> dict[str, Numbers]:
    nothing = np.full(log.rows, np.nan)
    found = dict.fromkeys(channels, nothing)
    found |= log.tail([name for name in channels if name != TILT and name in log.columns])
    if TILT in channels:
        found[TILT] = tilt_deg(log)
    return found


def _has_tilt(log: Log) -> bool:
    return any(direction <= set(log.columns) for direction in _DIRECTIONS)


def _listed(values: Numbers) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
