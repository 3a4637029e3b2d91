"""
How much two runs of one policy differ on this device, and so how small a difference a session can see.

The only repeats are past control pairs: the same policy, first and last in a session on the same device. Rows
inside one log are one run and never count as repeats of it.

From n pairs with differences dᵢ, s_r = √(Σdᵢ² / 2n) estimates the standard deviation between runs with n
degrees of freedom (ISO 5725-6's repeatability from duplicates; the mean difference is taken as zero, so that
a drift that comes back every session widens the limit instead of hiding). A pair whose bracket failed counts
too: leaving those out would tighten the limit with every session.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from hub.campaigns.rules.gates import number_of
from trials.rules.runs import Measure, Run, Sides, Summary, value_of, values_of
from trials.rules.student import t_quantile

MIN_PAIRS = 3
ONE_RUN = "one run, no interval"
ORDER_IS_RISK = (
    "Candidates run in the order of their risk in simulation, so order and risk are one variable here: "
    "a drift of the session falls hardest on the riskiest."
)
ORDER_BY_STEP = (
    "Nothing is known of the candidates' risk in simulation, so they run by step: "
    "a drift of the session falls hardest on the last."
)
COMPARED = (
    Measure("tilt_mean_deg"),
    Measure("tilt_max_deg"),
    Measure("asym_max_deg"),
    Measure("tracking_error_rad"),
)


@dataclass(frozen=True)
class ControlPair:
    """The summaries of one policy run first and last in an earlier session on this device."""

    first: Summary
    last: Summary


@dataclass(frozen=True)
class Spread:
    """Standard deviation from run to run, estimated from n control pairs."""

    s_r: float
    n: int

    @property
    def limit(self) -> float:
        """What the difference of two runs of one policy stays within, 19 times in 20: t₀.₉₇₅,n·√2·s_r."""
        return t_quantile(self.n) * math.sqrt(2) * self.s_r

    def floor_of_mean(self, controls: int) -> float:
        """
        The smallest difference between one run and the mean of so many control runs that is clear of noise.
        """
        return t_quantile(self.n) * self.s_r * math.sqrt(1 + 1 / controls)

    def floor_at(self, fraction: float) -> float:
        """
        The same against the control interpolated at this fraction of the way from the first to the last.
        """
        return t_quantile(self.n) * self.s_r * math.sqrt(1 + fraction**2 + (1 - fraction) ** 2)


def spread(past: Sequence[ControlPair], measure: Measure, sides: Sides) -> Spread | None:
    """None while fewer than three past pairs have the number in both runs."""
    values = [values_of(pair.first, pair.last, measure, sides) for pair in past]
    differences = [last - first for first, last in values if first is not None and last is not None]
    if len(differences) < MIN_PAIRS:
        return None
    found = number_of(math.hypot(*differences) / math.sqrt(2 * len(differences)))
    return None if found is None else Spread(found, len(differences))


class NoiseFloor(TypedDict):
    value: float
    n: int


class Comparison(TypedDict):
    """
    One candidate against the control, a metric at a time.

    `from_mean` and `from_interpolated` are candidate minus control. `fraction` is how far the session's clock
    had gone from the first control's start to the last one's. `decides` is false once the bracket does not
    hold.
    """

    trial: str
    position: int
    clock_s: float | None
    waited_s: float | None
    metric: str
    value: float | None
    control_mean: float | None
    control_interpolated: float | None
    drift: float | None
    fraction: float | None
    from_mean: float | None
    from_interpolated: float | None
    noise_floor: NoiseFloor | None
    words: str | None
    decides: bool


def compare(
    runs: Sequence[Run], *, sides: Sides, past: Sequence[ControlPair], holds: bool | None
) -> list[Comparison]:
    """Every candidate of a session against its controls; `runs` are all of the session's, in order."""
    return [
        _compared(run, measure, runs=runs, sides=sides, past=past, holds=holds)
        for run in runs
        if run.role == "candidate"
        for measure in COMPARED
    ]


def fraction_between(first: Run, run: Run, last: Run) -> float | None:
    """
    Where a run's start lies between the controls' starts: 0 at the first, 1 at the last; None when unknown.
    """
    if first.started_at is None or run.started_at is None or last.started_at is None:
        return None
    if not first.started_at < last.started_at or not first.started_at <= run.started_at <= last.started_at:
        return None
    return (run.started_at - first.started_at) / (last.started_at - first.started_at)


def mean_of(values: Sequence[float]) -> float | None:
    return math.fsum(value / len(values) for value in values) if values else None


@dataclass(frozen=True)
class _Controls:
    """What the two control runs of a session give for one measure."""

    first: Run
    last: Run
    before: float | None
    after: float | None

    @property
    def known(self) -> list[float]:
        return [value for value in (self.before, self.after) if value is not None]

    @property
    def drift(self) -> float | None:
        """Last minus first, of one policy run twice; the difference of two policies is no drift."""
        if self.first is self.last or self.first.checkpoint != self.last.checkpoint:
            return None
        return _minus(self.after, self.before)

    def at(self, fraction: float | None) -> float | None:
        """The control as it would have run at that fraction of the way, were the drift even."""
        if self.before is None or self.drift is None or fraction is None:
            return None
        return self.before + fraction * self.drift


def _compared(
    run: Run,
    measure: Measure,
    *,
    runs: Sequence[Run],
    sides: Sides,
    past: Sequence[ControlPair],
    holds: bool | None,
) -> Comparison:
    first, *_, last = [other for other in runs if other.role == "control"]
    controls = _Controls(first, last, *values_of(first.measured, last.measured, measure, sides))
    fraction = fraction_between(first, run, last)
    value, mean, now = value_of(run.measured, measure, sides), mean_of(controls.known), controls.at(fraction)
    floor = _floor(spread(past, measure, sides), len(controls.known), fraction if now is not None else None)
    return {
        "trial": run.trial,
        "position": run.position,
        "clock_s": _seconds(first.started_at, run.started_at),
        "waited_s": _seconds(_stop_before(run, runs), run.started_at),
        "metric": measure.metric,
        "value": value,
        "control_mean": mean,
        "control_interpolated": now,
        "drift": controls.drift,
        "fraction": fraction,
        "from_mean": _minus(value, mean),
        "from_interpolated": _minus(value, now),
        "noise_floor": floor,
        "words": None if floor else ONE_RUN,
        "decides": holds is not False,
    }


def _floor(found: Spread | None, controls: int, fraction: float | None) -> NoiseFloor | None:
    if found is None or controls == 0:
        return None
    value = number_of(found.floor_of_mean(controls) if fraction is None else found.floor_at(fraction))
    return None if value is None else {"value": value, "n": found.n}


def _stop_before(run: Run, runs: Sequence[Run]) -> datetime | None:
    """When the run before this one stopped; a trial that never ran is passed over."""
    return max((o.stopped_at for o in runs if o.position < run.position and o.stopped_at), default=None)


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return (until - since).total_seconds() if since is not None and until is not None else None


def _minus(value: float | None, other: float | None) -> float | None:
    return number_of(value - other) if value is not None and other is not None else None
