"""The formulas of a summary, version 1, over columns in which NaN is "not measured"."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driver.wire.canonical import MAX_NUMBER
from driver.wire.robot import Pair

Column = NDArray[np.float64]

TIME_GRAIN = 1e-6  # a row that is this near to the window's start is in it
UNIT_GRAIN = 1e-6  # what six decimals leave of a unit vector's length
GAP = 1.5  # a step longer than so many usual ones is a gap

_GRAVITY = ("g_x", "g_y", "g_z")
_QUATERNION = ("quat_w", "quat_x", "quat_y", "quat_z")


def window_rows(t: Column) -> NDArray[np.bool_]:
    """The steady second half of a stage."""
    return np.asarray(t + TIME_GRAIN >= (t[0] + t[-1]) / 2, np.bool_)


def gravity_columns(columns: Collection[str]) -> tuple[str, ...]:
    """The columns that tell the tilt: gravity itself, else a quaternion, else none."""
    for names in (_GRAVITY, _QUATERNION):
        if set(names) <= set(columns):
            return names
    return ()


def tilt(columns: Mapping[str, Column], rows: int) -> Column:
    return np.degrees(np.arccos(np.clip(-_down(columns, rows), -1.0, 1.0)))


def _down(columns: Mapping[str, Column], rows: int) -> Column:
    """The third part of gravity's direction in the body's frame."""
    if "g_z" in columns:
        vector = [columns[name] for name in _GRAVITY]
        return vector[2] / _length(vector)
    if "quat_w" in columns:
        w, x, y, z = (columns[name] for name in _QUATERNION)
        norm = _length([w, x, y, z])
        return 2 * ((x / norm) ** 2 + (y / norm) ** 2) - 1
    return np.full(rows, np.nan)


def _length(parts: Sequence[Column]) -> Column:
    """
    The length of each row's vector, NaN where it is too far from 1 to be a direction.

    A unit vector written with six decimals counts as one: to divide it by its rounded length would move what
    was rounded in x and y into z, where near upright a millionth is a hundredth of a degree.
    """
    length = np.sqrt(sum(part * part for part in parts))
    length = np.where(np.abs(length - 1) <= UNIT_GRAIN, 1.0, length)
    return np.where((length >= 0.5) & (length <= 1.5), length, np.nan)


def asymmetry(pair: Pair, columns: Mapping[str, Column]) -> float | None:
    left, right = columns.get(f"q:{pair.left}"), columns.get(f"q:{pair.right}")
    if left is None or right is None:
        return None
    both = ~(np.isnan(left) | np.isnan(right))
    means = mean(left[both]), mean(right[both])
    if means[0] is None or means[1] is None:
        return None
    return number(np.degrees(abs(means[0] - pair.mirror * means[1])))


def tracking(joint: str, columns: Mapping[str, Column]) -> float | None:
    return mean(readings(columns[f"tgt:{joint}"] - columns[f"q:{joint}"]))


def rising_edges(fall: Column) -> int:
    down = readings(fall) > 0.5
    return int(np.count_nonzero(down & ~np.concatenate(([False], down[:-1]))))


def gaps(t: Column) -> int:
    """Steps longer than one and a half usual ones."""
    steps = np.diff(t)
    steps = steps[steps > 0]
    return int((steps > GAP * np.median(steps)).sum()) if steps.size else 0


def readings(column: Column) -> Column:
    return column[~np.isnan(column)]


def mean(column: Column) -> float | None:
    return number(column.mean()) if column.size else None


def rate(count: float, seconds: float) -> float | None:
    return number(count / seconds) if seconds > 0 and count >= 0 else None


def number(value: Any) -> float | None:
    """A plain float, or nothing for NaN, infinity and what canonical JSON has no room for."""
    return float(value) if abs(value) <= MAX_NUMBER else None
