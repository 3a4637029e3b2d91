"""The two clocks of the box: one that only measures, and one that says what time the hub has."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


def _wall() -> datetime:
    return datetime.now(UTC)


@dataclass
class Clock:
    """
    Intervals come from `monotonic`, moments from `now`.

    A box without a battery-backed clock may be years off; `skew` is what the hub's own time taught us.
    """

    wall: Callable[[], datetime] = _wall
    monotonic: Callable[[], float] = time.monotonic
    skew: timedelta = field(default=timedelta(0))

    def now(self) -> datetime:
        return self.wall() + self.skew

    def learn(self, hub_time: datetime) -> None:
        """Take the hub's time for ours from now on."""
        self.skew = hub_time - self.wall()
