"""The rhythm of a stage: wake on each deadline, look whether somebody wants it to stop, read the body."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from driver.bodies.base import Body, State
from driver.policy.deadlines import Deadlines
from driver.policy.ending import Stopped


@dataclass(frozen=True)
class Tick:
    state: State
    now: float
    gap_s: float | None  # since the tick before


class Pace:
    def __init__(self, body: Body, *, period_s: float, asked: Callable[[], None]) -> None:
        self._body, self._asked = body, asked
        self._deadlines = Deadlines(body.clock.now(), period_s)
        self._before: float | None = None

    def here(self) -> Tick:
        """The body as it is now."""
        state = self._body.read()
        if not (np.isfinite(state.joint_pos).all() and np.isfinite(state.joint_vel).all()):
            raise Stopped("command_failed", "the body reports a joint that is not finite")
        now = self._body.clock.now()
        gap = None if self._before is None else now - self._before
        return Tick(state, now, gap)

    def next(self) -> Tick:
        """
        The body at the next deadline.

        :raises Stopped: and Orphaned, where somebody wants it to stop
        """
        self._before = self._body.clock.now() if self._before is None else self._before
        self._body.clock.sleep_until(self._deadlines.following(self._body.clock.now()))
        self._asked()
        tick = self.here()
        self._before = tick.now
        return tick
