"""Ticks at absolute moments: what comes late once does not make all later ticks late."""

import math
from dataclasses import dataclass


@dataclass
class Deadlines:
    """The moments `start + n * period`. A tick that overran skips those that are over; none is caught up."""

    start: float
    period: float
    count: int = 0

    def following(self, now: float) -> float:
        """The next moment to wake at, never one that is over."""
        over = math.floor((now - self.start) / self.period + 1e-9)
        self.count = max(self.count, over) + 1
        return self.start + self.count * self.period
