"""One run as the rules see it, and the numbers read out of its summary."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from hub.campaigns.rules.gates import number_of

LogState = Literal["awaiting", "uploaded", "missing", "malformed"]
Role = Literal["control", "candidate"]
Summary: TypeAlias = Mapping[str, Any]
Sides: TypeAlias = Mapping[str, tuple[str, str]]  # a pair's common name -> its two joints

TRACKING = "tracking_error_rad"


@dataclass(frozen=True, kw_only=True)
class Run:
    """
    What is known of one trial's run.

    `is_closed` means that it never ran and no longer can, so that nobody waits for its log.
    """

    trial: str
    position: int
    role: Role
    checkpoint: str
    log: LogState = "awaiting"
    summary: Summary | None = None
    hub_check: Mapping[str, Any] | None = None
    is_closed: bool = False
    started_at: datetime | None = None
    stopped_at: datetime | None = None

    @property
    def measured(self) -> Summary | None:
        """The summary of an uploaded log; a missing or malformed one measures nothing, whatever it says."""
        return self.summary if self.log == "uploaded" else None

    @property
    def is_awaited(self) -> bool:
        return self.log == "awaiting" and not self.is_closed

    @property
    def is_lost(self) -> bool:
        """There is no log and there will be none."""
        return self.log in ("missing", "malformed") or (self.log == "awaiting" and self.is_closed)


@dataclass(frozen=True)
class Measure:
    """One number of a summary: a metric, for the tracking error with the joint or pair it is about."""

    metric: str
    joint: str | None = None


def sides_of(pairs: Iterable[Mapping[str, Any]]) -> Sides:
    """The sheet's judging pairs, by name."""
    return {pair["name"]: (pair["left"], pair["right"]) for pair in pairs}


def value_of(summary: Summary | None, measure: Measure, sides: Sides) -> float | None:
    """
    The number, or None where the log did not give it. A tracking error is taken without its sign.

    A pair's common name means the worse of its sides, and None while one of them is not measured.
    The tracking error of no joint in particular is the worst of all that are measured.
    """
    if summary is None:
        return None
    if measure.metric != TRACKING:
        return number_of(summary.get(measure.metric))
    errors = _tracking(summary)
    if measure.joint is None:
        return max(errors.values(), default=None)
    if measure.joint in errors:
        return errors[measure.joint]
    return _worst(errors, sides.get(measure.joint, (measure.joint,)))


def values_of(
    first: Summary | None, last: Summary | None, measure: Measure, sides: Sides
) -> tuple[float | None, float | None]:
    """
    The number of two runs that are to be compared with each other.

    The worst tracking error of a run is None when the other run measured a joint that this one did not: the
    worst of fewer joints is another number.
    """
    if first is None or last is None or measure != Measure(TRACKING):
        return value_of(first, measure, sides), value_of(last, measure, sides)
    before, after = _tracking(first), _tracking(last)
    joints = tuple(before.keys() | after.keys())
    return _worst(before, joints), _worst(after, joints)


def hub_view(run: Run) -> Summary | None:
    """The summary with the hub's own number wherever it differs from the driver's."""
    check = run.hub_check or {}
    if run.measured is None or check.get("state") != "differs":
        return run.measured
    seen: dict[str, Any] = dict(run.measured)
    for difference in check.get("differences", ()):
        metric, _, part = str(difference["key"]).partition(".")
        if part:
            seen[metric] = {**(seen.get(metric) or {}), part: difference["hub"]}
        else:
            seen[metric] = difference["hub"]
    return seen


def _tracking(summary: Summary) -> dict[str, float]:
    found = summary.get(TRACKING)
    if not isinstance(found, Mapping):
        return {}
    numbers = {joint: number_of(error) for joint, error in found.items()}
    return {joint: abs(error) for joint, error in numbers.items() if error is not None}


def _worst(errors: Mapping[str, float], joints: Sequence[str]) -> float | None:
    if not joints or any(joint not in errors for joint in joints):
        return None
    return max(errors[joint] for joint in joints)
